# Archives of arrays from elsewhere: damaged elements are never results, sizes are not believed, names are no paths.

load helpers

setup_file() {
    make_work
    python3 "$here/npz.py" "$work/npz"
}
setup() { cd "$work" || return; }

@test "npz: stored and deflated members, zip64 too, are read" {
    local kind
    for kind in stored deflated zip64 deflated64 good-names many; do
        hone-run relu.onnx --data "npz/$kind.npz" | npy show >got
        [ "$(cat got)" = '<f4[2,3] 1 0 3 0 5 0' ] || explain "$kind: $(cat got)"
    done
}

@test "npz: a wrong checksum is status 1, and no element is used" {
    local kind
    for kind in stored deflated zip64 deflated64; do
        refuses 1 'checksum' hone-run relu.onnx --data "npz/crc-$kind.npz"
        refuses 1 '' hone-run relu.onnx --data "npz/cut-$kind.npz"
    done
    refuses 1 'checksum' hone-run relu.onnx --data npz/bad-element.npz
    refuses 1 'checksum' hone-run relu.onnx --data npz/bad-last.npz
    refuses 1 'checksum' hone-run relu.onnx --data npz/bad-last.npz --batch 1
    refuses 1 'checksum' hone-run relu.onnx --input x=npz/bad-element.npz
}

@test "npz: sizes, methods and doubles that cannot be are refused" {
    local kind
    for kind in size offset encrypted ratio; do
        refuses 1 '' hone-run relu.onnx --data "npz/bad-$kind.npz"
    done
    refuses 4 'method 93' hone-run relu.onnx --data npz/bad-method.npz
    refuses 1 'behind its elements' hone-run relu.onnx --data npz/bad-behind.npz
    refuses 1 "two arrays 'x'" hone-run relu.onnx --data npz/bad-twice.npz
}

@test "npz: a bomb ends at the memory limit" {
    refuses 6 '' hone-run relu.onnx --data npz/bomb.npz --mem-limit 50M
}

@test "npz: names of outputs are no paths in an archive or folder" {
    local names='../../hone-escape /var/hone-escape a/b'
    # shellcheck disable=SC2086
    python3 "$here/named.py" named.onnx $names
    hone-run named.onnx --data x.npy >out.npz
    run python3 -c 'import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep="\n")' out.npz
    [ "$output" = $'%2E.%2F..%2Fhone-escape.npy\n%2Fvar%2Fhone-escape.npy\na%2Fb.npy' ] || explain
    mkdir -p deep/er
    (cd deep/er && succeeds hone-run ../../named.onnx --data ../../x.npy --out sets)
    [ "$(cd deep/er && find . -type f | sort | paste -sd' ')" = './sets/test_data_set_0/output_0.pb ./sets/test_data_set_0/output_1.pb ./sets/test_data_set_0/output_2.pb' ]
    [ ! -e /var/hone-escape ] && [ ! -e /var/hone-escape.npy ] && [ -z "$(find . -name '*escape*')" ]
    # what was written so is found again by those names
    python3 "$here/named.py" --inputs back.onnx $names
    [ "$(hone-run back.onnx --data out.npz | npy show - | sed 's/^[^<]*//')" = "$(npy show out.npz | sed 's/^[^<]*//')" ]
}

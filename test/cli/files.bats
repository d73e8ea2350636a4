# Files as they should not be: cut short while they are read, empty, of another kind; stdout under other names; links.

load helpers

setup_file() {
    make_work
    cd "$work" || return
    python3 - "$root/test/onnx" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from wire import FLOAT, node, simple, tensor, value
n = 1 << 20
x, y = value("x", FLOAT, (1, n)), value("y", FLOAT, (1, n))
open("large.onnx", "wb").write(simple([node("Add", ["x", "w"], ["y"])], (tensor("w", FLOAT, (1, n), bytes(4 * n)),), (x,), (y,)))
END
    npy make '<f4' 1,3 '1 2 3' one.npy
}
setup() { cd "$work" || return; }

# is_cut FILE COMMAND...: FILE, a copy of what the command reads, is cut short meanwhile
is_cut() {
    refuses 1 "'$1' was cut short by another program while it was being read" python3 "$here/cut_short.py" "$@"
}

@test "files: a model that is cut short while it is read" {
    local options=(-q --time 20s -t2)
    cp large.onnx m.onnx
    is_cut m.onnx hone-bench "${options[@]}" m.onnx
    cp large.onnx m.onnx
    is_cut m.onnx hone-profile "${options[@]}" m.onnx
    cp large.onnx m.onnx
    is_cut m.onnx hone-run -q --data random:2000 m.onnx --out "$BATS_TEST_TMPDIR/o"
    cp large.onnx m.onnx
    is_cut m.onnx hone-export -q --check 2000 m.onnx -o out.onnx
    [ ! -e out.onnx ] && [ -z "$(find . -name '.out*')" ]
}

@test "files: weights and data that are cut short while they are read" {
    hone-export large.onnx -o beside.onnx --external one-file >/dev/null
    local data
    data=$(echo beside.onnx.*.data)
    python3 "$here/cut_short.py" "$data" hone-bench -q --time 20s beside.onnx 2>err && return 1
    grep -q "beside.onnx.*.data' was cut short" err
    # in the thread that reads ahead
    python3 -c '
import struct
head = b"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (4000, 1, 4096), }"
head += b" " * (118 - len(head) - 1) + b"\n"
open("x.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + bytes(4000 * 4096 * 4))'
    python3 - "$root/test/onnx" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from wire import FLOAT, node, simple, tensor, value
n = 4096
w = tensor("w", FLOAT, (n, n), bytes(4 * n * n))
open("slow.onnx", "wb").write(simple([node("MatMul", ["x", "w"], ["y"])], (w,), (value("x", FLOAT, (1, n)),),
                                     (value("y", FLOAT, (1, n)),)))
END
    is_cut x.npy hone-run -q -t1 slow.onnx --data x.npy --out "$BATS_TEST_TMPDIR/p"
}

@test "files: stdout under another name" {
    local out
    hone-export relu.onnx -o - 2>/dev/null >want.onnx
    for out in /dev/stdout /dev/fd/1 /proc/self/fd/1; do
        hone-export relu.onnx -o $out 2>report >got.onnx
        cmp got.onnx want.onnx
        hone-export relu.onnx -o $out 2>report | cmp - want.onnx
        grep -q nodes report
        refuses 2 "'--json' needs a file" bash -c "hone-export relu.onnx -o $out --json | cat; exit \${PIPESTATUS[0]}"
        hone-profile relu.onnx --runs 2 --trace $out 2>/dev/null | python3 -c 'import json, sys; json.load(sys.stdin)'
        hone-bench relu.onnx --runs 2 --json=$out 2>/dev/null | python3 -c 'import json, sys; json.load(sys.stdin)'
    done
    # the very file that stdout goes to
    hone-export relu.onnx -o got.onnx 2>report >got.onnx
    cmp got.onnx want.onnx
    # in there nothing is mixed
    succeeds hone-export relu.onnx -o /dev/null
    [[ $output == *nodes* ]] || explain
    refuses 2 "need a path" bash -c 'hone-export relu.onnx -o /dev/null --external one-file --no-check'
}

@test "files: a link that leads nowhere yet" {
    mkdir -p links/there
    cd links
    ln -s there/new.onnx link.onnx
    ln -s no/such.onnx nowhere.onnx
    ln -s loop.onnx loop.onnx
    succeeds hone-export ../relu.onnx -o link.onnx
    [ -L link.onnx ] && [ -f there/new.onnx ] && [ ! -L there/new.onnx ]
    refuses 1 "cannot write 'nowhere.onnx'" hone-export ../relu.onnx -o nowhere.onnx
    refuses 1 "cannot write 'loop.onnx'" hone-export ../relu.onnx -o loop.onnx
    [ -L nowhere.onnx ] && [ -L loop.onnx ] && [ "$(find . | wc -l)" -eq 6 ]
}

@test "files: empty ones" {
    : >empty.onnx
    : >empty.pb
    mkdir -p hollow
    cp good/test_data_set_0/input_0.pb hollow/
    : >hollow/input_0.pb
    local tool
    for tool in "hone-run --data random" hone-bench hone-profile "hone-diff relu.onnx" "hone-export -o no.onnx"; do
        refuses 1 "'empty.onnx'" $tool empty.onnx
        [[ $stderr == *'is empty' ]] || explain
    done
    refuses 1 "'stdin' is empty" hone-run --data random - </dev/null
    refuses 1 "'empty.pb' is empty" hone-run relu.onnx --input x=empty.pb
    refuses 1 "input_0.pb' is empty" hone-run relu.onnx --data hollow
}

# looks_like WORDS BYTES
looks_like() {
    printf "$2" >odd.onnx
    refuses 1 "'odd.onnx': not an ONNX model: it looks like $1" hone-run odd.onnx --data random
}

@test "files: of another kind" {
    looks_like 'a PNG image' '\x89PNG\r\n\x1a\n\0\0\0\rIHDR'
    looks_like 'a zip archive' 'PK\x03\x04\x14\0\0\0'
    looks_like 'compressed by gzip' '\x1f\x8b\x08\0'
    looks_like 'a TensorFlow Lite model' '\x1c\0\0\0TFL3aaaaaaaa'
    looks_like 'a TensorFlow SavedModel' '\x08\x01\x12\xa0\x01\n\x10aaaaaaaaaaaaaaaa'
    looks_like 'an HDF5 file' '\x89HDF\r\n\x1a\n'
    looks_like 'a Python pickle' '\x80\x02}q\x00.'
    looks_like 'a pointer of Git LFS' 'version https://git-lfs.github.com/spec/v1\noid sha256:1\n'
    looks_like 'a web page' '<!DOCTYPE html>\n<html>'
    looks_like 'text' 'hello, world\n'
    refuses 1 "not an ONNX tensor: it looks like text" hone-run relu.onnx --input x=odd.onnx
    refuses 1 "'odd.onnx': not an ONNX model: it looks like text" hone-bench odd.onnx
    # a model that is cut off is still told where
    head -c 60 relu.onnx >odd.onnx
    refuses 1 "not an ONNX model: the field at byte" hone-run odd.onnx --data random
}

@test "files: closed descriptors do not become those of files" {
    hone-export relu.onnx -o want.onnx >/dev/null
    hone-export -v relu.onnx -o got.onnx >/dev/null 2>&-
    cmp got.onnx want.onnx
    hone-export -vv --explain relu.onnx -o got.onnx <&- >/dev/null 2>&-
    cmp got.onnx want.onnx
    hone-export relu.onnx -o other.onnx >&- 2>err || [ $? -eq 1 ]
    cmp other.onnx want.onnx
    grep -q "cannot write 'stdout': Bad file descriptor" err
    run bash -c 'hone-run relu.onnx --data - <&-'
    [ "$status" -eq 1 ] && [[ $output == *"Bad file descriptor"* ]] || explain
}

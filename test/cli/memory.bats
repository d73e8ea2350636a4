# Limits on memory: --mem-limit, and those of the process itself (ulimit -v, ulimit -d). What ends is a tool with
# status 6 and one sentence, never by a signal.

load helpers

setup_file() {
    make_work
    python3 "$here/large.py" "$work" 5000
}
setup() { cd "$work" || return; }

# under LIMIT TOOL...: status 0 or 6 (3 where what hone-quantize made is no better), and with 6 one sentence; LIMIT is
# -v or -d and kilobytes
under() {
    run --separate-stderr bash -c 'ulimit -c 0; ulimit "$0" "$1" || exit 99; shift; exec "$@"' "$1" "$2" "${@:3}"
    case $3:$status in
        *:6) sentence memory ;;
        *:0 | hone-quantize:3) ;;
        *) false ;;
    esac || explain ulimit "$@"
}

# every FIRST LAST KIND MODEL: all tools under limits in steps of a half
every() {
    local kb
    for ((kb = $1; kb < $2; kb += kb / 2)); do
        under "$3" "$kb" hone-run "$4" --data random --out out
        under "$3" "$kb" hone-profile "$4" --runs 1
        under "$3" "$kb" hone-export "$4" -o out.onnx
        under "$3" "$kb" hone-bench "$4" --runs 7
    done
    under "$3" "$1" hone-quantize "$4" --speed-only -o out.onnx
}

@test "memory: a model without outputs is refused" {
    refuses 1 'no outputs' hone-run no-outputs.onnx --data random
    refuses 1 'no outputs' hone-bench no-outputs.onnx
    refuses 1 'no outputs' hone-profile no-outputs.onnx
    refuses 1 'no outputs' hone-export no-outputs.onnx -o out.onnx
    refuses 1 'no outputs' hone-quantize no-outputs.onnx --speed-only -o out.onnx
    [ ! -e out.onnx ]
}

@test "memory: address space runs out at any place" {
    every 40000 150000 -v nodes.onnx
    every 40000 100000 -v "$root/models/digits/model.onnx"
}

@test "memory: data runs out at any place" {
    every 15000 60000 -d nodes.onnx
}

# How reports look: on a terminal of 80 and of 120 columns, without colours, and in a pipe.

load helpers

setup_file() {
    export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
    make_work
    ln -s "$(realpath "$root")/models/digits" digits # command lines to copy are not broken: they have short names here
}
setup() { cd "$work" || return; }

# fits COMMAND...: no line is wider than the terminal, none has codes of colours where NO_COLOR is set, and none in a pipe
fits() {
    for columns in 80 120; do
        NO_COLOR=1 run --separate-stderr python3 "$here/terminal.py" $columns "$@"
        [ "$status" -eq 0 ] || explain "$@"
        [[ $output != *$'\x1b['*m* ]] || explain "$@"
        for line in "${lines[@]}"; do
            line=$(sed 's/\x1b\[[0-9;]*[A-Za-z]//g' <<<"$line")
            [ ${#line} -le $columns ] || explain "$columns columns, not ${#line}: $line"
        done
    done
    run "$@"
    [ "$status" -eq 0 ] || explain "$@"
    [[ $output != *$'\x1b'* && $output != *$'\r'* ]] || explain "$@"
}

# bars COMMAND...: a progress bar with time left is seen, is never as wide as the terminal, has no colours, and is wiped in the end;
# there is none where it is not wanted, the terminal cannot, or the output is no terminal
bars() {
    local columns line
    for columns in 40 80 120; do
        NO_COLOR=1 run --separate-stderr python3 "$here/terminal.py" $columns "$@"
        [ "$status" -eq 0 ] && [[ $stderr == *' %'* && $stderr != *$'\x1b'* ]] || explain "$@"
        [ $columns = 40 ] || [[ $stderr == *' left'* ]] || explain "$columns columns: no time left"
        for line in "${stderr_lines[@]}"; do
            [ ${#line} -lt $columns ] || explain "$columns columns, not ${#line}: $line"
        done
        [[ $output != *' left'* ]] || explain "$columns columns: the bar still stands there"
    done
    run --separate-stderr python3 "$here/terminal.py" 80 "$@" --no-progress
    [ "$status" -eq 0 ] && [ -z "$stderr" ] || explain --no-progress
    TERM=dumb run --separate-stderr python3 "$here/terminal.py" 80 "$@"
    [ "$status" -eq 0 ] && [ -z "$stderr" ] || explain TERM=dumb
    run --separate-stderr "$@"
    [ "$status" -eq 0 ] && [[ $stderr != *$'\r'* ]] || explain "a pipe"
}

@test "terminal: progress bars" {
    bars hone-bench digits --time 1 --csv
}

# what the bar says changes at each step, and it goes on all the same; a part that does not fit is left out
@test "terminal: how long training takes" {
    learns() {
        NO_COLOR=1 run --separate-stderr python3 "$here/terminal.py" "$1" hone-distill --student digits --data digits/train.npz \
            --val digits/test.npz --loss ce --epochs 80 --lr 0.0001 --force -o learned.onnx
        [ "$status" -eq 0 ] && grep -qE "$2" <<<"$stderr" || explain "$1 columns"
    }
    learns 80 '^epoch [0-9]+/80, loss [0-9.e-]+ +\[.* left'
    learns 120 '^epoch [0-9]+/80, loss [0-9.e-]+, best [^,[]+ +\[.* left'
}

@test "terminal: reports of what a model is, says and takes" {
    fits hone
    fits hone-inspect digits --nodes --weights
    fits hone-run digits --data random:1 --print
    fits hone-run digits --data random:3 --print
    fits hone-bench digits --dim N=1,8 --runs 20
    fits hone-bench digits --dim N=1,8 --churn --runs 3
    fits hone-profile digits --runs 10 --no-advise
}

@test "terminal: reports of models that are made" {
    fits hone-diff digits digits --per-layer
    fits hone-export -v digits out.onnx
    fits hone-replay out.onnx digits
    fits hone-quantize digits --calib digits/train.npz --samples 16 --force -o q.onnx
    fits hone-prune digits --flops 0.6x --calib digits/train.npz --samples 32 --force -o p.onnx
}

# --time-limit of every tool, and Ctrl-C, where a model would take for ever: sentence, status, nothing left behind.

load helpers

setup_file() { make_work; }
setup() { cd "$work" || return; }

# late MILLISECONDS COMMAND...: ends by the limit of 300 ms, within so many of them, with nothing written
late() {
    local most=$1 start end
    shift
    start=$(date +%s%N)
    refuses 6 'time limit of 0.3 s reached' "$@" --time-limit 300ms
    end=$(date +%s%N)
    [ $(((end - start) / 1000000)) -lt "$most" ] || { echo "$* took $(((end - start) / 1000000)) ms"; return 1; }
    [ -z "$(find . -newer forever.onnx ! -name . ! -name '*.fifo' -print -quit)" ] || { ls -la; return 1; }
}

@test "time: a loop without end is ended by --time-limit, in each tool" {
    local m
    touch forever.onnx
    for m in forever idle-forever; do
        late 3000 hone-run $m.onnx --data random
        late 3000 hone-run $m.onnx --data random -o out
        late 3000 hone-bench $m.onnx
        late 3000 hone-bench $m.onnx $m.onnx
        late 3000 hone-bench relu.onnx $m.onnx
        late 3000 hone-bench $m.onnx --streams 2
        late 3000 hone-export $m.onnx -o out.onnx
        late 3000 hone-diff $m.onnx $m.onnx
        late 3000 hone-quantize $m.onnx --speed-only --mode dynamic -o out.onnx --journal none --timing-cache none
    done
    XDG_CACHE_HOME=$BATS_TEST_TMPDIR late 5000 hone-profile forever.onnx
}

@test "time: measuring without end, too" {
    touch forever.onnx
    late 3000 hone-bench relu.onnx --time 1h
    late 3000 hone-bench relu.onnx two.onnx --time 1h
    late 3000 hone-bench relu.onnx --streams 2 --time 1h
    XDG_CACHE_HOME=$BATS_TEST_TMPDIR late 5000 hone-profile relu.onnx --time 1h
}

@test "time: nobody writes what is read" {
    mkfifo "$BATS_TEST_TMPDIR/x.fifo"
    exec 7<>"$BATS_TEST_TMPDIR/x.fifo"
    touch forever.onnx
    late 3000 hone-run relu.onnx <&7
    late 3000 hone-export - -o out.onnx <&7
    exec 7>&-
}

@test "time: a limit that is not reached changes nothing" {
    succeeds hone-run relu.onnx --data x.npy --time-limit 1m
    succeeds hone-export relu.onnx -o quick.onnx --time-limit 1m
    rm quick.onnx
}

@test "time: a step that does not look at the clock is ended, too" {
    touch forever.onnx
    late 12000 hone-run heavy.onnx --data random --device ref
}

@test "time: durations that are none" {
    refuses 2 'no time at all' hone-run relu.onnx --time-limit 0s
    refuses 2 "'soon' is not a duration" hone-run relu.onnx --time-limit soon
}

@test "time: Ctrl-C ends a loop without end" {
    local tool
    for tool in 'run --data random' bench profile 'export -o out.onnx'; do
        # shellcheck disable=SC2086 # options
        run --separate-stderr timeout --preserve-status -s INT 0.5 hone-${tool%% *} forever.onnx $([ "$tool" = "${tool#* }" ] || echo ${tool#* })
        [ "$status" -eq 130 ] && sentence interrupted || explain "$tool"
    done
    [ ! -e out.onnx ]
}

@test "time: Ctrl-C that arrives twice at once is one, a second one later ends at once" {
    cat >twice.py <<'E'
import signal, subprocess, sys, time
start, pause, *command = sys.argv[1:]
p = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
time.sleep(float(start))
for _ in range(2):
    p.send_signal(signal.SIGINT)
    time.sleep(float(pause))
print(p.wait(), p.stderr.read().decode().strip())
E
    [ "$(python3 twice.py 0.5 0.01 hone-bench forever.onnx)" = '130 hone-bench: interrupted' ]
    [ "$(python3 twice.py 2 0.5 hone-run heavy.onnx --data random --device ref)" = '-2 ' ]
}

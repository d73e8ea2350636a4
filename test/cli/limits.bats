# How many threads a tool uses where the machine gives it less than all CPUs. Quotas of control groups are judged by
# test/unit/base_cpu.c, which has a made-up /sys.

load helpers

setup_file() { make_work; }
setup() { cd "$work" || return; }

# threads COMMAND...: largest number of threads that it has while it runs
threads() {
    "$@" >/dev/null 2>&1 &
    local pid=$! most=0 now
    while [ -d /proc/$pid/task ] && [ "$(awk '/^State/ { print $2 }' /proc/$pid/status 2>/dev/null)" != Z ]; do
        now=$(find /proc/$pid/task -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)
        [ "$now" -le "$most" ] || most=$now
        sleep 0.02
    done
    wait $pid
    echo "$most"
}

@test "limits: one CPU of affinity is one thread" {
    local cpu
    cpu=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
    succeeds taskset -c "$cpu" hone-bench relu.onnx --runs 10 --json
    [ "$(jq '.env.threads, .runs[0].threads' <<<"$output" | paste -sd' ')" = '1 1' ] || explain
    succeeds taskset -c "$cpu" hone-run relu.onnx --data x.npy --out out --json
    [ "$(jq .env.threads <<<"$output")" = 1 ] || explain
    # 64 MB written are work for every thread there is
    [ "$(threads taskset -c "$cpu" hone-bench wide.onnx --time 300ms --no-progress)" -eq 1 ]
}

@test "limits: --threads beats affinity" {
    local cpu
    cpu=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
    succeeds taskset -c "$cpu" hone-bench relu.onnx --threads 2 --runs 10 --json
    [ "$(jq .env.threads <<<"$output")" = 2 ] || explain
}

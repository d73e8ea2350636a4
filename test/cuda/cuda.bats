#!/usr/bin/env bats
# The tools on the emulated device (HONE_CUDA_DRIVER): right results, and a sentence for each way in which there is no device.

setup_file() {
    load ../cli/helpers
    export emulator=$build/test/cuda/libhone-emucuda.so
    export HONE_CUDA_DRIVER=$emulator
    work=$BATS_FILE_TMPDIR/work
    export work
    python3 "$root/test/cli/models.py" "$work"
}

setup() {
    load ../cli/helpers
    cd "$work" || return
}

run_on() { hone-run "$1.onnx" --data random --seed 3 --device "$2" -o "$3" >/dev/null; }

# same MODEL: what the device computes is what ref does
same() {
    run_on "$1" ref ref.npz && run_on "$1" cuda cuda.npz && hone-diff "$1.onnx" --data random --device cuda --device-b ref
}

@test "hone-run --device cuda computes what the reference does" {
    for m in relu chain conv wide; do
        succeeds same "$m"
    done
}

@test "hone-run on ONNX's test data" {
    succeeds hone-run "$root/models/digits/model.onnx" --data "$root/models/digits/test.npz" --batch 8 --metric top1 --device cuda
}

@test "a device that is not there: the library and where it was looked for" {
    HONE_CUDA_DRIVER=/nowhere/libcuda.so.1 refuses 4 "/nowhere/libcuda.so.1" hone-run relu.onnx --data random --device cuda
    HONE_CUDA_DRIVER='' refuses 4 "libcuda.so.1" hone-run relu.onnx --data random --device cuda
    HONE_CUDA_DRIVER=$root/README.md refuses 4 "README.md" hone-run relu.onnx --data random --device cuda
}

@test "a library that is no driver" {
    HONE_EMU_CASE=stub refuses 4 "stand-in" hone-run relu.onnx --data random --device cuda
    HONE_CUDA_DRIVER=libm.so.6 refuses 4 "has no function cuInit" hone-run relu.onnx --data random --device cuda
}

@test "a driver that is too old, no GPU, one of another kind, one that is taken" {
    HONE_EMU_CASE=old refuses 4 "CUDA 11" hone-run relu.onnx --data random --device cuda
    HONE_EMU_CASE=nogpu refuses 4 "no GPU" hone-run relu.onnx --data random --device cuda
    HONE_EMU_CASE=cc70 refuses 4 "compute capability 7.0" hone-run relu.onnx --data random --device cuda
    HONE_EMU_CASE=busy refuses 4 "another process" hone-run relu.onnx --data random --device cuda
}

@test "cuda:N" {
    HONE_EMU_DEVICES=2 refuses 4 "the last one is 'cuda:1'" hone-run relu.onnx --data random --device cuda:9
    HONE_EMU_DEVICES=2 refuses 4 "the last one is 'cuda:1'" hone-run relu.onnx --data random --device cuda:999
    HONE_EMU_DEVICES=2 succeeds hone-run relu.onnx --data random --device cuda:1
    refuses 2 "not a device" hone-run relu.onnx --data random --device cuda:x
}

@test "kernels that are missing, of another version, damaged" {
    HONE_CUDA_KERNELS=/nowhere/kernels.cuda refuses 4 "/nowhere/kernels.cuda" hone-run relu.onnx --data random --device cuda
    HONE_CUDA_KERNELS=relu.onnx refuses 4 "no file of kernels" hone-run relu.onnx --data random --device cuda
    local kernels=$build/src/cuda/kernels.cuda
    head -c 1000 "$kernels" >short.cuda
    HONE_CUDA_KERNELS=short.cuda refuses 4 "damaged" hone-run relu.onnx --data random --device cuda
    { printf 'HONEKRNL\377'; tail -c +10 "$kernels"; } >later.cuda
    HONE_CUDA_KERNELS=later.cuda refuses 4 "another version" hone-run relu.onnx --data random --device cuda
    # the same format, of other sources
    { head -c 16 "$kernels"; printf '%064d' 0; tail -c +81 "$kernels"; } >other.cuda
    HONE_CUDA_KERNELS=other.cuda refuses 4 "another version" hone-run relu.onnx --data random --device cuda
}

@test "too little memory on the device: what is needed and what is free" {
    HONE_EMU_MEMORY=1000000 refuses 6 "MB" hone-run wide.onnx --data random --device cuda
}

bench_on() {
    succeeds hone-bench --device cuda --warmup 0 --json=report.json "$@" && python3 "$root/test/cli/schema.py" "$root/schemas/bench.json" report.json
}

@test "hone-bench on the device: its times, and its memory as planned and in fact" {
    bench_on conv.onnx --runs 3
    holds ".runs[0].gpu.emulated and (.runs[0].gpu.name | test(\"emulated\"))"
    holds ".runs[0].gpu.times_ms | .runs >= 5 and .segments == 1 and .recorded == 1 and .upload > 0 and .download > 0 and .kernels > 0"
    holds ".runs[0].gpu.times_ms | (.wall - .kernels - .upload - .download - .gaps - .host | fabs) < 0.2 * .wall"
    holds ".runs[0].gpu.memory_bytes | .allocated >= .planned and .allocated <= 1.02 * .planned and .context == null and .free < .total"
    [[ $output == *"On the device"* || $output == *"on the device"* ]] && [[ $output == *"emulated"* ]]
    bench_on relu.onnx conv.onnx --runs 3
    holds "[.runs[].gpu.times_ms.kernels > 0] | all"
}

@test "hone-bench --io device: no copies" {
    bench_on conv.onnx --io host,device --runs 3
    holds ".runs[0].io == \"reuse\" and .runs[1].io == \"device\""
    holds ".runs[1].gpu.times_ms | .upload == 0 and .download == 0 and .kernels > 0"
    refuses 4 "no memory of its own" hone-bench conv.onnx --io device
}

@test "hone-bench --streams on the device, one number after the other" {
    bench_on conv.onnx --streams 1,2 --runs 4
    holds "[.runs[].streams] == [1, 2] and ([.runs[].latency_ms.n] | min) >= 4"
}

@test "hone-bench --train on the device: variables are counted once" {
    bench_on --train "$root/models/digits/model.onnx" --batch 2 --runs 2
    holds ".runs[0].gpu | .times_ms.kernels > 0 and .times_ms.recorded == .times_ms.segments"
    holds ".runs[0].gpu.memory_bytes | .allocated >= .planned and .allocated <= 1.02 * .planned"
}

@test "hone-bench compares two devices" {
    succeeds hone-bench chain.onnx --device cpu,cuda --runs 20 --json=report.json
    python3 "$root/test/cli/schema.py" "$root/schemas/bench.json" report.json
    holds "[.runs[].device] == [\"cpu\", \"cuda\"] and .runs[0].gpu == null and .runs[1].gpu.times_ms.kernels > 0"
    holds ".compare[0] | .name_a == \"chain.onnx cpu\" and .name_b == \"chain.onnx cuda\" and .effect > 0"
    refuses 2 "two devices" hone-bench chain.onnx relu.onnx --device cpu,cuda
    refuses 2 "two devices" hone-bench chain.onnx --device cpu,cuda --streams 2
    refuses 2 "none of" hone-bench chain.onnx --device cpu,gpu
    refuses 4 "no memory of its own" hone-bench chain.onnx --device cpu,cuda --io device
}

@test "hone-bench --batch-max: as much as the device's memory takes" {
    HONE_EMU_MEMORY=3000000 bench_on relu.onnx --batch-max 300000 --runs 2
    holds ".runs[0].shapes | to_entries[0].value[0] | . > 1 and . < 300000"
}

@test "what the management library says of the device" {
    export HONE_NVML=$build/test/cuda/libhone-emunvml.so
    bench_on relu.onnx --runs 3
    holds ".runs[0].gpu.noise | .mhz_after == 1980 and .watts == 321 and .limit_watts == 700 and .other_processes == 0 and .causes == []"
    holds ".runs[0].gpu.memory_bytes | .context + .allocated == 500000000"
    HONE_EMU_NVML=power bench_on relu.onnx --runs 3
    holds ".runs[0].gpu.noise | .capped_ms >= 1000 and .causes == [\"power cap\"]" && [[ $output == *"noise on the device: power cap"* ]]
    HONE_EMU_NVML=heat bench_on relu.onnx --runs 3
    holds ".runs[0].gpu.noise.causes == [\"heat\"]"
    HONE_EMU_NVML=other bench_on relu.onnx --runs 3
    holds ".runs[0].gpu.noise.causes == [\"other process\"]"
    HONE_EMU_NVML=clock bench_on relu.onnx --runs 3
    holds ".runs[0].gpu.noise.causes == [\"device clock\"]"
}

@test "without the management library its part is not known" {
    for c in dead apart; do
        HONE_NVML=$build/test/cuda/libhone-emunvml.so HONE_EMU_NVML=$c bench_on relu.onnx --runs 2
        holds ".runs[0].gpu.noise | .mhz_after == null and .watts == null and .capped_ms == null and .other_processes == null and .causes == []"
    done
    HONE_NVML=/nowhere/libnvidia-ml.so.1 bench_on relu.onnx --runs 2
    holds ".runs[0].gpu | .memory_bytes.context == null and .noise.busy == null"
    HONE_NVML=libm.so.6 bench_on relu.onnx --runs 2
    holds ".runs[0].gpu.noise.celsius == null"
}

@test "a tool that watches through NVTX: a range for each launch, by the node's name" {
    export NVTX_INJECTION64_PATH=$build/test/cuda/libhone-emunvtx.so HONE_EMU_NVTX=$PWD/ranges
    run_on two cuda out.npz
    [ "$(paste -sd ' ' ranges)" = "push relu pop push neg pop" ] || { cat ranges; return 1; }
    rm ranges
    NVTX_INJECTION64_PATH=libm.so.6 run_on two cuda out.npz
    NVTX_INJECTION64_PATH=/nowhere.so run_on two cuda out.npz
    [ ! -e ranges ]
}

@test "hone-profile on the device: kernels, copies and the rest add up, with its roofline and memory" {
    succeeds hone-profile chain.onnx --data random --device cuda --runs 7 --json=report.json --trace trace.json
    python3 "$root/test/cli/schema.py" "$root/schemas/profile.json" report.json
    holds "[.nodes[].place] | index(\"device\") and index(\"copy\") and index(\"rest\")"
    holds "[.nodes[] | select(.place == \"device\") | .kernels >= 1] | all"
    holds "(([.nodes[].ms] | add) + .outside_ms - .total_ms | fabs) < 0.001 * .total_ms"
    holds ".gpu | .emulated and .times_ms.segments == 1 and .times_ms.recorded == 1 and .times_ms.kernels > 0 and .times_ms.copies > 0"
    holds ".gpu | .roofline.gflop_per_s > 0 and .roofline.memory[0].gb_per_s > 0 and (.timeline | length) > 0"
    holds ".gpu.memory_bytes | .allocated >= .planned and .allocated <= 1.02 * .planned"
    jq -e '[.traceEvents[] | select(.ph == "X") | .tid] | unique == [1, 2, 3]' trace.json >/dev/null
}

# records [CASE]: a profile with the stand-in of CUPTI, as it is in that case, into report.json
records() {
    HONE_CUPTI=$build/test/cuda/libhone-emucupti.so HONE_EMU_CUPTI=${1-} succeeds hone-profile "${model:-chain.onnx}" --data random \
        --device cuda --no-advise --runs 8 --json=report.json --trace trace.json "${@:2}"
    python3 "$root/test/cli/schema.py" "$root/schemas/profile.json" report.json
    holds "(([.nodes[].ms] | add) + .outside_ms - .total_ms | fabs) < 0.001 * .total_ms"
}

@test "hone-profile with CUPTI: which kernels a node is, how they are launched, what they fill, what is copied" {
    records ""
    holds ".gpu.records | .used and .why_not == null and .runs == 8 and .lost == 0 and .per_run >= 3 and .idle_ms == 0 and .gaps == []"
    # nothing but records: kernels and copies take what the clock of the device counts
    holds ".gpu | (.records.busy_ms - .times_ms.kernels - .times_ms.copies | fabs) < 1e-6 and .times_ms.idle < 1e-6"
    holds "[.gpu.kernels[] | select(.kind == \"kernel\") | .occupancy > 0 and .occupancy <= 1 and .waves > 0 and .registers == 64 and .count == 1
        and (.grid | length) == 3 and .block[0] >= 32 and .bytes == null] | all and length > 0"
    holds "[.gpu.kernels[] | select(.kind == \"upload\" or .kind == \"download\") | .bytes > 0 and .gb_per_s > 0 and .registers == null] | all and length == 2"
    holds "([.gpu.kernels[].ms] | add) - .gpu.records.busy_ms | fabs < 1e-9"
    holds "[.gpu.kernels[].node] - [.nodes[].name] == []"
    [[ $output == *"Kernels"* || $output == *"on the device"*"occupancy"* ]] && [[ $output == *"times of steps are by records of"* ]]
    # the device's track has kernels under their own names, as parts of the run that is replayed
    jq -e "[.traceEvents[] | select(.cat == \"kernel\" and .tid == 2) | .args | .registers == 64 and .grid[0] >= 1 and .node != \"-\"] | all and length >= 8" trace.json
    jq -e "[.traceEvents[] | select(.cat == \"upload\" and .tid == 3) | .args.bytes > 0] | all and length >= 8" trace.json
    jq -e "[.traceEvents[] | select(.name == \"run with records\")] | length == 8" trace.json
}

@test "hone-profile with CUPTI: sub-graphs, steps on the host, training" {
    model=branches.onnx records ""
    holds ".gpu.records.used"
    model=$root/models/digits/model.onnx records "" --train
    holds ".gpu.records | .used and .lost == 0 and .per_run > 20"
    # weights that are updated together: each has its part of the kernel, and nothing is left to take off
    holds ".gpu.times_ms.mark < 1e-6 and ([.gpu.kernels[] | select(.count < 1)] | length > 1)"
    holds "([.gpu.kernels[].count] | add) as \$n | \$n <= .gpu.records.per_run and (\$n - (\$n | round) | fabs) < 1e-9"
}

@test "hone-profile with CUPTI: records that are late are used, runs without some are left out" {
    records late
    holds ".gpu.records | .used and .runs == 8 and .lost == 0"
    records seldom
    holds ".gpu.records | .used and .runs == 6 and .lost == 2"
    [[ $output == *"2 of 8 runs with records are left out: "*"pieces of work"* ]]
}

@test "hone-profile with CUPTI: records that are lost: marks, and the report says so" {
    records silent
    holds ".gpu.records | .used == false and .runs == 0 and .lost == 3 and .why_not == \"2 records of 3 pieces of work\""
    holds ".gpu.kernels == []"
    [[ $output == *"times of steps are by marks"*"no records of kernels: "* ]]
    records mostly
    holds ".gpu.records | .used == false and .runs > 0 and .lost > .runs and .why_not != null"
}

@test "hone-profile without CUPTI, or with one that is not known, or does not start" {
    for c in version dead; do
        records $c
        holds ".gpu.records | .used == false and .runs == 0 and .lost == 0 and (.why_not | test(\"CUPTI\"))"
    done
    for l in libm.so.6 ""; do
        HONE_CUPTI=$l succeeds hone-profile chain.onnx --data random --device cuda --no-advise --runs 7 --json=report.json
        holds ".gpu.records | .used == false and (.why_not | test(\"CUPTI\"))"
    done
    [[ $output == *"no CUPTI for another driver: HONE_CUPTI names none"* ]]
}

# busy, idle and host are within 3 % of the unprofiled median, once in ten times: others may be busy here
sums_up() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        HONE_CUPTI=$1 succeeds hone-profile "$2" --data random --device cuda --no-advise --runs 20 --json=report.json
        holds ".gpu.records.used == $3"
        holds "(.gpu.times_ms | .kernels + .copies + .host_steps + .idle + .host) - .total_ms | fabs < 1e-6"
        ! jq -e ".agreement >= 0.97 and .agreement <= 1.03" report.json >/dev/null || return 0
    done
    jq .agreement report.json
    return 1
}

@test "hone-profile on the device: busy, idle and host are the unprofiled median, recorded or not, by records and by marks" {
    for m in chain.onnx branches.onnx; do
        sums_up "$build/test/cuda/libhone-emucupti.so" $m true
        sums_up "" $m false
    done
}

@test "--device-mem-limit: what is needed, what is free, and the limit" {
    refuses 6 "the model needs 64.0 MB or more, 8589.9 of 8589.9 MB are free for it, and the limit is 1.0 MB" \
        hone-run wide.onnx --data random --device cuda --device-mem-limit 1M
    HONE_EMU_MEMORY=2000000 refuses 6 "2.0 of 2.0 MB are free" hone-run wide.onnx --data random --device cuda
    succeeds hone-run wide.onnx --data random --device cuda --device-mem-limit 1GB -o limited.npz
    refuses 2 "leaves no memory" hone-run wide.onnx --data random --device cuda --device-mem-limit 0
}

# faulty KERNEL WORDS COMMAND...: it reads outside of all memory; status 1 and the words behind what the emulated device says
faulty() {
    local kernel=$1 words=$2
    shift 2
    HONE_EMU_FAULT=$kernel run --separate-stderr "$@"
    [ "$status" -eq 1 ] && [ -z "$output" ] && [[ ${stderr_lines[-1]} == hone*": "*"$words"* ]] || explain "$@"
}

@test "a fault on the device: the node's name, also in a sub-graph and in a training step" {
    faulty elements_few "node 'add' (Add): device 'cuda:0': what was running there failed: an illegal memory access" \
        hone-run chain.onnx --data random --device cuda -o fault.npz
    faulty gather_rows_16 "(Gather): device 'cuda:0'" hone-run twins.onnx --data random --device cuda -o fault.npz
    faulty optimizer_adamw_f32 "(AdamW): device 'cuda:0'" hone-bench --train "$root/models/digits/model.onnx" --device cuda
}

@test "-v says which nodes are not recorded, and why" {
    run --separate-stderr hone-run -v branches.onnx --data random --device cuda -o v.npz
    [ "$status" -eq 0 ]
    [[ $stderr == *"(If) is not recorded: the host chooses what it runs"* ]]
}

# by cuBLASLt's stand-in, which ends with status 70 where it finds a mistake
with_lt() { HONE_CUDA_LIBRARIES=cublaslt HONE_CUBLASLT=$build/test/cuda/libhone-emucublaslt.so "$@"; }

@test "HONE_CUDA_LIBRARIES: a product by cuBLASLt, with what it computes along" {
    succeeds with_lt same halves
    succeeds with_lt hone-profile halves.onnx --runs 3 --device cuda --json=report.json
    holds "[.nodes[] | select(.kernel == \"cuda.lt\")] | length == 1 and .[0].kernels == 1"
    faulty cublasLtMatmul "(MatMul): device 'cuda:0'" with_lt hone-run halves.onnx --data random --device cuda -o fault.npz
}

@test "a library that was asked for and is not there: a note with -v, and own kernels" {
    export HONE_CUDA_LIBRARIES=cublaslt HONE_CUBLASLT=/nowhere/libcublasLt.so
    run --separate-stderr hone-run -v halves.onnx --data random --device cuda -o v.npz
    [ "$status" -eq 0 ]
    [[ $stderr == *"cuBLASLt (/nowhere/libcublasLt.so) is not installed: 1 node runs on other kernels"* ]] || explain hone-run
    run --separate-stderr hone-run halves.onnx --data random --device cuda -o v.npz
    [ "$status" -eq 0 ] && [ -z "$stderr" ]
    HONE_CUDA_LIBRARIES=cudnn refuses 2 "HONE_CUDA_LIBRARIES is 'cudnn', not cublaslt" hone-run halves.onnx --data random --device cuda
}

@test "a node that runs on the host is named without -v, too; --strict refuses it" {
    local on="node 'nonzero' (NonZero) has no kernel on device 'cuda' and runs on the host"
    run --separate-stderr hone-run shape.onnx --data random --device cuda -o host.npz
    [ "$status" -eq 0 ] && [ "$stderr" = "hone-run: $on" ] || explain
    run --separate-stderr hone-bench shape.onnx --device cuda --runs 2
    [ "$status" -eq 0 ] && [ "$stderr" = "hone-bench: $on" ] || explain
    run --separate-stderr hone-run young.onnx --data random --device cuda -o host.npz
    [ "$status" -eq 0 ] && [[ $stderr == "hone-run: 2 nodes have no kernel on device 'cuda' and run on the host, the first one is "* ]] || explain
    on="node 'hard' (Hardmax) has no kernel on device 'cuda' and runs on the host"
    run --separate-stderr hone-diff hosted.onnx --device cuda --device-b cpu
    [ "$status" -eq 0 ] && [[ $stderr == *"hone-diff: $on"* ]] || explain
    run --separate-stderr hone-quantize hosted.onnx --speed-only --device cuda -o host.onnx
    [[ $stderr == *"hone-quantize: $on"* ]] || explain
    run --separate-stderr hone-prune hosted.onnx --speed-only --ratio 0.5 --device cuda -o host.onnx
    [[ $stderr == *"hone-prune: $on"* ]] || explain
    succeeds hone-run -q shape.onnx --data random --device cuda -o host.npz
    succeeds hone-run shape.onnx --data random --device ref -o host.npz
    refuses 4 "node 'nonzero' (NonZero)" hone-run shape.onnx --data random --device cuda --strict
}

# no_room MOST COMMAND...: whichever allocation fails, status 6, one sentence and nothing left behind; after MOST of them at the latest none does
no_room() {
    local most=$1 k
    shift
    for ((k = 1; k <= most; k++)); do
        HONE_EMU_LEAKS=1 HONE_EMU_FAIL_ALLOC=$k run --separate-stderr "$@"
        [ "$status" -ne 0 ] || break
        [ "$status" -eq 6 ] && [ -z "$output" ] && [ "${#stderr_lines[@]}" -eq 1 ] || { echo "allocation $k"; explain "$@" || return; }
    done
    [ "$k" -gt 2 ] && [ "$status" -eq 0 ] && [ -z "$stderr" ] || { echo "allocation $k"; explain "$@"; }
}

@test "each allocation fails once: status 6, and nothing is left on the device" {
    no_room 50 hone-run conv.onnx --data random --device cuda -o room.npz
    no_room 50 hone-run branches.onnx --data random --device cuda -o room.npz
    no_room 200 hone-bench --train tagger.onnx --device cuda --runs 2 --json=room.json
}

# stopped SECONDS COMMAND...: Ctrl-C after so long; status 130 within a second
stopped() {
    local begun
    begun=$(date +%s%N)
    run --separate-stderr timeout --preserve-status -s INT "$@"
    [ "$status" -eq 130 ] && sentence interrupted && [ $(($(date +%s%N) - begun - 1000000000 * $1)) -lt 1000000000 ] || explain "$@"
}

@test "Ctrl-C while the device is at work" {
    for m in forever idle-forever; do
        stopped 1 hone-run $m.onnx --data random --device cuda -o stopped.npz
    done
    stopped 1 hone-bench sines.onnx --device cuda --runs 1000000000
    stopped 2 hone-run heavy.onnx --data random --device cuda -o stopped.npz # in one kernel
    [ ! -e stopped.npz ]
}

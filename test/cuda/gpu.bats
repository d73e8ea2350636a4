#!/usr/bin/env bats
# scripts/pack: a folder that runs elsewhere; scripts/gpu in it, on the emulated device.

setup_file() {
    load ../cli/helpers
    export pack=$BATS_FILE_TMPDIR/pack
    (cd "$root" && HONE_BUILD=$build scripts/pack "$pack" >/dev/null)
}

# measure OPTIONS...: scripts/gpu of the pack in $here, with a record in report.json
measure() {
    HONE_CUDA_DRIVER=$build/test/cuda/libhone-emucuda.so HONE_CUDA_KERNELS=$build/src/cuda/kernels.cuda \
        run --separate-stderr "$here/scripts/gpu" --small --json report.json "$@"
}

# another BIN TEXT: the pack again, with a script in the place of a program
another() {
    here=$BATS_TEST_TMPDIR/another
    cp -al "$pack" "$here"
    rm "$here/bin/$1"
    printf '#!/bin/sh\n%s\n' "$2" >"$here/bin/$1"
    chmod +x "$here/bin/$1"
}

setup() {
    load ../cli/helpers
    here=$pack
    cd "$BATS_TEST_TMPDIR" || return
}

# packed PROGRAM ARGUMENTS...: with nothing but the pack and the emulated device, which interprets PTX that 9.0 has no need of
packed() {
    env -i LD_LIBRARY_PATH="$pack/lib" HONE_CUDA_DRIVER="$build/test/cuda/libhone-emucuda.so" \
        HONE_CUDA_KERNELS="$build/src/cuda/kernels.cuda" "$pack/bin/$1" "${@:2}"
}

@test "a pack without models is below 40 MB" {
    local bytes
    bytes=$(du -s --apparent-size -B1 --exclude=models "$pack" | cut -f1)
    [ "$bytes" -lt 40000000 ] || { du -a "$pack"; return 1; }
}

@test "what is in a pack loads nothing else but the C library" {
    for f in "$pack"/bin/*; do
        env -i LD_LIBRARY_PATH="$pack/lib" ldd "$f"
    done | awk '$2 == "=>" { print $3 }' | grep -v "^$pack/" | sort -u >others
    run ! grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv)\.so' others
}

@test "its programs run in an empty environment" {
    packed hn-check --device=cuda --op=Relu | grep '^ok 1 Relu'
    packed hone-run "$pack/models/digits/model.onnx" --data random --device cuda -o out.npz
    packed perf-cuda --small --only 'one row' | grep '"device copy"'
    [ -s out.npz ]
}

@test "its kernels are those of one compute capability, or all" {
    run --separate-stderr env -i LD_LIBRARY_PATH="$pack/lib" HONE_CUDA_DRIVER="$build/test/cuda/libhone-emucuda.so" \
        "$pack/bin/hone-run" "$pack/models/digits/model.onnx" --data random --device cuda -o out.npz
    [ "$status" -eq 4 ] && [[ $stderr == *"no kernel image"* ]] || explain
    (cd "$root" && HONE_BUILD=$build scripts/pack --for all "$BATS_TEST_TMPDIR/all" >/dev/null)
    cmp all/lib/hone/kernels.cuda "$build/src/cuda/kernels.cuda"
}

@test "scripts/pack without a folder" {
    run "$root/scripts/pack"
    [ "$status" -eq 2 ] && [[ $output == usage:* ]]
    run "$root/scripts/pack" --help
    [ "$status" -eq 0 ] && [[ $output == usage:* ]]
}

@test "scripts/gpu: each thing that is asked is a row, and the record says emulated" {
    measure --only operators,kernels,models,sanitizer
    [ "$status" -eq 0 ] || explain
    [[ $output == *"results against the test data"* && $output == *"emulated: figures mean nothing"* ]]
    holds ".emulated and .kernels_sha256 and (.files | length > 50)"
    holds '.parts | .operators.state == "done" and .kernels.state == "done" and .models.state == "done" and (.models.seconds | type) == "number"'
    holds '[.rows[] | has("point") and has("what") and has("value") and has("asked") and has("met") and (.value != null or (.why | length > 0))] | all'
    holds '[.rows[] | select(.point == "right" or .point == "operators") | .met] == [true, true]'
    holds '.models[0] | .model == "digits" and .same_bits and .runs == 3 and .latency_ms > 0'
    holds '[.rows[] | select(.met and (.point | IN("operators", "right") | not))] == []'
    holds '[.rows[] | select(.point == "training") | .why] == ["part training was not run"]'
}

@test "scripts/gpu goes on with a record" {
    measure --only operators
    measure --only models
    holds '.operators.passed == 1 and .parts.operators.state == "done" and .models[0].right'
    measure --continue --minutes 0
    [ "$status" -eq 0 ] || explain
    holds '.parts.operators.state == "done" and .parts.steps.state == "not started" and (.parts.steps.why | test("s were left"))'
    holds '.rows[] | select(.point == "step") | .met == null and (.why | test("s were left"))'
    run "$here/scripts/gpu" --table --json report.json
    [ "$status" -eq 0 ] && [[ $output == *"digits"* ]] || explain
    sed -i 's/"kernels_sha256": "../"kernels_sha256": "xx/' report.json
    measure --only models
    [ "$status" -eq 1 ] && [[ $stderr == *"report.json is of other kernels"* ]] || explain
    measure --only nothing
    [ "$status" -eq 2 ] && [[ $stderr == *"no part 'nothing'"* ]] || explain
}

@test "scripts/gpu: steps, profiles and the bias, from the tools' reports" {
    measure --only steps,profiles,bias
    [ "$status" -eq 0 ] || explain
    holds '.steps | .beside_us == null and (.why | test("not timed alone"))'
    HONE_CUPTI=$build/test/cuda/libhone-emucupti.so measure --only steps
    holds '.steps | .beside_us != null and (.why | test("its kernel [0-9]"))'
    holds '.steps | .nodes == 8 and .recorded_us != 0 and .unrecorded_us != 0 and ([.planning[].ms_per_100 > 0] | all)'
    holds '.profiles[0] | .model == "digits" and .agreement > 0'
    holds '.bias[0].ratio > 0'
}

@test "scripts/gpu: a tool that crashes or computes something else is told, and the rest goes on" {
    another hone-bench 'kill -SEGV $$'
    measure --only steps,bias,models
    [ "$status" -eq 0 ] || explain
    holds '.parts.steps | .state == "failed" and .why == "hone-bench ended by signal 11"'
    holds '.bias[0].error == "hone-bench ended by signal 11" and .models[0].right'
    rm -r "$here"
    another hn-check 'echo "not ok 1 Relu (7 cases)"; exit 1'
    measure --only operators
    [ "$status" -eq 1 ] || explain
    holds '.rows[] | select(.point == "operators") | .value == 1 and .met == false'
    rm -r "$here"
    rm report.json
    another perf-cuda 'echo "{\"name\": \"half a"; exit 3'
    measure --only kernels
    [ "$status" -eq 0 ] || explain
    holds '.parts.kernels | .state == "failed" and .why == "perf-cuda ended with status 3"'
    holds '.kernels == []'
}

# A Python with PyTorch, but in name: what the peers' scripts would print
peer() {
    cat >peer <<'END'
#!/bin/sh
case "$*" in
*"import torch"*) echo 2.0 False ;;
*cuda_peers.py*) echo "some library says hello"; echo '{"name": "relu f32", "us": 2.5}'; echo '{"name": "relu f16", "error": "out of memory"}' ;;
*--fill*) echo '{"file": "m-f32.onnx"}' ;;
*--run*) echo '{"network": "m", "precision": "f32", "batch": 1, "form": "eager", "ms": 2.0, "bytes": 1000000000}'; echo broken >&2; exit 1 ;;
*--first*) echo '{"network": "m", "s": 9.0}' ;;
*) exit 1 ;;
esac
END
    chmod +x peer
}

@test "scripts/gpu: peers' times, where there is a Python with PyTorch" {
    peer
    mkdir nets
    cp "$pack/models/digits/model.onnx" nets/m-f32.onnx
    : >nets/m-f32.bin
    measure --only kernels,peers,networks,start,ort,compiled --python "$PWD/peer" --nets nets
    [ "$status" -eq 0 ] || explain
    holds '[.kernels[] | select(.name == "relu f32") | .peer_us] == [2.5] and [.kernels[] | select(.name == "relu f16") | .peer_error] == ["out of memory"]'
    holds '.networks | length == 2 and .[0].peers.eager == 2.0 and .[0].peer_ms == 2.0 and .[0].kernels_ms > 0 and .[1].peers.eager == "broken"'
    holds '.memory[0] | .allocated >= .planned and .peer_bytes == 1000000000'
    holds '[.rows[] | select(.point == "memory of PyTorch") | .value != null] == [true, false]'
    holds '.start[0] | .s > 0 and .peer_s == 9.0'
    holds '.parts.ort.state == "not there"'
    measure --only converted --python "$PWD/peer"
    holds '.parts.converted | .state == "not there" and (.why | test("onnx2torch"))'
    sed -i 's|^\*--first|*"import onnx, onnx2torch"*) ;;\n*cuda_models.py*) echo \x27{"model": "digits", "eager_ms": 1.5, "graph_ms": "cannot be"}\x27 ;;\n&|' peer
    measure --only models,converted --python "$PWD/peer"
    holds '.networks[] | select(.network == "digits") | .peer_ms == 1.5 and .ms > 0 and .peers.graph_ms == "cannot be"'
    measure --only peers,training --python /nowhere/python
    [ "$status" -eq 0 ] || explain
    holds '.parts.training | .state == "not there" and .why == "PyTorch is not there"'
}

@test "scripts/bench --device is the part of it that compares whole models" {
    HONE_BUILD=$build HONE_CUDA_DRIVER=/nowhere/libcuda.so run --separate-stderr "$root/scripts/bench" --device cuda --small --minutes 1 --python /nowhere/python \
        --json "$PWD/report.json"
    [ "$status" -eq 0 ] || explain
    holds '.parts | keys == ["compiled", "converted", "models", "networks", "ort", "start", "training"]'
    holds '.models[0].error | test("/nowhere/libcuda.so")'
}

@test "what a record says of what is asked" {
    python3 "$root/test/perf/gpu/judge_test.py"
}

# What all tools make of their options alike: what comes twice, -q, and names that nothing has.

load helpers

digits=$root/models/digits

setup_file() {
    make_work
    npy make '<f4' 2,3 '1 2 3 4 5 6' up.npy
    npy make '<f4' 3 '0 0 1' b.npy
}
setup() { cd "$work" || return; }

tools=(hone-inspect hone-run hone-diff hone-bench hone-profile hone-export hone-prune hone-quantize hone-distill hone-replay)

# options_of TOOL: those that take a value, as --help-all has them, without dashes
options_of() { "$1" --help-all | sed -nE 's/^  (-., |    )--([a-z0-9-]+)\[?=.*/\2/p'; }

@test "options: what takes one value is given once, whatever the tool; what is a list adds up" {
    local tool option n=0
    for tool in "${tools[@]}"; do
        for option in $(options_of "$tool"); do
            n=$((n + 1))
            run --separate-stderr "$tool" "--$option=7" "--$option=7"
            case $option in
            input | dim | shapes | set | only | skip | loop | free | rename | nhwc-input | u8-input | top-k)
                [[ $stderr != *'given twice'* ]] || explain "$tool --$option"
                ;;
            *)
                [ "$status" -eq 2 ] && [ -z "$output" ] &&
                    sentence "option '--$option' is given twice, and takes one value" || explain "$tool --$option"
                ;;
            esac
        done
    done
    [ "$n" -gt 150 ]
}

@test "options: what is a list names nothing twice" {
    refuses 2 "option '--dim' names 'N' twice" hone-run relu.onnx --data random --dim N=2 --dim N=3
    refuses 2 "option '--dim' names 'N' twice" hone-diff relu.onnx relu.onnx --dim N=2 --dim N=2
    refuses 2 "option '--dim' names 'N' twice; several values of one are a list, such as N=1,8" \
        hone-bench relu.onnx --dim N=2 --dim N=3
    refuses 2 "option '--shapes' names 'x' twice" hone-profile relu.onnx --shapes x:2x3 --shapes x:4x3
    refuses 2 "option '--shapes' names 'x' twice" hone-export relu.onnx -o no.onnx --shapes x:2x3,x:2x3
    refuses 2 "option '--input' names 'x' twice" hone-run relu.onnx --input x=up.npy --input x=x.npy
    # and adds up
    succeeds hone-run weighted.onnx --input x=x.npy --input b=b.npy --out results
    [ ! -e no.onnx ]
}

@test "options: a key that stands in a file twice" {
    printf '[hone]\nseed=1\n[hone-run]\nrtol=1\n[hone]\nseed = 2\n' >twice.conf
    refuses 2 "'seed' is in 'twice.conf' twice" hone-run --config twice.conf relu.onnx --data random
    # the command line over a file, a tool's group over that of all
    printf '[hone]\nseed=1\nthreads=1\n[hone-run]\nseed=2\n' >once.conf
    succeeds hone-run --config once.conf --threads 2 relu.onnx --data random
}

@test "options: -q says nothing, on stdout or stderr" {
    local model=$digits/model.onnx quiet
    hone-quantize "$model" --speed-only -o fast.onnx --force >/dev/null
    hone-quantize -q "$model" --calib "$digits/test_data_set_0" -o int8.onnx --force
    hone-export -q "$model" -o small.onnx --force
    for quiet in -q --quiet; do
        while read -r line; do
            # shellcheck disable=SC2086 # options
            run --separate-stderr $line $quiet
            [ "$status" -eq 0 ] && [ -z "$output$stderr" ] || explain "$line $quiet"
        done <<END
hone-run fast.onnx --data random:2 --out results -v
hone-run $model --test-data $digits/test_data_set_0
hone-diff $model fast.onnx --per-layer -vv
hone-bench fast.onnx --runs 5
hone-bench $model fast.onnx --runs 6 --dim N=1,2
hone-profile fast.onnx --runs 3
hone-export $model -o small.onnx --to bf16 --force
hone-export $model -o small.onnx --bench --force --explain
hone-quantize $model --calib $digits/test_data_set_0 --analyze
hone-quantize $model --speed-only -o again.onnx --force
hone-replay int8.onnx $model --calib $digits/test_data_set_0
hone-replay small.onnx $model
END
    done
    # but what was asked for comes, and errors do
    succeeds hone-diff fast.onnx fast.onnx -q --json
    jq -e '.schema == "hone.diff/1"' <<<"$output"
    refuses 1 gone.onnx hone-run gone.onnx -q --data random
}

@test "options: a pattern, a list or a name that nothing has is an error with the nearest names" {
    local model=$digits/model.onnx calib=(--calib "$digits/test_data_set_0" -o no.onnx)
    refuses 2 "option '--exclude': no node with weights matches '^cnov1$'; the nearest are 'conv1'," \
        hone-quantize "$model" "${calib[@]}" --exclude '^cnov1$'
    refuses 2 "option '--set': no node with weights matches 'CONV_2'; the nearest are 'conv2'," \
        hone-quantize "$model" "${calib[@]}" --set CONV_2=f32
    refuses 2 "option '--only-ops': no node with weights is a 'Gem'; the nearest are 'Gemm' and 'Conv'" \
        hone-quantize "$model" "${calib[@]}" --only-ops Conv,Gem
    refuses 2 "option '--only-ops': no node with weights is a 'LSTM'; the nearest are" \
        hone-quantize "$model" "${calib[@]}" --only-ops LSTM
    refuses 2 "the model has no output 'probs'; there is" hone-quantize "$model" "${calib[@]}" --metric r2@probs
    refuses 2 "the model's graph has no value 'aa'; the nearest are 'a'," \
        hone-export chain.onnx -o no.onnx --extract x:aa
    refuses 2 "there is no pass 'merge-log-sofmax'; the nearest are 'merge-log-softmax'" \
        hone-export chain.onnx -o no.onnx --only merge-log-sofmax
    refuses 2 "no input 'X'; there is 'x'" hone-bench relu.onnx --shapes X:2x3
    refuses 2 "no input 'wt'; the nearest are 'w'," hone-profile weighted.onnx --input wt=x.npy
    refuses 2 "no input has a dimension 'n'; there is 'N'" hone-diff relu.onnx relu.onnx --dim n=3
    # an operator that another model has, beside one of this
    succeeds hone-quantize -q "$model" "${calib[@]}" --only-ops Conv,LSTM --force
}

@test "options: a quantized model is said to be one" {
    local args
    # every node gets its form by --set: what is faster here decides nothing
    for args in 'static .=int8 --speed-only' 'static .=int8 --format qoperator --speed-only' 'dynamic .=dynamic' 'weights .=w8'; do
        # shellcheck disable=SC2086 # words
        set -- $args
        local mode=$1 form=$2
        shift 2
        hone-quantize -q "$digits/model.onnx" --mode "$mode" --set "$form" "$@" -o int8.onnx --force
        refuses 3 'the model is already quantized: ' hone-quantize int8.onnx --mode "$mode" "$@" -o no.onnx
    done
    # a part of it is a warning
    hone-quantize -q "$digits/model.onnx" --mode weights --exclude conv3 -o part.onnx --force
    run --separate-stderr hone-quantize part.onnx --mode weights -o whole.onnx --force
    [ "$status" -eq 0 ] && sentence 'the model is already quantized in part'
    refuses 3 'no node whose weights could be quantized' hone-quantize relu.onnx --mode weights -o no.onnx
}

@test "options: hone-bench looks at all models before it measures one" {
    printf 'no model' >bad.onnx
    local started=$SECONDS
    refuses 1 gone.onnx hone-bench relu.onnx gone.onnx --time 30s
    refuses 1 "'bad.onnx'" hone-bench relu.onnx two.onnx bad.onnx --time 30s
    refuses 4 "'unknown.onnx': " hone-bench relu.onnx unknown.onnx --time 30s --streams 2
    refuses 2 "'ids.onnx': " hone-bench relu.onnx ids.onnx --time 30s --shapes x:2x3
    [ $((SECONDS - started)) -lt 25 ]
    # each warned of once
    hone-quantize -q "$digits/model.onnx" --speed-only -o fast.onnx --force
    run --separate-stderr hone-bench fast.onnx "$digits/model.onnx" --runs 6 --dim N=1,2
    [ "$status" -eq 0 ] && sentence 'made without data'
}

@test "options: what other tools say, a file behind --json, and folders of models" {
    refuses 2 "unknown option '--iterations': hone says '--runs'" hone-bench relu.onnx --iterations 10
    refuses 2 "unknown option '--overwrite-input-shape': hone says '--shapes'" \
        hone-export relu.onnx --overwrite-input-shape x:2,3
    refuses 2 "unknown option '-niter': hone says '--runs'" hone-bench relu.onnx -niter 10
    refuses 2 "unknown option '--batch_size': '--dim NAME=8' sets a free dimension" hone-run relu.onnx --batch_size=8
    refuses 2 "unknown option '--fp16': 'hone-export --to f16'" hone-bench relu.onnx --fp16
    refuses 2 "unknown option '--loadInputs': hone says '--input NAME=FILE'" hone-run relu.onnx --loadInputs=x:x.bin
    refuses 2 "unknown option '--iterations'" hone-export relu.onnx --iterations 10
    refuses 2 "did you mean '--json=out.json'?" hone-bench --json out.json relu.onnx
    refuses 2 "did you mean '--csv=out.csv'?" hone-profile relu.onnx --csv out.csv
    [ ! -e out.json ]
    # a time without a unit is seconds; -n is --runs
    refuses 2 "'--time' needs a time above 0" hone-bench relu.onnx --time 0
    refuses 2 "options '--runs', '--time' and '--ci' exclude each other" hone-bench relu.onnx --time 1 -n 3
    succeeds hone-bench relu.onnx -n 7 --json=report.json
    holds '.runs[0].latency_ms.n == 7'
    mkdir -p folder/usual folder/only folder/two folder/none
    cp relu.onnx folder/usual/model.onnx && cp relu.onnx folder/usual/other.onnx
    cp relu.onnx folder/only/net.onnx && cp relu.onnx folder/two/a.onnx && cp relu.onnx folder/two/b.onnx
    succeeds hone-run folder/usual --data random --out results
    succeeds hone-diff folder/only folder/usual
    refuses 1 "folder 'folder/none' holds no model" hone-run folder/none
    refuses 1 "folder 'folder/two' holds 2 models, and none is called model.onnx" hone-bench folder/two
}

@test "options: whoever names no data is told the inputs" {
    refuses 2 "; the model's input is 'x' f32[N,3]" hone-run two.onnx --input y=x.npy
    refuses 2 "; the model's inputs are 'x' f32[N,3] and 'b' f32[3]" hone-run weighted.onnx --input wt=x.npy
    refuses 2 "; the model's input is 'x' f32[N,3]" hone-quantize two.onnx -o no.onnx
    refuses 2 "; the model's input is 'x' f32[N,3]" hone-prune two.onnx -o no.onnx
}

# hone-inspect: what a model is.

load helpers

digits=$root/models/digits/model.onnx

setup_file() { make_work; }
setup() { cd "$work" || return; }

@test "inspect: a model, its report and its schema" {
    succeeds hone-inspect "$digits" --json=report.json
    schema inspect report.json
    [[ $output == *'image NCHW, 1 channel'*'operator'*'Conv'*'flops: '*'quantized: no'*'every operator is known'* ]]
    holds '.inputs[0].role == "image" and .inputs[0].dims[1:] == [1, 8, 8] and .inputs[0].dims[0] == "N"'
    holds '[.operators[].nodes] | add == 12'
    holds '.parameters == ([.weights.types[] | select(.type != "i64") | .elements] | add)'
    # flops grow with the batch
    local one
    one=$(jq .flops.total report.json)
    hone-inspect "$digits" --dim N=8 --json >report.json
    holds ".flops.total == 8 * $one and .flops.shapes.image == [8, 1, 8, 8]"
    refuses 2 "no input has a dimension 'n'; there is 'N'" hone-inspect "$digits" --dim n=8
    hone-inspect - --json <"$digits" >report.json
    holds '.model == "-"'
}

@test "inspect: what cannot run, whose weights are missing, or what is no model" {
    succeeds hone-inspect unknown.onnx --json=report.json
    schema inspect report.json
    holds '.cannot_run | length == 1 and .[0].support == "unknown"'
    [[ $output == *'cannot run'*'the operator is not known'* ]]
    run --separate-stderr hone-inspect external.onnx --json=report.json
    [ "$status" -eq 0 ] && sentence "external data 'gone.bin' of tensor 'w' is missing"
    schema inspect report.json
    holds '.weights.files[0].file_bytes == null and .weights.files[0].tensors > 0'
    mkdir -p whole && cp external.onnx whole/ && head -c 20 /dev/zero >whole/gone.bin
    succeeds hone-inspect whole/external.onnx --json=report.json
    holds '.weights.files[0] | .file_bytes == 20 and .bytes == 12'
    printf 'no model' >bad.onnx
    refuses 1 "'bad.onnx'" hone-inspect bad.onnx
    succeeds hone-inspect branches.onnx --json=report.json
    holds '.subgraphs > 0 and .node_counts.inner > 0'
    succeeds hone-inspect calls.onnx --json=report.json
    holds '.functions > 0 and .cannot_run == []'
}

@test "inspect: nodes, weights, tensors" {
    succeeds hone-inspect "$digits" --nodes --weights --tensor conv1.weight --json=report.json
    schema inspect report.json
    holds '.nodes | length == 12 and .[0].op == "Conv" and .[0].flops > 0 and .[0].weight_bytes > 0'
    holds '.nodes[0].output_types[0] | startswith("f32[1,16,")'
    holds '.weight_list | length > 5 and .[0].bytes >= .[1].bytes'
    holds '.tensor | .constant and .not_finite == 0 and (.histogram.counts | add) == 144 and .min < .max'
    [[ $output == *'conv1.weight: f32[16,1,3,3]'*'read by '*'values: '*'##'* ]]
    succeeds hone-inspect "$digits" --tensor image
    [[ $output == *'image: f32[N,1,8,8]'*'read by '* ]]
    refuses 2 "the model has no value 'conv1.wieght'; the nearest are 'conv1.weight'" \
        hone-inspect "$digits" --tensor conv1.wieght
    succeeds hone-inspect "$digits" --nodes --csv
    [[ ${lines[0]} == 'index,op,name,inside,'* && ${#lines[@]} -eq 13 ]]
}

@test "inspect: two models" {
    succeeds hone-inspect --compare "$digits" "$digits" --json=report.json
    schema inspect-compare report.json
    holds '.differences == 0'
    [[ $output == *'no difference'* ]]
    hone-export -q "$digits" -o half.onnx --to f16 --no-check
    succeeds hone-inspect --compare "$digits" half.onnx --json=report.json
    schema inspect-compare report.json
    holds '.interface[0] | .kind == "input" and .a == "f32[N,1,8,8]" and .b == "f16[N,1,8,8]"'
    holds '[.types[].type] | sort == ["f16", "f32"]'
    refuses 2 "'--compare' takes two models" hone-inspect --compare "$digits"
    refuses 2 'one model is enough' hone-inspect "$digits" half.onnx
    refuses 2 "excludes '--nodes'" hone-inspect --compare "$digits" half.onnx --nodes
}

@test "inspect: graphs" {
    hone-profile "$digits" --runs 1 --json >times.json
    hone-diff "$digits" "$digits" --per-layer --json >errors.json
    succeeds hone-inspect -q "$digits" --dot -
    [[ $output == 'digraph "model.onnx" {'*'label="Conv\n'*'->'*'}' ]]
    local plain=$output
    succeeds hone-inspect -q "$digits" --dot - --profile times.json
    [[ $output != "$plain" && $output == *'%'* ]]
    succeeds hone-inspect -q "$digits" --dot - --diff errors.json
    [[ $output == *'\nequal'* ]]
    refuses 1 'is no report of the form hone.profile/1' hone-inspect "$digits" --dot - --profile errors.json
    refuses 2 "name its file with '--svg' or '--dot'" hone-inspect "$digits" --profile times.json
    refuses 2 'exclude each other' hone-inspect "$digits" --dot x.dot --profile times.json --diff errors.json
    refuses 1 'there is no graphviz here' env PATH=nothing "$build/tools/hone-inspect" "$digits" --svg x.svg
    command -v dot || skip 'there is no graphviz here'
    succeeds hone-inspect -q "$digits" --svg x.svg --profile times.json
    [[ $(head -c 200 x.svg) == *'<?xml'* && $(<x.svg) == *'</svg>'* ]]
}

# uses MS KB COMMAND...: at most so much processor time and memory
uses() {
    local ms kb
    read -r ms kb < <(python3 "$here/holes.py" run "${@:3}")
    echo "$ms ms, $kb KB"
    [ "$ms" -lt "$1" ] && [ "$kb" -lt "$2" ]
}

@test "inspect: gigabytes are opened at once, and a thousand nodes are drawn" {
    python3 "$here/holes.py" make "$work"
    for model in outside inside; do
        succeeds hone-inspect $model.onnx
        [[ $output == *"can be computed"* || $output == *"every operator is known"* ]] || explain
        uses 2000 100000 hone-inspect $model.onnx
    done
    rm -f outside.bin inside.onnx
    command -v dot || skip 'there is no graphviz here'
    uses 5000 1000000 hone-inspect -q thousand.onnx --svg thousand.svg
    [[ $(<thousand.svg) == *'</svg>'* ]]
}

# hone-diff: what it matches, measures and refuses.

load helpers

setup_file() {
    make_work
    npy make '<f4' 2,3 '1 2 3 4 5 6' up.npy
}
setup() { cd "$work" || return; }

# differs [OPTION...] MODEL...: run it into report.json, which must be as the schema says
differs() {
    succeeds hone-diff --json=report.json --csv=report.csv "$@" && schema diff report.json
}

@test "diff: a model and itself" {
    differs chain.onnx chain.onnx --per-layer
    holds '.counts == {compared: 3, equal: 3, not_comparable: 0, only_a: 0, only_b: 0} and .synthetic'
    holds '[.tensors[] | .name] == ["a", "b", "y"]'
    holds 'all(.tensors[]; .accumulated.equal and .isolated.equal and .mark == "" and .matched_by == "name")'
    holds '[.tensors[] | .output] == [false, false, true]'
    differs chain.onnx --device-b ref --per-layer
    holds '.device_a == "cpu" and .device_b == "ref" and .counts.equal == 3'
}

@test "diff: outputs alone" {
    differs chain.onnx chain-off.onnx --data up.npy
    holds '.tensors | length == 1 and .[0].name == "y" and .[0].accumulated.max_abs == 3 and .[0].isolated == null'
    [[ $output == *y*'f32[2,3]'*3* ]]
}

@test "diff: the layer that errs, and those that hand it on" {
    differs chain.onnx chain-off.onnx --per-layer --data up.npy
    # x * 3.5 instead of x * 3 in the last column: 1.5 and 3
    holds '[.tensors[] | .accumulated.max_abs] == [3, 3, 3]'
    holds '[.tensors[] | .isolated.max_abs] == [3, 0, 0]'
    holds '.tensors[0] | .mark == "< worst, alone too" and .op == "Mul" and .node == "scale"'
    # 10 log10((1 + 16 + 81 + 16 + 100 + 324) / (2.25 + 9))
    holds '.tensors[0].accumulated.sqnr_db | . > 16.79 and . < 16.81'
    [[ $output == *"worst on its own: 16.8 dB, off by up to 3, in 'a' (Mul)"* ]]
    [ "$(wc -l <report.csv)" -eq 4 ]
}

@test "diff: the worst over samples" {
    differs chain.onnx chain-off.onnx --per-layer --data sets
    holds '.samples == 2 and .tensors[0].accumulated.max_abs == 1.5'
    differs chain.onnx chain-off.onnx --per-layer --data sets --samples 1 --top 1
    holds '.samples == 1 and (.tensors | length) == 1 and .tensors[0].name == "b" and .counts.compared == 3'
}

@test "diff: tensors under other names, and nodes of one model only" {
    differs chain.onnx chain-renamed.onnx --per-layer --data up.npy
    holds '.counts.equal == 3 and [.tensors[] | .matched_by] == ["order", "order", "name"]'
    holds '[.tensors[] | .name_b] == ["p", "q", "y"]'
    differs chain.onnx chain-longer.onnx --per-layer --data up.npy
    holds '.counts == {compared: 3, equal: 3, not_comparable: 0, only_a: 0, only_b: 1}'
    differs relu.onnx two.onnx --per-layer --data up.npy
    holds '.counts.compared == 1 and .counts.only_b == 1'
}

@test "diff: shapes that differ, shapes that depend on elements" {
    differs relu.onnx permuted.onnx --per-layer --data up.npy
    holds '.counts.not_comparable == 1 and .tensors[0].accumulated == null and .tensors[0].mark == "other shape"'
    differs shape.onnx shape.onnx --per-layer --data up.npy
    holds '.tensors[0].type == "i64[2,6]" and .counts.equal == 1'
}

@test "diff: guards" {
    differs chain.onnx chain-off.onnx --data up.npy --min-sqnr 10 --min-cos 0.9
    for guard in '--min-sqnr 40' '--min-cos 0.9999'; do
        # shellcheck disable=SC2086 # an option and its value
        run --separate-stderr hone-diff chain.onnx chain-off.onnx --data up.npy $guard
        [ "$status" -eq 3 ] && sentence "output 'y'"
    done
    run --separate-stderr hone-diff relu.onnx permuted.onnx --data up.npy --min-sqnr 10
    [ "$status" -eq 3 ] && sentence "output 'y' is f32[2,3], but f32[3,2] in the other model"
}

@test "diff: memory does not grow with the number of layers" {
    python3 - "$root/test/onnx" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from wire import FLOAT, node, simple, value
for n in 10, 300:
    nodes = [node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(n)]
    with open(f"deep{n}.onnx", "wb") as f:
        f.write(simple(nodes, ins=(value("v0", FLOAT, (100, 100)),), outs=(value(f"v{n}", FLOAT, (100, 100)),)))
END
    differs deep10.onnx deep10.onnx --per-layer --device-b ref
    holds '.counts.compared == 10'
    local few
    few=$(jq .peak_bytes report.json)
    differs deep300.onnx deep300.onnx --per-layer --device-b ref
    # 290 more nodes take some hundred bytes each in both graphs; their values, 40 kB each, stay as few as before
    holds ".counts.compared == 300 and .peak_bytes - $few < 290 * 4000"
}

@test "diff: a real model on the CPU and on ref" {
    differs "$root/models/digits/model.onnx" --device-b ref --per-layer --data "$root/models/digits/test_data_set_0"
    holds 'all(.tensors[]; .accumulated.equal or .accumulated.sqnr_db > 100)'
}

@test "diff: a model in two precisions" {
    differs chain.onnx --precision f32
    holds '.precision_b == "f32" and .a == .b and .counts.equal == 1'
    run --separate-stderr hone-diff "$root/models/digits/model.onnx" --precision bf16 --json
    if [ "$status" -eq 4 ]; then # no matrix units here
        sentence "option '--precision': device 'cpu' computes in the types that a model says"
    else
        jq -e '.precision_b == "bf16" and .tensors[0].accumulated.sqnr_db > 30' <<<"$output"
    fi
    refuses 2 "'f8' is none of" hone-diff chain.onnx --precision f8
    refuses 2 "'--precision' excludes '--device-b'" hone-diff chain.onnx --precision f32 --device-b ref
}

@test "diff: a model on two devices, and in two precisions, as lists" {
    differs chain.onnx --device cpu,ref --per-layer
    holds '.device_a == "cpu" and .device_b == "ref" and .counts.equal == 3'
    differs chain.onnx --precision f32,model
    holds '.precision_a == "f32" and .precision_b == "model" and .counts.equal == 1'
    refuses 2 'none of cpu' hone-diff chain.onnx --device cpu,gpu
    refuses 2 "'gpu' is not a device" hone-diff chain.onnx --device gpu,cpu
    refuses 2 "'f8' is none of" hone-diff chain.onnx --precision f8,model
    refuses 2 'is neither one nor two' hone-diff chain.onnx --precision f32,f32,f32
    refuses 2 "'--device' excludes '--device-b'" hone-diff chain.onnx --device cpu,ref --device-b ref
    refuses 2 'is not a device' hone-run chain.onnx --device cpu,ref
}

# sum_at MODEL LEVEL: of what it computes under HONE_MAX_ISA, bit by bit
sum_at() {
    HONE_MAX_ISA=$2 hone-run -q "$1" --data "$root/models/digits/test_data_set_0" --out "at-$2" --threads 2 >/dev/null
    find "at-$2" -name '*.pb' -exec cat {} + | sha256sum
}

@test "diff: a model at two instruction levels" {
    local model=$root/models/digits/model.onnx data=$root/models/digits/test_data_set_0 most per equal
    most=$(hone-diff "$model" --max-isa none --data "$data" --json | jq -r .max_isa_a)
    for per in '' --per-layer; do
        differs "$model" --max-isa none --data "$data" $per
        holds '.max_isa_b == "none" and all(.tensors[]; .accumulated.equal or .accumulated.sqnr_db > 100)'
        differs "$model" --max-isa none,none --data "$data" $per
        holds '.max_isa_a == "none" and .counts.equal == .counts.compared'
    done
    refuses 2 "'sse2' is none of none, avx2, avx512, vnni, bf16, amx" hone-diff "$model" --max-isa avx2,sse2
    refuses 2 "'' is none of" hone-diff "$model" --max-isa none,
    refuses 2 "'--max-isa' is for device 'cpu'" hone-diff "$model" --max-isa none --device ref
    refuses 2 "'--max-isa' excludes '--device-b'" hone-diff "$model" --max-isa none --device-b ref
    HONE_MAX_ISA=none refuses 4 "there is no 'avx2' here, the most is 'none'" hone-diff "$model" --max-isa avx2
    [ "$most" != none ] || skip 'this machine has no instructions to compare with'
    # the same as two processes say: bits differ between them where they do between the two sides
    differs "$model" --max-isa "$most,none" --data "$data" --threads 2
    equal=$([ "$(sum_at "$model" "$most")" = "$(sum_at "$model" none)" ] && echo 1 || echo 0)
    holds ".counts.equal == $equal and .max_isa_a == \"$most\""
}

@test "diff: what it refuses" {
    refuses 2 'name two models' hone-diff
    refuses 2 'name two models' hone-diff relu.onnx
    refuses 2 "what is 'two.onnx'" hone-diff relu.onnx relu.onnx two.onnx
    refuses 2 "input 'ids' of the second model is none of the first" hone-diff none.onnx ids.onnx
    refuses 2 'only one model can come from stdin' hone-diff - -
    refuses 2 'a cosine is between -1 and 1' hone-diff relu.onnx two.onnx --min-cos 2
    refuses 2 'none of cpu' hone-diff relu.onnx --device-b gpu
    refuses 4 'computes nothing' hone-diff relu.onnx --device-b null
    refuses 4 'Frobnicate' hone-diff relu.onnx unknown.onnx --per-layer
    refuses 1 'gone.onnx' hone-diff relu.onnx gone.onnx
}

@test "diff: factors that a tool moved between layers are undone" {
    local digits=$root/models/digits repair
    quantizes() { # a plan's repairs are made without being chosen
        hone-quantize -q "$digits/model.onnx" --calib "$digits/train.npz" --samples 16 -o moved.onnx --force "$@"
    }
    quantizes --repair none --write-plan none.json
    for repair in equalize smooth; do
        jq --arg repair $repair '.repairs = [$repair] | del(.spans)' none.json >plan.json
        quantizes --plan plan.json --json=made.json
        jq -e '.repairs[0].kept == "yes"' made.json
        differs "$digits/model.onnx" moved.onnx --per-layer --data "$digits/test.npz" --samples 4
        holds '[.tensors[] | select(.rescaled)] | length >= 4 and all(.accumulated.sqnr_db > 15)'
        holds 'all(.tensors[]; .isolated.sqnr_db == null or .isolated.sqnr_db > 15)'
        [[ $output == *'in units that a tool had changed'* && $output != *'made up'* ]]
        # the other way round, and a model beside itself
        differs moved.onnx "$digits/model.onnx" --per-layer --data "$digits/test.npz" --samples 4
        holds 'all(.tensors[]; .accumulated.sqnr_db > 15)'
        differs moved.onnx moved.onnx --per-layer --data "$digits/test.npz" --samples 1
        holds '.counts.equal == .counts.compared'
    done
    differs "$digits/model.onnx" "$digits/model.onnx" --per-layer
    holds 'all(.tensors[]; .rescaled == false)'
    [[ $output == *'the data are made up'* ]]
}

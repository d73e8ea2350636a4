# hone-quantize: what it writes, prints and refuses.

load helpers

setup_file() {
    export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
    make_work
}
setup() { cd "$work" || return; }

digits=$root/models/digits

# quantizes OPTION...: the digits into out.onnx and report.json, which must be as the schema says
quantizes() {
    rm -f out.onnx
    succeeds hone-quantize --json=report.json -q -o out.onnx "$digits/model.onnx" "$@" && schema quantize report.json
}

# speed is the machine's: guards on it are tested by themselves
@test "quantize: a classifier in int8 keeps its labels and has a third of the bytes" {
    quantizes --calib "$digits/train.npz" --force
    holds '.metric == "top1" and .score.top1 >= .original.top1 - 0.01 and .score.cos > 0.999'
    holds '[.nodes[] | select(.form == "int8" or .why == "slower")] | length == 4'
    holds '.bytes_after < 0.5 * .bytes_before and .trials >= 1 and (.synthetic | not)'
    run hone-run out.onnx --data "$digits/test.npz" --metric top1
    [[ $output =~ \(35[0-9]\ of\ 360\) ]]
}

@test "quantize: copies of samples are no other samples" {
    mkdir -p copies
    for i in {0..15}; do
        cp -r "$digits/test_data_set_0" "copies/test_data_set_$i"
    done
    run --separate-stderr hone-quantize --json=report.json -o out.onnx "$digits/model.onnx" --calib copies --force
    [ "$status" -eq 0 ] && [[ $stderr == *"15 samples of 'copies' are copies of others"* ]] || explain "copies"
    holds '.judged_on.samples == 1 and .judged_on.how == "used to calibrate"'
}

# no plan loses so little: what is said of the one that is written all the same is true of it
@test "quantize: --force tells what the file that it writes loses" {
    quantizes --calib "$digits/train.npz" --force --metric r2 --max-drop 0.000001%
    holds '.score.sqnr_db > 20 and .score.cos > 0.99 and .goals[0].drop > 1e-8 and .goals[0].drop < 0.05'
    holds '[.nodes[] | select(.form == "int8" and .why == null)] | length == 4'
    run -6 hone-quantize -q -o out.onnx "$digits/model.onnx" --calib "$digits/train.npz" --force --time-budget 0.001s
    [[ $output == *"the time of '--time-budget' was over"* ]]
}

# integers are exact everywhere, and all of this model is integers
@test "quantize: results are the same at every instruction level" {
    quantizes --calib "$digits/train.npz" --force --set '.*=int8'
    holds '[.nodes[] | select(.form == "int8")] | length == 4'
    HONE_MAX_ISA=none succeeds hone-run out.onnx --data "$digits/test.npz" --out plain
    for level in avx2 avx512 vnni amx; do
        HONE_MAX_ISA=$level succeeds hone-run out.onnx --data "$digits/test.npz" --out $level
        for set in plain/*; do
            cmp "$set/output_0.pb" "$level/${set#plain/}/output_0.pb"
        done
    done
}

@test "quantize: the same command gives the same bytes" {
    quantizes --calib "$digits/train.npz" --mode weights --force
    cp out.onnx first.onnx
    quantizes --calib "$digits/train.npz" --mode weights --force
    cmp first.onnx out.onnx
}

@test "quantize: --analyze tells what each node loses alone, and writes nothing" {
    run --separate-stderr hone-quantize "$digits/model.onnx" --calib "$digits/train.npz" --analyze --json
    [ "$status" -eq 0 ]
    schema quantize <<<"$output"
    jq -e '[.nodes[].alone_sqnr_db] | length == 4 and all(. > 20)' <<<"$output"
}

@test "quantize: 4-bit weights, without samples" {
    quantizes --mode weights --bits 4 --force --max-drop 100%
    holds '.synthetic and .method == null and ([.nodes[].form] == ["w8", "w4", "w4", "w4"]) and .bytes_after < 0.2 * .bytes_before'
    hone-run out.onnx --data "$digits/test.npz" --metric top1 | grep -q top1
}

@test "quantize: dynamic mode, with and without samples" {
    quantizes --calib "$digits/train.npz" --mode dynamic --force --max-drop 1%
    holds '.method == null and (.synthetic | not) and .score.cos > 0.999'
    quantizes --mode dynamic --force
    # where integers are no faster on this machine, weights alone may be stored in 8 bits
    holds '.synthetic and ([.nodes[].form] | unique - ["f32", "dynamic", "w8"] == [])'
    refuses 2 "leave out '--activations s8'" hone-quantize "$digits/model.onnx" --mode dynamic --activations s8 -o no.onnx
}

@test "quantize: operators on integers, and combinations that some runtime computes wrong" {
    quantizes --calib "$digits/train.npz" --format qoperator --force
    holds '.score.cos > 0.999'
    hone-run out.onnx --data "$digits/test.npz" --metric top1 | grep -q '(35[0-9] of 360)'
    quantizes --calib "$digits/train.npz" --format qoperator --per-channel --force
    holds '.score.cos > 0.999'
    refuses 2 "'--per-tensor'" hone-quantize "$digits/model.onnx" --calib "$digits/train.npz" --format qoperator --per-channel --activations s8 -o no.onnx
    refuses 2 "'--format' is for" hone-quantize "$digits/model.onnx" --mode weights --format qdq -o no.onnx
    refuses 2 "'--format' is one of" hone-quantize "$digits/model.onnx" --calib x.npy --format best -o no.onnx
    [ ! -e no.onnx ]
}

@test "quantize: weights beside the model" {
    quantizes --mode weights --external one-file --force
    [ -e out.onnx.*.data ]
    holds '.bytes_after < 0.3 * .bytes_before'
    hone-run out.onnx --data "$digits/test.npz" --metric top1 | grep -q '(35[0-9] of 360)'
    rm out.onnx.*.data
    refuses 2 "'--external' is one of" hone-quantize "$digits/model.onnx" --mode weights --external there -o no.onnx
}

@test "quantize: each repair is tried, told, and kept where it helps" {
    quantizes --calib "$digits/train.npz" --force --max-drop 100%
    holds '[.repairs[].repair] == ["rounding", "equalize", "smooth", "ranges", "bias"]'
    # 16 samples judge what is fitted to the others: it has to be better by more than they may show by chance
    holds '[.repairs[] | select(.repair | IN("equalize", "smooth", "ranges")) | (.kept == "yes") == (.after_db - .before_db > 2.041)] | all'
    holds '.error_budget | (.weights_db - .both_db | fabs) < 1 and .activations_db > .both_db + 3'
    holds '.error_budget.repaired_db > .error_budget.both_db + 1 and .repairs[0].kept == "yes"'
    cp out.onnx first.onnx
    quantizes --calib "$digits/train.npz" --force --max-drop 100%
    cmp first.onnx out.onnx
}

@test "quantize: --repair takes some, or none" {
    quantizes --calib "$digits/train.npz" --force --repair bias,rounding
    holds '[.repairs[].repair] == ["rounding", "bias"]'
    quantizes --calib "$digits/train.npz" --force --repair none
    holds '.repairs == [] and .error_budget.repaired_db == .error_budget.both_db'
    refuses 2 "repair 'luck' is none of" hone-quantize "$digits/model.onnx" --calib "$digits/train.npz" --repair luck -o no.onnx
}

@test "quantize: 4-bit weights are rounded for what samples show" {
    quantizes --mode weights --bits 4 --calib "$digits/train.npz" --force --max-drop 100% --repair none
    local before
    before=$(jq .score.sqnr_db report.json)
    quantizes --mode weights --bits 4 --calib "$digits/train.npz" --force --max-drop 100% --repair rounding
    holds ".repairs[0].kept == \"yes\" and .score.sqnr_db > $before"
}

@test "quantize: --exclude leaves nodes alone" {
    quantizes --calib "$digits/train.npz" --force --exclude 'scores|conv2'
    holds '[.nodes[].name] | index("scores") == null and index("conv2.out") == null'
}

@test "quantize: every method of calibration" {
    local m
    for m in minmax percentile entropy mse; do
        quantizes --calib "$digits/train.npz" --force --calib-method "$m"
        holds ".method == \"$m\" and .score.cos > 0.99"
    done
}

@test "quantize: ranges are written, and read again for the same model" {
    quantizes --calib "$digits/train.npz" --force --calib-method minmax --write-ranges ranges.json
    jq -e '.schema == "hone.calibration/1" and .method == "minmax" and (.tensors | length > 3)' ranges.json
    holds '.score.cos > 0.99'
    quantizes --calib "$digits/train.npz" --force --ranges ranges.json
    holds '.score.cos > 0.99'
    echo '{}' >bad.json
    refuses 1 "bad.json" hone-quantize -q "$digits/model.onnx" --calib "$digits/train.npz" --ranges bad.json -o no.onnx
}

@test "quantize: a guard that is missed writes nothing" {
    rm -f out.onnx
    refuses 3 "the quantized model takes" hone-quantize -q "$digits/model.onnx" --calib "$digits/train.npz" -o out.onnx --min-speedup 1000
    [ ! -e out.onnx ]
    refuses 3 "no node whose weights" hone-quantize -q relu.onnx --speed-only -o out.onnx
    [ ! -e out.onnx ]
}

@test "quantize: what no sample says anything of is not judged, and nothing is written by nothing" {
    rm -f out.onnx
    refuses 3 "outputs are empty in all samples" hone-quantize -q hits.onnx --mode weights --calib x.npy -o out.onnx
    [ ! -e out.onnx ]
    run hone-quantize hits.onnx --mode weights --calib x.npy --force -o out.onnx
    [ "$status" -eq 0 ]
    [[ $output == *"judged by nothing, since empty in all samples: 'y'"* ]]
    refuses 2 "no output that 'scores' is asked of" hone-quantize -q trained.onnx --mode weights --calib x.npy --metric scores -o out.onnx
}

@test "quantize: bad command lines" {
    rm -f out.onnx
    refuses 2 "no samples are named" hone-quantize "$digits/model.onnx" -o out.onnx
    refuses 2 "'--mode' is one of" hone-quantize "$digits/model.onnx" --mode best -o out.onnx
    refuses 2 "'--bits' is 8" hone-quantize "$digits/model.onnx" --calib x.npy --bits 4 -o out.onnx
    refuses 2 "'--target' is one of" hone-quantize "$digits/model.onnx" --calib x.npy --target z80 -o out.onnx
    refuses 2 "none of" hone-quantize "$digits/model.onnx" --calib x.npy --metric best -o out.onnx
    refuses 1 "missing.onnx" hone-quantize missing.onnx --calib x.npy -o out.onnx
    [ ! -e out.onnx ]
}

# the largest number of the first loop is 1, of the second 8: one scale for both would cost the first one 3 bits
@test "quantize: values of two graphs that are called the same have a range each" {
    succeeds hone-quantize --json=report.json -q -o out.onnx twins.onnx --speed-only --calib random:8 --dim T=6 --set '.*=int8' \
        --force --max-drop 1% --write-ranges ranges.json --write-plan plan.json
    schema quantize report.json
    holds '[.nodes[].name] == ["y1/body/gates", "y2/body/gates", "y"] and ([.nodes[].form] | unique == ["int8"])'
    jq -e '.tensors | .["y2/body/xh"].hi > 6 * .["y1/body/xh"].hi and .["y2/body/gates"].max > 3 * .["y1/body/gates"].max' ranges.json
    succeeds hone-replay -q out.onnx twins.onnx --calib random:8
    succeeds hone-quantize -q -o again.onnx twins.onnx --speed-only --calib random:8 --dim T=6 --plan plan.json --force --allow-larger
    succeeds hone-diff -q twins.onnx again.onnx --dim T=5 --min-sqnr 20
    # each by its name
    succeeds hone-quantize --json=report.json -q -o out.onnx twins.onnx --speed-only --calib random:8 --dim T=6 --force --max-drop 1% \
        --ranges ranges.json --set '.*=f32' --set 'y2/body/gates=int8'
    holds '[.nodes[] | select(.form == "int8").name] == ["y2/body/gates"]'
    for mode in dynamic weights; do
        succeeds hone-quantize -q -o out.onnx twins.onnx --calib random:8 --dim T=6 --force --allow-larger --mode $mode
    done
}

@test "quantize: a page has the plans, and what nodes lose" {
    draws "Plans by latency" "Plans by size" "Nodes that lose most" -- \
        hone-quantize "$digits/model.onnx" --calib "$digits/train.npz" --samples 16 --analyze
}

# hone-quantize: what it writes, prints and refuses.

load helpers

setup_file() { make_work; }
setup() { cd "$work" || return; }

digits=$root/models/digits

# quantizes OPTION...: the digits into out.onnx and report.json, which must be as the schema says
quantizes() {
    rm -f out.onnx
    succeeds hone-quantize --json=report.json -q -o out.onnx "$digits/model.onnx" "$@" && schema quantize report.json
}

holds() {
    jq -e "$1" report.json >/dev/null || {
        echo "not so: $1"
        cat report.json
        return 1
    }
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
    holds '.synthetic and .method == null and ([.nodes[] | select(.form == "w4") | .op] == ["Gemm"])'
    hone-run out.onnx --data "$digits/test.npz" --metric top1 | grep -q top1
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
    refuses 3 "of the time of f32" hone-quantize -q "$digits/model.onnx" --calib "$digits/train.npz" -o out.onnx --min-speedup 1000
    [ ! -e out.onnx ]
    refuses 3 "no node whose weights" hone-quantize -q relu.onnx --calib random -o out.onnx
    [ ! -e out.onnx ]
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

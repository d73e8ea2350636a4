# hone-bench --train: memory of a step, and what is refused.

load helpers

setup_file() { make_work; }
setup() { cd "$work" || return; }

# train [OPTION...]: steps into report.json, which must be as the schema says
train() {
    succeeds hone-bench --train --loss mse --runs 6 --warmup 0 -t 1 -q --json=report.json "$@" &&
        schema bench report.json
}

field() { jq -e ".runs[0] | $1" "${@:2}" report.json; }

@test "train: a step tells what it needs, which is what it takes" {
    train trained.onnx --batch 512 --checkpoint none
    [ "$(field .mode)" = '"train"' ]
    field '.train.forecast_bytes == .memory_bytes.arena + .memory_bytes.trained and .train.recomputed_nodes == 0'
}

@test "train: --checkpoint auto keeps to --mem-limit, with the same losses" {
    train trained.onnx --batch 512 --checkpoint none
    losses=$(field .train.losses)
    limit=$(field '.memory_bytes.trained + .memory_bytes.arena * 0.9 | floor')
    train trained.onnx --batch 512 --checkpoint auto --mem-limit "$limit"
    field ".memory_bytes.trained + .memory_bytes.arena <= $limit and .train.recomputed_nodes > 0"
    field '.train.forecast_bytes == .memory_bytes.arena + .memory_bytes.trained'
    [ "$(field .train.losses)" = "$losses" ]
    train trained.onnx --batch 512
    field '.train.forecast_bytes == .memory_bytes.arena + .memory_bytes.trained'
    [ "$(field .train.losses)" = "$losses" ]
    train trained.onnx --batch 512 --checkpoint 2
    field '.train.recomputed_nodes > 0'
    [ "$(field .train.losses)" = "$losses" ]
}

@test "train: the forecast comes before the first step" {
    run --separate-stderr hone-bench trained.onnx --train --loss mse --batch 512 --runs 1 --warmup 0 --checkpoint 1
    [ "$status" -eq 0 ]
    [[ ${stderr_lines[0]} == *"a step will take "* && ${stderr_lines[1]} == *"computed twice"* ]]
}

@test "train: what does not fit is refused before the first step" {
    refuses 6 "a step needs" hone-bench trained.onnx --train --loss mse --batch 512 --mem-limit 20k
    refuses 6 "a step needs" hone-bench trained.onnx --train --loss mse --batch 512 --mem-limit 20k --checkpoint auto
    refuses 6 "one sample fits the memory limit: a step needs" hone-bench trained.onnx --train --loss mse --batch auto --mem-limit 20k
    refuses 1 "a batch of 512 samples cannot be cut into 3 micro-batches" hone-bench trained.onnx --train --loss mse \
        --batch 512 --micro-batches 3
}

@test "train: --micro-batches auto cuts a batch into as few parts as fit" {
    train trained.onnx --batch 512 --checkpoint none
    field '.train.micro_batches == 1'
    limit=$(field '.memory_bytes.trained + .memory_bytes.arena * 0.7 | floor')
    train trained.onnx --batch 512 --checkpoint none --micro-batches auto --mem-limit "$limit"
    field ".train.forecast_bytes <= $limit and .train.micro_batches == 2"
    field '.memory_bytes.arena + .memory_bytes.trained | . <= 1.03 * $f and . >= 0.97 * $f' --argjson f "$(field .train.forecast_bytes)"
    train trained.onnx --batch 512 --checkpoint none --mem-limit "$limit" # its samples do not depend on each other
    field '.train.micro_batches == 2'
    train trained.onnx --batch 512 --micro-batch 4
    field '.train.micro_batches == 4'
    refuses 6 "a step needs" hone-bench trained.onnx --train --loss mse --batch 512 --micro-batches 2 --mem-limit 20k
    refuses 6 "a step needs" hone-bench trained.onnx --train --loss mse --batch 512 --micro-batches auto --mem-limit 2k
}

@test "train: --batch auto takes as many samples as fit" {
    run --separate-stderr hone-bench trained.onnx --train --loss mse --batch auto --mem-limit 600k --runs 6 --warmup 0 \
        -t 1 --json=report.json
    [ "$status" -eq 0 ]
    schema bench report.json
    [[ ${stderr_lines[0]} == *"batch 1: "*"samples/s"* ]]
    field '.train.forecast_bytes | . <= 614400 and . > 400000'
    refuses 6 "one sample" hone-bench trained.onnx --train --loss mse --batch auto --mem-limit 2k -q
    refuses 2 "can be 'auto'" hone-bench trained.onnx --train --batch auto --micro-batches auto
    succeeds hone-bench trained.onnx --train --loss mse --batch auto --micro-batches 3 --mem-limit 2M --runs 2 -q \
        --json=report.json
    field '.train.micro_batches == 3 and .shapes.x[0] % 3 == 0'
    refuses 2 "'--batch auto'" hone-bench trained.onnx relu.onnx --train --batch auto
    refuses 2 "a number here" hone-profile trained.onnx --train --batch auto
}

# places LABEL: places.npz, 8 samples of two places, whose last label is LABEL
places() {
    npy make '<f4' 8,2,3 "$(python3 -c 'print(*[(i * 37 % 101 - 50) / 50 for i in range(48)])')" x.npy
    npy make '<i8' 8,2 "$(python3 -c 'print(*[i % 5 for i in range(15)])') $1" label.npy
    python3 -c 'import zipfile
with zipfile.ZipFile("places.npz", "w") as z: [z.write(n) for n in ("x.npy", "label.npy")]'
}

@test "train: classes lie along the axis that labels tell" {
    places 4
    learns=(hone-bench --train places.onnx --data places.npz --batch 8 --runs 6 --warmup 0 -t 1 -q --json=report.json)
    succeeds "${learns[@]}" --loss ce:axis=2
    losses=$(field .train.losses)
    succeeds "${learns[@]}" --loss ce
    [ "$(field .train.losses)" = "$losses" ]
    refuses 1 "label" "${learns[@]}" --loss ce:axis=1 # somebody said it
    places 5
    refuses 1 "label 5" "${learns[@]}" --loss ce
}

@test "train: bad options" {
    refuses 2 "need '--train'" hone-bench trained.onnx --checkpoint auto
    for how in "" 0 -1 some 1.5; do
        refuses 2 "option '--checkpoint'" hone-bench trained.onnx --train --checkpoint "$how"
        refuses 2 "option '--batch'" hone-bench trained.onnx --train --batch "$how"
        refuses 2 "option '--micro-batches'" hone-bench trained.onnx --train --micro-batches "$how"
    done
}

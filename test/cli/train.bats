# hone-bench --train: memory of a step, and what is refused.

load helpers

setup_file() { make_work; }
setup() { cd "$work" || return; }

# train [OPTION...]: steps into report.json, which must be as the schema says
train() {
    succeeds hone-bench --train --loss mse --runs 6 --warmup 0 -t 1 -q --json=report.json "$@" &&
        schema bench report.json
}

field() { jq -e ".runs[0] | $1" report.json; }

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
}

@test "train: bad options" {
    refuses 2 "need '--train'" hone-bench trained.onnx --checkpoint auto
    for how in "" 0 -1 some 1.5; do
        refuses 2 "option '--checkpoint'" hone-bench trained.onnx --train --checkpoint "$how"
    done
}

# hone-distill: what it writes, prints and refuses.

load helpers

setup_file() { make_work; }
setup() { cd "$work" || return; }

digits=$root/models/digits

# distills OPTION...: the digits, from new weights, into out.onnx and report.json, which must be as the schema says
distills() {
    rm -f out.onnx
    succeeds hone-distill --json=report.json -q -o out.onnx --student "$digits/model.onnx" --data "$digits/train.npz" "$@" &&
        schema distill report.json
}

@test "distill: from new weights, by labels" {
    distills --init random:1 --val "$digits/test.npz" --epochs 8 --lr 3e-3
    holds '.epochs | length == 8 and .[7].loss < .[0].loss'
    holds '.before.top1 < 0.3 and .after.top1 > 0.97 and .val.how == "other samples" and .steps == 176'
    holds '.trained.weights == 10 and .trained.elements == 25946 and .trained.statistics == 4'
    holds '[.epochs[] | select(.best == "yes")] | length == 1'
    right 350
    succeeds hone-export -q out.onnx -o again.onnx
}

@test "distill: files that say how many samples they take" {
    npy make '<f4' 64,4,4 "$(python3 -c 'print(*[(i * 37 % 101 - 50) / 50 for i in range(1024)])')" x.npy
    npy make '<f4' 64,16 "$(python3 -c 'print(*[(i * 37 % 101 - 50) / 50 for i in range(1024)])')" rows.npy
    succeeds hone-distill --json=report.json -q -o out.onnx --student single.onnx --teacher single.onnx --data x.npy \
        --init random:1 --epochs 20 --batch 8
    holds '.after.loss < .before.loss / 20 and .batch == 8'
    succeeds hone-distill --json=report.json -q -o out.onnx --student auto:0.5x --teacher single.onnx --data x.npy --batch 8
    run hone-inspect out.onnx
    [[ $output == *"f32[1,4,4]"* ]] || explain "its own inputs"
    refuses 4 "'--batch 1'" hone-distill -q -o no.onnx --student together.onnx --teacher together.onnx --data rows.npy --batch 8
    succeeds hone-distill -q -o out.onnx --student together.onnx --teacher together.onnx --data rows.npy --batch 1 --init random:1
}

# without_labels FILE OUT
without_labels() {
    python3 -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as a, zipfile.ZipFile(sys.argv[2], "w") as b:
    [b.writestr(n, a.read(n)) for n in a.namelist() if n != "label.npy"]' "$@"
}

@test "distill: an input that no sample feeds" {
    npy make '<f4' 64,16 "$(python3 -c 'print(*[(i * 37 % 101 - 50) / 50 for i in range(1024)])')" x.npy
    learns=(hone-distill --json=report.json -q -o out.onnx --student scaled.onnx --teacher scaled.onnx --data x.npy
        --init random:1 --lr 1e-2 --epochs 20 --batch 8 --force)
    succeeds "${learns[@]}" --input s=1
    holds '.after.loss < .before.loss / 4'
    refuses 1 "'s'" "${learns[@]}"
    refuses 2 "no input 'q'" "${learns[@]}" --input q=1
}

@test "distill: what another model says, without a label" {
    without_labels "$digits/train.npz" images.npz
    succeeds hone-distill --json=report.json -q -o out.onnx --student "$digits/model.onnx" --data images.npz --init random:1 \
        --teacher "$digits/model.onnx" --epochs 8 --lr 3e-3
    schema distill report.json
    holds '.after.loss < .before.loss / 4 and .after.top1 == null and .val.how == "held out"'
    right 345
    distills --init random:1 --teacher "$digits/model.onnx" --loss '0.3*ce+0.7*kl:temperature=2' --epochs 1
    refuses 1 "label" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data images.npz
}

@test "distill: the same command gives the same bytes, with any number of threads and parts" {
    distills --init random:3 --epochs 1 --augment shift:1,noise:0.01 -t 1
    cp out.onnx first.onnx
    distills --init random:3 --epochs 1 --augment shift:1,noise:0.01 -t 2
    cmp first.onnx out.onnx
    distills --init random:3 --epochs 1 --augment shift:1,noise:0.01 --seed 5
    run cmp first.onnx out.onnx
    [ "$status" -eq 1 ]
}

@test "distill: as many samples as fit, and parts that do" {
    plain=(--student scaled.onnx --teacher scaled.onnx --data x.npy --init random:1 --lr 1e-2 --force --input s=1)
    npy make '<f4' 64,16 "$(python3 -c 'print(*[(i * 37 % 101 - 50) / 50 for i in range(1024)])')" x.npy
    learns=(hone-distill --json=report.json -q -o out.onnx "${plain[@]}" --epochs 2)
    succeeds "${learns[@]}" --batch auto
    holds '.batch == 7 and .steps == 16' # 58 samples to learn from, 8 steps
    cp out.onnx first.onnx
    succeeds "${learns[@]}" --batch 7
    cmp first.onnx out.onnx # the recipe has the number
    succeeds "${learns[@]}" --micro-batches auto --batch 8
    run --separate-stderr hone-distill -o out.onnx "${plain[@]}" --epochs 1 --batch auto --mem-limit 1G
    [ "$status" -eq 0 ] && [[ $stderr == *"batch 4: "*" samples/s"* ]] || explain "batch 4"
    # so has that of parts, which depend on the limit
    succeeds hone-distill -q -o out.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --init random:1 --epochs 1 \
        --batch 1024 --val-part 0.02 --force --micro-batches auto --mem-limit 19M
    succeeds hone-replay -q out.onnx "$digits/model.onnx" --data "$digits/train.npz"
    # and beside a step there is room to judge by the samples that are held out
    learn_in() {
        hone-distill -q -o out.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --teacher "$digits/model.onnx" \
            --init random:1 --epochs 1 --batch 1024 --val-part 0.02 --force --micro-batches auto --mem-limit "$1"
    }
    succeeds learn_in 10M
    succeeds learn_in 14M
    # whatever the limit: it is enough, or that is said before anything is learned
    for limit in 4250 5250 5375 6500 8000 12500; do
        run --separate-stderr learn_in "${limit}K"
        [ "$status" -eq 0 ] || [[ $stderr != *" more, the memory limit"* ]] || explain "room for all of it, or a forecast"
    done
    refuses 6 "which leaves" learn_in 3M
    refuses 2 "divides" "${learns[@]}" --batch 8 --micro-batches 3
    refuses 2 "can be 'auto'" "${learns[@]}" --batch auto --micro-batches auto
    succeeds "${learns[@]}" --batch auto --micro-batches 4
    refuses 2 "'--batch'" "${learns[@]}" --batch 0
    refuses 2 "'--micro-batches'" "${learns[@]}" --micro-batches few
}

@test "distill: killed and gone on, the same bytes" {
    how=(--init random:1 --epochs 3 --batch 90 --ema 0.9 --clip 1 --checkpoint-every 1)
    distills "${how[@]}" --checkpoint-file whole.checkpoint
    cp out.onnx whole.onnx
    for delay in 0.12 0.2 0.3; do
        rm -f out.onnx part.checkpoint
        hone-distill -q -o out.onnx --student "$digits/model.onnx" --data "$digits/train.npz" "${how[@]}" \
            --checkpoint-file part.checkpoint &
        pid=$!
        sleep $delay
        kill -9 $pid 2>/dev/null || true
        wait $pid || true
        distills "${how[@]}" --checkpoint-file part.checkpoint --resume part.checkpoint
        cmp whole.onnx out.onnx
    done
    # it is done: nothing is left to do
    distills "${how[@]}" --checkpoint-file part.checkpoint --resume part.checkpoint
    holds '.steps == .steps_before and .ms_per_step == null'
    cmp whole.onnx out.onnx
    refuses 2 "other options" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" \
        "${how[@]}" --lr 1e-4 --checkpoint-file part.checkpoint --resume part.checkpoint
    refuses 1 "no checkpoint" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" \
        --resume "$digits/train.npz"
}

@test "distill: in f16, with losses scaled, killed and gone on" {
    how=(--init random:1 --epochs 3 --batch 90 --ema 0.9 --precision f16 --checkpoint-every 1)
    distills "${how[@]}" --checkpoint-file whole.checkpoint
    holds '.loss_scale >= 1 and .steps_skipped >= 0'
    cp out.onnx whole.onnx
    rm -f part.checkpoint
    hone-distill -q -o out.onnx --student "$digits/model.onnx" --data "$digits/train.npz" "${how[@]}" \
        --checkpoint-file part.checkpoint &
    pid=$!
    sleep 0.2
    kill -9 $pid 2>/dev/null || true
    wait $pid || true
    distills "${how[@]}" --checkpoint-file part.checkpoint --resume part.checkpoint
    cmp whole.onnx out.onnx
    refuses 2 --precision hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --precision f8
}

@test "distill: a quantized student learns in place" {
    for how in "--calib $digits/train.npz --repair none" "--mode weights --bits 4 --repair none"; do
        # shellcheck disable=SC2086 # several options
        hone-quantize -q "$digits/model.onnx" $how --force --timing-cache none --journal none -o s.onnx
        options=(--student s.onnx --teacher "$digits/model.onnx" --data "$digits/train.npz" --val "$digits/test.npz" --epochs 2)
        succeeds hone-distill --json=report.json -q -o out.onnx "${options[@]}" --checkpoint-file c.checkpoint --checkpoint-every 5
        schema distill report.json
        holds '.after.loss < .before.loss'
        rm c.checkpoint
        hone-distill -q -o out2.onnx "${options[@]}" --checkpoint-file c.checkpoint --checkpoint-every 1 &
        pid=$!
        until [ -e c.checkpoint ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
        kill -9 $pid 2>/dev/null || true
        wait $pid || true
        succeeds hone-distill -q -o out2.onnx "${options[@]}" --checkpoint-every 5 --resume c.checkpoint
        cmp out.onnx out2.onnx
        rm c.checkpoint
    done
    refuses 4 "quantized" hone-distill -q -o no.onnx --student s.onnx --data "$digits/train.npz" --init random
    hone-quantize -q "$digits/model.onnx" --calib "$digits/train.npz" --format qoperator --force --timing-cache none \
        --journal none -o q.onnx
    refuses 4 "--format qdq" hone-distill -q -o no.onnx --student q.onnx --data "$digits/train.npz"
}

@test "distill: a student that gets worse is not written" {
    refuses 3 "was" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --epochs 1 \
        --optimizer sgd --lr 3
    [ ! -e no.onnx ]
    refuses 3 "no smaller" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --epochs 1 \
        --optimizer sgd --lr 1e-30
    distills --epochs 1 --optimizer sgd --lr 3 --force
    refuses 3 "--clip" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --epochs 1 \
        --teacher "$digits/model.onnx" --loss mse --init random --optimizer sgd --lr 1e6 --warmup 0 --clip 0
}

@test "distill: what a student is judged by is nothing that it learns from" {
    run --separate-stderr hone-distill --json=report.json -o out.onnx --student "$digits/model.onnx" --init random:1 --epochs 2 \
        --data "$digits/train.npz" --val "$digits/train.npz"
    [ "$status" -eq 0 ] && [[ $stderr == *"of 1437 samples to judge by 1437 are"*"which leaves none"*"learns from"* ]] || explain "the same file"
    holds '.val.how == "learned from" and .val.samples == 1024'
    rows() { python3 -c "print(*[(i // 64 * 37 + i % 64 * (i // 64 + 1)) % 101 for i in range($1 * 64, $2 * 64)])"; }
    npy make '<f4' 60,1,8,8 "$(rows 0 60)" learn.npy
    npy make '<f4' 50,1,8,8 "$(rows 40 90)" judge.npy
    learn=(--student "$digits/model.onnx" --teacher "$digits/model.onnx" --init random:1 --epochs 1 --force)
    run --separate-stderr hone-distill --json=report.json -o out.onnx "${learn[@]}" --data learn.npy --val judge.npy
    [ "$status" -eq 0 ] && [[ $stderr == *"of 50 samples to judge by 20 are"*"left out"* ]] || explain "some of them"
    holds '.val.how == "other samples" and .val.samples == 30'
    succeeds hone-replay -q out.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data learn.npy --val judge.npy
    npy make '<f4' 60,1,8,8 "$(rows 0 30) $(rows 0 30)" twice.npy
    run --separate-stderr hone-distill --json=report.json -o out.onnx "${learn[@]}" --data twice.npy --val-part 0.5
    [ "$status" -eq 0 ] && [[ $stderr == *"of 30 samples to judge by "* ]] || explain "samples that are there twice"
    holds '.val.how == "held out" and .val.samples < 30'
}

@test "distill: what is trained" {
    run --separate-stderr hone-distill --list-trainable --student "$digits/model.onnx" --json
    [ "$status" -eq 0 ]
    echo "$output" >report.json
    schema distill report.json
    holds '[.weights[] | select(.trained == "yes")] | length == 10'
    holds '.weights[] | select(.name == "norm1.mean") | .trained | startswith("no: ")'
    distills --train '^score' --epochs 1 --force
    holds '.trained.weights == 2'
    distills --freeze '^conv' --epochs 1 --force
    holds '.trained.weights == 6'
    refuses 4 "no weight can be trained: the pattern of what is frozen matches all" hone-distill -q -o no.onnx \
        --student "$digits/model.onnx" --data "$digits/train.npz" --freeze .
    refuses 4 "no weight can be trained: the pattern of what is trained matches none" hone-distill -q -o no.onnx \
        --student "$digits/model.onnx" --data "$digits/train.npz" --train nothing
}

@test "distill: a rate is found, and normalizations of small sets stay" {
    distills --lr auto --epochs 1 --init random:1 --val-part 0 --force
    holds '.lr > 1e-5 and .lr < 0.3 and .val.how == "learned from"'
    run hone-distill -o out.onnx --student "$digits/model.onnx" --data "$digits/test.npz" --val-part 0.5 --epochs 1 --force
    [[ $output == *"normalizations keep"* ]] || explain "normalizations"
}

# a set of 24 images, whose labels are right, and those of another one are LABEL; pixel 5 of image 3 is PIXEL
make_set() {
    python3 -c 'import struct, sys, zipfile
label, pixel, out = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
def npy(descr, shape, data):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head + data
x = [0.5] * (24 * 64)
x[3 * 64 + 5] = pixel
y = [k % 10 for k in range(24)]
y[7] = label
with zipfile.ZipFile(out, "w") as z:
    z.writestr("x.npy", npy("<f4", (24, 1, 8, 8), struct.pack("<1536f", *x)))
    z.writestr("label.npy", npy("<i8", (24,), struct.pack("<24q", *y)))' "$@"
}

@test "distill: labels and numbers that cannot be" {
    make_set 10 0.5 labels.npz
    refuses 1 "label 10" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data labels.npz --val-part 0
    [[ $stderr == *"sample 7"* ]] || explain "sample 7"
    make_set 10 nan both.npz # labels are looked at before any batch is
    refuses 1 "label 10" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data both.npz --val-part 0 --batch 1
    refuses 1 "label 10" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --val labels.npz
    make_set 7 nan numbers.npz
    refuses 1 "sample 3" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data numbers.npz --val-part 0
    [ ! -e no.onnx ]
}

@test "distill: what is refused" {
    refuses 1 "No such file" hone-distill -q -o nowhere/no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --epochs 100000
    mkdir fixed # a folder where nobody wants to write; permissions hold for root, too
    chmod a-w fixed
    cd fixed
    local -a as=()
    [ "$(id -u)" -ne 0 ] || as=(setpriv --bounding-set=-dac_override,-dac_read_search --)
    refuses 1 "nothing.npz" "${as[@]}" hone-distill -q -o ../out.onnx --tune 2 --journal none --student "$digits/model.onnx" --data ../nothing.npz
    cd ..
    chmod 755 fixed
    for what in "2|--student|" "2|--data|--student $digits/model.onnx" \
        "2|no loss|--student $digits/model.onnx --data $digits/train.npz --loss xx" \
        "2|--lr|--student $digits/model.onnx --data $digits/train.npz --lr 0" \
        "2|--init|--student $digits/model.onnx --data $digits/train.npz --init zero" \
        "2|made-up|--student $digits/model.onnx --data random:8" \
        "2|teacher has nothing to say|--student $digits/model.onnx --data $digits/train.npz --loss ce --teacher $digits/model.onnx" \
        "6|limit|--student $digits/model.onnx --data $digits/train.npz --mem-limit 100K"; do
        IFS='|' read -r status words options <<<"$what"
        # shellcheck disable=SC2086 # several options
        refuses "$status" "$words" hone-distill -q -o no.onnx $options
    done
    [ ! -e no.onnx ]
}

@test "distill: losses by what outputs hold, and those that do not suit" {
    teach=(--teacher "$digits/model.onnx" --init random:1 --epochs 1)
    distills "${teach[@]}" --val "$digits/test.npz"
    holds '.objective == "0.7*kl:temperature=2:axis=1@scores+0.3*ce:axis=1@scores" and .val.metric == "top1"'
    holds '.teacher.top1 > 0.99 and .teacher.agreement == 1 and .teacher.bytes > 1e5 and .gain.bytes < 1.1'
    holds '.memory_bytes.forecast >= .memory_bytes.arena + .memory_bytes.states - 64 and (.loss | length) == 1'
    distills "${teach[@]}" --no-labels
    holds '.objective == "kl:temperature=2:axis=1@scores" and .val.metric == "agreement" and .after.top1 == null'
    holds '.val.value == .after.agreement and .gain.metric > 0.2'
    distills "${teach[@]}" --no-labels --kd mse
    holds '.objective == "mse:logits=1:axis=1@scores"'
    refuses 2 "'kl' does" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" \
        "${teach[@]}" --loss bce
    refuses 2 "compares with labels" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" \
        "${teach[@]}" --loss 0.5*ce+0.5*kl --no-labels
    refuses 2 "nothing to learn" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --no-labels
    refuses 2 "'--kd' is" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" "${teach[@]}" --kd best
    refuses 1 "No such file" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --resume none.hone
    [ ! -e no.onnx ]
}

# labelled DTYPE SHAPE VALUES OUT: 40 samples of a model with 3 inputs and results
labelled() {
    npy make '<f4' 40,3 "$(python3 -c 'print(*[(i * 37 % 101 - 50) / 50 for i in range(120)])')" x.npy
    npy make "$1" "$2" "$3" label.npy
    python3 -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as z: [z.write(n) for n in ("x.npy", "label.npy")]' "$4"
}

@test "distill: losses that suit neither labels nor what the output holds name the one that does" {
    bits=$(python3 -c 'print(*[i * 7 % 3 % 2 for i in range(120)])')
    labelled '<i8' 40 "$(python3 -c 'print(*[i % 3 for i in range(40)])')" classes.npz
    labelled '<f4' 40,3 "$bits" bits.npz
    labelled '<i8' 40,3 "$bits" whole.npz
    labelled '<f4' 40,3 "$(python3 -c 'print(*[i / 50 - 1 for i in range(120)])')" numbers.npz
    for what in "trained|classes|bce|'ce' does" "trained|bits|ce|'bce' does" "trained|numbers|ce|'mse' does" \
        "trained|numbers|bce|'mse' does" "tagger|bits|bce|'bce:probabilities=1' does" \
        "trained|bits|bce:probabilities=1|'bce' does"; do
        IFS='|' read -r model data loss words <<<"$what"
        refuses 2 "$words" hone-distill -q -o no.onnx --student $model.onnx --data $data.npz --loss "$loss"
    done
    [ ! -e no.onnx ]
    run --separate-stderr hone-distill --force --epochs 1 -o out.onnx --student tagger.onnx --data bits.npz --loss bce
    [ "$status" -eq 0 ]
    [[ $stderr == *"'bce' does not suit output 'y'"* ]] || explain warning
    learns=(hone-distill -q --json=report.json --force --epochs 1 -o out.onnx --student)
    for what in "trained|bits|bce@y" "tagger|bits|bce:probabilities=1@y" "trained|numbers|mse" "trained|classes|ce:axis=1@y"; do
        IFS='|' read -r model data loss <<<"$what"
        succeeds "${learns[@]}" $model.onnx --data $data.npz
        holds ".objective | contains(\"$loss\")"
    done
    succeeds "${learns[@]}" trained.onnx --data bits.npz --loss bce
    cp report.json floats.json
    succeeds "${learns[@]}" trained.onnx --data whole.npz --loss bce # integers, one for each number
    [ "$(jq -c .loss report.json)" = "$(jq -c .loss floats.json)" ]
}

@test "distill: one score has no classes, and nothing tells how often it is right" {
    labelled '<i8' 40 "$(python3 -c 'print(*[i % 2 for i in range(40)])')" bits.npz
    succeeds hone-distill -q --json=report.json --force --epochs 1 -o out.onnx --student score.onnx --data bits.npz
    holds '(.objective | startswith("bce")) and .after.top1 == null'
    refuses 2 "'bce' does" hone-distill -q -o no.onnx --student score.onnx --data bits.npz --loss ce
}

@test "distill: settings that are tried first" {
    teach=(--teacher "$digits/model.onnx" --init random:1 --epochs 4 --no-labels)
    distills "${teach[@]}" --tune 4
    holds '(.tune | length) == 4 and ([.tune[] | .epochs] | sort) == [1, 1, 2, 2] and .tune[0].chosen == "yes"'
    holds '.tune[0].loss == .objective and .lr == .tune[0].lr and ([.tune[] | .loss + (.lr | tostring)] | unique | length) == 4'
    succeeds hone-replay -q out.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    cp out.onnx first.onnx
    distills "${teach[@]}" --tune 4
    cmp first.onnx out.onnx
    [ ! -e out.onnx.journal ]
    distills "${teach[@]}" --tune 4 --journal whole.journal
    cmp first.onnx out.onnx
    [ "$(wc -l <whole.journal)" -eq 9 ] # a header, the forecast, six trials, the end
    while read -r line; do
        schema journal <<<"$line"
    done <whole.journal
    head -4 whole.journal >part.journal # as if it had been killed behind two trials
    distills "${teach[@]}" --tune 4 --journal part.journal --checkpoint-file c.hone --resume none.hone
    cmp first.onnx out.onnx
    cmp <(head -8 whole.journal) <(head -8 part.journal)
    refuses 2 "another" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" "${teach[@]}" --tune 3 \
        --journal part.journal --resume c.hone
    refuses 2 "another" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --teacher first.onnx \
        --init random:1 --epochs 4 --no-labels --tune 4 --journal part.journal --checkpoint-file d.hone --resume none.hone
    distills "${teach[@]}" --tune 4 --time-budget 1ms
    holds '(.tune | length) == 2 and (.epochs | length) == 1 and .forecast_s > 0'
    distills --teacher "$digits/model.onnx" --no-labels --init random:1 --epochs 5 --time-budget 1h
    holds '(.epochs | length) == 5 and (has("tune") | not)'
    succeeds hone-distill --json=report.json -q -o out.onnx --teacher "$digits/model.onnx" --student auto:0.5x --no-labels \
        --data "$digits/train.npz" --epochs 100000 --time-budget 4s --force
    holds '(.epochs | length) < 5000'
    succeeds hone-replay -q out.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    refuses 2 "'--journal' keeps" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --journal j
    refuses 2 "above 0" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --time-budget 0
    distills "${teach[@]}" --tune 50 --lr 1e-3 --kd standardize # temperatures are left: 2, which is usual here, 8 and 1
    holds '(.tune | length) == 3 and .lr == 0.001 and all(.tune[]; .loss | test("standardize=1"))'
    refuses 2 "nothing to try" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --loss ce --lr 1e-3 --tune 4
    refuses 2 "two settings" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --tune 1
    refuses 2 "would" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --tune 4 --lr auto
    refuses 2 "says the temperature" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --loss kl --temperature 3
}

@test "distill: a log, a picture, the teacher's results in a file, and all that again from the recipe" {
    teach=(--teacher "$digits/model.onnx" --init random:1 --epochs 2)
    distills "${teach[@]}" --log log.csv --cache-teacher said.npz
    [ "$(head -1 log.csv)" = "step,epoch,lr,loss,val_loss,top1,agreement" ]
    [ "$(wc -l <log.csv)" -eq $((1 + $(jq .steps report.json) + 2)) ]
    cp out.onnx first.onnx
    touch -d @0 said.npz
    distills "${teach[@]}" --log log.jsonl --cache-teacher said.npz
    [ "$(stat -c %Y said.npz)" -eq 0 ] # read, not written again
    cmp first.onnx out.onnx
    jq -s -e 'length == '"$(($(jq .steps report.json) + 2))"' and .[-1].top1 > 0.3 and .[0].loss > 0' log.jsonl
    distills "${teach[@]}" --no-cache-teacher
    cmp -n 105000 first.onnx out.onnx # but for the recipe
    distills "${teach[@]}" --seed 4 --cache-teacher said.npz # of other samples: made anew
    [ "$(stat -c %Y said.npz)" -gt 0 ]
    touch -d @0 said.npz
    distills --teacher first.onnx --init random:1 --epochs 2 --seed 4 --cache-teacher said.npz # of another teacher: the same
    [ "$(stat -c %Y said.npz)" -gt 0 ]
    distills "${teach[@]}" --no-labels --cache-teacher logits.npz
    sum=$(sha256sum <logits.npz)
    distills "${teach[@]}" --no-labels --kd mse --cache-teacher logits.npz # another loss of the same results: read
    [ "$(sha256sum <logits.npz)" = "$sum" ]
    run hone-distill -v -o out.onnx --student "$digits/model.onnx" --data "$digits/train.npz" "${teach[@]}" --no-labels \
        --temperature 8 --cache-teacher logits.npz
    [[ $output == *", read"* ]] || explain "read"
    succeeds hone-replay -q first.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    refuses 3 "other samples" hone-replay -q first.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/test.npz"
    refuses 3 "another teacher" hone-replay -q first.onnx "$digits/model.onnx" --teacher first.onnx --data "$digits/train.npz"
    refuses 2 "ends in .csv" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --log log.txt
    mkdir -p bin
    printf '#!/bin/sh\ncat >script\necho drawn\n' >bin/gnuplot
    chmod +x bin/gnuplot
    PATH=$PWD/bin:$PATH distills "${teach[@]}" --plot loss.svg
    grep -q drawn loss.svg && grep -q "y2label 'top-1" script
}

@test "distill: pairs of features, through a map that is not written" {
    teach=(--teacher "$digits/model.onnx" --init random:1 --epochs 2)
    distills "${teach[@]}" --pair relu3.out:relu3.out
    holds '.objective | endswith("mse@relu3.out(relu3.out)")'
    holds '.trained.weights == 10'
    distills "${teach[@]}" --pair relu3.out:pool1.out,features:features # 64 channels, of 32
    holds '.trained.weights == 11 and (.objective | test("mse@[^+]*\\(relu3.out\\)\\+[^+]*mse@features"))'
    holds '.after.top1 > 0.6 and .val.metric == "top1"'
    succeeds hone-export -q out.onnx -o again.onnx
    succeeds hone-run --data "$digits/test.npz" --metric top1 out.onnx
    python3 - "$digits/model.onnx" out.onnx <<'EOF'
import sys
a, b = (open(p, "rb").read() for p in sys.argv[1:])
assert abs(len(a) - len(b)) < 2000, (len(a), len(b))
EOF
    # of a student that is made of its teacher, whose kind is said
    how=(--teacher "$digits/model.onnx" --student auto:0.5x,low-rank --data "$digits/train.npz" --no-labels --epochs 2 --force)
    succeeds hone-distill --json=report.json -q -o out.onnx "${how[@]}" --pair features:features
    schema distill report.json
    holds '.objective | endswith("mse@features(features)")'
    succeeds hone-replay -q out.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    refuses 2 "a colon" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" "${teach[@]}" --pair relu9:relu3.out
    refuses 1 "more than channels" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" \
        "${teach[@]}" --pair relu2.out:relu3.out
    refuses 2 "'--pair' is" hone-distill -q -o no.onnx --student "$digits/model.onnx" --data "$digits/train.npz" --pair a:b
}

@test "distill: a student that is made of its teacher" {
    how=(--teacher "$digits/model.onnx" --student auto:0.5x --data "$digits/train.npz" --no-labels --epochs 8)
    run --separate-stderr hone-distill --json=report.json -v -o out.onnx "${how[@]}"
    [ "$status" -eq 0 ] && [[ $stderr == *"to choose among 3 students takes about"* && $output == *"student by"* ]] || explain "auto"
    schema distill report.json
    holds '.student.flops <= 0.5 * .student.teacher_flops and .student.weights == .trained.elements'
    holds '.student | .how == (.candidates[] | select(.chosen == "yes") | .how)'
    holds '.student.candidates | (map(select(.chosen == "yes"))[0].loss) <= 1.2 * (map(.loss) | min)'
    # of those that learned for longest, the chosen one has the least loss, by its size
    holds '.student.candidates | (map(.steps) | max) as $most | map(select(.steps == $most)) | min_by(.loss / pow(.flops; 0.1)) | .chosen == "yes"'
    holds '.after.loss < .before.loss and .val.how == "held out"'
    right 345
    holds '.student | .narrower == (.candidates[] | select(.chosen == "yes") | .narrower)'
    holds '[.student.candidates[].time | select(. != null)] | length > 0 and all(. > 0 and . < 2)'
    run hone-replay -q out.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    [ "$status" -eq 0 ] || explain "hone-replay"
    succeeds hone-export -q out.onnx -o again.onnx
}

@test "distill: a student that takes too long is made narrower, and so again by whoever repeats that" {
    how=(--teacher "$digits/model.onnx" --student auto:0.5x --data "$digits/train.npz" --no-labels --epochs 8 --checkpoint-file c.hone)
    succeeds hone-distill --json=report.json -q -o out.onnx "${how[@]}"
    cp out.onnx first.onnx
    # a run that says so itself: of each student the second widths
    python3 - out.onnx other.onnx <<'PY'
import re, sys
text = open(sys.argv[1], "rb").read()
open(sys.argv[2], "wb").write(re.sub(rb'("narrower": ?")[0-9],[0-9],[0-9],[0-9],[0-9]"', rb'\g<1>1,1,1,1,1"', text))
PY
    run hone-replay -q other.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    [ "$status" -ne 0 ] || explain "other widths give other bytes"
    run hone-replay -q out.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    [ "$status" -eq 0 ] || explain "hone-replay"
    succeeds hone-distill -q -o out.onnx "${how[@]}" --resume c.hone
    cmp first.onnx out.onnx
}

@test "distill: a layer whose channels must all stay becomes two smaller ones" {
    npy make '<f4' 256,48 "$(python3 -c 'print(*[i * i * 37 % 1013 % 199 - 99 for i in range(12288)])')" rows.npy
    succeeds hone-distill --json=report.json -q -o out.onnx --teacher square.onnx --student auto:0.5x --data rows.npy --epochs 4 --force
    schema distill report.json
    holds '.student | .how == "low rank" and .flops <= 0.5 * .teacher_flops and (.candidates | length) == 1'
    succeeds hone-run out.onnx --data rows.npy
    succeeds hone-replay -q out.onnx square.onnx --teacher square.onnx --data rows.npy
    refuses 4 "nothing that 'blocks' could make smaller" hone-distill -q -o no.onnx --teacher square.onnx --student auto:0.5x,blocks --data rows.npy
}

@test "distill: a student that is made in the way that is asked for" {
    for way in uniform low-rank; do
        succeeds hone-distill --json=report.json -q -o out.onnx --teacher "$digits/model.onnx" --student "auto:0.5x,$way" \
            --data "$digits/train.npz" --no-labels --epochs 2 --force
        schema distill report.json
        holds '.student | .how == "'"${way/-/ }"'" and .flops <= 0.5 * .teacher_flops and (.candidates | length) == 1'
        holds '.student.narrower == 0 and .student.time == null'
        succeeds hone-replay -q out.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    done
}

@test "distill: a student that is made of its teacher and knows much of what it knows learns at a lower rate" {
    how=(--teacher "$digits/model.onnx" --data "$digits/train.npz" --no-labels --epochs 8 --force)
    run --separate-stderr hone-distill --json=report.json -v -o out.onnx "${how[@]}" --student auto:0.7x,low-rank
    [ "$status" -eq 0 ] && [[ $stderr == *"steps the loss is"*"with a learning rate of 0.008, and"*"with 0.0016"* ]] || explain "rates"
    holds '(.lr - 0.0016 | fabs) < 1e-6 and .after.loss < 0.3'
    run hone-replay -q out.onnx "$digits/model.onnx" --teacher "$digits/model.onnx" --data "$digits/train.npz"
    [ "$status" -eq 0 ] || explain "hone-replay"
    succeeds hone-distill --json=report.json -q -o out.onnx "${how[@]}" --student auto:0.5x,low-rank
    holds '(.lr - 0.008 | fabs) < 1e-6'
    run --separate-stderr hone-distill --json=report.json -v -o out.onnx "${how[@]}" --student auto:0.7x,low-rank --lr 0.004
    [ "$status" -eq 0 ] && [[ $stderr != *"steps the loss is"* ]] || explain "a rate that was asked for"
    holds '(.lr - 0.004 | fabs) < 1e-6'
}

@test "distill: students that cannot be made" {
    for what in "2|--teacher|--student auto:0.5x" "2|between 0 and 1|--teacher $digits/model.onnx --student auto:1.5x" \
        "2|low-rank|--teacher $digits/model.onnx --student auto:0.5x,odd" \
        "2|auto:0.25x|--teacher $digits/model.onnx --student auto:0.5" "2|stdin|--teacher - --student auto:0.5x" \
        "2|--list-trainable|--teacher $digits/model.onnx --student auto:0.5x --list-trainable" \
        "2|--pair|--teacher $digits/model.onnx --student auto:0.5x --pair features:features" \
        "3|the smallest has 0.0|--teacher $digits/model.onnx --student auto:0.0001x"; do
        IFS='|' read -r status words options <<<"$what"
        # shellcheck disable=SC2086 # several options
        refuses "$status" "$words" hone-distill -q -o no.onnx --data "$digits/train.npz" $options
    done
    npy make '<f4' 24,16 "$(seq -s' ' 384)" rows.npy
    refuses 4 "'y' is an output of the model" hone-distill -q -o no.onnx --data rows.npy --teacher small.onnx --student auto:0.5x
    [ ! -e no.onnx ]
}

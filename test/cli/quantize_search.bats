# hone-quantize: how it searches, what it leaves behind, and how it goes on with that.

load helpers

setup_file() {
    export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
    make_work
}
setup() {
    cd "$work" || return
    rm -f out.onnx* report.json
}

model=$root/models/digits/model.onnx
train=$root/models/digits/train.npz

# quantizes OPTION...: the digits into out.onnx and report.json, which must be as the schema says; nothing else is said
quantizes() {
    succeeds hone-quantize --json=report.json -q -o out.onnx "$model" "$@" && [ -z "$output" ] && schema quantize report.json
}

# a loss that not all nodes can have together, so that there is something to search for
hard=(--calib "$train" --metric sqnr --max-drop 0.7% --repair none --calib-method minmax --force)

# killed N OPTION...: the run is killed as soon as its journal has N lines
killed() {
    local n=$1 pid
    shift
    hone-quantize -q --no-progress -o out.onnx "$model" "$@" &
    pid=$!
    while kill -0 $pid 2>/dev/null && { [ ! -e out.onnx.journal ] || [ "$(wc -l <out.onnx.journal)" -lt "$n" ]; }; do
        sleep 0.02
    done
    kill -9 $pid 2>/dev/null || echo "it was through before line $n"
    wait $pid 2>/dev/null || true
}

each_line_holds() {
    while read -r line; do
        schema journal <<<"$line" || return 1
    done <"$1"
}

@test "quantize: the journal has what was tried, and is as the schema says" {
    quantizes "${hard[@]}" --journal out.onnx.journal
    holds '.trials > 4 and (.pareto | length) >= 2 and ([.pareto[] | select(.chosen == "*")] | length) == 1'
    holds '.pareto[0].what == "f32" and .pareto[0].drop == 0'
    each_line_holds out.onnx.journal
    head -n1 out.onnx.journal | jq -e '.schema == "hone.journal/1" and .model == $hash' --arg hash "$(sha256sum <"$model" | cut -d' ' -f1)"
    tail -n1 out.onnx.journal | jq -e '.end == "done"'
    [ "$(grep -c '"trial"' out.onnx.journal)" -gt 4 ]
    [ ! -e out.onnx.best-so-far ]
    cp out.onnx searched.onnx
}

@test "quantize: the same command gives the same bytes, where times decide too" {
    quantizes "${hard[@]}"
    [ ! -e out.onnx.journal ] # nobody goes on with what succeeded
    cp out.onnx first.onnx
    quantizes "${hard[@]}" --journal out.onnx.journal
    cmp first.onnx out.onnx
    [ -s "$XDG_CACHE_HOME/hone/timings.jsonl" ]
    grep -q '"times"' out.onnx.journal && return 1 # taken from the cache
    each_line_holds "$XDG_CACHE_HOME/hone/timings.jsonl"
}

@test "quantize: killed at any time, --resume ends with the same bytes" {
    local n
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache # nothing is known from before
    for n in 1 2 4 6 7; do
        killed "$n" "${hard[@]}" --resume
        each_line_holds <(head -n "$(wc -l <out.onnx.journal)" out.onnx.journal) # a last line may be cut off
    done
    printf '{"trial":9,"what":"half a l' >>out.onnx.journal
    quantizes "${hard[@]}" --resume --journal out.onnx.journal
    each_line_holds out.onnx.journal
    [ "$(jq -r 'select(.trial) | .plan' out.onnx.journal | sort | uniq -d | wc -l)" -eq 0 ] # nothing was tried twice
    [ ! -e out.onnx.best-so-far ]
    cp out.onnx resumed.onnx
    quantizes "${hard[@]}"
    cmp resumed.onnx out.onnx
}

@test "quantize: what was killed leaves its best model so far" {
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    local pid
    hone-quantize -q --no-progress -o out.onnx "$model" "${hard[@]/0.7%/2%}" &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ ! -e out.onnx.best-so-far ]; do sleep 0.02; done
    kill -9 $pid
    wait $pid || true
    [ ! -e out.onnx ]
    hone-run out.onnx.best-so-far --data "$root/models/digits/test.npz" --metric top1 | grep -q '(35[0-9] of 360)'
}

@test "quantize: the journal of another run is refused" {
    quantizes "${hard[@]}" --journal out.onnx.journal
    refuses 2 "'options' was another" hone-quantize -q -o out.onnx "$model" "${hard[@]}" --symmetric --resume
    refuses 2 "'data' was another" hone-quantize -q -o out.onnx "$model" "${hard[@]/train.npz/test.npz}" --resume
    hone-export -q --no-check "$model" -o other.onnx
    refuses 2 "'model' was another" hone-quantize -q -o out.onnx other.onnx "${hard[@]}" --resume
    echo '{}' >out.onnx.journal
    refuses 1 "no journal" hone-quantize -q -o out.onnx "$model" "${hard[@]}" --resume
    refuses 2 "'--resume' needs" hone-quantize -q -o out.onnx "$model" "${hard[@]}" --journal none --resume
    cmp out.onnx.journal <(echo '{}') # as it was
}

@test "quantize: --journal and --timing-cache go elsewhere, or nowhere" {
    quantizes "${hard[@]}" --journal here.jsonl --timing-cache cache.jsonl
    [ -s here.jsonl ] && [ -s cache.jsonl ] && [ ! -e out.onnx.journal ]
    rm here.jsonl
    quantizes "${hard[@]}" --journal none --timing-cache none
    [ ! -e out.onnx.journal ] && [ ! -e here.jsonl ]
}

@test "quantize: a plan is written and read, and the report of --analyze serves as one" {
    quantizes "${hard[@]}" --write-plan plan.json
    schema plan plan.json
    cp report.json searched.json
    quantizes --calib "$train" --plan plan.json --force
    jq -e --slurpfile s searched.json '.trials == 1 and [.nodes[] | .form] == [$s[0].nodes[] | select(.form != "f32") | .form]' report.json
    hone-quantize "$model" --calib "$train" --analyze --json | jq '(.nodes[] | select(.op == "Gemm")).form = "f32"' >table.json
    jq -e '[.nodes[] | .region] | all(. >= 1)' table.json
    jq -e '[.nodes[] | .accumulated_sqnr_db] | all(. > 10)' table.json
    quantizes --calib "$train" --plan table.json --force
    holds '[.nodes[].op] | unique == ["Conv"]'
}

@test "quantize: plans that say nonsense" {
    plan() { jq -c "$1" <<<'{"schema":"hone.plan/1","options":{"activations":"u8","block":32,"symmetric":false,"per_tensor":false,"reduced":true,"reduced_all":false,"symmetric_block":false,"integers":false},"repairs":[],"nodes":[{"name":"scores","form":"int8"}],"spans":{}}' >bad.json; }
    reads() { refuses "$1" "$2" hone-quantize -q "$model" --calib "$train" --plan bad.json -o no.onnx; }
    plan '.nodes[0].name = "conv9"'
    reads 2 "'conv9'"
    plan '.nodes[0].form = "int3"'
    reads 1 "'scores'"
    plan '.nodes = 7'
    reads 1 "no plan"
    plan '.schema = "other"'
    reads 1 "no plan"
    plan '.options.block = 1e300'
    reads 1 "'block'"
    plan '.options.symmetric = "no"'
    reads 1 "'symmetric'"
    plan '.spans.scores = {"lo": 2, "hi": 1}'
    reads 1 "'scores'"
    plan '.nodes = [[], null]'
    reads 1 "'nodes'"
    plan '.repairs = ["magic"]'
    reads 2 "'magic'"
    echo '[' >bad.json
    reads 1 "no JSON"
    [ ! -e no.onnx ]
}

@test "quantize: --set and --only-ops choose nodes" {
    quantizes "${hard[@]}" --set '.*=f32' --set 'scores=int8'
    holds '[.nodes[] | [.name, .form]] == [["scores", "int8"]]'
    quantizes --calib "$train" --force --only-ops Gemm,MatMul
    holds '[.nodes[].op] | unique == ["Gemm"]'
    refuses 2 "no node with weights matches 'nothing'" hone-quantize -q "$model" --calib "$train" --set nothing=f32 -o no.onnx
    refuses 2 "is no REGEX=FORM" hone-quantize -q "$model" --calib "$train" --set scores=int3 -o no.onnx
}

@test "quantize: a metric of one's own" {
    cat >wrong.sh <<'EOF'
#!/bin/sh
echo very good
EOF
    printf '#!/bin/sh\n[ -s "$1" ] && echo 37.5\n' >const.sh
    chmod +x ./*.sh
    quantizes --calib "$train" --metric cmd:./const.sh --force
    holds '.metric == "cmd" and .original.cmd == 37.5 and .score.cmd == 37.5'
    refuses 1 "prints no number" hone-quantize -q "$model" --calib "$train" --metric cmd:./wrong.sh -o no.onnx
    refuses 1 "'./none.sh' failed" hone-quantize -q "$model" --calib "$train" --metric cmd:./none.sh -o no.onnx
    [ ! -e no.onnx ]
}

@test "quantize: each output has a kind and a metric of its own" {
    local y
    quantizes --calib "$train" --force
    y=$(jq -r '.outputs[0].name' report.json)
    holds '.outputs | length == 1 and .[0].kind == "classes" and .[0].top1 > 0.98 and .[0].sqnr_db > 20'
    holds ".goals[0] | .metric == \"top1\" and .output == \"$y\""
    quantizes --calib "$train" --force --metric "r2@$y" --max-drop 2%
    holds '.outputs[0].kind == "numbers" and .outputs[0].r2_lost < 0.02 and (.outputs[0].r2_lost + .score.r2 - 1 | fabs) < 1e-9'
    holds '[.goals[].metric] == ["r2"] and .goals[0].max_drop == 0.02'
    run --separate-stderr hone-quantize "$model" --calib "$train" --force -o out.onnx --metric "r2@$y" --max-drop 2%
    [[ $output == *"r2 of '$y' drops by"* ]] || explain
    refuses 2 "has no output 'nobody'" hone-quantize -q "$model" --calib "$train" --metric r2@nobody -o no.onnx
    refuses 2 "METRIC@OUTPUT" hone-quantize -q "$model" --calib "$train" --metric best@y -o no.onnx
}

@test "quantize: few samples are left out in turn, a single one cannot be" {
    quantizes --calib "$train" --force
    holds '.judged_on.how == "held out" and .judged_on.lo < .judged_on.sqnr_db and .judged_on.sqnr_db < .judged_on.hi'
    quantizes --calib "$train" --samples 5 --force
    holds '.judged_on | .how == "left out in turn" and .samples == 5 and .lo < .sqnr_db and .sqnr_db < .hi'
    quantizes --calib "$train" --samples 1 --force
    holds '.judged_on | .how == "used to calibrate" and .samples == 1 and .lo == null and .sqnr_db == null'
    run --separate-stderr hone-quantize "$model" --calib "$train" --samples 1 --force -o out.onnx
    [[ $output == *"on 1 sample of "*" that also calibrated it"* ]] || explain
    # three alike and one forty times as large: ranges that were made without it cut it off
    awk 'BEGIN { for (i = 0; i < 256; i++) printf "%s ", (i * 7 % 17) / 16 * (i < 192 ? 1 : 40) }' >numbers
    npy make '<f4' 4,1,8,8 "$(cat numbers)" apart.npy
    quantizes --calib apart.npy --force --repair none --set '.*=int8'
    holds '.judged_on | .how == "left out in turn" and .lo < 10 and .hi - .lo > 20'
    holds '.score.sqnr_db < 15 and .score.r2 < 0.99'
}

@test "quantize: how long it takes is told before it does" {
    run --separate-stderr hone-quantize -v "$model" --calib "$train" --samples 12 --force -o out.onnx
    [ "$status" -eq 0 ] && [[ $stderr == *"this takes about "*", and some "*"--time-budget ends it earlier"* ]] || explain
    [[ ${stderr%%trial 1,*} == *"this takes about "* ]] || explain
}

@test "quantize: --size and --time-budget" {
    refuses 3 "of '--size'" hone-quantize -q "$model" --calib "$train" --size 10% --allow-larger --min-speedup 0.01 -o no.onnx
    quantizes --calib "$train" --force --size 60%
    holds '.bytes_after < 0.6 * .bytes_before'
    refuses 6 "'--time-budget' was over" hone-quantize -q "$model" --calib "$train" --time-budget 1ms --timing-cache none -o no.onnx
    [ ! -e no.onnx ] && [ ! -e no.onnx.best-so-far ]
    refuses 2 "size" hone-quantize -q "$model" --calib "$train" --size 0% -o no.onnx
    # what no plan can reach is refused before anything is tried
    refuses 3 "the smallest quantized model in this mode" hone-quantize -v "$model" --calib "$train" --size 1% -o no.onnx
    refuses 3 "the smallest quantized model in this mode" hone-quantize -v "$model" --calib "$train" --size 10% --time-budget 5s -o no.onnx
}

# needed OPTION...: bytes of the phase that needs most, as -v tells before anything runs
needed() {
    hone-quantize -v "$model" --calib "$train" --force -o out.onnx --mem-limit 1G "$@" 2>&1 >/dev/null |
        sed -n 's/.*: memory: //p' | grep -o '[0-9.]* [KM]B' |
        awk '{ n = $1 * ($2 == "MB" ? 1e6 : 1e3); if (n > most) most = n } END { printf "%d\n", most }'
}

@test "quantize: --mem-limit is refused with what each phase needs, or is enough" {
    local most part few=(--samples 6)
    for mode in static dynamic weights; do
        most=$(needed --mode $mode)
        [ "$most" -gt 1000000 ]
        refuses 6 "too small; needed: " hone-quantize -q "$model" --calib "$train" --mode $mode \
            --mem-limit $((most * 9 / 10)) -o no.onnx
        succeeds hone-quantize -q "$model" --calib "$train" --force --mode $mode --mem-limit $((most * 21 / 20)) -o out.onnx
    done
    # a plan of weights alone is kept where there is room for it, too
    most=$(needed)
    for part in 21 23 27; do
        succeeds hone-quantize -q "$model" --calib "$train" --force --time-budget 4s --mem-limit $((most * part / 20)) -o out.onnx
    done
    # samples left out in turn, and repairs, are done without where they need more
    succeeds hone-quantize -q "$model" --calib "$train" --force "${few[@]}" --mem-limit "$(($(needed "${few[@]}") * 21 / 20))" -o out.onnx
    refuses 6 "memory limit of 400 KB" hone-quantize -q "$model" --calib "$train" --mem-limit 400K -o no.onnx
    [ ! -e no.onnx ]
}

@test "quantize: --mem-limit counts parts that stay f32 in the race, too" {
    local most
    PYTHONPATH=$root/test/onnx python3 - <<'EOF'
import random

from wire import FLOAT, f32, node, simple, tensor, value

random.seed(3)
sizes, layers = (64, 2048, 64, 2048, 64), []
for k in range(4):
    layers.append(node("MatMul", [f"h{k}" if k else "x", f"w{k}"], [f"p{k}" if k < 3 else "y"], name=f"product{k}"))
    layers += [node("Tanh", [f"p{k}"], [f"h{k + 1}"])] * (k < 3)
weights = [tensor(f"w{k}", FLOAT, sizes[k:k + 2], f32(*(random.uniform(-r, r) for _ in range(64 * 2048))))
           for k, r in enumerate((0.3, 0.1, 0.3, 0.1))]
ends = (value("x", FLOAT, ("N", 64)),), (value("y", FLOAT, ("N", 64)),)
open("mostly.onnx", "wb").write(simple(layers, weights, *ends))
EOF
    npy make '<f4' 24,64 "$(seq 1 1536 | awk '{ printf "%d ", $1 * 7 % 17 - 8 }')" x.npy
    model=mostly.onnx train=x.npy
    most=$(needed --exclude 'product[1-3]' -t 1)
    succeeds hone-quantize -q mostly.onnx --calib x.npy --force -t 1 --exclude 'product[1-3]' --mem-limit $((most * 101 / 100)) -o out.onnx
    # beside a trial the race holds a session of the original, with all its weights packed
    hone-quantize -v mostly.onnx --calib x.npy --force --exclude 'product[1-3]' -t 1 --mem-limit 1G -o out.onnx 2>&1 >/dev/null |
        sed -n 's/.*a trial \([0-9.]*\) MB, races \([0-9.]*\) MB.*/\1 \2/p' | awk '{ print; exit !($2 - $1 >= 2.09) }'
}

@test "quantize: --mem-limit is planned for the largest of samples that differ in length" {
    local limit
    mkdir -p long
    for rows in 2 8000 8500 9000; do
        npy make '<f4' $rows,3 "$(seq 1 $((3 * rows)) | awk '{ printf "%d ", $1 * 7 % 17 - 8 }')" long/$rows.npy
    done
    limit=$(hone-quantize -v trained.onnx --calib long --mode weights --force -o out.onnx --mem-limit 1G 2>&1 >/dev/null |
        sed -n 's/.*: memory: //p' | grep -o '[0-9.]* [KM]B' |
        awk '{ n = $1 * ($2 == "MB" ? 1e6 : 1e3); if (n > most) most = n } END { printf "%d\n", most * 21 / 20 }')
    [ "$limit" -gt 9000000 ]
    succeeds hone-quantize -q trained.onnx --calib long --mode weights --force -o out.onnx --mem-limit "$limit"
    refuses 6 "too small; needed: " hone-quantize -q trained.onnx --calib long --mode weights --mem-limit $((limit * 3 / 4)) -o no.onnx
}

# in_time SECONDS OPTION...: within that, a tenth of it and 1 s, with a file that does what the report says
in_time() {
    local start end seconds=$1
    shift
    start=$(date +%s%N)
    run hone-quantize --json=report.json -q -o out.onnx "$model" --calib "$train" --time-budget "${seconds}s" --timing-cache none "$@"
    end=$(date +%s%N)
    [ "$status" -eq 0 ] || explain
    # twice as long where the machine is so busy that nothing is in time
    [ $(((end - start) / 1000000)) -lt $((seconds * 2200 + 2000)) ] || { echo "took $(((end - start) / 1000000)) ms"; return 1; }
    schema quantize report.json
}

@test "quantize: --time-budget covers all of it, and a file is written in any" {
    in_time 1
    holds '.bytes_after < 0.6 * .bytes_before'
    # all in integers loses too much, and the search for what does not has no end in sight
    in_time 2 --metric sqnr --max-drop 0.4%
    holds '.goals[0].drop <= 0.004'
    # no speed-up of 2: weights alone, which need not be faster
    in_time 2 --mode dynamic --max-drop 5%
    # what had no time is not in the recipe
    in_time 1 --mode static
    XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache succeeds hone-replay out.onnx "$model" --calib "$train"
}

@test "quantize: numbers out of thin air are no data" {
    refuses 2 "'--calib random' makes samples up" hone-quantize -q "$model" --calib random:8 -o no.onnx
    refuses 2 "'--calib random' makes samples up" hone-quantize -q "$model" --calib random -o no.onnx
    refuses 2 "no samples are named" hone-quantize -q "$model" -o no.onnx
    quantizes --mode weights --calib random:4 --force
    holds '.synthetic and .repairs == []'
    quantizes --speed-only --calib random:4 --force
}

@test "quantize: what would not be smaller is not written" {
    echo '{"schema": "hone.quantize/1", "nodes": [{"name": "y", "form": "int8"}]}' >small.json
    refuses 3 "not less than" hone-quantize -q small.onnx --speed-only --calib random:8 --plan small.json --max-drop 100% --min-speedup 0.001 -o no.onnx
    [ ! -e no.onnx ] && [ ! -e no.onnx.best-so-far ]
    tail -n1 no.onnx.journal | jq -e '.end | contains("not less than")'
    succeeds hone-quantize -q small.onnx --speed-only --calib random:8 --plan small.json --max-drop 100% --min-speedup 0.001 --allow-larger --journal none -o larger.onnx
    [ "$(wc -c <larger.onnx)" -gt "$(wc -c <small.onnx)" ]
}

@test "quantize: the file says how it was made, and for what it is not" {
    quantizes --calib "$train" --force --mode weights
    strings -n 20 out.onnx | grep -q '"tool":"hone-quantize"'
    strings -n 20 out.onnx | grep -q "\"input\":\"$(sha256sum <"$model" | cut -d' ' -f1)\""
    run --separate-stderr hone-run out.onnx --data random
    [ -z "$stderr" ]
    quantizes --speed-only --force
    for tool in run bench export; do
        args=()
        [ $tool = export ] && args=(-o copy.onnx --no-check)
        [ $tool = bench ] && args=(--runs 3)
        [ $tool = run ] && args=(--data random --out results)
        run --separate-stderr hone-$tool out.onnx "${args[@]}"
        [ "$status" -eq 0 ] && [[ $stderr == *"its results mean nothing"* ]] || explain $tool
    done
}

@test "replay: the recipe of a model makes the same bytes, whatever the times are" {
    quantizes "${hard[@]}" --resume
    cp out.onnx made.onnx
    XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache succeeds hone-replay made.onnx "$model" --calib "$train" -o again.onnx
    cmp made.onnx again.onnx
    rm again.onnx
    succeeds hone replay made.onnx "$model" --calib "$train" # compares only
    [ ! -e again.onnx ]
    succeeds hone-quantize -q -o w4.onnx "$model" --calib "$train" --mode weights --bits 4 --force
    succeeds hone-replay w4.onnx "$model" --calib "$train"
}

@test "replay: something else went in, or there is no recipe" {
    quantizes --calib "$train" --activations s8
    hone-export "$model" --no-check -q -o shorter.onnx
    refuses 3 'made of other samples' hone-replay out.onnx "$model" --calib "$root/models/digits/test_data_set_0"
    refuses 3 'made of another model' hone-replay out.onnx shorter.onnx --calib "$train"
    refuses 4 'no recipe' hone-replay "$model" "$model" --calib "$train"
    refuses 2 'two models' hone-replay out.onnx --calib "$train"
    refuses 1 'no recipe of hone-quantize' hone-quantize --replay "$model" "$model" --calib "$train"
    # a recipe that was tampered with
    sed 's/"activations":"s8/"activations":"u8/' out.onnx >other.onnx
    cmp -s out.onnx other.onnx && return 1
    refuses 3 'other bytes' hone-replay other.onnx "$model" --calib "$train"
    sed 's/"activations":/"activatiens":/' out.onnx >other.onnx
    refuses 4 'not known here' hone-replay other.onnx "$model" --calib "$train"
}

# hone-bench: what it measures, prints and refuses.

load helpers

setup_file() { make_work; }
setup() { cd "$work" || return; }

# bench [OPTION...] MODEL...: run it into report.json, which must be as the schema says
bench() {
    succeeds hone-bench --json=report.json --csv=report.csv "$@" && schema bench report.json
}

@test "bench: so many runs" {
    for n in 1 2 6 1000; do
        bench relu.onnx --runs $n --warmup 0
        holds ".runs[0] | .latency_ms.n == $n and .stop == \"runs\" and .warmup.runs == 0"
        holds "(.runs[0].latency_ms.ci95[0] == null) == ($n < 6)"
    done
}

@test "bench: so much time, and at least 6 runs" {
    bench relu.onnx --time 100ms
    holds '.runs[0] | .stop == "time" and .latency_ms.n > 100 and .noise.wall_ms >= 100'
    bench wide.onnx --time 1ms --warmup 0
    holds '.runs[0].latency_ms.n >= 6'
}

@test "bench: until the interval is narrow enough" {
    bench relu.onnx --ci 20%
    holds '.runs[0] | .stop == "interval" and .noise.wall_ms >= 500'
    holds '.runs[0].latency_ms | .ci95[1] - .p50 <= 0.2 * .p50 and .p50 - .ci95[0] <= 0.2 * .p50'
}

@test "bench: statistics are in order" {
    bench relu.onnx two.onnx ids.onnx --time 50ms
    holds '[.runs[].latency_ms | [.min, .ci95[0], .p50, .ci95[1]], [.p50, .p90, .p95, .p99, .max] | . == sort] | all'
    holds '[.runs[].latency_ms | .mean >= .min and .mean <= .max and .stddev >= 0] | all'
    holds '[.runs[].phases_ms | (.read + .parse + .optimize + .prepare + .first_run - .total | fabs) < 1e-6] | all'
    holds '[.runs[] | .throughput.batches_per_s * .latency_ms.mean | . > 999 and . < 1001] | all'
}

@test "bench: warm-up as it is asked for" {
    bench relu.onnx --runs 9 --warmup 12
    holds '.runs[0].warmup | .runs == 12 and .steady == null'
    bench relu.onnx --runs 9 --warmup 30ms
    holds '.runs[0].warmup.ms >= 30'
    bench relu.onnx --runs 9
    holds '.runs[0].warmup | .runs >= 3 and .steady != null'
}

@test "bench: several models, one row each" {
    mkdir -p a b
    cp relu.onnx a/model.onnx
    cp two.onnx b/model.onnx
    bench a/model.onnx b/model.onnx --runs 7
    holds '[.runs[].model] == ["a/model.onnx", "b/model.onnx"] and [.runs[].name] == ["a", "b"]'
    [ "$(wc -l <report.csv)" -eq 3 ]
    awk -F, 'NR == 1 { n = NF } NF != n { exit 1 }' report.csv
}

@test "bench: samples of a set take turns, each with its batch" {
    bench relu.onnx --data sets --runs 20
    holds '.runs[0].data | .samples == 2 and .used == 2 and .shapes_vary and (.synthetic | not)'
    holds '.runs[0].throughput | (.samples_per_s / .batches_per_s - 1.5 | fabs) < 1e-9'
    bench relu.onnx --data random:100 --runs 20
    holds '.runs[0].data | .samples == 100 and .used == 32 and .synthetic'
}

@test "bench: dimensions and shapes of random data" {
    bench relu.onnx --dim N=8 --runs 7
    holds '.runs[0] | .shapes.x == [8, 3] and (.throughput | (.samples_per_s / .batches_per_s - 8 | fabs) < 1e-9)'
    bench relu.onnx --shapes x:4x3 --runs 7
    holds '.runs[0].shapes.x == [4, 3]'
}

@test "bench: inputs from files, and from stdin" {
    npy make '<f4' 3 '1 2 3' w.npy
    bench weighted.onnx --input w=w.npy --input b=w.npy --input x=x.npy --runs 7
    holds '.runs[0].shapes.w == [3] and .runs[0].data.source == null'
    bench relu.onnx --data - --runs 7 <x.npy
    bench - --runs 7 <relu.onnx
    bench none.onnx --runs 7
}

@test "bench: the null device opens and computes nothing" {
    bench relu.onnx --device null
    holds '.runs[0] | .latency_ms == null and .throughput == null and .noise == null and .phases_ms.first_run == null'
    run hone-bench relu.onnx --device null
    [[ $output == *"computes nothing"* && $output != *median* ]]
}

@test "bench: opening a large model takes next to no private memory" {
    python3 "$here/../onnx/bigmodel.py" big.onnx --gb 0.25
    bench big.onnx --device null
    rm big.onnx
    holds '.runs[0].memory_bytes | .file > 2.5e8 and .private > 0 and .private < 0.02 * .file'
}

@test "bench: tables fit a terminal" {
    long=a-name-that-is-much-too-long-for-the-first-column-of-any-table.onnx
    cp relu.onnx "$long"
    run on_terminal hone-bench relu.onnx "$long" --runs 200 --no-progress
    [ "$status" -eq 0 ]
    [[ $output == *median* && $output == *p99* && $output == *prepare* && $output == *private* ]]
    sed 's/\x1b\[[0-9;]*m//g; s/\r$//' <<<"$output" | grep -v ': ' | awk 'length > 80 { print; exit 1 }'
}

@test "bench: reference kernels are named" {
    refuses 4 nonzero hone-bench shape.onnx --strict --runs 3
    run --separate-stderr hone-bench shape.onnx --runs 3 -v
    [ "$status" -eq 0 ]
    [[ $stderr == *"'nonzero' (NonZero) runs on ref"* && $output == *"1 of 1 steps"* ]]
}

@test "bench: Ctrl-C prints what is known" {
    cat >interrupt.py <<'EOF'
import signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
time.sleep(1.5)
p.send_signal(signal.SIGINT)
sys.exit(p.wait(timeout=60))
EOF
    run python3 interrupt.py hone-bench relu.onnx --time 100s --warmup 10 --json=report.json
    [ "$status" -eq 130 ]
    [[ $output == *median* && $output == *"until then"* ]]
    schema bench report.json
    holds '.runs[0] | .stop == "interrupted" and .latency_ms.n > 100'
}

@test "bench: when a later model does not open, none is measured" {
    refuses 4 unknown.onnx hone-bench relu.onnx unknown.onnx --runs 7 --json
}

@test "bench: several models are compared with the first one" {
    cp relu.onnx same.onnx
    bench -t1 relu.onnx same.onnx wide.onnx --time 300ms
    holds '[.compare[].b] == ["same.onnx", "wide.onnx"] and ([.compare[].a] | unique) == ["relu.onnx"]'
    holds '.compare[1] | .verdict == "slower" and .effect > 1.5 and .ci95[0] > 1 and .ci95[0] <= .effect'
    holds '.compare | all(.margin == 0.02 and .instances >= 6)'
    holds '.runs[1].latency_ms.p50 / .runs[0].latency_ms.p50 | . > 0.5 and . < 2'
    run hone-bench -t1 wide.onnx relu.onnx --runs 50
    [ "$status" -eq 0 ]
    [[ $output == *"relu.onnx against wide.onnx: faster, -"* ]]
}

@test "bench: a gate against slower models" {
    run --separate-stderr hone-bench -t1 relu.onnx wide.onnx --time 200ms --fail-if-slower 3%
    [ "$status" -eq 3 ]
    sentence "'wide.onnx' is "
    [[ $output == *"wide.onnx against relu.onnx: slower"* ]]
    run hone-bench -t1 wide.onnx relu.onnx --time 200ms --fail-if-slower 3%
    [ "$status" -eq 0 ]
    refuses 2 'two models' hone-bench relu.onnx --fail-if-slower 3%
    refuses 2 --margin hone-bench relu.onnx two.onnx --margin 2
}

@test "bench: too noisy to decide" {
    run --separate-stderr hone-bench relu.onnx two.onnx --runs 3 --on-noise fail
    [ "$status" -eq 5 ]
    sentence "too noisy"
    run --separate-stderr hone-bench relu.onnx two.onnx --runs 3 --fail-if-slower 5%
    [ "$status" -eq 5 ]
    sentence "too noisy, or too near the limit"
    run --separate-stderr hone-bench relu.onnx two.onnx --runs 3 --fail-if-slower 5% --on-noise warn
    [ "$status" -eq 0 ]
    sentence "too noisy"
}

@test "bench: sweeps over dimensions and threads" {
    bench relu.onnx --dim N=1,8,32 --threads 1,2 --runs 7
    holds '[.runs[] | [.shapes.x[0], .threads]] == [[1, 1], [1, 2], [8, 1], [8, 2], [32, 1], [32, 2]]'
    holds '.runs[3].name == "relu.onnx N=8,t=2" and .compare == []'
    [ "$(wc -l <report.csv)" -eq 7 ]
    bench relu.onnx two.onnx --threads 1,2 --runs 20
    holds '(.runs | length) == 4 and [.compare[].name_b] == ["two.onnx t=1", "two.onnx t=2"]'
    refuses 2 sweep hone-bench relu.onnx --dim N=1..1000 --threads 1..64
    refuses 2 stdin hone-bench - --threads 1,2 <relu.onnx
}

@test "bench: what a new shape costs" {
    bench relu.onnx --dim N=1,8,32 --churn --runs 7
    holds '[.churn[].name] == ["relu.onnx N=1", "relu.onnx N=8", "relu.onnx N=32"] and .runs == []'
    holds '[.churn[] | .rounds == 7 and .plan_ms > 0 and .again_plan_ms > 0 and .run_ms > 0 and .again_run_ms > 0] | all'
    holds '[.churn[] | .turn_ms > 0 and .repeated_ms > 0 and .again_plan_ms > .repeated_ms] | all'
    holds '.churn[0].plan_ms > .churn[0].again_plan_ms' # it opened the session
    [ "$(wc -l <report.csv)" -eq 4 ]
    bench relu.onnx two.onnx --shapes x:1x3/2x3 --threads 1,2 --churn --runs 2
    holds '.churn | length == 8 and [.[].threads] == [1, 1, 1, 1, 2, 2, 2, 2]'
    bench relu.onnx --dim N=1,8 --churn --device null --runs 2
    holds '[.churn[] | .run_ms == null and .turn_ms == null and .again_plan_ms > 0] | all'
    refuses 2 --churn hone-bench relu.onnx --churn
    refuses 2 --churn hone-bench relu.onnx --churn --dim N=8 --threads 1,2
    refuses 2 --churn hone-bench relu.onnx --churn --dim N=1,8 --data sets
    refuses 1 "'x'" hone-bench relu.onnx --churn --shapes x:1x3/1x3x3
}

@test "bench: the largest batch that fits" {
    bench relu.onnx --batch-max auto --mem-limit 20M --runs 7
    holds '.runs[0].shapes.x[0] | . > 50000 and . < 1700000'
    bench relu.onnx --batch-max 100 --mem-limit 200M --runs 7
    holds '.runs[0] | .shapes.x[0] == 100 and .name == "relu.onnx N=100"'
    refuses 2 --mem-limit hone-bench relu.onnx --batch-max auto
}

@test "bench: precision" {
    bench relu.onnx --precision f32 --runs 7
    holds '.runs[0].precision == "f32"'
    HONE_MAX_ISA=vnni refuses 4 bf16 hone-bench relu.onnx --precision bf16
    if [[ "$(jq -r .env.isa report.json)" = @(bf16|amx) ]]; then
        bench relu.onnx --precision bf16 --runs 7
        holds '.runs[0].precision == "bf16"'
    fi
    refuses 2 --precision hone-bench relu.onnx --precision f33
    refuses 4 f16 hone-bench relu.onnx --precision f16 # but for --train, which emulates it
}

@test "bench: several streams" {
    bench relu.onnx --streams 3 --runs 50
    holds '.runs[0] | .streams == 3 and .latency_ms.n == 50 and .outliers == null'
    bench relu.onnx --preset throughput --threads 2 --time 100ms
    holds '.runs[0] | .streams == 2 and .threads == 2'
    bench relu.onnx --preset latency --threads 2 --runs 7
    holds '.runs[0].streams == 1'
    refuses 2 --streams hone-bench relu.onnx --streams -1
    refuses 2 --streams hone-bench relu.onnx --streams 1,257
    refuses 2 --streams hone-bench relu.onnx --streams 2,x
    bench relu.onnx --streams 1,3 --runs 9
    holds '[.runs[] | .streams] == [1, 3] and ([.runs[].swept] | .[0].streams == 1 and .[1].streams == 3)'
    refuses 2 --hint hone-bench relu.onnx --hint speed
}

@test "bench: copying inputs and results" {
    bench wide.onnx --io copy --runs 20
    holds '.runs[0].io == "copy"'
    refuses 2 --io hone-bench relu.onnx --io once
}

@test "bench: outliers and their causes" {
    bench relu.onnx --time 300ms
    holds '.runs[0].outliers | .n <= 100000 and .limit_ms > 0 and ([.worst[].ms] | . == (sort | reverse))'
    holds '.runs[0] | .outliers.limit_ms as $limit | [.outliers.worst[].ms] | all(. > $limit)'
}

@test "bench: outliers of each side of a comparison" {
    bench relu.onnx two.onnx --time 300ms
    holds '[.runs[].outliers | .n >= 0 and .limit_ms > 0 and (.causes | length) == 5] | all and length == 2'
}

@test "bench: pictures" {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    bench relu.onnx --runs 50 --plot times.svg
    grep -q '<svg' times.svg
    bench relu.onnx two.onnx --threads 1,2 --runs 50 --plot sweep.png
    [ "$(head -c 4 sweep.png | tail -c 3)" = PNG ]
    refuses 2 --plot hone-bench relu.onnx --plot times.pdf
    # what was measured is not lost with the picture
    run --separate-stderr hone-bench relu.onnx --runs 50 --plot nowhere/times.svg
    [ "$status" -eq 1 ] && [[ $output == *latency* ]] && sentence nowhere || explain
}

@test "bench: a model's name is no command of gnuplot" {
    local name='a"; system("touch ran"); print "`touch ran`\".onnx'
    mkdir -p bin
    printf '#!/bin/sh\n[ $# -eq 0 ] || exit 1\ncat >script\necho drawn\n' >bin/gnuplot
    chmod +x bin/gnuplot
    cp relu.onnx "$name"
    PATH=$PWD/bin:$PATH succeeds hone-bench -q "$name" --runs 10 --plot times.svg --json=report.json
    [ "$(cat times.svg)" = drawn ]
    grep -q 'title "a_; system(_touch ran_); print __touch ran__' script
    ! grep -q '`' script
}

@test "bench: no gnuplot, no pictures" {
    local bin
    bin=$(dirname "$(command -v hone-bench)")
    refuses 1 gnuplot env PATH="$bin" "$bin/hone-bench" relu.onnx --plot times.svg
}

@test "bench: bad options" {
    refuses 2 'no model' hone-bench
    refuses 2 --runs hone-bench relu.onnx --runs 0
    refuses 2 --runs hone-bench relu.onnx --runs many
    refuses 2 --time hone-bench relu.onnx --time 3x
    refuses 2 --time hone-bench relu.onnx --time 0s
    refuses 2 --ci hone-bench relu.onnx --ci 1
    refuses 2 --ci hone-bench relu.onnx --ci 0%
    refuses 2 exclude hone-bench relu.onnx --runs 3 --time 1s
    refuses 2 --warmup hone-bench relu.onnx --warmup -3
    refuses 2 "'M'" hone-bench relu.onnx --dim M=3
    refuses 2 --dim hone-bench relu.onnx --dim N=3 --data sets
    refuses 2 stdin hone-bench - --data - <relu.onnx
    refuses 2 stdin hone-bench relu.onnx two.onnx --data - <x.npy
    refuses 4 cuda hone-bench relu.onnx --device cuda
}

@test "bench: bad models and data" {
    refuses 1 gone.onnx hone-bench gone.onnx
    refuses 1 gone.bin hone-bench external.onnx
    refuses 1 "'first'" hone-bench cycle.onnx
    refuses 4 "'odd'" hone-bench unknown.onnx
    refuses 1 gone hone-bench relu.onnx --data gone
    refuses 6 20 hone-bench wide.onnx --mem-limit 20M
}

# peak FILTER: the peak of that run in report.json, in MB
peak() { jq "$1.memory_bytes.peak_rss / 1e6 | round" report.json; }

@test "bench: the peak of a model is its own, whatever was measured before it" {
    python3 "$here/../onnx/bigmodel.py" big.onnx --gb 0.1
    bench two.onnx --runs 3 --warmup 1
    alone=$(peak '.runs[0]')
    bench big.onnx two.onnx big.onnx --runs 3 --warmup 1
    (($(peak '.runs[1]') < alone + 10))
    (($(peak '.runs[0]') > alone + 100 && $(peak '.runs[2]') - $(peak '.runs[0]') < 10))
    (($(peak '.runs[0]') - $(peak '.runs[2]') < 10))
    bench big.onnx two.onnx --streams 2 --runs 3 --warmup 1
    (($(peak '.runs[1]') < alone + 10 && $(peak '.runs[0]') > alone + 100))
    bench big.onnx two.onnx --device null
    (($(peak '.runs[1]') < alone + 10))
    rm big.onnx
    bench relu.onnx --dim N=4000000,1 --runs 3 --warmup 1
    (($(peak '.runs[0]') > alone + 30 && $(peak '.runs[1]') < alone + 10))
}

@test "bench: streams share a model's weights, packed or not" {
    python3 "$here/../onnx/bigmodel.py" big.onnx --gb 0.1
    bench big.onnx --runs 8 --warmup 1
    alone=$(peak '.runs[0]')
    bench big.onnx --streams 8 --runs 16 --warmup 1
    (($(peak '.runs[0]') * 10 < alone * 13))
    holds '.runs[0].memory_bytes | .private_running * 10 < .private * 13'
    rm big.onnx
}

@test "bench: a peak that nobody could measure is null" {
    bench two.onnx - --runs 3 --warmup 1 <relu.onnx
    holds '.runs[0].memory_bytes.peak_rss > 0 and .runs[1].memory_bytes.peak_rss == null'
    bench - two.onnx --runs 3 --warmup 1 <relu.onnx
    holds '[.runs[].memory_bytes.peak_rss > 0] == [true, true]'
}

@test "bench: one report as text, JSON, CSV, Markdown and a page" {
    succeeds hone-bench relu.onnx two.onnx --runs 7 --format md --report page.html --json=report.json
    [[ $output == "## hone-bench: relu.onnx, two.onnx"*"| latency |"*"</details>" ]]
    schema bench report.json
    holds '.env | (.date | test("^2...-..-..T..:..:..Z$")) and (.command | length == 10) and .load >= 0'
    sed -n '/id=report>/,/<\/script>/p' page.html | sed '1d;$d' | jq -S . | cmp - <(jq -S . report.json)
    if command -v gnuplot >/dev/null; then
        [ "$(grep -c '<svg' page.html)" -eq 1 ]
    else
        grep -q 'Here would be a plot' page.html
    fi
    succeeds hone-bench relu.onnx --runs 7 --format json
    jq -e '.runs | length == 1' <<<"$output"
    succeeds hone-bench relu.onnx --runs 7 --format csv
    [ "${#lines[@]}" -eq 2 ]
    refuses 2 "none of table, json, csv, md, html" hone-bench relu.onnx --format pdf
}

@test "bench: a page without gnuplot says what is missing" {
    mkdir -p alone
    ln -sf "$(command -v hone-bench)" alone/
    env PATH="$work/alone" "$work/alone/hone-bench" relu.onnx --runs 7 --format html >page.html
    grep 'Here would be a plot: .*(gnuplot cannot be run: ' page.html
    [ "$(tail -n1 page.html)" = '</body></html>' ]
}

# refuses_after STATUS WORDS COMMAND...: that status and sentence, after a report
refuses_after() {
    local want=$1 words=$2
    shift 2
    run --separate-stderr "$@"
    [[ $status -eq $want && $output == *"against the baseline: "* ]] && sentence "$words" || explain "$@"
}

@test "bench: against a baseline, in a Makefile: passes, fails, is of something else" {
    command -v make >/dev/null || skip "no make"
    cat >Makefile <<'EOF'
OLD = old.json
T = 1
old.json: relu.onnx
	hone-bench -q $< --threads 1 --instances 8 --json=$@
check: old.json
	hone-bench relu.onnx --threads $T --baseline $(OLD) --fail-if-slower 90% --json=report.json || \
	    { s=$$?; echo status $$s; exit $$s; }
EOF
    make old.json
    jq '.runs[0].instances_ms |= map(. * 1e4)' old.json >slow.json
    run make check OLD=slow.json
    [[ $status -eq 0 && $output == *"against the baseline: "* ]] || explain make check
    schema bench old.json
    schema bench report.json
    holds '.baseline[0] | .instances >= 8 and .instances_then >= 8 and .differs == null and .effect < 1'
    jq '.runs[0].instances_ms |= map(. / 1e4)' old.json >fast.json
    run make check OLD=fast.json
    [[ $status -ne 0 && $output == *"status 3"* && $output == *"slower than the baseline (99.9 %: +"*"more than 90 %"* ]]
    run make check T=2
    [[ $status -ne 0 && $output == *"status 5"* && $output == *"the thread count is 2, and was 1"* ]]
    jq '.env.governor = "powersave" | .env.cpu = "Other"' old.json >other.json
    refuses_after 5 "the processor is " hone-bench relu.onnx -t1 --baseline other.json --runs 20
    jq '.runs[0].model_hash = "0"' old.json >other.json
    refuses_after 5 "the model hash is " hone-bench relu.onnx -t1 --baseline other.json --runs 20
    refuses 1 "is no report of hone-bench" hone-bench relu.onnx --baseline "$root/schemas/env.json"
}

@test "bench: too noisy against a baseline" {
    hone-bench -q relu.onnx -t1 --instances 8 --json=old.json
    jq '.runs[0].instances_ms = [1, 1e-9, 1e3, 1e-6, 1, 1e-9, 1e3, 1e-6]' old.json >wild.json
    refuses_after 5 "it is too noisy" hone-bench relu.onnx -t1 --baseline wild.json --fail-if-slower 5% --time 50ms
    succeeds hone-bench relu.onnx -t1 --baseline wild.json --time 50ms
    [[ $output == *"against the baseline: too noisy"* ]]
    refuses 2 "is for one model in a file" hone-bench relu.onnx two.onnx --baseline old.json
    refuses 2 "from 2 to" hone-bench relu.onnx --instances 1
}

@test "bench: precisions, ways of inputs and shapes are swept, with the best batch" {
    bench relu.onnx --precision model,f32 --io reuse,fresh,copy --runs 7 --raw
    holds '[.runs[].swept | [.precision, .io] | join("-")] ==
           ["model-reuse", "model-fresh", "model-copy", "f32-reuse", "f32-fresh", "f32-copy"]'
    holds '.runs | all(.io == .swept.io and (.times_ms | length == 7) and (.model_hash | length == 64))'
    [[ $(head -n1 report.csv) == swept.precision,swept.io,model,* && $(sed -n 2p report.csv) == model,reuse,relu.onnx,* ]]
    bench relu.onnx --shapes x:1x3/5x3 --runs 7
    holds '[.runs[].shapes.x[0]] == [1, 5] and .runs[1].swept.shapes == "x:5x3" and .best == []'
    bench relu.onnx --dim N=1,4096 -t1,2 --runs 20
    holds '.best | length == 2 and all(.dim == "N" and .best == 4096 and .knee == 4096)'
    holds '. as $r | .best | all(.samples_per_s as $s | $r.runs | any((1000 * .shapes.x[0] / .latency_ms.p50 / $s - 1 | fabs) < 1e-6))'
    refuses 2 "none of reuse, copy, fresh" hone-bench relu.onnx --io reuse,x
    refuses 2 "they go together" hone-bench relu.onnx --shapes x:1x3/2x3,y:1/2/3
}

@test "bench: --steps measures loops" {
    succeeds hone-bench --json=report.json relu.onnx --loop y=x --steps 4 --runs 2
    schema bench report.json
    holds '.runs == [] and .generation[0].steps == 4 and .generation[0].loops == 2'
    refuses 2 "goes with one stream" hone-bench relu.onnx --loop y=x --steps 4 --streams 2
}

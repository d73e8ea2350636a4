# hone-export: what it writes, prints, checks and refuses.

load helpers

setup_file() { make_work; }
setup() { cd "$work" || return; }

# exports [OPTION...] MODEL: into out.onnx and report.json, which must be as the schema says
exports() {
    rm -f out.onnx out.onnx.*.data
    succeeds hone-export --json=report.json -o out.onnx "$@" && schema export report.json
}

# same_results MODEL...: each computes for x.npy what the first does
same_results() {
    local m want
    want=$(hone-run "$1" --data x.npy | npy show)
    for m; do
        [ "$(hone-run "$m" --data x.npy | npy show)" = "$want" ] || return
    done
}

# same_but_recipe A B: what they were made of may differ
same_but_recipe() { cmp <(python3 "$here/recipe.py" "$1" --bare) <(python3 "$here/recipe.py" "$2" --bare); }

files() { find . -maxdepth 1 -name "${1:-*}" -type f | sort | tr '\n' ' '; }

# with_limit BYTES COMMAND...: no file of the command gets larger; writing beyond that fails like on a full disk
with_limit() {
    python3 -c 'import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
os.execvp(sys.argv[2], sys.argv[2:])' "$@"
}

# --- what it does -----------------------------------------------------------------------------------------------------

@test "export: a model with less to do, and the same results" {
    exports slack.onnx
    holds '.before.nodes == 8 and .after.nodes == 3 and .before.weights == 2 and .after.weights == 1'
    holds '.before.duplicate_bytes == 12 and .after.duplicate_bytes == 0 and .after.file_bytes < .before.file_bytes'
    holds '.check.status == "equal" and .check.samples == 2 and .check.synthetic and .check.outputs[0].max_abs == 0'
    holds '[.operators[] | select(.after > 0) | .op] == ["Add", "Mul", "Relu"] and .dropped == []'
    holds '[.passes[].name] | index("eliminate-identity") and index("eliminate-duplicate")'
    [[ $output == 'size '*'rewrites '*', 3 nodes instead of 8'* && $output == *'same results on 2 synthetic samples (x:1x3 and x:2x3)'* ]] || explain
    same_results slack.onnx out.onnx
    [ "$(stat -c %s out.onnx)" -eq "$(jq .after.file_bytes report.json)" ]
}

@test "export: the same command gives the same bytes, and has nothing more to do" {
    exports slack.onnx
    cp out.onnx first.onnx
    exports slack.onnx
    cmp out.onnx first.onnx
    exports first.onnx
    holds '.passes == [] and .before.nodes == .after.nodes'
    same_but_recipe out.onnx first.onnx
}

@test "export: filters" {
    hone-export slack.onnx >a.onnx
    hone-export - <slack.onnx >b.onnx
    hone-export slack.onnx -o - >c.onnx
    cmp a.onnx b.onnx
    cmp a.onnx c.onnx
    run --separate-stderr bash -o pipefail -c 'hone-export slack.onnx | hone-run - --data x.npy | python3 "$0" show -' "$here/npy.py"
    [ "$status" -eq 0 ] && [ "$output" = '<f4[2,3] 2 4 18 1 14 9' ] || explain
    hone-export slack.onnx --json=report.json >a.onnx
    schema export report.json
    holds '.output == "-" and .after.file_bytes == null'
    refuses 2 'stdout' hone-export slack.onnx --json
}

@test "export: a model is not written to a terminal" {
    run on_terminal hone-export slack.onnx
    [ "$status" -eq 2 ] && [[ $output == *terminal* ]] || explain
}

@test "export: --list-passes" {
    succeeds hone-export --list-passes
    [[ $output == *eliminate-identity*'remove Identity'* ]] || explain
    succeeds hone-export --list-passes --json
    schema passes <<<"$output"
    # each has a name of its own that --only takes
    local names
    mapfile -t names < <(jq -r '.passes[].name' <<<"$output")
    [ "$(printf '%s\n' "${names[@]}" | sort | uniq -d)" = '' ]
    succeeds hone-export slack.onnx -o out.onnx "${names[@]/#/--only=}"
}

@test "export: --only, --skip, --level" {
    exports slack.onnx --only eliminate-identity
    holds '[.passes[].name] - ["eliminate-dead", "eliminate-identity"] == [] and .operators[1] == {op: "Dropout", before: 1, after: 1}'
    exports slack.onnx --skip eliminate-identity --skip eliminate-nop
    holds '[.operators[] | select(.op == "Identity")] == [{op: "Identity", before: 2, after: 2}]'
    exports slack.onnx --level 0
    holds '.passes == [] and .after.nodes == 8'
    same_results slack.onnx out.onnx
    refuses 2 "option '--only': there is no pass 'eliminate-identiy'; the nearest are 'eliminate-identity'" \
        hone-export slack.onnx -o out.onnx --only eliminate-identiy
    refuses 2 "option '--skip': there is no pass 'qqq'; the nearest are" hone-export slack.onnx -o out.onnx --skip qqq
    refuses 2 'negative' hone-export slack.onnx -o out.onnx --level -1
}

@test "export: --explain names what broke a near miss" {
    python3 - "$root/test/onnx" <<'END'
import sys
sys.path.insert(0, sys.argv[1])
from wire import FLOAT, floats, node, simple, value
# the convolution has two readers: its BatchNormalization cannot become part of its weights
nodes = [node("Conv", ["x", "w"], ["c"]), node("BatchNormalization", ["c", "s", "s", "s", "s"], ["n"]),
         node("Add", ["c", "n"], ["y"])]
with open("shared.onnx", "wb") as f:
    f.write(simple(nodes, (floats("w", 2, 2, 1, 1), floats("s", 2)), (value("x", FLOAT, (1, 2, 4, 4)),)))
END
    exports shared.onnx --explain
    holds '.missed | length > 0 and all(.[]; .why != "")'
    holds '[.missed[] | select(.pass == "fuse-bn-into-conv" and .op == "BatchNormalization" and .site == "n")] | length == 1'
    [[ $output == *"near miss: fuse-bn-into-conv at 'n' (BatchNormalization): "* ]] || explain
    exports shared.onnx
    holds '.missed == []'
}

# --- shapes, pieces, functions ----------------------------------------------------------------------------------------

@test "export: --dim and --shapes fix dimensions, others stay open" {
    exports slack.onnx --dim batch=4
    holds '.check.samples == 1'
    [[ $output == *'x:4x3'* ]] || explain
    refuses 1 'batches of 4' hone-run out.onnx --data x.npy
    exports slack.onnx --shapes x:2x3
    same_results slack.onnx out.onnx
    exports slack.onnx
    same_results slack.onnx out.onnx
    refuses 2 "no input has a dimension 'rows'; there is 'batch'" hone-export slack.onnx -o out.onnx --dim rows=4
    refuses 2 "no input 'z'; there is 'x'" hone-export slack.onnx -o out.onnx --shapes z:1x3
    refuses 3 'with a size of 6 the new model does not run' hone-export slack.onnx -o out.onnx --shapes x:1x4
}

@test "export: --infer-shapes declares every value" {
    local plain
    exports slack.onnx
    plain=$(grep -ao batch out.onnx | wc -l)
    exports slack.onnx --infer-shapes
    cp out.onnx declared.onnx
    # two values lie between input and output
    [ "$(grep -ao batch declared.onnx | wc -l)" -ge $((plain + 2)) ]
    same_results slack.onnx declared.onnx
}

@test "export: --extract" {
    exports slack.onnx --extract features:scores
    holds '.before.nodes == 2 and .after.nodes == 2'
    [ "$(hone-run out.onnx --input features=x.npy | npy show)" = '<f4[2,3] 2 0 18 -3 14 -9' ]
    exports slack.onnx --extract :features
    holds '.after.nodes == 1'
    exports slack.onnx --extract features:
    [ "$(hone-run out.onnx --input features=x.npy | npy show)" = '<f4[2,3] 2 0 18 -3 14 -9' ]
    refuses 2 'is not of the form IN:OUT' hone-export slack.onnx -o out.onnx --extract features
    refuses 2 "has no value 'nothing'; the nearest are" hone-export slack.onnx -o out.onnx --extract features:nothing
    refuses 2 "need input 'x' too" hone-export slack.onnx -o out.onnx --extract dead:y
    refuses 2 'is a weight' hone-export slack.onnx -o out.onnx --extract w:y
}

@test "export: functions become their bodies, or are kept" {
    exports calls.onnx
    holds '[.operators[] | select(.op == "own.Twice")] == [{op: "own.Twice", before: 1, after: 0}]'
    same_results calls.onnx out.onnx
    exports calls.onnx --keep-functions
    holds '[.operators[] | select(.op == "own.Twice")] == [{op: "own.Twice", before: 1, after: 1}]'
    holds '.before.nodes == 3 and .after.nodes == 2'
    same_results calls.onnx out.onnx
    cp out.onnx checked.onnx
    exports calls.onnx --keep-functions --no-check
    cp out.onnx unchecked.onnx
    exports unchecked.onnx --keep-functions
    same_but_recipe checked.onnx out.onnx
}

@test "export: weights that are inputs too become weights" {
    exports weighted.onnx
    npy make '<f4' 3 '10 20 30' b.npy
    [ "$(hone-run out.onnx --input x=x.npy --input b=b.npy | npy show)" = '<f4[2,3] 12 19 34 7 26 25' ]
    refuses 2 "no input 'w'" hone-run out.onnx --input w=b.npy --data x.npy
}

# --- files ------------------------------------------------------------------------------------------------------------

@test "export: --external one-file, never appended to" {
    exports conv.onnx --external one-file
    local data
    data=$(echo out.onnx.*.data)
    [ "$(stat -c %s out.onnx)" -lt 1000 ] && [ "$(stat -c %s "$data")" -eq 147456 ]
    # its name holds its hash, and the model has the whole of it
    [[ $data == out.onnx.$(sha1sum <"$data" | head -c 16).data ]]
    grep -aq "$(sha1sum <"$data" | head -c 40)" out.onnx
    holds '.after.file_bytes > 147456'
    cp out.onnx first
    cp "$data" kept
    hone-export conv.onnx -o out.onnx --external one-file >/dev/null
    cmp out.onnx first
    cmp "$data" kept
    # over itself, and what it is read from is the file that is replaced
    hone-export out.onnx -o out.onnx --external one-file >/dev/null
    same_but_recipe out.onnx first
    cmp "$data" kept
    [ "$(echo out.onnx.*.data)" = "$data" ]
    hone-export out.onnx -o inline.onnx --external inline >/dev/null
    hone-export conv.onnx -o direct.onnx >/dev/null
    same_but_recipe inline.onnx direct.onnx
    # what only the replaced model needed goes with it
    hone-export conv.onnx -o out.onnx >/dev/null
    [ ! -e "$data" ]
    refuses 2 "'--external' is one of auto, inline, one-file" hone-export conv.onnx -o out.onnx --external two-files
}

@test "export: orphaned and duplicate bytes are told" {
    hone-export conv.onnx -o padded.onnx --external one-file >/dev/null
    head -c 5000 /dev/zero >>"$(echo padded.onnx.*.data)"
    refuses 1 "of tensor 'w' has the checksum" hone-export padded.onnx -o out.onnx --external one-file
    refuses 1 "of tensor 'w' has the checksum" hone-run padded.onnx --data random --verify-data
    hone-run padded.onnx --data random >/dev/null
    # a model that gives no checksums
    sed -i 's/checksum/chEcksum/g' padded.onnx
    exports padded.onnx --external one-file
    holds '.orphaned_bytes == 5000'
    [[ $output == *'holds 5 KB that nothing refers to'* ]] || explain
    [ "$(cat out.onnx.*.data | wc -c)" -eq 147456 ]
    exports slack.onnx -v
    [[ $output == *'equal to others: 12 B before'* ]] || explain
}

@test "export: --clear-metadata" {
    exports slack.onnx
    grep -aq 'a doc string' out.onnx && grep -aq 'a text' out.onnx && grep -aq '9\.9' out.onnx
    exports slack.onnx --clear-metadata
    if grep -aqE 'a doc string|a text|9\.9|test/onnx' out.onnx; then explain; fi
    same_results slack.onnx out.onnx
}

@test "export: a file over itself" {
    cp slack.onnx self.onnx
    hone-export self.onnx -o self.onnx >/dev/null
    hone-export slack.onnx -o out.onnx >/dev/null
    cmp self.onnx out.onnx
}

# --- opset and precision ----------------------------------------------------------------------------------------------

@test "export: --opset, there and back" {
    exports slack.onnx --opset 9
    holds '.before.opset == 17 and .after.opset == 9'
    same_results slack.onnx out.onnx
    cp out.onnx nine.onnx
    exports nine.onnx --opset 21
    holds '.after.opset == 21'
    same_results slack.onnx out.onnx
    refuses 2 'from 7 to 28' hone-export slack.onnx -o out.onnx --opset 6
}

@test "export: --opset names every node that stands in the way" {
    rm -f out.onnx
    run --separate-stderr hone-export young.onnx -o out.onnx --opset 7
    [ "$status" -eq 4 ] && [ -z "$output" ] && [ ! -e out.onnx ] || explain
    [[ $stderr == *"'first'"* && $stderr == *"'second'"* && $stderr == *NonZero* ]] || explain
}

@test "export: --to f16 keeps what overflows in one branch, not what is called the same in another" {
    exports branches.onnx --to f16 --data random:3 --force
    holds '[.precision.kept[].site] | sort == ["z", "z/then_branch/o", "z/then_branch/t"]'
}

@test "export: halves that are slower, or longer, are refused like all else" {
    # three nodes of next to no time, whose halves become f32 and back: slower by far, or too noisy to tell
    rm -f out.onnx
    run --separate-stderr hone-export chain.onnx -o out.onnx --to f16
    [ "$status" -eq 3 ] || [ "$status" -eq 5 ] || explain
    sentence 'of the time of the original' && [ ! -e out.onnx ]
}

@test "export: --to bf16 raises the opset to one that has it" {
    hone-export chain.onnx -o chain9.onnx --opset 9 -q --no-check
    exports chain9.onnx --to bf16 --force
    holds '.before.opset == 9 and .after.opset >= 13 and .precision.converted > 0'
    refuses 4 'has no bf16' hone-export chain9.onnx -o out.onnx --to bf16 --opset 12
}

@test "export: --to f16, there and back" {
    npy make '<f2' 2,3 '1 -2 3 -4 5 -6' half.npy
    exports chain.onnx --to f16 --force
    holds '.precision.to == "f16" and .precision.converted == 3 and .precision.kept == [] and .check.status == "equal"'
    [ "$(hone-run out.onnx --input x=half.npy | npy show)" = '<f2[2,3] 2 2 12 1 12 3' ]
    cp out.onnx half.onnx
    exports chain.onnx --to f16 --keep-io --force
    same_results chain.onnx out.onnx
    exports half.onnx --to f32
    holds '.precision.to == "f32"'
    same_results chain.onnx out.onnx
    refuses 2 "option '--to' is one of f16, bf16, f32" hone-export chain.onnx -o out.onnx --to int8
    refuses 2 "'--keep-io' is for '--to'" hone-export chain.onnx -o out.onnx --keep-io
}

# --- checks -----------------------------------------------------------------------------------------------------------

@test "export: --check, --data, --no-check" {
    exports relu.onnx --check 5
    holds '.check.samples == 5 and .check.synthetic'
    exports relu.onnx --data sets
    holds '.check.samples == 2 and (.check.synthetic | not)'
    [[ $output == *'same results on 2 samples, '* ]] || explain
    exports relu.onnx --data sets --check 1
    holds '.check.samples == 1'
    hone-export relu.onnx -o out.onnx --data - <x.npy >/dev/null
    exports relu.onnx --no-check
    holds '.check.status == "off" and .check.samples == 0 and .check.outputs == []'
    [[ $output == *'results were not compared'* ]] || explain
    refuses 2 "'--no-check' excludes" hone-export relu.onnx -o out.onnx --no-check --check 3
    refuses 2 "'--no-check' excludes" hone-export relu.onnx -o out.onnx --no-check --data x.npy
    refuses 2 'negative' hone-export relu.onnx -o out.onnx --check -2
    refuses 1 "'gone'" hone-export relu.onnx -o out.onnx --data gone
}

@test "export: operators of ONNX Runtime's domain stay, or become core ones with --to-core" {
    has() { holds ".check.status == \"equal\" and ([.operators[] | select(.after > 0) | .op] | contains([\"$1\"]))"; }
    exports fused.onnx
    has com.microsoft.BiasGelu && holds '.before.nodes == 4 and .after.nodes == 2' # what was of no use went
    same_results fused.onnx out.onnx
    exports fused.onnx --to-core
    has Erf && holds '.after.opset == 17 and all(.operators[] | select(.after > 0); .op | contains("microsoft") | not)'
    same_results fused.onnx out.onnx
    exports fused.onnx --to-core --opset 20
    has Gelu
    refuses 2 "'--to-core' looks into functions" hone-export fused.onnx --to-core --keep-functions -o out.onnx
}

@test "export: what cannot be run is not written, unless it need not be compared, which the file says" {
    rm -f out.onnx
    refuses 4 "operator 'Frobnicate' of node 'odd' is not known; '--no-check' writes without comparing" \
        hone-export unknown.onnx -o out.onnx
    refuses 4 "operator 'Frobnicate' of node 'odd' is not known" hone-export unknown.onnx -o out.onnx --data x.npy
    [ ! -e out.onnx ]
    exports unknown.onnx --no-check --clear-metadata
    holds '.check.status == "off" and .after.nodes == 1'
    grep -aq 'hone.checked..not compared' out.onnx
    # what is written anew and compared says so no longer
    exports slack.onnx --no-check
    grep -aq 'hone.checked..not compared' out.onnx
    cp out.onnx unchecked.onnx
    exports unchecked.onnx
    cp out.onnx again.onnx
    if grep -aq hone.checked again.onnx; then explain; fi
    exports slack.onnx
    same_but_recipe out.onnx again.onnx
}

@test "export: a check that there is no memory for is no wrong rewrite" {
    rm -f out.onnx
    refuses 6 'memory' hone-export wide.onnx -o out.onnx --mem-limit 40M
    [ ! -e out.onnx ]
}

@test "export: a file does not grow for nothing" {
    exports grown.onnx
    holds '([.grown[].site] | sort) == ["ones", "w"] and ([.grown[].bytes] | max) > 60000 and .dropped == []'
    holds '.after.weight_bytes <= .before.weight_bytes and .after.nodes == 2 and (.kept_functions | not)'
    [[ $output == *'left out, since the file would grow: fold-constants 2 (98.2 KB)'* ]] || explain
    exports grown.onnx --allow-larger
    holds '.grown == [] and .after.nodes == 1 and .after.file_bytes > 2 * .before.file_bytes'
    [[ $output == *'% longer, as the options ask for or allow'* ]] || explain
    hone-export grown.onnx -o out.onnx --json=report.json --to f32 >/dev/null 2>&1 # which warns that it gains nothing
    holds '.grown == [] and .after.weight_bytes > 100000'
    # --no-check: nothing can be measured, but what needs no measuring goes all the same
    exports grown.onnx --no-check
    holds '(.grown | length) == 2'
}

@test "export: --bench tells the latency of both" {
    exports slack.onnx --bench
    holds '.speed.effect > 0 and .before.latency_p50_ms > 0 and .after.latency_p50_ms > 0'
    [[ $output == *'times as fast'*' thread'* ]] || explain
    refuses 2 "'--no-check' excludes" hone-export slack.onnx -o out.onnx --no-check --bench
}

# --- what it refuses, and what it leaves behind -------------------------------------------------------------------------

@test "export: models that are none" {
    rm -f out.onnx
    refuses 1 "'gone.onnx'" hone-export gone.onnx -o out.onnx
    refuses 1 'cycle' hone-export cycle.onnx -o out.onnx
    refuses 1 'nowhere' hone-export dangling.onnx -o out.onnx
    refuses 1 "external data 'gone.bin' of tensor 'w' is missing" hone-export external.onnx -o out.onnx
    head -c 60 slack.onnx >cut.onnx
    refuses 1 "'cut.onnx'" hone-export cut.onnx -o out.onnx
    refuses 2 'no model is named' hone-export -o out.onnx
    refuses 2 "what is 'two.onnx'" hone-export relu.onnx two.onnx -o out.onnx
    [ ! -e out.onnx ]
}

@test "export: a target that cannot be written" {
    refuses 1 "cannot write 'gone/out.onnx'" hone-export slack.onnx -o gone/out.onnx
    mkdir -p folder
    refuses 1 "'folder'" hone-export slack.onnx -o folder
    [ -d folder ] && [ -z "$(ls -A folder)" ]
    refuses 1 "cannot write '/dev/full'" hone-export slack.onnx -o /dev/full
    run --separate-stderr bash -c 'hone-export slack.onnx >/dev/full'
    [ "$status" -eq 1 ] && sentence 'No space left' || explain
}

@test "export: a full disk leaves what was there" {
    mkdir -p full
    cd full
    cp ../relu.onnx out.onnx
    refuses 1 "cannot write 'out.onnx" with_limit 4096 hone-export ../conv.onnx -o out.onnx
    cmp out.onnx ../relu.onnx
    refuses 1 "cannot write 'out.onnx" with_limit 4096 hone-export ../conv.onnx -o out.onnx --external one-file
    cmp out.onnx ../relu.onnx
    [ "$(files)" = './out.onnx ' ] || {
        files
        return 1
    }
}

@test "export: Ctrl-C ends it, and nothing is written" {
    mkdir -p stopped
    cd stopped
    python3 - ../conv.onnx <<'END'
import signal, subprocess, sys, time
p = subprocess.Popen(["hone-export", sys.argv[1], "-o", "out.onnx", "--check", "1000000"], stdin=subprocess.DEVNULL,
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
time.sleep(0.5)
p.send_signal(signal.SIGINT)
out, said = p.communicate(timeout=20)
assert p.returncode == 130, (p.returncode, said)
assert out == b"", out
END
    [ "$(files)" = '' ]
}

@test "export: a limit of memory" {
    refuses 6 'limit' hone-export wide.onnx -o out.onnx --mem-limit 10M
}

@test "export: malformed models end with a sentence" {
    python3 "$root/test/onnx/bad_models.py" bad
    python3 "$here/bad.py" --may-pass bad hone-export {model} -o out.onnx --no-check
    python3 "$here/bad.py" --may-pass bad hone-export {model} -o out.onnx -q
    # what no data could make right is no matter of samples
    refuses 1 'node' hone-export bad/shape/matmul-inner.onnx -o out.onnx
    refuses 1 'node' hone-export bad/attribute/missing.onnx -o out.onnx
}

@test "export: every example of the manual page runs" {
    mkdir -p man/samples
    cp slack.onnx man/model.onnx
    cp x.npy man/samples
    one_digit
    cp one.onnx man
    cd man
    local examples line
    mapfile -t examples < <(sed -n 's/^\t\$ //p' "$root/man/hone-export.1.scd")
    [ "${#examples[@]}" -ge 5 ]
    for line in "${examples[@]}"; do
        echo "$line"
        bash -e -o pipefail -c "$line" >/dev/null
    done
}

# --- its interface ----------------------------------------------------------------------------------------------------

# one_digit: one.onnx, the digits for a batch of 1
one_digit() { [ -f one.onnx ] || hone-export -q "$root/models/digits" one.onnx --shapes image:1x1x8x8 >/dev/null; }

@test "export: a batch of 1 becomes free, and the same results come of several at once" {
    one_digit
    exports one.onnx --free image:0=n --rename scores=logits
    holds '.interface == [
        {"kind": "input", "old_name": "image", "old_type": "f32[1,1,8,8]", "new_name": "image", "new_type": "f32[n,1,8,8]",
         "note": "dimension 0 is free"},
        {"kind": "output", "old_name": "scores", "old_type": "f32[1,10]", "new_name": "logits", "new_type": "f32[n,10]",
         "note": ""}]'
    succeeds hone-run out.onnx --shapes image:5x1x8x8 --input image=random:1 -q
    succeeds hone-replay out.onnx one.onnx
    exports one.onnx --shapes image:4x1x8x8 --rename image=x
    holds '[.interface[].new_type] == ["f32[batch,1,8,8]", "f32[batch,10]"]'
    hone-inspect out.onnx --json | jq -e '.inputs[0].name == "x" and .inputs[0].type == "f32[4,1,8,8]"'
}

@test "export: bytes of a camera go in, the best classes come out" {
    one_digit
    exports one.onnx --u8-input image --nhwc-input image --mean 127.5 --scale 51 --softmax --top-k 3 --rename image=camera
    holds '[.interface[] | .new_name + " " + .new_type] ==
        ["camera u8[1,8,8,1]", "scores_values f32[1,3]", "scores_indices i64[1,3]"]'
    succeeds hone-replay out.onnx one.onnx
    # sizes are said of the old face, samples are of the new one
    exports "$root/models/digits" --nhwc-input image --shapes image:2x1x8x8 --input image=random
    holds '.interface[0].new_type == "f32[N,8,8,1]"'
}

@test "export: what stands in the way of an interface is named, and nothing is written" {
    one_digit
    rm -f none.onnx
    refuses 2 "no input 'x' with a fixed dimension 0" hone-export one.onnx none.onnx --free x:0
    refuses 2 "is not of the form INPUT:AXIS=NAME" hone-export one.onnx none.onnx --free image
    refuses 2 "there is an input or output 'scores' already" hone-export one.onnx none.onnx --rename image=scores
    refuses 2 "has 10 classes" hone-export one.onnx none.onnx --top-k 11
    refuses 2 "'x' is no output with scores" hone-export one.onnx none.onnx --softmax=x
    [ ! -e none.onnx ]
}

@test "export: a page has what changed" {
    draws "What is left of the original" "Nodes by operator" -- hone-export "$root/models/digits/model.onnx" drawn.onnx
}

@test "export: inputs that made-up numbers do not fit are fed" {
    exports two.onnx --input x=x.npy
    holds '.check | .samples == 1 and .synthetic == false'
    exports two.onnx --input 'x=[[1,2,3]]' --data x.npy
    exports ids.onnx --input 'ids=[0,3]'
    refuses 4 "index 9 is outside" hone-export ids.onnx none.onnx --input 'ids=[9]'
    refuses 2 "no input 'z'" hone-export two.onnx none.onnx --input z=1
    refuses 2 "'--no-check' excludes" hone-export two.onnx none.onnx --input x=zeros --no-check
    refuses 4 "'w' is an initializer" hone-export weighted.onnx none.onnx --input w=2
    one_digit
    exports one.onnx --free image:0=n --rename image=x --input x=zeros
    succeeds hone-replay out.onnx one.onnx --input x=zeros
}

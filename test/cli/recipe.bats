# Recipes are somebody else's text: what hone-replay and hone-quantize --replay do with one that means harm, or is none.

load helpers

setup_file() {
    export XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
    make_work
    printf '#!/bin/sh\ntouch "%s/ran"\n[ -s "$1" ] && echo "${NUMBER:-37.5}"\n' "$work" >judge.sh
    chmod +x judge.sh
    hone-quantize -q "$model" --calib "$train" --metric cmd:./judge.sh --force --repair none --calib-method minmax -o judged.onnx
    hone-quantize -q "$model" --calib "$train" --force --repair none --calib-method minmax -o plain.onnx
}
setup() {
    cd "$work" || return
    rm -f ran
}

model=$root/models/digits/model.onnx
train=$root/models/digits/train.npz

# altered MADE FILTER: made.onnx, which is MADE with its recipe changed by jq
altered() {
    python3 "$here/recipe.py" "$1" | jq -cj "$2" | python3 "$here/recipe.py" "$1" made.onnx
}

# replay STATUS WORDS [OPTION...]: both ways to replay made.onnx end so, and no program was run
replay() {
    local status=$1 words=$2
    shift 2
    refuses "$status" "$words" hone-replay made.onnx "$model" --calib "$train" "$@"
    refuses "$status" "$words" hone-quantize --replay made.onnx "$model" --calib "$train" "$@"
    [ ! -e ran ]
}

@test "recipe: the metric was a program, and it is not said which" {
    python3 "$here/recipe.py" judged.onnx >recipe.json
    jq -e '.options.metric == "cmd" and .cmd == {"original": 37.5, "made": 37.5}' recipe.json
    ! grep -q judge recipe.json
}

@test "recipe: no program is run that the command line does not name" {
    cp judged.onnx made.onnx
    replay 4 "'--metric cmd:PROGRAM'"
    # what older versions wrote, and what somebody may have made of it
    altered judged.onnx ".options.metric = \"cmd:./judge.sh\" | del(.cmd)"
    replay 4 "'--metric cmd:PROGRAM'"
    altered judged.onnx ".options.metric = \"cmd:sh -c 'touch ran'\" | del(.cmd, .input, .calibration)"
    replay 4 "'--metric cmd:PROGRAM'"
    altered plain.onnx '.options.metric = "cmd:touch ran"'
    replay 4 "'--metric cmd:PROGRAM'"
}

@test "recipe: the program is named again, and says the same" {
    succeeds hone-replay judged.onnx "$model" --calib "$train" --metric cmd:./judge.sh -o again.onnx -q
    [ -e ran ]
    cmp judged.onnx again.onnx
    export NUMBER=12.25
    refuses 3 "gives 12.25 for the original model, where the recipe of 'judged.onnx' says 37.5" \
        hone-replay judged.onnx "$model" --calib "$train" --metric cmd:./judge.sh
    unset NUMBER
    altered judged.onnx '.cmd.made = 36.5'
    refuses 3 "gives 37.5 for the quantized model, where the recipe of 'made.onnx' says 36.5" \
        hone-replay made.onnx "$model" --calib "$train" --metric cmd:./judge.sh
    # an older one: the program alone is given again
    altered judged.onnx '.options.metric = "cmd:judge.sh" | del(.cmd)'
    succeeds hone-replay made.onnx "$model" --calib "$train" --metric cmd:./judge.sh
}

@test "recipe: --metric is for what a program has judged" {
    cp judged.onnx made.onnx
    replay 2 "names none" --metric cos
    cp plain.onnx made.onnx
    replay 2 "was not judged by a program" --metric cmd:./judge.sh
}

@test "recipe: what is missing is not taken for equal" {
    altered plain.onnx 'del(.input)'
    replay 1 "'input'"
    altered plain.onnx '.input = null'
    replay 1 "'input'"
    altered plain.onnx 'del(.calibration)'
    replay 1 "'calibration'"
    altered plain.onnx '.calibration = 7'
    replay 1 "'calibration'"
    altered plain.onnx '.calibration = null'
    replay 3 "other samples"
    altered plain.onnx 'del(.options)'
    replay 1 "'options'"
    altered judged.onnx 'del(.cmd)'
    replay 1 "'cmd'" --metric cmd:./judge.sh
    altered judged.onnx '.cmd.original = "much"'
    replay 1 "'cmd'" --metric cmd:./judge.sh
    # what was made without samples says so
    hone-quantize -q "$model" --mode weights --force --repair none -o made.onnx
    succeeds hone-replay -q made.onnx "$model"
    replay 3 "other samples"
}

@test "recipe: no option in it names a file" {
    for option in output plan timing-cache config; do
        altered plain.onnx ".options[\"$option\"] = \"ran\""
        replay 4 "'$option' in the recipe is not known"
    done
    altered plain.onnx '.options.samples = 1.5'
    replay 4 "'samples'"
    altered plain.onnx '.options.seed = -1'
    replay 4 "'seed'"
}

@test "recipe: deep, long, broken or doubled JSON" {
    python3 -c 'print("{\"tool\":" + "[" * 100000 + "]" * 100000 + "}", end="")' | python3 "$here/recipe.py" plain.onnx made.onnx
    replay 1 "more than 100 levels"
    python3 -c 'print("{\"tool\":\"" + "a" * 2000000 + "\"}", end="")' | python3 "$here/recipe.py" plain.onnx made.onnx
    replay 1 "bytes"
    for text in '' '{' '[]' 'null' '{"tool":"hone-quantize",}' "{'tool':'hone-quantize'}" '{"tool":"hone-quantize"} {}'; do
        printf %s "$text" | python3 "$here/recipe.py" plain.onnx made.onnx
        replay 1 "recipe of 'made.onnx'"
    done
    python3 "$here/recipe.py" plain.onnx | sed 's/^{/{"tool":"x",/' | python3 "$here/recipe.py" plain.onnx made.onnx
    replay 1 "two members of one name"
}

@test "recipe: a pattern that would never end" {
    altered plain.onnx '.options.exclude = "(.*.*.*.*.*.*.*.*.*.*)+[!?]$"'
    replay 2 "option '--exclude': pattern"
    altered plain.onnx '.options.set = ["(((.+)+)+)+[!?]=f32"]'
    replay 2 "option '--set': pattern"
}

@test "replay: a model in several files is compared with all of them" {
    local external="--external one-file"
    # shellcheck disable=SC2086 # two words
    hone-quantize -q "$model" --calib "$train" --force --repair none --calib-method minmax $external -o apart.onnx
    [ "$(stat -c %s apart.onnx)" -lt "$(stat -c %s plain.onnx)" ]
    succeeds hone-replay -q apart.onnx "$model" --calib "$train"
    local data
    data=$(echo apart.onnx.*.data)
    [ -s "$data" ]
    printf x | dd of="$data" bs=1 seek=70 conv=notrunc status=none
    refuses 1 checksum hone-replay -q apart.onnx "$model" --calib "$train"
    rm "$data"
    refuses 1 "$data" hone-replay -q apart.onnx "$model" --calib "$train"
}

@test "replay: names that begin with a dash are names" {
    cp plain.onnx ./--config=x.onnx
    succeeds hone-replay --calib "$train" -- --config=x.onnx "$model"
}

@test "error lines: a node's name of a million characters, or one that a terminal acts upon" {
    python3 - "$here/../onnx" <<'EOF'
import sys
sys.path.insert(0, sys.argv[1])
from wire import FLOAT, node, simple, value
for file, name in (("long", "first" + "0" * 1000000 + "last"), ("escapes", "a\x1b[2Jb\u009bc\u202e")):
    with open(file + ".onnx", "wb") as f:
        f.write(simple([node("Frobnicate", ["x"], ["y"], name=name)], ins=(value("x", FLOAT, (1,)),),
                       outs=(value("y", FLOAT, (1,)),)))
EOF
    refuses 4 "first000" hone-run long.onnx --data random
    [ "${#stderr}" -lt 1100 ]
    [[ $stderr == *"00 ... 00"* ]]
    refuses 4 "a?[2Jb?c?" hone-run escapes.onnx --data random
    refuses 2 "a?[2Jb?c" hone $'a\e[2Jb\u009bc'
}

# exported OPTION...: made.onnx from digits, whose recipe makes it again
exported() {
    succeeds hone-export -q "$model" "$@" -o made.onnx
    succeeds hone-replay -q made.onnx "$model" -o again.onnx
    cmp made.onnx again.onnx
}

@test "recipe: hone-export leaves one, and the same bytes come of it" {
    exported
    python3 "$here/recipe.py" made.onnx >recipe.json
    jq -e '.tool == "hone-export" and .options == {} and .samples == null and (.longer | not)' recipe.json
    [ "$(jq -r .input recipe.json)" = "$(sha256sum <"$model" | cut -d' ' -f1)" ]
    rm again.onnx
    succeeds hone replay -q made.onnx "$model" # compares only
    [ ! -e again.onnx ]
    exported --level 1 --skip eliminate-nop --seed 7
    exported --only fold-constants --fold-limit 0 --opset 17
    python3 "$here/recipe.py" made.onnx | jq -e '.options == {"only": ["fold-constants"], "fold-limit": 0, "opset": 17}'
    exported --to f16 --keep-io --check 3 --rtol 0.25 --atol 0.5 --force
    python3 "$here/recipe.py" made.onnx | jq -e '.options.rtol == 0.25 and .options.atol == 0.5 and .options.check == 3'
    exported --no-check --infer-shapes --dim N=3 --explain
    succeeds hone-export -q "$model" --external one-file -o apart.onnx
    succeeds hone-replay -q apart.onnx "$model"
    succeeds hone-export -q "$model" --data "$train" -o made.onnx
    python3 "$here/recipe.py" made.onnx | jq -e '.options == {} and (.samples | length) == 64'
    succeeds hone-replay -q made.onnx "$model" --data "$train"
    succeeds hone-export -q - --level 1 -o made.onnx <"$model"
    succeeds hone-replay -q made.onnx "$model"
}

@test "recipe: of hone-export, what went in is compared" {
    rm -f again.onnx
    succeeds hone-export -q "$model" --data "$train" -o made.onnx
    refuses 3 'made of other samples' hone-replay -q made.onnx "$model"
    refuses 3 'made of other samples' hone-replay -q made.onnx "$model" --data "$root/models/digits/test_data_set_0"
    refuses 3 'made of another model' hone-replay -q made.onnx made.onnx --data "$train"
    cp made.onnx data.onnx
    altered data.onnx 'del(.samples)'
    refuses 1 "'samples'" hone-replay -q made.onnx "$model" --data "$train"
    altered data.onnx 'del(.input)'
    refuses 1 "'input'" hone-replay -q made.onnx "$model" --data "$train"
    altered data.onnx 'del(.options)'
    refuses 1 "'options'" hone-replay -q made.onnx "$model" --data "$train"
    altered data.onnx '.options.level = 0'
    refuses 3 'other bytes' hone-replay -q made.onnx "$model" --data "$train" -o again.onnx
    [ ! -e again.onnx ]
}

@test "recipe: of hone-export, it names no file and no other tool" {
    succeeds hone-export -q "$model" -o plainest.onnx
    for option in output data keep-repro replay config list-passes bench; do
        altered plainest.onnx ".options[\"$option\"] = \"ran\""
        refuses 4 "'$option' in the recipe is not known" hone-replay -q made.onnx "$model"
    done
    altered plainest.onnx '.options["fold-limit"] = -1'
    refuses 4 "'fold-limit'" hone-replay -q made.onnx "$model"
    altered plainest.onnx '.options.metric = "cmd:touch ran"'
    refuses 4 "'--metric cmd:PROGRAM'" hone-replay -q made.onnx "$model"
    refuses 4 "'metric' in the recipe is not known" hone-export -q --replay made.onnx "$model"
    refuses 2 "takes no '--metric'" hone-replay -q made.onnx "$model" --metric cmd:true
    altered plainest.onnx '.tool = "./judge.sh"'
    refuses 4 'no recipe of a tool that can repeat it' hone-replay -q made.onnx "$model"
    altered plainest.onnx '.tool = "hone-quantize"'
    refuses 1 "'calibration'" hone-replay -q made.onnx "$model"
    [ ! -e ran ]
    refuses 2 "takes no '--calib'" hone-replay plainest.onnx "$model" --calib "$train"
    refuses 2 "takes no '--data'" hone-replay plain.onnx "$model" --data "$train"
    refuses 1 'no recipe of hone-export' hone-export --replay plain.onnx "$model"
    succeeds hone-export -q "$model" --clear-metadata -o made.onnx
    refuses 4 'no recipe' hone-replay made.onnx "$model"
}

@test "recipe: what stayed for the sake of speed is said, and said again" {
    succeeds hone-export -q grown.onnx -o small.onnx
    succeeds hone-replay -q small.onnx grown.onnx
    altered small.onnx '.longer = true'
    succeeds hone-replay -q made.onnx grown.onnx -o again.onnx
    cmp made.onnx again.onnx
    succeeds hone-export -q grown.onnx --allow-larger --no-check -o large.onnx
    succeeds hone-replay -q large.onnx grown.onnx
}

@test "recipe: of hone-prune, the same bytes by the widths and zeros that it names" {
    local how
    for how in '--flops 0.6x' '--sparsity 0.8 --pattern 4x1 --store sparse' '--max-drop 2%' '--ratio 0.2 --score l2 --repair none'; do
        # shellcheck disable=SC2086 # options and their values
        succeeds hone-prune -q "$model" --calib "$train" --samples 96 $how --force -o pruned.onnx
        succeeds hone-replay -q pruned.onnx "$model" --calib "$train" -o again.onnx
        cmp pruned.onnx again.onnx
        rm again.onnx
    done
    refuses 3 'other samples' hone-replay -q pruned.onnx "$model" --calib "$root/models/digits/test.npz"
    refuses 3 'another model' hone-replay -q pruned.onnx pruned.onnx --calib "$train"
    refuses 2 "takes no '--ranges'" hone-replay -q pruned.onnx "$model" --ranges ranges.json
    succeeds hone-prune -q "$model" --speed-only --flops 0.5x -o pruned.onnx
    succeeds hone-prune -q --replay pruned.onnx "$model"
}

@test "recipe: of hone-prune, widths and zeros that cannot be" {
    local class wrong
    succeeds hone-prune -q "$model" --calib "$train" --samples 96 --flops 0.6x --force -o pruned.onnx
    class=$(python3 "$here/recipe.py" pruned.onnx | jq -r '.widths | keys[0]')
    for wrong in 0 -3 100000 1e300 '"8"' null '[]'; do
        altered pruned.onnx ".widths[\"$class\"] = $wrong"
        refuses 1 "no possible width for '$class'" hone-replay -q made.onnx "$model" --calib "$train" -o again.onnx
    done
    altered pruned.onnx "del(.widths[\"$class\"])"
    refuses 3 'other bytes' hone-replay -q made.onnx "$model" --calib "$train" -o again.onnx
    altered pruned.onnx '.widths = 7'
    refuses 3 'other bytes' hone-replay -q made.onnx "$model" --calib "$train" -o again.onnx
    altered pruned.onnx 'del(.calibration)'
    refuses 1 "'calibration'" hone-replay -q made.onnx "$model" --calib "$train" -o again.onnx
    altered pruned.onnx '.options.output = "ran"'
    refuses 4 "'output' in the recipe is not known" hone-replay -q made.onnx "$model" --calib "$train"
    altered pruned.onnx '.options.metric = "cmd:touch ran"'
    refuses 4 "'--metric cmd:PROGRAM'" hone-prune -q --replay made.onnx "$model" --calib "$train"
    succeeds hone-prune -q "$model" --calib "$train" --samples 96 --sparsity 0.5 --force -o pruned.onnx
    altered pruned.onnx '.zeros |= with_entries(.value = 1.5)'
    refuses 1 'no possible part of zeros' hone-replay -q made.onnx "$model" --calib "$train" -o again.onnx
    [ ! -e ran ] && [ ! -e again.onnx ]
}

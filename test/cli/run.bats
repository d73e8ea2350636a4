# hone-run: what it computes, compares, prints and refuses.

load helpers

setup_file() { make_work; }
setup() { cd "$work"; }

# the elements of what a command printed as .npy or .npz
prints() { # prints WANT COMMAND...
    local want=$1
    shift
    run --separate-stderr bash -o pipefail -c '"$@" | python3 "$0" show -' "$here/npy.py" "$@"
    [ "$status" -eq 0 ] && [ "$output" = "$want" ] || explain "$@"
}

@test "run: .npy from stdin to stdout" {
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx <x.npy
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --data - <x.npy
}

@test "run: the model from stdin" {
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run - --data x.npy <relu.onnx
    cat relu.onnx | prints '<f4[2,3] 1 0 3 0 5 0' hone-run - --data x.npy
}

@test "run: several outputs are an .npz" {
    prints "$(printf 'y <f4[2,3] 1 0 3 0 5 0\nz <f4[2,3] -1 2 -3 4 -5 6')" hone-run two.onnx --data x.npy
}

@test "run: a model without inputs needs no data" {
    prints '<f4[2] 1 2' hone-run none.onnx </dev/null
}

@test "run: scalars and shapes that depend on elements" {
    prints '<f4[] -3' hone-run scalar.onnx --data x.npy
    prints '<i8[2,6] 0 0 0 1 1 1 0 1 2 0 1 2' hone-run shape.onnx --data x.npy
}

@test "run: every kind of data" {
    npy make '<f4' 3 '-7 8 9' row.npy
    npy make '<i8' 2 '0 1' label.npy
    npy pack named.npz x=x.npy label=label.npy
    npy pack other.npz pixels=x.npy
    mkdir -p folder
    cp x.npy folder/b.npy
    cp row.npy folder/a.npy
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --data x.npy
    prints '<f4[1,3] 0 8 9' hone-run relu.onnx --data row.npy
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --data named.npz
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --data other.npz
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --data named.npz --batch 2
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --data - <named.npz
    prints '<f4[3,3] 0 8 9 1 0 3 0 5 0' hone-run relu.onnx --data folder
    prints '<f4[3,3] 0 2 3 1 0 1 0 2 2' hone-run relu.onnx --data sets
    prints '<f4[1,3] 0 2 3' hone-run relu.onnx --data sets/test_data_set_0
}

@test "run: random data are the same for the same seed" {
    hone-run relu.onnx --data random:4 --seed 7 >a.npy
    hone-run relu.onnx --data random:4 --seed 7 >b.npy
    hone-run relu.onnx --data random:4 --seed 8 >c.npy
    cmp a.npy b.npy
    run ! cmp -s a.npy c.npy
    [[ $(npy show a.npy) == '<f4[4,3] '* ]]
}

@test "run: --dim and --shapes size random data" {
    [[ $(hone-run relu.onnx --data random --dim N=5 | npy show) == '<f4[5,3] '* ]]
    [[ $(hone-run relu.onnx --data random --shapes x:7x3 | npy show) == '<f4[7,3] '* ]]
    [[ $(hone-run relu.onnx --data random --shapes x:7,3 | npy show) == '<f4[7,3] '* ]]
    refuses 2 "no input has a dimension 'M'; there is 'N'" hone-run relu.onnx --data random --dim M=5
    refuses 2 "no input 'z'; there is 'x'" hone-run relu.onnx --data random --shapes z:5
    refuses 2 "'-1'" hone-run relu.onnx --data random --dim N=-1
    refuses 2 "'N' is not of the form NAME=N" hone-run relu.onnx --data random --dim N
    refuses 2 "for random data" hone-run relu.onnx --data x.npy --dim N=2
    refuses 1 "'x'" hone-run relu.onnx --data random --shapes x:5x4
}

@test "run: ids stay inside the table they index" {
    hone-run ids.onnx --data random --dim n=1000 >/dev/null
}

@test "run: --input feeds inputs, initializers among them" {
    npy make '<f4' 3 '10 20 30' w.npy
    npy make '<f4' 3 '0 0 1' b.npy
    prints '<f4[2,3] 2 -1 5 -3 6 -4' hone-run weighted.onnx --input x=x.npy --input b=b.npy
    prints '<f4[2,3] 11 18 34 6 25 25' hone-run weighted.onnx --input x=x.npy --input b=b.npy --input w=w.npy
    prints '<f4[2,3] 2 -1 5 -3 6 -4' hone-run weighted.onnx --input b=b.npy --data x.npy
    prints '<f4[2,3] 2 -1 5 -3 6 -4' hone-run weighted.onnx --input b=b.npy <x.npy
    prints '<f4[1,3] 0 2 3' hone-run relu.onnx --input x=good/test_data_set_0/input_0.pb
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --input x=- <x.npy
    refuses 2 "no input 'v'; the nearest are 'x', 'w' and 'b'" hone-run weighted.onnx --input v=x.npy
    refuses 2 "NAME=VALUE" hone-run weighted.onnx --input x
    refuses 2 "'x' twice" hone-run weighted.onnx --input x=x.npy --input x=x.npy
    refuses 1 "'gone.npy'" hone-run weighted.onnx --input x=gone.npy
}

@test "run: --out writes a test set per sample, which --test-data accepts" {
    succeeds hone-run relu.onnx --data sets --out out
    [ -z "$output" ]
    [ "$(find out -type f | sort | tr '\n' ' ')" = 'out/test_data_set_0/output_0.pb out/test_data_set_1/output_0.pb ' ]
    cp sets/test_data_set_0/input_0.pb out/test_data_set_0
    succeeds hone-run relu.onnx --test-data out/test_data_set_0 --rtol 0 --atol 0
    refuses 1 "cannot make folder" hone-run relu.onnx --data sets --out x.npy/below
}

@test "run: --test-data, equal and not" {
    succeeds hone-run relu.onnx --test-data good
    [[ ${lines[0]} == set*output*worst*equal && ${lines[1]} == test_data_set_0*y*'f32[1,3]'*yes ]]
    run --separate-stderr hone-run relu.onnx --test-data sets
    [ "$status" -eq 3 ]
    sentence "output 'y' is not what 'sets/test_data_set_1' expects: 1 of 6 elements differ, most at [1,2]: 2 instead of 2.5"
    [ "${#lines[@]}" -eq 3 ]
    [[ ${lines[2]} == test_data_set_1*'[1,2]'*no ]]
    succeeds hone-run relu.onnx --test-data sets --atol 0.5 --rtol 0
    succeeds hone-run relu.onnx --test-data sets --rtol 0.2
    succeeds hone-run relu.onnx --test-data sets --min-cos 0.99
    run --separate-stderr hone-run relu.onnx --test-data sets --min-cos 0.999999
    [ "$status" -eq 3 ]
    sentence 'its cosine is 0.99'
}

@test "run: --test-data judges shape and type" {
    run --separate-stderr hone-run relu.onnx --test-data shape --atol 100
    [ "$status" -eq 3 ]
    sentence 'f32[1,3] instead of f32[3]'
    run --separate-stderr hone-run relu.onnx --test-data type --min-cos -1
    [ "$status" -eq 3 ]
    sentence 'f32[1,3] instead of i64[1,3]'
}

@test "run: test sets that are none" {
    refuses 1 "'unjudged' holds no output_0.pb" hone-run relu.onnx --test-data unjudged
    refuses 1 "input_1.pb' has no counterpart" hone-run relu.onnx --test-data many
    refuses 1 "cut/input_0.pb'" hone-run relu.onnx --test-data cut
    refuses 1 "'gone'" hone-run relu.onnx --test-data gone
    refuses 1 "cannot open folder 'x.npy'" hone-run relu.onnx --test-data x.npy
}

@test "run: --json follows its schema" {
    run --separate-stderr hone-run relu.onnx --test-data sets --json
    [ "$status" -eq 3 ]
    schema run <<<"$output"
    [ "$(python3 -c 'import json,sys; r=json.load(sys.stdin); print(r["equal"], r["tests"][1]["wrong"], r["tests"][1]["max_abs"])' <<<"$output")" = 'False 1 0.5' ]
    run --separate-stderr hone-run relu.onnx --test-data shape --min-cos 0.5 --json
    [ "$status" -eq 3 ]
    schema run <<<"$output"
    hone-run relu.onnx --data random:2 --json=report.json >y.npy
    schema run report.json
    hone-run relu.onnx --data random:2 --out out2 --json | schema run
    refuses 2 "'--json' needs a file" hone-run relu.onnx --data random --json
}

@test "run: --metric counts right answers" {
    npy make '<f4' 3,3 '9 1 1 1 9 1 9 1 1' scores.npy
    npy make '<i8' 3 '0 1 1' labels.npy
    npy pack labelled.npz x=scores.npy label=labels.npy
    succeeds hone-run relu.onnx --data labelled.npz --metric top1
    [ "$output" = 'top1: 66.67 % (2 of 3)' ]
    succeeds hone-run relu.onnx --data labelled.npz --metric top3 --batch 3
    [ "$output" = 'top3: 100.00 % (3 of 3)' ]
    hone-run relu.onnx --data labelled.npz --metric top1 --json | schema run
    refuses 2 "'x.npy' has none: an array 'label'" hone-run relu.onnx --data x.npy --metric top1
    refuses 2 "'f1' is not a metric" hone-run relu.onnx --data labelled.npz --metric f1
}

@test "run: the digits that come with hone" {
    succeeds hone-run "$root/models/digits/model.onnx" --test-data "$root/models/digits"
    succeeds hone-run "$root/models/digits/model.onnx" --data "$root/models/digits/test.npz" --metric top1
    [ "$output" = 'top1: 99.44 % (358 of 360)' ]
}

@test "run: stdout and stdin are nobody's twice" {
    refuses 2 'both come from stdin' hone-run - --data - <relu.onnx
    refuses 2 'both come from stdin' hone-run - --input x=- <relu.onnx
    refuses 2 'there is no data' hone-run - <relu.onnx
    refuses 2 'there is no data' hone-run relu.onnx </dev/null
    refuses 2 'there is no data' hone-run weighted.onnx <x.npy
}

@test "run: a terminal gets a table, and so does who asks for it" {
    run on_terminal hone-run relu.onnx --data x.npy
    [ "$status" -eq 0 ] && [[ $output == *"f32[2,3]"*"1 0 3 0 ..."* ]] || explain on a terminal
    succeeds hone-run relu.onnx --data x.npy --print
    [[ $output == *"f32[2,3]"*" 0 "*"1.5 "*" 5 "*"1 0 3 0 ..."* ]] || explain --print
    succeeds hone-run two.onnx --data x.npy --print --json=report.json -q
    [ -z "$output" ]
    schema run report.json
    holds '[.results[] | [.output, .min, .max, .nan]] == [["y", 0, 5, 0], ["z", -5, 6, 0]]'
    holds '[.best[] | select(.output == "y") | [.sample, .class, .score]] == [["x.npy +0", 2, 3], ["x.npy +1", 1, 5]]'
    printf 'a\nb\nc\n' >labels.txt
    succeeds hone-run relu.onnx --data x.npy --labels labels.txt
    [[ $output == *" 84.4 %  c"*" 98.7 %  b"* ]] || explain --labels
    npy make '<f4' 1,3 'nan -2 2' nan.npy
    hone-run relu.onnx --data nan.npy --labels labels.txt --json=report.json -q
    holds '.results[0].nan == 1 and .top[0].label == "c" and .top[2].label == "a"'
    printf 'a\nb\n' >labels.txt
    refuses 1 "'labels.txt' has 2 labels" hone-run relu.onnx --data x.npy --labels labels.txt
    refuses 2 "no output of 'x.npy' is a picture" hone-run relu.onnx --data x.npy --image y.png
    [ ! -e y.png ]
}

@test "run: usage" {
    refuses 2 'no model is named' hone-run
    refuses 2 "'b.onnx'" hone-run relu.onnx b.onnx
    refuses 2 "'--rtoll'; did you mean '--rtol'?" hone-run relu.onnx --rtoll 1
    refuses 2 'exclude each other' hone-run relu.onnx --data x.npy --test-data good
    refuses 2 'exclude each other' hone-run relu.onnx --test-data good --atol 1 --min-cos 1
    refuses 2 "for '--test-data'" hone-run relu.onnx --data x.npy --rtol 1
    refuses 2 'not negative' hone-run relu.onnx --test-data good --rtol -1
    refuses 2 'between -1 and 1' hone-run relu.onnx --test-data good --min-cos 2
    refuses 2 "'--batch'" hone-run relu.onnx --data random --batch 0
    refuses 2 "'gpu'" hone-run relu.onnx --data random --device gpu
}

@test "run: devices" {
    refuses 4 "'cuda'" hone-run relu.onnx --data random --device cuda
    refuses 4 "'null' computes nothing" hone-run relu.onnx --data random --device null
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --data x.npy --device ref
}

@test "run: --strict and -v name what runs on ref" {
    refuses 4 "node 'nonzero' (NonZero)" hone-run shape.onnx --data x.npy --strict
    run --separate-stderr hone-run relu.onnx --data x.npy --device ref --out v -v
    [ "$status" -eq 0 ]
    [ "$stderr" = "hone-run: node 'relu' (Relu) runs on ref" ]
}

@test "run: data that do not fit" {
    npy make '<f8' 2,3 '1 2 3 4 5 6' wide.npy
    npy make '<f4' 2,4 '1 2 3 4 5 6 7 8' long.npy
    head -c 140 x.npy >cut.npy
    : >empty.npy
    head -c 3000 /dev/urandom >noise.npy
    refuses 1 "input 'x' is f32[N,3], but f64[2,3] is given" hone-run relu.onnx --data wide.npy
    refuses 1 "input 'x'" hone-run relu.onnx --data long.npy
    refuses 1 "'cut.npy'" hone-run relu.onnx --data cut.npy
    refuses 1 "'empty.npy' is empty" hone-run relu.onnx --data empty.npy
    refuses 1 "'noise.npy'" hone-run relu.onnx --data noise.npy
    refuses 1 "'gone.npy'" hone-run relu.onnx --data gone.npy
    refuses 1 "'stdin' is empty" hone-run relu.onnx --data - </dev/null
}

@test "run: models that are none, or too much" {
    head -c 60 relu.onnx >cut.onnx
    head -c 3000 /dev/urandom >noise.onnx
    refuses 1 "'gone.onnx'" hone-run gone.onnx --data random
    refuses 1 "'cut.onnx'" hone-run cut.onnx --data random
    refuses 1 "'noise.onnx'" hone-run noise.onnx --data random
    refuses 1 "'first'" hone-run cycle.onnx --data random
    refuses 1 "'nowhere'" hone-run dangling.onnx --data random
    refuses 1 "'gone.bin'" hone-run external.onnx --data random
    refuses 4 "operator 'Frobnicate' of node 'odd'" hone-run unknown.onnx --data random
    refuses 6 'memory limit' hone-run wide.onnx --data random --mem-limit 10M
    refuses 6 'memory limit' hone-run relu.onnx --data random --shapes x:10000000x3 --mem-limit 10M
}

@test "run: results that cannot be joined go to --out" {
    npy make '<f4' 1,3 '1 0 2' r.npy
    mkdir -p shapes
    cp x.npy r.npy shapes
    refuses 1 "'--out'" hone-run shape.onnx --data shapes
    succeeds hone-run shape.onnx --data shapes --out joined
}

@test "run: hostile models end in a documented status and one sentence" {
    python3 "$root/test/onnx/bad_models.py" bad
    python3 "$here/bad.py" bad hone-run '{model}' --data random
}

@test "run: --steps feeds outputs back" {
    prints '<f4[2,3] 1 0 3 0 5 0' hone-run relu.onnx --data x.npy --loop y=x --steps 3
    hone-run relu.onnx --data x.npy --loop y=x --steps 3 --json=report.json --out looped
    schema run report.json
    holds '.loop.steps == 3 and .loop.planned == null'
    refuses 2 "no output 'z'" hone-run relu.onnx --data x.npy --loop z=x --steps 3
    refuses 2 "do not say what is fed back" hone-run relu.onnx --data x.npy --steps 3
    refuses 2 "option '--steps'" hone-run relu.onnx --data x.npy --loop y=x
    refuses 2 "for '--steps'" hone-run relu.onnx --data x.npy --temperature 2
}

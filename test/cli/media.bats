# Pictures and sound as data: what becomes of them, and what is refused.

load helpers

setup_file() {
    python=$root/.deps/venv/bin/python
    export python work=$BATS_FILE_TMPDIR/work
    "$python" -c 'import PIL, numpy, onnx' 2>/dev/null || return 0
    "$python" "$here/media.py" make "$work"
    "$python" "$here/media.py" bad "$work/bad"
}

setup() {
    [ -d "$work" ] || skip "Pillow is not in .deps/venv"
    cd "$work"
}

@test "media: tensors are Pillow's and NumPy's" {
    run "$python" "$here/media.py" compare "$work"
    [ "$status" -eq 0 ] || explain compare
}

@test "media: a folder per class, and the digits as PNG files are told as the arrays are" {
    "$python" "$here/media.py" digits digits "$root/models/digits/test.npz"
    succeeds hone-run "$root/models/digits/model.onnx" --data digits --metric top1 --batch 8
    [ "$output" = "top1: 99.44 % (358 of 360)" ] || explain top1
    run "$python" "$here/media.py" answers "$root/models/digits/model.onnx" digits
    [ "$status" -eq 0 ] || explain answers
    cp "$root/models/digits/model.onnx" .
    run --separate-stderr hone-run model.onnx --data digits --metric top1
    [[ $stderr == *"pixels from 0 to 255"* ]] || explain "nobody said how they are scaled"
    printf '[preprocess]\nscale=255\n' >preprocess.conf
    run --separate-stderr hone-run model.onnx --data digits --metric top1 -v
    [ "$output" = "top1: 99.44 % (358 of 360)" ] && [[ $stderr == *"'./preprocess.conf'"* ]] || explain "key file"
    succeeds hone-quantize model.onnx --calib digits -o out.onnx --samples 16 --repair none --force --no-progress
    succeeds hone-bench model.onnx --data digits --runs 3 -q
    succeeds hone-export model.onnx --data digits -o out.onnx -q
    refuses 2 "no input is left for 'digits'" hone-quantize model.onnx --input image=1 --calib digits -o no.onnx
    refuses 2 "no input is left for 'digits'" hone-prune model.onnx --input image=1 --calib digits -o no.onnx --ratio 0.1
    rm preprocess.conf
}

@test "media: labels of lists" {
    mkdir -p list
    cp rgb.png list/b.png
    cp l.jpg list/a.jpg
    printf 'path,label\na.jpg,1\n"b.png", 0\n' >list/list.csv
    model=$root/models/digits/model.onnx
    run hone-run "$model" --data list/list.csv --preprocess 0-1 --metric top10
    [ "$output" = "top10: 100.00 % (2 of 2)" ] || explain list.csv
    printf 'b.png 3\na.jpg 4\n' >list/labels.txt
    run hone-run "$model" --data list --preprocess 0-1 --metric top10
    [ "$output" = "top10: 100.00 % (2 of 2)" ] || explain labels.txt
    printf 'b.png 3\n' >list/labels.txt
    refuses 1 "no label for 'list/a.jpg'" hone-run "$model" --data list --u8 --metric top1
    printf 'b.png 3\na.jpg cat\n' >list/labels.txt
    refuses 1 "the label of 'a.jpg' is 'cat'" hone-run "$model" --data list --u8 --metric top1
    printf 'a.jpg\nb.png\n' >list/list.csv
    refuses 2 "needs labels" hone-run "$model" --data list/list.csv --u8 --metric top1
}

@test "media: several pictures make a sample where the model says so" {
    mkdir -p four three
    for i in 1 2 3 4; do cp rgb.png "four/$i.png"; done
    cp four/[123].png three
    [[ $(hone-run two.onnx --u8 --data four | npy show) == '<f4[4,3,8,8] '* ]]
    refuses 1 "the 3 files of 'three'" hone-run two.onnx --u8 --data three
    refuses 1 "takes 2 files at once" hone-run two.onnx --u8 --input x=rgb.png
    cat rgb.png | hone-run rgb.onnx --u8 >out.npy
    hone-run rgb.onnx --u8 --data rgb.png | cmp - out.npy
}

@test "media: what was decoded is kept, and made anew for other files and keys" {
    mkdir -p keep
    cp rgb.jpg keep/a.jpg
    hone-run rgb.onnx --u8 --data keep >plain.npy
    hone-run rgb.onnx --u8 --data keep --data-cache kept | cmp - plain.npy
    [ "$(ls kept | wc -l)" -eq 1 ]
    hone-run rgb.onnx --u8 --data keep --data-cache kept | cmp - plain.npy
    hone-run rgb.onnx --preprocess 0-1 --data keep --data-cache kept >scaled.npy
    run ! cmp -s scaled.npy plain.npy
    [ "$(ls kept | wc -l)" -eq 2 ]
    cp rgb.png keep/a.jpg
    hone-run rgb.onnx --u8 --data keep --data-cache kept >other.npy
    hone-run rgb.onnx --u8 --data keep | cmp - other.npy
    for f in kept/*; do echo broken >"$f"; done
    hone-run rgb.onnx --u8 --data keep --data-cache kept | cmp - other.npy
}

@test "media: broken pictures are one sentence" {
    for f in bad/*; do
        case $f in
        *large.png | *sixteen.png) continue ;;
        *) refuses 1 "'$f'" hone-run rgb.onnx --u8 --input "x=$f" ;;
        esac
    done
    tail -c +2 rgb.png >bad/headless.png
    refuses 1 "'bad/headless.png' is no file of pictures" hone-run rgb.onnx --u8 --input x=bad/headless.png
    refuses 1 "'bad/headless.png' is no file of pictures" hone-run rgb.onnx --u8 --data bad/headless.png
    npy make '<f4' 3 '-7 8 9' bad/array.png
    refuses 1 'f32[3] is given' hone-run rgb.onnx --input x=bad/array.png
    refuses 6 "'bad/large.png'" hone-run grey.onnx --u8 --mem-limit 20M --input x=bad/large.png
    for f in huge.png huge.jpeg short.png huge.ppm; do
        refuses 1 "'bad/$f'" hone-run rgb.onnx --u8 --mem-limit 20M --input "x=bad/$f"
    done
    [ "$(hone-run grey.onnx --u8 --input x=bad/sixteen.png | npy show)" = '<f4[1,1,1,3] 1 200 100' ]
    mkdir -p mixed nothing classes/a classes/b
    cp rgb.png mixed
    touch mixed/b.wav
    refuses 1 "'rgb.png' beside 'b.wav'" hone-run rgb.onnx --u8 --data mixed
    rm mixed/b.wav
    npy make '<f4' 3 '-7 8 9' mixed/row.npy
    refuses 1 "samples are arrays, or pictures, or sound" hone-run rgb.onnx --u8 --data mixed
    refuses 1 "'nothing' holds no" hone-run rgb.onnx --u8 --data nothing
    cp rgb.png classes/a
    refuses 1 "its 'b' holds no sample" hone-run rgb.onnx --u8 --data classes
}

@test "media: keys that do not fit" {
    for pair in '--mean=1,2|2 values for 3 channels' '--scale=0|divide by 0' '--scale=a|' '--mean=1,2,3,4,5|' \
        '--layout=abc|none of nchw' '--resize=0x3|size such as' '--resize=3x3:lanczos|bilinear' '--crop=9x9x9|' \
        '--crop=0%|1 %' '--channels=7|' '--channels=4|which has 3' '--rate=16000|for sound' '--rate=x|' \
        '--preprocess=none.conf|no file'; do
        refuses 2 "${pair#*|}" hone-run rgb.onnx --input x=rgb.png "${pair%%|*}"
    done
    refuses 2 "exclude each other" hone-run rgb.onnx --input x=rgb.png --u8 --mean 3
    refuses 1 "cannot be cut out" hone-run rgb.onnx --input x=rgb.png --u8 --crop 500
    refuses 1 "comes to 60 x 50" hone-run fixed.onnx --input x=rgb.png --u8 --crop 60x50
    refuses 1 "which pictures do not fit" hone-run "$root/models/digits/model.onnx" --layout nhwc --input image=rgb.png
    printf '[preprocess]\nmeen=3\n' >a.conf
    refuses 1 "'./a.conf': 'meen'" hone-run rgb.onnx --input x=rgb.png --preprocess ./a.conf
    printf '[other]\nmean=3\n' >a.conf
    refuses 1 "'other'" hone-run rgb.onnx --input x=rgb.png --preprocess ./a.conf
    printf 'mean=3\n' >a.conf
    refuses 1 "'./a.conf'" hone-run rgb.onnx --input x=rgb.png --preprocess ./a.conf
    printf '[preprocess]\nscale=2\n[input x]\nscale=255\n[input z]\nmean=9,9\n' >a.conf
    hone-run rgb.onnx --input x=rgb.png --preprocess ./a.conf >a.npy
    hone-run rgb.onnx --input x=rgb.png --preprocess 0-1 | cmp - a.npy
}

@test "media: outputs as pictures" {
    same() { "$python" -c 'import sys, numpy, PIL.Image as I
a, b = (numpy.asarray(I.open(f)) for f in sys.argv[1:]); sys.exit(int(a.shape != b.shape or (a != b).any()))' "$@"; }
    for how in 0-1 -1-1; do
        succeeds hone-run rgb.onnx --preprocess "$how" --input x=rgb.png --image out.png
        same out.png rgb.png
    done
    hone-run last.onnx --u8 --input x=rgb.png --image out.png --print | grep -q "out.png: output 'y', 0 to 255"
    same out.png rgb.png
    hone-run grey.onnx --u8 --input x=l.png --image out.png
    same out.png l.png
    cp l.png l.jpg classes/a 2>/dev/null || { mkdir -p classes/a && cp l.png l.jpg classes/a; }
    hone-run grey.onnx --u8 --data classes/a --image many.png
    [ -s many-0.png ] && [ -s many-1.png ] && [ ! -e many.png ]
    "$python" -c 'import numpy; x = numpy.zeros((1, 4, 9, 9), "f4"); x[0, 3, 4:] = 1; x[0, 2, :4, 2:] = 2
numpy.save("mask.npy", x)'
    hone-run rgba.onnx --input x=mask.npy --image out.png
    "$python" -c 'import numpy, PIL.Image as I
x = numpy.asarray(I.open("out.png")); assert [list(x[p]) for p in ((0, 0), (0, 5), (8, 0))] == [[0] * 3, [0, 128, 0], [128, 128, 0]]'
}

@test "media: sound, mixed and resampled" {
    "$python" "$here/media.py" sounds .
    mkdir -p words/no words/yes
    cp one.wav words/no
    cp two.wav words/yes
    for f in one.wav two.wav; do
        hone-run sound.onnx --input x=$f >out.npy
        "$python" "$here/media.py" heard out.npy $f
    done
    hone-run sound.onnx --rate 8000 --input x=one.wav >out.npy
    "$python" "$here/media.py" heard out.npy one.wav 8000
    hone-run sound.onnx --rate 22050 --input x=two.wav >out.npy
    "$python" "$here/media.py" heard out.npy two.wav 22050
    hone-run sound.onnx --data words --out results -q
    [ -e results/test_data_set_1/output_0.pb ]
    refuses 1 "'nan.wav': frame 3" hone-run sound.onnx --input x=nan.wav
    refuses 1 "'inf.wav': frame 1" hone-run sound.onnx --input x=inf.wav
    refuses 1 "'short.wav' is cut short: 12 bytes" hone-run sound.onnx --input x=short.wav
    [ "$(hone-run sound.onnx --input x=piped.wav | npy show)" = '<f4[1,2] 0 0.5' ] # its length is told as unknown
    for f in cut channels silent rate; do
        refuses 1 "'$f.wav'" hone-run sound.onnx --mem-limit 20M --input x=$f.wav
    done
    refuses 1 "'none.wav'" hone-run sound.onnx --data none.wav
    refuses 2 "for pictures" hone-run sound.onnx --resize 8x8 --input x=one.wav
    refuses 6 "'one.wav'" hone-run sound.onnx --rate 768000 --mem-limit 1M --input x=one.wav
}

@test "media: numbers as text, bytes, lists and fills" {
    printf 'a,b,c\n1,2,3\n4,5,6\n' >table.csv
    printf '1 2 3 4\n' >row.txt
    printf '\0\0\200?\0\0\0@' >raw.bin
    [ "$(hone-run sound.onnx --data table.csv | npy show)" = '<f4[2,3] 1 2 3 4 5 6' ]
    [ "$(hone-run pairs.onnx --data raw:raw.bin | npy show)" = '<f4[1,2] 1 2' ]
    [ "$(hone-run pairs.onnx --input x=raw:- <raw.bin | npy show)" = '<f4[1,2] 1 2' ]
    refuses 1 "do not say what shape" hone-run sound.onnx --data raw:raw.bin
    [ "$(hone-run sound.onnx --input x=row.txt | npy show)" = '<f4[1,4] 1 2 3 4' ]
    [ "$(hone-run sound.onnx --input 'x=[[1,2],[3,4]]' | npy show)" = '<f4[2,2] 1 2 3 4' ]
    [ "$(hone-run sound.onnx --input x=ones --dim T=3 | npy show)" = '<f4[1,3] 1 1 1' ]
    [ "$(hone-run sound.onnx --input x=zeros --shapes x:2x1 | npy show)" = '<f4[2,1] 0 0' ]
    [ "$(hone-run sound.onnx --input x=-0.5 | npy show)" = '<f4[1,1] -0.5' ]
    hone-run sound.onnx --input x=random:7 --dim T=9 >a.npy
    hone-run sound.onnx --input x=random --seed 7 --dim T=9 | cmp - a.npy
    hone-bench sound.onnx --input x=random --dim T=100 --runs 2 -q
    printf '1,2\n3\n' >bad.csv
    refuses 1 "'bad.csv': line 2 has 1 numbers, not 2" hone-run sound.onnx --data bad.csv
    printf '1,2\n3,x\n' >bad.csv
    refuses 1 "line 2: 'x' is no number of type f32" hone-run sound.onnx --data bad.csv
    printf abc >odd.bin
    refuses 1 "no whole number of f32" hone-run sound.onnx --data raw:odd.bin
    refuses 2 "no list of numbers" hone-run sound.onnx --input 'x=[1,[2]]'
    refuses 2 "random data" hone-run sound.onnx --data table.csv --dim T=3
}

# What the tests of the tools share. HONE_BUILD is the build folder (default: build).
# shellcheck disable=SC2154 # bats sets status, output, stderr and their lines

bats_require_minimum_version 1.5.0

here=$BATS_TEST_DIRNAME
root=$here/../..
build=${HONE_BUILD:-$root/build}
PATH=$build/tools:$PATH

# Small models, test sets and arrays, made once for a file of tests; $work is where they are, and the tests run there.
make_work() {
    work=$BATS_FILE_TMPDIR/work
    export work
    python3 "$here/models.py" "$work"
    cd "$work" || return
    npy make '<f4' 2,3 '1 -2 3 -4 5 -6' x.npy
}

npy() { python3 "$here/npy.py" "$@"; }
schema() { python3 "$here/schema.py" "$root/schemas/$1.json" "${@:2}"; }

# succeeds COMMAND...: status 0 and nothing on stderr
succeeds() {
    run --separate-stderr "$@"
    [ "$status" -eq 0 ] && [ -z "$stderr" ] || explain "$@"
}

# refuses STATUS WORDS COMMAND...: that status, nothing on stdout, and one sentence on stderr with the words in it
refuses() {
    local want=$1 words=$2
    shift 2
    run --separate-stderr "$@"
    [ "$status" -eq "$want" ] && [ -z "$output" ] && sentence "$words" || explain "$@"
}

# stderr is one line "hone-...: sentence", without a full stop, and has the words in it
sentence() { [ "${#stderr_lines[@]}" -eq 1 ] && [[ $stderr == hone*": "*"$1"* && $stderr != *. ]]; }

# on_terminal COMMAND...: run it with a terminal as stdin and stdout; what it prints is its stdout and stderr together
on_terminal() {
    python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' "$@"
}

explain() {
    echo "command: $*"
    echo "status: $status"
    echo "stdout: $output"
    echo "stderr: $stderr"
    return 1
}

# holds FILTER: jq says true of report.json
holds() {
    jq -e "$1" report.json >/dev/null || {
        echo "not so: $1"
        cat report.json
        return 1
    }
}

# right LEAST: of the 360 test images out.onnx has so many right
right() {
    run hone-run out.onnx --data "$root/models/digits/test.npz" --metric top1
    [[ $output =~ \(([0-9]+)\ of\ 360\) ]] && [ "${BASH_REMATCH[1]}" -ge "$1" ] || explain "at least $1"
}

# draws CAPTION... -- COMMAND...: its page has these plots, drawn without a word of gnuplot; and without gnuplot a sentence for
# each of them
draws() {
    local captions=()
    while [ "$1" != -- ]; do
        captions+=("$1")
        shift
    done
    shift
    if command -v gnuplot >/dev/null; then
        succeeds "$@" -q --report page.html
        [ "$(grep -c '<svg' page.html)" -ge "${#captions[@]}" ]
        for caption in "${captions[@]}"; do
            grep -q "<figcaption>$caption" page.html || explain "$@"
        done
        if grep -qi 'Here would be a plot' page.html; then explain "$@"; fi
    fi
    mkdir -p alone
    ln -sf "$(command -v "$1")" alone/
    succeeds env PATH="$PWD/alone" "$PWD/alone/$1" "${@:2}" -q --report page.html
    for caption in "${captions[@]}"; do
        grep -q "Here would be a plot: $caption" page.html || explain "$@"
    done
}

# hone: verbs, help, version.

load helpers

@test "hone: runs the tool of a verb" {
    succeeds hone run --version
    [[ $output == 'hone-run '* ]]
    refuses 2 'no model is named' hone run
}

@test "hone: lists verbs" {
    succeeds hone --help
    [[ $output == *'  run '* ]]
    local all=$output
    succeeds hone help
    [ "$output" = "$all" ]
    succeeds hone
    [ "$output" = "$all" ]
    succeeds hone help run
    [[ $output == 'Usage: hone-run '*'--strict-math'* ]]
    # on a terminal the manual, where there is one
    mkdir -p "$BATS_TEST_TMPDIR/bin"
    printf '#!/bin/sh\necho "manual: ${1##*/}"\n' >"$BATS_TEST_TMPDIR/bin/man"
    chmod +x "$BATS_TEST_TMPDIR/bin/man"
    if [ -e "$build/man/hone-run.1" ]; then
        PATH=$BATS_TEST_TMPDIR/bin:$PATH run on_terminal hone help run
        [[ $output == 'manual: hone-run.1'* ]]
    fi
    succeeds hone --version
    [[ $output == 'hone '[0-9]* ]]
}

@test "hone: finds tools on PATH too" {
    mkdir -p "$BATS_TEST_TMPDIR/bin"
    printf '#!/bin/sh\necho "mine: $*"\n' >"$BATS_TEST_TMPDIR/bin/hone-mine"
    chmod +x "$BATS_TEST_TMPDIR/bin/hone-mine"
    PATH=$PATH:$BATS_TEST_TMPDIR/bin
    succeeds hone mine -x 1
    [ "$output" = 'mine: -x 1' ]
    succeeds hone --help
    [[ $output == *'  mine'* ]]
}

@test "hone: what is no verb" {
    refuses 2 "'nothing' is not a verb" hone nothing
    refuses 2 "'../run' is not a verb" hone ../run
    refuses 2 "'--frob' is not a verb" hone --frob
    refuses 2 "'nothing' is not a verb" hone help nothing
}

@test "hone: short help, and all of it" {
    local tool
    for tool in run bench profile export prune quantize distill replay diff inspect; do
        succeeds "hone-$tool" --help
        [[ ${#lines[@]} -lt 45 && $output == *'Examples:'*"  hone-$tool "*"'hone-$tool --help-all' lists all"* ]]
    done
}

@test "hone: completion of command lines" {
    local script shell
    script=$(hone-bench --completion=bash; hone --completion=bash)
    # candidates WORD...: what bash offers for the last word
    candidates() {
        # shellcheck disable=SC2016 # another shell's
        bash -c "$script"'
            compopt() { :; }
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            "_$(tr - _ <<<"$1")" && echo "${COMPREPLY[*]}"' _ "$@"
    }
    [ "$(candidates hone-bench --fail)" = --fail-if-slower ]
    [ "$(candidates hone-bench --js)" = --json= ]
    [[ $(candidates hone be) == bench ]]
    [[ $(candidates hone bench --fail) == --fail-if-slower ]]
    [[ $(candidates hone inspect --comp) == --compare ]]
    cd "$root/models/digits" || return
    [ "$(candidates hone-bench --data test.n)" = test.npz ]
    [ "$(candidates hone-bench mod)" = model.onnx ]
    [ -z "$(candidates hone-bench --runs mod)" ]
    for shell in bash zsh fish; do
        command -v "$shell" || continue
        hone-quantize "--completion=$shell" | "$shell" -n /dev/stdin
        hone "--completion=$shell" | "$shell" -n /dev/stdin
    done
    refuses 2 'is none of bash, zsh, fish' hone-run --completion=csh
}

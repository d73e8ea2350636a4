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
    succeeds hone help run
    [[ $output == 'Usage: hone-run '* ]]
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
    refuses 2 'no verb is given' hone
    refuses 2 "'nothing' is not a verb" hone nothing
    refuses 2 "'../run' is not a verb" hone ../run
    refuses 2 "'--frob' is not a verb" hone --frob
    refuses 2 "'nothing' is not a verb" hone help nothing
}

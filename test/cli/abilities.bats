# What hone can do with each operator is kept in test/golden, so that a change of it shows in review.

load helpers

@test "operators and abilities are as test/golden/abilities.txt says" {
    diff "$BATS_TEST_DIRNAME/../golden/abilities.txt" <("$HONE_BUILD/test/hn-check" --list)
}

@test "hone-operators(7) says what the records say" {
    diff "$BATS_TEST_DIRNAME/../../man/hone-operators.7.scd" <("$HONE_BUILD/test/hn-check" --page)
}

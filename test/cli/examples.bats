# README.md and the manual pages: every line with a tool in it works as it stands (examples.py).

load helpers

@test "examples: each line of README and of the manual pages is run, or has a reason not to be" {
    local judge=$root/.deps/venv/bin/python
    "$judge" -c 'import PIL, numpy, onnx' 2>/dev/null || skip "no Pillow and NumPy: scripts/setup brings them"
    run "$judge" "$here/examples.py" "$root" "$BATS_TEST_TMPDIR"
    [ "$status" -eq 0 ] || explain examples.py
}

# hone-tutorial(7): its ten steps are played as they stand, on models/digits and its pictures as PNG files.

load helpers

@test "tutorial: each command does what the page says" {
    local judge=$root/.deps/venv/bin/python tree=$BATS_TEST_TMPDIR/tree
    "$judge" -c 'import PIL, numpy, onnx' 2>/dev/null || skip "no Pillow and NumPy: scripts/setup brings them"
    mkdir -p "$tree/share/hone" "$tree/bin" "$BATS_TEST_TMPDIR/work" # as an installation lies
    find "$(realpath "$build")/tools" -maxdepth 1 -name 'hone*' -type f -exec ln -s -t "$tree/bin" {} +
    cp "$root/share/hone/pipeline.mk" "$tree/share/hone"
    cd "$BATS_TEST_TMPDIR/work"
    PATH=$tree/bin:$PATH PYTHONPATH=$here \
        "$judge" "$here/tutorial.py" "$root/man/hone-tutorial.7.scd" "$root/models/digits"
}

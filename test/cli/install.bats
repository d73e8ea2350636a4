# What `meson install` puts into a folder: the tools from elsewhere, hone.h for a program of somebody else, the pipeline.

load helpers

setup_file() {
    export tree=$BATS_FILE_TMPDIR/moved
    ! nm -D "$build/tools/hone-run" | grep -qE '__(a|t|ub)san_' || skip "built with sanitizers"
    DESTDIR=$BATS_FILE_TMPDIR/stage meson install -C "$build" --no-rebuild --quiet >/dev/null
    mv "$BATS_FILE_TMPDIR/stage/usr/local" "$tree"
    library=$(dirname "$(find "$tree" -name 'libhone.so')")
    export library
}

digits() { echo "$BATS_TEST_DIRNAME/../../models/digits"; }

@test "install: tools run from a folder that the tree was moved to" {
    run -0 env -i "$tree/bin/hone-run" "$(digits)/model.onnx" --data "$(digits)/test.npz" --metric top1
    [[ $output == *' %'* ]]
    run -0 env -i "$tree/bin/hone" run --version
    run -0 env -i "$tree/bin/hone-bench" "$(digits)/model.onnx" --hint latency --runs 10 --preset latency
}

@test "install: at most 15 MB without oneDNN and without kernels for GPUs, which are packages of their own" {
    find "$tree" \( -name 'libdnnl*' -o -name 'kernels.cuda' \) -delete
    find "$tree" -type f \( -name 'hone*' -o -name 'libhone*' \) -path '*[bl]i[nb]*' -exec strip --strip-unneeded {} + 2>/dev/null || true
    [ "$(du -sb "$tree" | cut -f 1)" -le 15000000 ]
}

@test "install: the library exports hone.h, and what its programs need under a version of their own" {
    run nm -D --defined-only "$library/libhone.so"
    [ -z "$(grep -vE ' (hone_[a-z_]+@@HONE_0|(hn|hone)_[a-z_]+@@HONE_PROGRAMS_.*|HONE_[A-Z0-9_.]+)$' <<<"$output")" ]
    for name in $(grep -oE '\bhone_[a-z_]+\(' "$tree/include/hone.h" | tr -d '(' | sort -u); do
        grep -q " $name@@HONE_0$" <<<"$output"
    done
}

@test "install: the example is compiled by pkg-config's words, as C and C++, and computes" {
    export PKG_CONFIG_PATH=$library/pkgconfig
    local flags example=$tree/share/doc/hone/examples/run.c
    read -ra flags <<<"$(pkg-config --cflags --libs hone)"
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -o "$BATS_TEST_TMPDIR/run" "$example" "${flags[@]}"
    echo '#include <hone.h>
        int main(void) { return hone_version()[0] == 0; }' >"$BATS_TEST_TMPDIR/v.cc"
    ! command -v c++ >/dev/null || c++ -Wall -Werror -o "$BATS_TEST_TMPDIR/v" "$BATS_TEST_TMPDIR/v.cc" "${flags[@]}"
    python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("<64f", *range(64)))' >"$BATS_TEST_TMPDIR/x"
    LD_LIBRARY_PATH=$library run -0 "$BATS_TEST_TMPDIR/run" "$(digits)/model.onnx" "$BATS_TEST_TMPDIR/x"
    [[ $output == 'scores [1,10] '* ]]
    LD_LIBRARY_PATH=$library run -1 "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/none.onnx"
    [[ $output == *"'$BATS_TEST_TMPDIR/none.onnx'"* ]]
}

@test "install: pages, completions, schemas, presets and the pipeline lie where they are looked for" {
    local f
    for f in share/bash-completion/completions/hone-run share/zsh/site-functions/_hone-run \
        share/fish/vendor_completions.d/hone-run.fish share/hone/schemas/bench.json share/hone/presets/latency.conf \
        share/hone/pipeline.mk share/hone/workflow.yml; do
        [ -s "$tree/$f" ]
    done
    ! command -v scdoc >/dev/null || [ -s "$tree/share/man/man1/hone-run.1" ]
}

@test "install: pipeline.mk makes what it says with the tools beside it, and make fails where the gate does" {
    cd "$BATS_TEST_TMPDIR"
    local rules=(make -f "$tree/share/hone/pipeline.mk" MODEL="$(digits)/model.onnx" CALIB="$(digits)/train.npz"
        TEST="$(digits)/test.npz" THREADS=1)
    env PATH=/usr/bin:/bin "${rules[@]}" hone-quantize hone-inspect
    [ -s build-model/exported.onnx ] && [ -s build-model/quantized.onnx ] && jq -e .schema build-model/inspect.json >/dev/null
    run ! env PATH=/usr/bin:/bin "${rules[@]}" MIN_SQNR=500 hone-gate
    [[ $output == *'500'* ]]
}

@test "install: pipeline.mk holds the last model against a report of an earlier day: passes, fails, cannot tell" {
    cd "$BATS_TEST_TMPDIR"
    local rules=(env LC_ALL=C PATH=/usr/bin:/bin make -f "$tree/share/hone/pipeline.mk" MODEL="$(digits)/model.onnx" THREADS=1
        SLOWER=9900% BASELINE=old.json)
    mkdir build-model # how the last model is made is tested above
    for model in exported pruned quantized; do cp "$(digits)/model.onnx" build-model/$model.onnx; done
    "${rules[@]}" hone-baseline
    mv old.json first.json
    against() { # against MS: the gate, where the instances of that day took so long
        jq ".runs[0].instances_ms |= ($1)" first.json >old.json
        run "${rules[@]}" hone-gate
    }
    against 'map(. * 1e6)'
    [[ $status -eq 0 && $output == *"against the baseline: faster"* ]] || explain passes
    against 'map(. / 1e6)'
    [[ $status -ne 0 && $output == *"slower than the baseline"*"Error 3"* ]] || explain fails
    against '[1, 1e-9, 1e3, 1e-6, 1, 1e-9, 1e3, 1e-6]'
    [[ $status -ne 0 && $output == *"too noisy"*"Error 5"* ]] || explain "cannot tell"
}

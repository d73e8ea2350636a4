#!/usr/bin/env bats
# scripts/pack: a folder that runs elsewhere.

setup_file() {
    load ../cli/helpers
    export pack=$BATS_FILE_TMPDIR/pack
    (cd "$root" && HONE_BUILD=$build scripts/pack "$pack" >/dev/null)
}

setup() {
    load ../cli/helpers
    cd "$BATS_TEST_TMPDIR" || return
}

# packed PROGRAM ARGUMENTS...: with nothing but the pack and the emulated device, which interprets PTX that 9.0 has no need of
packed() {
    env -i LD_LIBRARY_PATH="$pack/lib" HONE_CUDA_DRIVER="$build/test/cuda/libhone-emucuda.so" \
        HONE_CUDA_KERNELS="$build/src/cuda/kernels.cuda" "$pack/bin/$1" "${@:2}"
}

@test "a pack without models is below 40 MB" {
    local bytes
    bytes=$(du -s --apparent-size -B1 --exclude=models "$pack" | cut -f1)
    [ "$bytes" -lt 40000000 ] || { du -a "$pack"; return 1; }
}

@test "what is in a pack loads nothing else but the C library" {
    for f in "$pack"/bin/*; do
        env -i LD_LIBRARY_PATH="$pack/lib" ldd "$f"
    done | awk '$2 == "=>" { print $3 }' | grep -v "^$pack/" | sort -u >others
    run ! grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv)\.so' others
}

@test "its programs run in an empty environment" {
    packed hn-check --device=cuda --op=Relu | grep '^ok 1 Relu'
    packed hone-run "$pack/models/digits/model.onnx" --data random --device cuda -o out.npz
    packed perf-cuda --small --only 'one row' | grep '"device copy"'
    [ -s out.npz ]
}

@test "its kernels are those of one compute capability, or all" {
    run --separate-stderr env -i LD_LIBRARY_PATH="$pack/lib" HONE_CUDA_DRIVER="$build/test/cuda/libhone-emucuda.so" \
        "$pack/bin/hone-run" "$pack/models/digits/model.onnx" --data random --device cuda -o out.npz
    [ "$status" -eq 4 ] && [[ $stderr == *"no kernel image"* ]] || explain
    (cd "$root" && HONE_BUILD=$build scripts/pack --for all "$BATS_TEST_TMPDIR/all" >/dev/null)
    cmp all/lib/hone/kernels.cuda "$build/src/cuda/kernels.cuda"
}

@test "scripts/pack without a folder" {
    run "$root/scripts/pack"
    [ "$status" -eq 2 ] && [[ $output == usage:* ]]
    run "$root/scripts/pack" --help
    [ "$status" -eq 0 ] && [[ $output == usage:* ]]
}

#!/usr/bin/env bash
# usage: test/package.sh
#
# The tarball from another folder and the wheel in a fresh environment, without anything of the caller's, and the steps of
# share/hone/workflow.yml with that wheel; prints TAP.
set -u
cd "$(dirname "$0")/.." || exit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0 root=$PWD digits=$PWD/models/digits
asked=("$digits/model.onnx" --data "$digits/test.npz" --metric top1)

# shellcheck disable=SC1091 # a file beside this one
. test/tell.sh
# every library but the C library's comes from the tree
own_libraries() {
    ! env -i ldd "$1/lib/libhone.so.0" | grep -vE '/lib/hone/|/lib/\.\./|linux-vdso|ld-linux|/lib(c|m|dl|rt|pthread|resolv)\.so'
}
is_version() { [ "$(env -i "$1" --version)" = "hone $(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build | head -n 1)" ]; }
small() { [ "$(du -sb --exclude=lib/hone --exclude=licenses "$1" | cut -f 1)" -le 15000000 ]; }
licensed() { local p; for p in libglib2.0-0 libjson-glib-1.0-0 libzip4 libprotobuf-c1; do [ -s "$1/share/doc/hone/licenses/$p/copyright" ] || return 1; done; }
same_twice() {
    sha256sum dist/hone-*.tar.xz dist/hone-*.whl >"$tmp/sums" && scripts/package tarball wheel && sha256sum -c "$tmp/sums"
}
# auditwheel (PyPI) calls it what its name says
tagged() {
    local tag
    tag=$(basename dist/hone-*.whl .whl)
    "$tmp/audit/bin/auditwheel" show dist/hone-*.whl | tr '\n' ' ' | tee "$tmp/tag" | grep -qF "\"${tag##*-}\"" || { cat "$tmp/tag" && return 1; }
}
# says STATUS WORDS COMMAND...
says() {
    local status=0
    "${@:3}" >"$tmp/run" 2>&1 || status=$?
    cat "$tmp/run"
    [ $status = "$1" ] && grep -qF -e "$2" "$tmp/run"
}
workflow() { # workflow STATUS WORDS BASELINE: a run of the file in $tmp/work, where the model made by the last one is found
    says "$1" "$2" env -C "$tmp/work" PATH="$tmp/bin:/usr/bin:/bin" "$root/.deps/venv/bin/python" "$root/test/workflow.py" \
        "$root/share/hone/workflow.yml" "$tmp/runner" MODEL=model.onnx CALIB=train.npz TEST=test.npz SLOWER=9900% \
        HONE_WHEEL="$(echo "$root"/dist/hone-*.whl)" MODEL_BASELINE="$3"
}
# other times in the place of those that were measured
instances() { jq ".runs[0].instances_ms |= ($1)" "$tmp/work/old.json" >"$tmp/work/$2.json"; }
nothing_left() { [ -z "$(find "$1" -name '*hone*')" ]; }

rm -f dist/hone-*.tar.xz dist/hone-*.whl
tell 'tarball and wheel are made' scripts/package tarball wheel
mkdir "$tmp/elsewhere"
tell 'the tarball is unpacked' tar -C "$tmp/elsewhere" --strip-components=1 -xf dist/hone-*.tar.xz
tell 'it runs from another folder' env -i "$tmp/elsewhere/bin/hone-run" "${asked[@]}"
tell 'it is of this version' is_version "$tmp/elsewhere/bin/hone"
tell 'it brings what it needs' own_libraries "$tmp/elsewhere"
tell 'and their licences' licensed "$tmp/elsewhere"
tell 'without them it has at most 15 MB' small "$tmp/elsewhere"
tell 'a fresh environment' python3 -m venv "$tmp/venv"
tell 'takes the wheel' "$tmp/venv/bin/pip" install --quiet --no-index --disable-pip-version-check dist/hone-*.whl
tell 'has the tools, of this version' is_version "$tmp/venv/bin/hone"
tell 'which run' env -i "$tmp/venv/bin/hone-run" "${asked[@]}"
mkdir "$tmp/bin" "$tmp/work" "$tmp/runner"
ln -s "$(command -v python3)" "$tmp/bin/python" # as actions/setup-python does
cp "$digits"/{model.onnx,train.npz,test.npz,preprocess.conf} "$tmp/work"
tell 'a report to compare with' "$tmp/venv/bin/hone-bench" "$tmp/work/model.onnx" -q --instances 12 --json="$tmp/work/old.json"
tell 'a faster one, a slower one, and noise' eval "instances 'map(. / 1e6)' fast && instances 'map(. * 1e6)' slow &&
    instances '[1, 1e-9, 1e3, 1e-6, 1, 1e-9, 1e3, 1e-6]' noise"
tell 'the workflow makes a model and gates it' workflow 0 'against the baseline: left out' ''
tell 'passes one that is no slower than its baseline' workflow 0 'against the baseline: faster' slow.json
tell 'fails one that is slower' workflow 3 'slower than the baseline' fast.json
tell 'and says where noise hides that' workflow 0 'no verdict against noise.json' noise.json
tell 'gives it back' "$tmp/venv/bin/pip" uninstall --quiet --yes --disable-pip-version-check hone
tell 'nothing is left' nothing_left "$tmp/venv"
if python3 -m venv "$tmp/audit" && "$tmp/audit/bin/pip" install -q --disable-pip-version-check auditwheel 2>"$tmp/said"; then
    tell 'the wheel has the tag that auditwheel gives it' tagged
else
    echo "ok $((n += 1)) - package: the tag of the wheel # SKIP auditwheel cannot be had from PyPI"
fi
tell 'what is built is packed into the same bytes twice' same_twice
echo "1..$n"

#!/usr/bin/env bash
# usage: test/package.sh
#
# The tarball from another folder and the wheel in a fresh environment, without anything of the caller's; prints TAP.
set -u
cd "$(dirname "$0")/.." || exit
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
digits=$PWD/models/digits
asked=("$digits/model.onnx" --data "$digits/test.npz" --metric top1)

n=0
tell() { # tell WHAT COMMAND...
    local what=$1
    shift
    n=$((n + 1))
    if "$@" >"$tmp/said" 2>&1; then echo "ok $n - package: $what"; else
        echo "not ok $n - package: $what"
        sed 's/^/# /' "$tmp/said" | tail -n 20
    fi
}
# every library but the C library's comes from the tree
own_libraries() {
    ! env -i ldd "$1/lib/libhone.so.0" | grep -vE '/lib/hone/|/lib/\.\./|linux-vdso|ld-linux|/lib(c|m|dl|rt|pthread|resolv)\.so'
}
small() { [ "$(du -sb --exclude=lib/hone --exclude=licenses "$1" | cut -f 1)" -le 15000000 ]; }
licensed() { local p; for p in libglib2.0-0 libjson-glib-1.0-0 libzip4 libprotobuf-c1; do [ -s "$1/share/doc/hone/licenses/$p/copyright" ] || return 1; done; }
nothing_left() { [ -z "$(find "$1" -name '*hone*')" ]; }

rm -f dist/hone-*.tar.xz dist/hone-*.whl
tell 'tarball and wheel are made' scripts/package tarball wheel
mkdir "$tmp/elsewhere"
tell 'the tarball is unpacked' tar -C "$tmp/elsewhere" --strip-components=1 -xf dist/hone-*.tar.xz
tell 'it runs from another folder' env -i "$tmp/elsewhere/bin/hone-run" "${asked[@]}"
tell 'it brings what it needs' own_libraries "$tmp/elsewhere"
tell 'and their licences' licensed "$tmp/elsewhere"
tell 'without them it has at most 15 MB' small "$tmp/elsewhere"
tell 'a fresh environment' python3 -m venv "$tmp/venv"
tell 'takes the wheel' "$tmp/venv/bin/pip" install --quiet --no-index --disable-pip-version-check dist/hone-*.whl
tell 'has the tools on its path' env -i "$tmp/venv/bin/hone-run" "${asked[@]}"
tell 'gives it back' "$tmp/venv/bin/pip" uninstall --quiet --yes --disable-pip-version-check hone
tell 'nothing is left' nothing_left "$tmp/venv"
echo "1..$n"

#!/usr/bin/env bash
# usage: test/debian.sh [--made]
#
# The packages for Debian in a bare Debian 12 (build-package/bookworm, which debootstrap makes once): lintian, sizes, the demo,
# pages, completions, kernels for GPUs on the emulated device, and what is left after purging them; then the tarball's completions,
# where test/package.sh made one. Needs root and a network.
# --made: takes dist/*.deb as they are. Prints TAP.
set -u
cd "$(dirname "$0")/.." || exit
skip() {
    printf 'ok 1 - package: a bare Debian 12 # SKIP %s\n1..1\n' "$1"
    exit
}
for need in debootstrap lintian dh unshare; do
    command -v "$need" >/dev/null || skip "no $need: apt-get install debootstrap debhelper lintian"
done
[ "$(id -u)" = 0 ] || skip 'only root can enter it'
unshare --mount true 2>/dev/null || skip 'nothing can be mounted here'
clean=$PWD/build-package/bookworm build=${HONE_BUILD:-build} tmp=$(mktemp -d) n=0
root=$tmp/root
trap 'rm -rf "$tmp"' EXIT
# shellcheck disable=SC1091 # a file beside this one
. test/tell.sh

bare() {
    [ -e "$clean/.whole" ] || {
        rm -rf "$clean"
        debootstrap --variant=minbase bookworm "$clean" && touch "$clean/.whole"
    } || return
    cp -a "$clean" "$root"
    cp /etc/resolv.conf "$root/etc/"
    mkdir -p "$root/srv/hone/models" "$root/srv/debs" "$root/srv/home"
    cp -r scripts "$root/srv/hone/"
    cp -r models/digits "$root/srv/hone/models/"
    cp dist/*.deb "$root/srv/debs/"
    [ ! -e "$build/test/cuda/libhone-emucuda.so" ] || cp "$build/test/cuda/libhone-emucuda.so" "$root/srv/"
}
inside() { # inside COMMAND...: there, without anything of the caller's
    # shellcheck disable=SC2016 # words of the inner shell
    unshare --mount --propagation private sh -c 'mount -t proc proc "$0/proc" && mount -t devpts devpts "$0/dev/pts" &&
        exec chroot "$0" env -i LANG=C.UTF-8 HOME=/srv/home PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"' "$root" "$@"
}
apt() { inside apt-get -qq -y -o Dpkg::Use-Pty=0 "$@"; }
install() { apt install --no-install-recommends "${@/#//srv/debs/}"; }
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./tmp -o -path ./srv -o -path './var/cache/*' -o -path './var/log/*' -o \
    -path './var/lib/apt/*' \) -prune -o -print | LC_ALL=C sort) >"$1"; }

made() { compgen -G "dist/$1_*.deb" >/dev/null; }
lintian_passes() { lintian --allow-root --fail-on error --tag-display-limit 0 "${debs[@]}"; }
small() {
    local f kib=0
    for f in dist/hone_*.deb dist/libhone0_*.deb dist/libhone-dev_*.deb; do
        kib=$((kib + $(dpkg-deb -f "$f" Installed-Size)))
    done
    echo "$kib KiB"
    [ $((kib * 1024)) -le 15000000 ]
}
# shellcheck disable=SC2016 # words of the inner shell
versions() {
    inside sh -c 'for t in /usr/bin/hone*; do $t --version || exit; done' || return
    [ "$(inside hone --version)" = "hone $(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build | head -n 1)" ]
}
demo() { inside /srv/hone/scripts/demo --installed; }
pages() {
    local f
    for f in man/*.scd; do
        f=${f#man/}
        inside man "${f:(-5):1}" "${f%.?.scd}" | grep -qi '^NAME' || { echo "no page: $f" && return 1; }
    done
}
# each shell finds the completion by itself, or, of a tree at $at, as README.md says
at=
told() { inside env ${at:+"XDG_DATA_DIRS=$at/share:/usr/share" "PATH=$at/bin:/usr/bin:/bin"} "$@"; }
bash_completes() {
    # shellcheck disable=SC2016 # words of the inner shell
    told bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader hone-run
        COMP_WORDS=(hone-run --metr) COMP_CWORD=1; _hone_run; echo "${COMPREPLY[*]}"' | grep -x -e --metric
}
fish_completes() { told fish -c 'complete --do-complete "hone-run --metr"' | grep -e '^--metric'; }
zsh_completes() { # on a terminal only
    cat >"$root/srv/complete.zsh" <<EOF
zmodload zsh/zpty
zpty shell zsh -f -i
${at:+zpty -w shell 'fpath=($at/share/zsh/site-functions \$fpath)'}
EOF
    cat >>"$root/srv/complete.zsh" <<'EOF'
zpty -w shell 'autoload -Uz compinit; compinit -u; print -r -- wil"l"ing'
zpty -r -m shell said '*willing*'
zpty -n -w shell $'hone-run --metr\t'
zpty -r -m shell said '*--metric*'
EOF
    told timeout 60 zsh -f /srv/complete.zsh
}
example() {
    # shellcheck disable=SC2016 # words of the inner shell
    inside sh -c 'cd /srv && tcc -o run /usr/share/doc/hone/examples/run.c $(pkg-config --cflags --libs hone) &&
        ./run hone/models/digits/model.onnx' | grep '^scores \[1,10\] '
}
cuda() { inside env HONE_CUDA_DRIVER=/srv/libhone-emucuda.so hone-run --device cuda /srv/hone/models/digits/model.onnx --data random; }
no_cuda() { cuda 2>&1 | grep 'its kernels are not installed'; }
# What users keep of timings in ~/.cache, and man of pages in /var/cache, is theirs: what is compared is the system.
purge() { apt purge 'hone*' 'libhone*' && apt autoremove --purge; }
nothing_left() {
    files "$tmp/after"
    [ -s "$tmp/before" ] && [ -s "$tmp/after" ] && ! diff "$tmp/before" "$tmp/after" | grep '^[<>]'
}

[ "${1-}" = --made ] || tell 'packages are made' scripts/package deb
debs=(dist/*.deb)
tell 'lintian finds no error' lintian_passes
tell 'tools, library and header have at most 15 MB' small
tell 'a bare Debian 12' bare
tell 'gets what shows pages and completes' eval "apt update && apt install --no-install-recommends man-db python3 \
    bash-completion fish zsh tcc libc6-dev pkgconf"
files "$tmp/before"
version=$(dpkg-deb -f dist/hone_*.deb Version)_amd64.deb
tell 'takes the tools' install "hone_$version" "libhone0_$version"
tell 'has all tools, of this version' versions
tell 'runs the demo' demo
tell 'has the manual pages' pages
tell 'completes in bash' bash_completes
tell 'completes in fish' fish_completes
tell 'completes in zsh' zsh_completes
tell 'takes the header' install "libhone-dev_$version"
tell 'compiles and runs the example' example
if made hone-cuda && [ -e "$root/srv/libhone-emucuda.so" ]; then
    tell 'says that it has no kernels for GPUs' no_cuda
    tell 'takes them' install "hone-cuda_$version"
    tell 'runs them on the emulated device' cuda
else
    echo "ok $((n += 1)) - package: kernels for GPUs # SKIP there was no nvcc, or there is no emulated device in $build"
fi
if made hone-onednn; then
    tell 'takes oneDNN' install "hone-onednn_$version"
else
    echo "ok $((n += 1)) - package: oneDNN # SKIP there was none in .deps"
fi
tell 'gives all of it back' purge
tell 'nothing is left' nothing_left
if tarball=$(compgen -G 'dist/hone-*.tar.xz'); then
    mkdir "$root/srv/tree"
    tell 'the tarball is unpacked there' tar -C "$root/srv/tree" --strip-components=1 -xf "$tarball"
    at=/srv/tree
    tell 'its completions are found in bash' bash_completes
    tell 'in fish' fish_completes
    tell 'in zsh' zsh_completes
fi
echo "1..$n"

#!/usr/bin/env bash
# usage: models/digits/train.sh OUT.onnx [SEED]
#
# Trains the network of model.onnx from new weights by hone-distill, on the labels of train.npz, as make.py does it in numpy: 60
# epochs of batches of 64, each image shifted by up to one pixel, the weights behind the last epoch. Then counts what is right of
# test.npz, which nothing looked at before. Takes seconds; HONE names the folder of the tools (build/tools).
set -eu
[ $# -ge 1 ] || {
    sed -n 's/^# \(usage\)/\1/p' "$0" >&2
    exit 2
}
here=$(dirname "$0")
tools=${HONE:-$here/../../build/tools}
"$tools/hone-distill" --student "$here/model.onnx" --init "random:${2:-1}" --seed "${2:-1}" --data "$here/train.npz" \
    --val-part 0 --last --epochs 60 --augment shift:1 -o "$1"
"$tools/hone-run" "$1" --data "$here/test.npz" --metric top1

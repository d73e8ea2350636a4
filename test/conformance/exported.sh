#!/usr/bin/env bash
# usage: exported.sh 'OPTION...' MODEL SET OUT [OPTION...]
#
# Writes MODEL anew by hone-export with the first options into OUT, or into a file that does not stay where OUT is empty,
# and compares it with the test set SET by hone-run with the other options: a command for run_cases.py. A rewrite that had
# to be undone is a failure too. A model that made-up data do not fit is checked on SET, and not at all where it holds
# what hone does not compute.
set -u
read -ra options <<<"$1"
model=$2 set=$3 out=$4
shift 4
if [ -n "$out" ]; then
    mkdir -p "$(dirname "$out")" || exit 1
else
    tmp=$(mktemp -d) || exit 1
    trap 'rm -rf "$tmp"' EXIT
    out=$tmp/model.onnx
fi
for way in '' "--data=$set" --no-check; do
    said=$(hone-export "$model" -o "$out" --no-progress "${options[@]}" ${way:+"$way"} 2>&1 >/dev/null)
    status=$?
    [[ $status = 4 && $said == *"'--no-check' writes without comparing"* ]] || break
done
if [ $status != 0 ] || [[ $said == *'was undone at'* ]]; then
    echo "hone-export: ${said##*$'\n'hone-export: }"
    exit $((status == 0 ? 3 : status))
fi
hone-run "$out" --test-data "$set" "$@" 2>&1

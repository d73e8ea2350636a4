# shellcheck shell=bash disable=SC2154 # $tmp and $n are of who reads this
# For scripts that print TAP: tell WHAT COMMAND... runs one test; what it says is kept in $tmp/said, $n counts from 0.
tell() {
    local what=$1
    shift
    n=$((n + 1))
    if "$@" >"$tmp/said" 2>&1; then echo "ok $n - package: $what"; else
        echo "not ok $n - package: $what"
        sed 's/^/# /' "$tmp/said" | tail -n 20
    fi
}

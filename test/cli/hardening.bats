# How the tools are built: what a memory error finds in its way.

load helpers

setup_file() {
    if nm -D "$build/tools/hone-run" | grep -qE '__(a|t|ub)san_'; then
        skip "built with sanitizers"
    fi
}

# every TOOL FUNCTION: the function prints nothing for each of the tools and their library
every() {
    local tool said
    for tool in "$build"/tools/hone "$build"/tools/hone-* "$build"/tools/libhone.so; do
        if [ -f "$tool" ] && [ -x "$tool" ]; then
            said=$("$1" "$tool")
            [ -z "$said" ] || { echo "${tool##*/}: $said" && return 1; }
        fi
    done
}

position() { readelf -h "$1" | grep -q 'Type: *DYN' || echo 'not position independent'; }
relocations() {
    readelf -lW "$1" | grep -q GNU_RELRO || echo 'no RELRO segment'
    readelf -dW "$1" | grep -qE 'BIND_NOW|FLAGS_1.*NOW' || echo 'symbols are bound late'
}
stack() { readelf -lW "$1" | grep GNU_STACK | grep -q ' RW ' || echo 'the stack can be executed'; }
segments() { ! readelf -lW "$1" | grep LOAD | grep -q ' RWE ' || echo 'a segment can be written and executed'; }
guards() {
    nm -D "$1" | grep -q ' __stack_chk_fail' || echo 'no stack protector'
    nm -D "$1" | grep -qE ' __(memcpy|memmove|memset|snprintf|vsnprintf|fprintf|read|readlink)_chk' || echo 'not fortified'
}

@test "hardening: tools are position independent" { every position; }
@test "hardening: relocations are read-only once a tool runs" { every relocations; }
@test "hardening: neither the stack nor what can be written can be executed" { every stack && every segments; }
@test "hardening: stacks are guarded, and copies checked where their bounds are known" { every guards; }

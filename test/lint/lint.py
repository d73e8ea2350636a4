#!/usr/bin/env python3
"""Cheap mechanical checks of the sources; prints TAP, one line a check, ends with 'N passed, M failed, K skipped'.

usage: lint.py [--root DIR] [CHECK...]     (see the functions named check_...; without CHECK: all)

A check returns complaints 'file:line: what'; none means that it passed. Files: what git has or would take, else all.
"""
import ast
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import twice

ARGS = sys.argv[1:]
ROOT = os.path.abspath(ARGS[1] if ARGS[:1] == ["--root"] else os.path.join(os.path.dirname(__file__), "../.."))
MAX_LINES = 800
TEXT = (".c", ".h", ".cu", ".def", ".py", ".build", ".txt", ".md", ".scd", ".proto", ".json", ".bats", ".sh", ".bash",
        ".in", ".ini", ".conf", "")


class Skip(Exception):
    """raised by a check that this machine cannot do; says why"""


def files():
    git = shutil.which("git") and subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                                                 capture_output=True, text=True)
    if git and git.returncode == 0:
        names = git.stdout.splitlines()
    else:
        names = []
        for folder, folders, inside in os.walk(ROOT):
            folders[:] = [f for f in folders if f not in (".git", ".deps", "__pycache__") and not f.startswith("build")]
            names += [os.path.relpath(os.path.join(folder, f), ROOT) for f in inside]
    return sorted(n for n in set(names) if os.path.isfile(os.path.join(ROOT, n)))


FILES = files()


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as f:
        return f.read()


def c_files(*folders, ends=(".c", ".h")):
    return [f for f in FILES if f.endswith(ends) and f.startswith(folders)]


def text_files():
    return [f for f in FILES if os.path.splitext(f)[1] in TEXT and not is_binary(f)]


def is_binary(name):
    with open(os.path.join(ROOT, name), "rb") as f:
        return b"\0" in f.read(4096)


def shell_files():
    return [f for f in text_files() if re.match(r"#!.*\b(ba)?sh\b", read(f)) or f.endswith((".sh", ".bash"))]


TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(text):
    """C text with comments and the insides of strings blanked; lines stay where they are"""
    def blank(m):
        t = m.group(0)
        if t[0] == "/":
            return re.sub(r"[^\n]", " ", t)
        return t[0] + " " * (len(t) - 2) + t[0]
    return TOKEN.sub(blank, text)


def each_match(names, pattern, what, view=lambda t: t):
    """complaints about every match; what may be text or a function of the match (None: fine)"""
    rx = re.compile(pattern)
    for name in names:
        for k, line in enumerate(view(read(name)).split("\n"), 1):
            for m in rx.finditer(line):
                said = what(m) if callable(what) else what
                if said:
                    yield f"{name}:{k}: {said}"


# --- layers -----------------------------------------------------------------------------------------------------------

FENCES = (  # headers of foreign libraries and the one layer that may see them
    (re.compile(r"^(onnx\.pb-c\.h|protobuf-c/.*)$"), "onnx"),
    (re.compile(r"^(dnnl.*|oneapi/dnnl/.*)$"), "cpu"),
    (re.compile(r"^(cuda[^/]*|cublas.*|cudnn.*|nccl.*|nvrtc.*|cupti.*|nvml.*)$"), "cuda"),
)


def read_layers():
    layers = {}
    for line in read("src/LAYERS").splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, _, allowed = line.partition(":")
            layers[name.strip()] = allowed.split()
    return layers


def layer_of(name):
    parts = name.split("/")
    if parts[0] in ("tools", "cuda"):
        return parts[0]
    return os.path.splitext(parts[1])[0] if len(parts) == 2 else parts[1]


def check_layers():
    """includes keep to src/LAYERS, foreign headers to their folders"""
    layers = read_layers()
    below = set()
    for name, allowed in layers.items():
        for a in allowed:
            if a not in below:
                yield f"src/LAYERS: '{name}' may include '{a}', which is not a layer listed before it"
        below.add(name)
    for f in c_files("src/", "tools/", "cuda/", ends=(".c", ".h", ".def", ".cu")):
        mine = layer_of(f)
        if mine not in layers:
            yield f"{f}: src/LAYERS has no layer '{mine}'"
            continue
        for k, line in enumerate(read(f).split("\n"), 1):
            m = re.match(r'\s*#\s*(?:include|define HN_LOOPS)\s*([<"])([^">]+)[">]', line)
            if not m:
                continue
            quote, header = m.groups()
            fence = next((layer for rx, layer in FENCES if rx.match(header)), None)
            if fence:
                if fence != mine:
                    yield f"{f}:{k}: only '{fence}' may include {header}"
                continue
            first = header.split("/")[0] if "/" in header else os.path.splitext(header)[0]
            if quote == "<":
                if first in layers and "/" in header:
                    yield f"{f}:{k}: our own {header} is included like a system header"
            elif first not in layers:
                if "/" in header or not os.path.exists(os.path.join(ROOT, os.path.dirname(f), header)):
                    if header not in GENERATED:
                        yield f"{f}:{k}: {header} belongs to no layer"
                elif mine != "tools":
                    yield f"{f}:{k}: write the layer too: \"{mine}/{header}\""
            elif first != mine and first not in layers[mine]:
                yield f"{f}:{k}: '{mine}' may not include {header}"


GENERATED = {"config.h", "kernels_key.h"}  # written by meson

# --- compiler and formatter -------------------------------------------------------------------------------------------


def in_parallel(run, items):
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for out in pool.map(run, items):
            if out:
                yield out


def check_headers():
    """each header compiles alone"""
    packages = ["glib-2.0", "gio-2.0", "json-glib-1.0", "libzip", "libprotobuf-c"]
    flags = subprocess.run(["pkg-config", "--cflags", *packages], capture_output=True, text=True)
    if flags.returncode:
        raise Skip("pkg-config does not find the libraries: " + flags.stderr.strip().replace("\n", " "))
    generated = [os.path.join(ROOT, "build", d) for d in ("", "src", "src/onnx")]
    include = ["-I" + d for d in [os.path.join(ROOT, "src"), os.path.join(ROOT, ".deps/onednn/include"), *generated]]
    needs_build = not os.path.isdir(os.path.join(ROOT, "build"))

    def one(h):
        text = read(h)
        if needs_build and re.search(r'#include "(onnx\.pb-c\.h|config\.h)"', text):
            return ""
        p = subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                            "-x", "c", *include, *flags.stdout.split(), "-"],
                           input=f'#include "{os.path.join(ROOT, h)}"\n', capture_output=True, text=True)
        return "" if p.returncode == 0 else f"{h}: {next((s for s in p.stderr.splitlines() if 'error' in s), p.stderr)}"

    yield from in_parallel(one, c_files("src/", "tools/", "test/", ends=(".h",)))


def check_format():
    """C sources are as clang-format 14 leaves them"""
    program = shutil.which("clang-format-14") or shutil.which("clang-format")
    said = subprocess.run([program or "true", "--version"], capture_output=True, text=True).stdout
    if not program or " version 14." not in said:
        raise Skip("no clang-format 14 here")
    names = c_files("src/", "tools/", "test/", "cuda/", ends=(".c", ".h", ".cu"))
    step = max(1, len(names) // 16)

    def some(k):
        p = subprocess.run([program, "--dry-run", "-Werror", "-ferror-limit=1", *names[k:k + step]], cwd=ROOT,
                           capture_output=True, text=True)
        return "\n".join(s for s in p.stderr.splitlines() if "error:" in s)

    for out in in_parallel(some, range(0, len(names), step)):
        yield from out.splitlines()


# --- words ------------------------------------------------------------------------------------------------------------

BANNED = {  # function -> what to use
    "gets": "fgets", "strcpy": "g_strlcpy or GString", "strncpy": "g_strlcpy", "strcat": "GString",
    "strncat": "GString",
    "sprintf": "g_snprintf", "vsprintf": "g_vsnprintf", "atoi": "base/text.h", "atol": "base/text.h",
    "atof": "base/text.h", "strtok": "g_strsplit", "alloca": "the heap", "g_alloca": "the heap",
    "g_newa": "the heap", "system": "GSubprocess", "popen": "GSubprocess", "tmpnam": "base/file.h",
    "mktemp": "base/file.h", "rand": "base/rng.h", "srand": "base/rng.h", "random": "base/rng.h",
    "g_random_int": "base/rng.h", "setenv": "arguments", "g_setenv": "arguments", "assert": "g_assert",
    "setjmp": "GError", "longjmp": "GError",
}
LIBRARY_BANNED = {  # in src/, but for the folder that talks to people
    w: "a GError or a callback: the library neither prints nor exits" for w in
    ("exit", "_exit", "abort", "printf", "vprintf", "puts", "putchar", "perror", "g_print", "g_printerr", "g_error",
     "g_message", "g_warning", "g_info", "g_debug", "g_log")
}


MAY = {  # libpng and libjpeg end what went wrong by longjmp(), the interpreter of kernels a launch by a fault
    name: {"setjmp", "longjmp"} for name in ("src/data/image_png.c", "src/data/image_jpeg.c", "test/cuda/emu/ptx_run.c")
}


def check_calls():
    """no calls that are unsafe, or that a library does not make"""
    def words(table):
        return r"(?<![\w.>])(" + "|".join(table) + r")\s*\("

    tested = c_files("src/", "tools/", "cuda/", "test/", ends=(".c", ".h", ".def", ".cu"))
    test_may = {"setenv", "g_setenv"}
    for table, names in ((BANNED, tested), (LIBRARY_BANNED, c_files("src/", "cuda/", ends=(".c", ".h", ".cu")))):
        for name in names:
            if table is LIBRARY_BANNED and name.startswith("src/cli/"):
                continue
            may = MAY.get(name, set()) | (test_may if name.startswith("test/") else set())
            yield from each_match([name], words(table), lambda m, t=table, ok=may: None if m[1] in ok else
                                  f"{m[1]}() is banned, use {t[m[1]]}", code_of)
    library = [f for f in c_files("src/", "cuda/", ends=(".c", ".h", ".cu")) if not f.startswith("src/cli/")]
    yield from each_match(library, r"\b(fprintf|vfprintf|fputs|fputc|fwrite|putc)\s*\([^;]*\b(stdout|stderr)\b",
                          "the library does not print", code_of)


ONLY = (  # what is called in few files of src and tools, which these are, and what others do
    (r"json_parser_load_\w+\s*\(", ("src/base/jsonread.c",), "JSON from elsewhere is read by hn_json_read()"),
    (r'g_regex_(?:new|match_simple|replace\w*|split\w*)\s*\((?!")', ("src/base/regex.c",),
     "patterns that are no constants are hn_regex_new()'s"),
    (r"(?:g_spawn_\w+|g_subprocess_new\w*|g_subprocess_launcher_\w+|g_app_info_\w+|posix_spawnp?|f?exec[vl]\w*|v?fork|"
     r"popen|system)\s*\(", ("src/cli/child_program.c", "src/check/score.c", "tools/bench_apart.c",
                                             "src/cli/plot.c", "tools/graphviz.c"),
     "processes are started by hn_program_become(), as a metric, to be measured apart, or to draw"),
)


def check_only():
    """programs are started, JSON and patterns taken in, where it is done with care, and nowhere else"""
    for pattern, there, instead in ONLY:
        names = [f for f in c_files("src/", "tools/", "cuda/", ends=(".c", ".h", ".cu")) if f not in there]
        yield from each_match(names, r"(?<![\w.>])" + pattern, lambda m, i=instead: f"{m[0].rstrip('( ')}(): {i}", code_of)


# what may be asked of a node by its operator's name, in the layers that know operators best; others ask the record
ASKS_BY_NAME = ("src/op/", "src/pass/", "src/lower/", "src/cpu/", "src/cuda/")
MOST_BY_NAME = 10
MOST_BY_NAME_IN_KERNELS = 32  # of a backend


def check_records():
    """comparisons with operators (== &hn_op_conv) are few, and do not become more: a record says what one needs to know"""
    def found(names):
        return sorted(set(each_match(names, r"[!=]= *&hn_op_", lambda m: m[0], code_of)))  # lines, as grep counts them
    others = found([f for f in c_files("src/", "tools/") if not f.startswith(ASKS_BY_NAME)])
    for what, most, where in (others, MOST_BY_NAME, "outside of " + ", ".join(ASKS_BY_NAME)), \
                             (found(c_files("src/cpu/")), MOST_BY_NAME_IN_KERNELS, "in src/cpu/"), \
                             (found(c_files("src/cuda/")), MOST_BY_NAME_IN_KERNELS, "in src/cuda/"):
        if len(what) > most:
            yield f"{what[-1]}: {len(what)} of them {where}, {most} at most: make it a field of the record (op/op.h)"


MOST_TERMS = 6
MORE_TERMS = {  # files whose longest condition has more
    "src/lower/row_lookup.c": 7, "src/lower/weight_only.c": 9, "src/run/constants.c": 7,
    "src/run/group.c": 7, "src/run/join.c": 7, "src/run/place.c": 7,
}


def conditions(code):
    """(offset, text) of each condition of an if or while and of each value returned, in code without comments"""
    for m in re.finditer(r"\b(?:(if|while)\s*\(|return\b)", code):
        depth = 0
        for at in range(m.end(), len(code)):
            if depth == 0 and code[at] == (")" if m[1] else ";"):
                yield m.start(), code[m.end():at]
                break
            depth += (code[at] in "([{") - (code[at] in ")]}")


def check_terms():
    """no condition of more terms than MOST_TERMS (MORE_TERMS): early returns give one reason at a time"""
    for name in c_files("src/", "tools/", "cuda/", ends=(".c", ".h", ".cu")):
        code = code_of(read(name))
        for at, text in conditions(code):
            terms = 1 + len(re.findall(r"&&|\|\|", text))
            if terms > MORE_TERMS.get(name, MOST_TERMS):
                line = 1 + code.count("\n", 0, at)
                yield f"{name}:{line}: a condition of {terms} terms: return early, each time with a reason"


def check_twice():
    """no recursion and nothing that changes something inside MAX, MIN, CLAMP, ABS (twice.py)"""
    names = c_files("src/", "tools/", "cuda/", "test/", ends=(".c", ".h", ".cu"))
    for name, line, what in twice.complaints({name: code_of(read(name)) for name in names}):
        yield f"{name}:{line}: {what}"


def check_notes():
    """no notes to self"""
    words = "TO" + "DO|FIX" + "ME|XX" + "X"
    yield from each_match(text_files(), r"\b(" + words + r")\b", lambda m: f"{m[1]}: do it or write an issue")


def check_paths():
    """no path of one machine"""
    words = "/wo" + "rk/|/ro" + "ot/|/ho" + "me/\\w|/t" + "mp/"
    yield from each_match([f for f in text_files() if not f.startswith("test/lint/")], r"(?<![\w}])(" + words + r")",
                          lambda m: f"'{m[1]}' is a path of one machine (mktemp makes temporary names)")


def check_blanks():
    """no trailing blanks, tabs in C, carriage returns; files end with one newline"""
    for name in text_files():
        text = read(name)
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            yield f"{name}: must end with one newline"
        for k, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                yield f"{name}:{k}: trailing blank"
            if "\t" in line and name.endswith((".c", ".h", ".py", ".build")):
                yield f"{name}:{k}: tab"


def check_length():
    """files of at most 800 lines, or listed in test/lint/long-files.txt with a reason"""
    listed = {}
    for line in read("test/lint/long-files.txt").splitlines():
        if line and not line.startswith("#"):
            name, _, reason = line.partition(": ")
            listed[name] = reason
    long = {}
    for name in text_files():
        if name.endswith((".c", ".h", ".cu", ".py", ".def", ".bats", ".build", ".proto")) or name.startswith("scripts/"):
            n = read(name).count("\n")
            if n > MAX_LINES:
                long[name] = n
    for name, n in long.items():
        if not listed.get(name):
            yield f"{name}: {n} lines, split it or list it in test/lint/long-files.txt with a reason"
    for name in listed:
        if name not in long:
            yield f"test/lint/long-files.txt: '{name}' is not longer than {MAX_LINES} lines"


def check_names():
    """a source file's name occurs once, but for an operator's record and its kernel"""
    first = {}
    for f in c_files("src/", "tools/"):
        name = os.path.basename(f)
        other = first.setdefault(name, f)
        if other != f and not (other.startswith("src/cpu/") and f == "src/op/" + name):
            yield f"{f}: {other} is called that, too"


def check_optimizer():
    """the table of onnx/optimizer's passes names passes and cases that exist"""
    table, defs = "test/golden/optimizer.txt", "src/pass/passes.def"
    if table not in FILES:
        raise Skip("there is no such table here")
    passes = {s.replace("_", "-") for s in re.findall(r"^HN_PASS\((\w+)\)", read(defs), re.M)}
    for k, line in enumerate(read(table).splitlines(), 1):
        if line.startswith("#"):
            continue
        parts = [p.strip() for p in line.split("|")]
        if len(parts) != 3 or not all(parts):
            yield f"{table}:{k}: not 'name | pass | case'"
            continue
        ours, case = parts[1:]
        file, _, title = case.partition(": ")
        if ours == "-":
            continue
        if ours not in passes or file.replace("_", "-") != ours:
            yield f"{table}:{k}: no pass '{ours}', or its cases are not in '{file}'"
        elif f"== {title}\n" not in read(f"test/pass/{file}.txt"):
            yield f"{table}:{k}: no case '{title}' in test/pass/{file}.txt"


def check_walks():
    """each file and function that CONTRIBUTING.md's tables lead through is there"""
    page = "CONTRIBUTING.md"
    if page not in FILES:
        raise Skip("there is no such page here")
    for k, line in enumerate(read(page).splitlines(), 1):
        hop = line.split("|")[1] if line.startswith("| `") else ""
        name = None
        for file, function in re.findall(r"`([\w/]+\.c)`|`(\w+)\(\)`", hop):
            name = file or name
            if name not in FILES:
                yield f"{page}:{k}: no file '{name}'"
                break
            if function and not re.search(rf"^\w[^\n;]*\b{function}\(", read(name), re.M):
                yield f"{page}:{k}: no function '{function}' in {name}"


def check_mutants():
    """each mutant's lines are in its file, once"""
    page = "test/mutants/mutants.txt"
    if page not in FILES:
        raise Skip("there is no such list here")
    for block in re.split(r"\n\s*\n", read(page)):
        lines = [line for line in block.split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        old = "\n".join(line[2:].strip() for line in lines if line.startswith("- "))
        text = "\n".join(line.strip() for line in read(lines[0]).split("\n")) if lines[0] in FILES else ""
        if f"\n{text}\n".count(f"\n{old}\n") != 1:
            yield f"{page}: not once in {lines[0]}: {old}"


# --- scripts ----------------------------------------------------------------------------------------------------------


def check_shell():
    """shell scripts parse, and shellcheck has nothing to say"""
    names = shell_files()
    for name in names:
        p = subprocess.run(["bash", "-n", name], cwd=ROOT, capture_output=True, text=True)
        if p.returncode:
            yield f"{name}: {p.stderr.strip()}"
    if not shutil.which("shellcheck"):
        raise Skip("scripts parse, but there is no shellcheck here")
    p = subprocess.run(["shellcheck", "-S", "warning", "-f", "gcc", *names], cwd=ROOT, capture_output=True, text=True)
    yield from p.stdout.splitlines()


def check_python():
    """Python scripts parse"""
    for name in FILES:
        if name.endswith(".py"):
            try:
                ast.parse(read(name))
            except SyntaxError as e:
                yield f"{name}:{e.lineno}: {e.msg}"


def main():
    checks = {n[len("check_"):]: f for n, f in globals().items() if n.startswith("check_")}
    chosen = ARGS[2 if ARGS[:1] == ["--root"] else 0:] or list(checks)
    if any(c not in checks for c in chosen):
        print(f"lint: checks are {' '.join(checks)}", file=sys.stderr)
        return 2
    failed = skipped = 0
    print(f"1..{len(chosen)}")
    for n, c in enumerate(chosen, 1):
        complaints = []
        try:
            for s in checks[c]():
                complaints.append(s)
            reason = ""
        except Skip as e:
            reason = str(e)
        title = f"{n} - lint {c}: {checks[c].__doc__}"
        if complaints:
            failed += 1
            print(f"not ok {title}")
            print("\n".join("# " + s for s in complaints[:50]))
            if len(complaints) > 50:
                print(f"# and {len(complaints) - 50} more")
        elif reason:
            skipped += 1
            print(f"ok {title} # SKIP {reason}")
        else:
            print(f"ok {title}")
    print(f"{len(chosen) - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

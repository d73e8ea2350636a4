#!/usr/bin/env python3
"""Check the checkers: plant one fault at a time in a small tree, and lint.py must name it; prints TAP."""
import os
import subprocess
import sys
import tempfile

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lint.py")
NOTE = "TO" + "DO"
with open(os.path.join(os.path.dirname(LINT), "..", "..", ".clang-format"), encoding="utf-8") as style:
    FORMAT = style.read()
CLEAN = {
    ".clang-format": FORMAT,
    "src/LAYERS": "base:\nir: base\nonnx: ir base\npass: ir base\ncpu: ir base\nhone: cpu ir base\ntools: hone onnx ir base\n",
    "src/base/a.h": "#pragma once\n\n#include <stddef.h>\n\nsize_t hn_a(size_t n);\n",
    "src/ir/b.c": '#include "base/a.h"\n\n/* gets(): a word in a comment is no call */\n'
                  'const char *hn_b = "exit(1)";\nint hn_c = g_regex_match_simple("^a", "a", 0, 0);\n',
    "src/hone.c": '#include "ir/b.h"\n',
    "src/ir/b.h": "#pragma once\n\nint hn_pure(const int *a);\n",
    "src/ir/b_pure.c": '#include "ir/b.h"\n\nint hn_pure(const int *a)\n{\n    return MAX(hn_two(a), 2);\n}\n\n'
                       "int hn_two(const int *a)\n{\n    return 2 * *a;\n}\n",
    "tools/run.c": '#include "onnx/read.h"\n\n#include "common.h"\n',
    "tools/common.h": "#pragma once\n",
    "src/onnx/read.h": "#pragma once\n",
    "src/onnx/terms.c": 'int f(int *a)\n{\n    if (a[0] && a[1] && a[2] && (a[3] || a[4]) && g(a[5]) /* && || */ == 0)\n'
                        '        a[6] = a[7] && g("&& ) ||");\n    return 0;\n}\n',
    "scripts/go": "#!/bin/sh\necho go\n",
    "CONTRIBUTING.md": "| `src/ir/b_pure.c` `hn_pure()`, `hn_two()` | numbers are doubled |\n",
    "test/lint/long-files.txt": "# none\n",
    "test/mutants/mutants.txt": "# a mistake\n\nsrc/ir/b_pure.c\n- return 2 * *a;\n+ return *a;\n= unit b\n",
    "src/pass/passes.def": "HN_PASS(drop_all)\n",
    "test/pass/drop_all.txt": "== all\n%y = Neg(%x)\n",
    "test/golden/optimizer.txt": "# name\nnop | - | nothing to do\nnop_all | drop-all | drop_all: all\n",
}
# check that must fail, file, contents, word in the complaint
FAULTS = (
    ("layers", "src/base/x.c", '#include "ir/b.h"\n', "'base' may not include"),
    ("layers", "src/base/x.c", '#define HN_LOOPS "ir/b.h"\n', "'base' may not include"),
    ("layers", "src/ir/x.c", "#include <dnnl.h>\n", "only 'cpu'"),
    ("layers", "src/ir/x.c", '#include "onnx.pb-c.h"\n', "only 'onnx'"),
    ("layers", "src/ir/x.c", '#include "b.h"\n', "write the layer"),
    ("layers", "src/ir/x.c", "#include <base/a.h>\n", "like a system header"),
    ("layers", "src/ir/x.c", '#include "else/a.h"\n', "no layer"),
    ("layers", "src/new/x.c", "int x;\n", "no layer 'new'"),
    ("layers", "tools/x.c", '#include "cpu/k.h"\n', "'tools' may not include"),
    ("layers", "src/LAYERS", "base: ir\nir: base\n", "not a layer listed before"),
    ("headers", "src/ir/x.h", "#pragma once\n\nsize_t hn_x(void);\n", "src/ir/x.h"),
    ("format", "src/ir/x.c", "int   x ;\n", "src/ir/x.c"),
    ("calls", "src/ir/x.c", "void f(char *a) { strcpy(a, a); }\n", "strcpy() is banned"),
    ("calls", "src/ir/x.c", "void f(void) { exit(1); }\n", "exit() is banned"),
    ("calls", "src/ir/x.c", 'void f(void) { fprintf(stderr, "x"); }\n', "does not print"),
    ("calls", "tools/x.c", "void f(int a) { assert(a); }\n", "assert() is banned"),
    ("only", "src/ir/x.c", "void f(char **a) { g_spawn_sync(0, a); }\n", "processes are started by"),
    ("only", "tools/x.c", "void f(char **a) { execvp(a[0], a); }\n", "execvp(): processes"),
    ("only", "tools/x.c", "void f(P *p) { json_parser_load_from_data(p, 0); }\n", "hn_json_read()"),
    ("only", "src/ir/x.c", "void f(char *a) { g_regex_match_simple(a, a, 0, 0); }\n", "no constants"),
    ("records", "tools/x.c", "int a = b == &hn_op_conv;\n" * 20, "20 of them outside"),
    ("records", "src/cpu/x.c", "int a = b != &hn_op_conv;\n" * 41, "41 of them in src/cpu/"),
    ("terms", "src/ir/x.c", "int f(int *a)\n{\n    if (a[0] && (a[1] || a[2]) && g(a[3]) &&\n        (a[4] || a[5] || a[6]))\n"
     "        return 1;\n    return 0;\n}\n", "src/ir/x.c:3: a condition of 7 terms"),
    ("terms", "src/ir/x.c", "int f(int *a)\n{\n    while (a[0] || a[1] || a[2] || a[3] || a[4] || a[5] || a[6])\n"
     "        a++;\n    return 0;\n}\n", "src/ir/x.c:3: a condition of 7 terms"),
    ("terms", "tools/x.c", "int f(int *a)\n{\n    return /* ; */ a[0] && a[1] && g(';') && a[3] && a[4] &&\n"
     "           a[5] && a[6];\n}\n", "tools/x.c:3: a condition of 7 terms"),
    ("twice", "src/ir/x.c", "int hn_f(int a)\n{\n    return a ? MAX(a, hn_f(a - 1)) : 0;\n}\n", "leads back to hn_f()"),
    ("twice", "src/ir/x.c", "int g(int a)\n{\n    return f(a);\n}\n\nint f(int a)\n{\n    return CLAMP(g(a), 0, 1);\n}\n",
     "CLAMP calls g() twice, which leads back to f()"),
    ("twice", "src/ir/x.c", "int g(int *a)\n{\n    return *a += 1;\n}\n\nint f(int *a)\n{\n    return ABS(g(a));\n}\n",
     "may change something"),
    ("twice", "src/ir/x.c", "int f(int a)\n{\n    return MIN(a++, 3);\n}\n", "MIN would do 'a++, 3' twice"),
    ("notes", "src/ir/x.c", f"/* {NOTE}: more */\n", NOTE),
    ("paths", "scripts/x", "#!/bin/sh\ncat /t" + "mp/x\n", "path of one machine"),
    ("walks", "CONTRIBUTING.md", "| `src/ir/b_pure.c` `hn_pure()`, `hn_three()` | x |\n", "no function 'hn_three'"),
    ("walks", "CONTRIBUTING.md", "| `src/ir/gone.c` `hn_pure()` | x |\n", "no file 'src/ir/gone.c'"),
    ("mutants", "test/mutants/mutants.txt", "src/ir/b_pure.c\n- return 3 * *a;\n= unit b\n", "not once in src/ir/b_pure.c"),
    ("mutants", "test/mutants/mutants.txt", "src/ir/gone.c\n- return 2 * *a;\n= unit b\n", "not once in src/ir/gone.c"),
    ("blanks", "src/ir/x.c", "int x; \n", "trailing blank"),
    ("blanks", "src/ir/x.c", "int x;", "end with one newline"),
    ("length", "src/ir/x.c", "\n" * 799 + "int x;\nint y;\n", "801 lines"),
    ("length", "test/lint/long-files.txt", "src/ir/b.c: a tale\n", "is not longer"),
    ("names", "tools/b.c", "int x;\n", "src/ir/b.c is called that, too"),
    ("optimizer", "test/golden/optimizer.txt", "a | drop-all | drop_all: some\n", "no case 'some'"),
    ("optimizer", "test/golden/optimizer.txt", "a | drop-some | drop_some: all\n", "no pass 'drop-some'"),
    ("optimizer", "test/golden/optimizer.txt", "a | drop-all\n", "not 'name | pass | case'"),
    ("shell", "scripts/x", "#!/bin/sh\nif true\n", "scripts/x"),
    ("python", "test/x.py", "def f(:\n", "test/x.py:1"),
)


def lint(tree, check):
    with tempfile.TemporaryDirectory() as root:
        for name, text in tree.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as f:
                f.write(text)
        p = subprocess.run([sys.executable, LINT, "--root", root, *check], capture_output=True, text=True)
        return p.returncode, p.stdout + p.stderr


def main():
    bad = 0
    print(f"1..{len(FAULTS) + 1}")
    status, said = lint(CLEAN, [])
    ok = status == 0
    bad += not ok
    print(f"{'ok' if ok else 'not ok'} 1 - a clean tree passes")
    if not ok:
        print("# " + said.replace("\n", "\n# "))
    for n, (check, name, text, word) in enumerate(FAULTS, 2):
        status, said = lint({**CLEAN, name: text}, [check])
        title = f"{n} - lint {check} sees: {word}"
        if " # SKIP" in said:
            print(f"ok {title} # SKIP {said.split('# SKIP ')[1].splitlines()[0]}")
        elif status == 1 and word in said:
            print(f"ok {title}")
        else:
            bad += 1
            print(f"not ok {title}\n# " + said.replace("\n", "\n# "))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

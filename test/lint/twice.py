"""Calls inside MAX, MIN, CLAMP and ABS, which evaluate an argument twice. Each level of such a recursion doubles what
the one below takes: 30 levels do not end. A call that changes something does it twice.

Allowed is a call that does neither, by what the sources say: a function that cannot write through any of its parameters
and from which no chain of calls leads back to the function that is being defined. Functions are known by name, those of
the same file first. What is not defined in these sources is allowed when it is in PURE, or a macro.
"""
import re

MACRO = re.compile(r"\b(MAX|MIN|CLAMP|ABS)\s*\(")
CALL = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
DEFINITION = re.compile(r"^(?:[A-Za-z_][^\n;{}=#]*[\s*])?(\w+)\(([^;{}]*)\)\s*\n\{\n(.*?)^\}", re.M | re.S)
PURE = set("""sizeof g_array_index g_bytes_get_size g_strv_length strlen abs labs fabs fabsf fmax fmaxf fmin fminf
ceil ceilf floor floorf rint rintf round lrint sqrt sqrtf exp log log2 pow ldexp isfinite isnan isinf isinff sysconf""".split())
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof"}


class Function:
    def __init__(self, match):
        self.params = match[2]
        self.calls = set(CALL.findall(match[3])) - KEYWORDS
        self.at, self.end = match.start(3), match.end(3)

    def may_write(self):
        """a pointer to something that is not const; a const table of pointers counts as one that is"""
        return any("*" in p and not re.match(r"\s*(const\b|GBytes\b)", p) and p.strip() != "void"
                   for p in self.params.split(","))


def functions_of(code):
    return {m[1]: Function(m) for m in DEFINITION.finditer(code)}


def leads_to(name, goal, here, everywhere):
    """whether a call of name can end in one of goal, by calls within the file and of functions that others see"""
    seen, left = set(), [name]
    while left:
        f = left.pop()
        if f == goal:
            return True
        if f in seen:
            continue
        seen.add(f)
        known = here.get(f) or everywhere.get(f)
        left += known.calls if known else ()
    return False


def inside(code, start):
    """the text between the bracket that opens in front of start and the one that closes it"""
    depth, i = 1, start
    while depth and i < len(code):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        i += 1
    return code[start:i - 1]


def complaints(sources):
    """sources: {file: its code, without comments and strings}; gives (file, line, what)"""
    local = {name: functions_of(code) for name, code in sources.items()}
    everywhere = {}
    for functions in local.values():
        everywhere.update(functions)
    for name, code in sources.items():
        here = local[name]
        for m in MACRO.finditer(code):
            text, line = inside(code, m.end()), code.count("\n", 0, m.start()) + 1
            if re.search(r"\+\+|--|(?<![=!<>])=(?!=)", text):
                yield name, line, f"{m[1]} would do '{' '.join(text.split())}' twice"
            defined = next((f for f, v in here.items() if v.at <= m.start() < v.end), None)
            for call in CALL.findall(text):
                known = here.get(call) or everywhere.get(call)
                if call in PURE or call.isupper() or call.startswith("_mm"):
                    continue
                if defined and leads_to(call, defined, here, everywhere):
                    why = f"leads back to {defined}()"
                elif known is None or known.may_write():
                    why = "may change something"
                else:
                    continue
                yield name, line, f"{m[1]} calls {call}() twice, which {why}: keep its result first"

"""What a record of scripts/gpu says of what is asked of hone on a GPU: one row for each thing, with its target.

A row: "point" (which demand), "what", "value", "unit", "asked" (None: told, not asked), "better" ("less" or "more"), "met"
(True, False, or None: not measured, then "why" says so).
"""
import math

MIB = 1 << 20
NO_MOVERS = ("product", "conv", "attention", "one row", "depthwise", "small steps")
# bytes of the weights that one row is multiplied by
WEIGHTS = {"one row f16": 8192 * 8192 * 2, "one row, 8 bits": 8192 * 8192 + 8192 * 4, "one row, 4 bits": 8192 * 8192 // 2 + 64 * 8192 * 4}
LIBRARY = ", cuBLASLt"
# (M, N, K) of the cases of perf-cuda whose sizes their names do not tell
SIZES = {"4096": (4096, 4096, 4096), "1024": (1024, 1024, 1024), "8192": (8192, 8192, 8192), "256": (2048, 256, 256),
         "of 128 rows": (128, 4096, 4096)}
POINTS = {
    "operators": "operators against the reference",
    "movers": "kernels that move memory, of a copy",
    "gemv": "one row by weights, of a copy",
    "products": "products, of the library's best speed",
    "f32": "products in f32, of the library's f32 speed",
    "f32 error": "error of products in f32 against plain sums'",
    "convolutions": "convolutions, of the library's speed",
    "attention": "attention, of the library's speed",
    "depthwise": "depthwise convolution, of a copy",
    "step": "a recorded step beside its kernel",
    "host step": "host time of a step that is not recorded",
    "planning": "planning of a new shape, 100 nodes",
    "networks": "whole networks, of the best peer's time",
    "together": "their geometric means",
    "training": "a training step, of torch.compile's time",
    "training memory": "its device memory, of PyTorch's",
    "start": "start to first result, of PyTorch's time",
    "memory": "device memory, of the plan",
    "memory of PyTorch": "device memory, of PyTorch's",
    "profile": "hone-profile: its sum, of the unprofiled median",
    "bias": "hone-bench: one model against itself",
    "same bits": "the same bits in 100 runs",
    "right": "results against the test data",
    "sanitizer": "errors that compute-sanitizer finds",
}
RIGHT = ("operators", "f32 error", "right", "same bits", "sanitizer")
# which part of a run a point's rows come from, where there are none
PART = {"operators": "operators", "movers": "kernels", "gemv": "kernels", "depthwise": "kernels", "products": "peers", "f32": "peers",
        "f32 error": "errors", "convolutions": "peers", "attention": "peers", "step": "steps", "host step": "steps", "planning": "steps",
        "networks": "networks", "together": "networks", "training": "training", "training memory": "training", "start": "start", "memory": "networks",
        "memory of PyTorch": "networks", "profile": "profiles", "bias": "bias", "same bits": "models", "right": "models",
        "sanitizer": "sanitizer"}


def row(point, what, value, asked=None, better="more", unit="", why=None, slack=0.0):
    """With slack: within so much of what is asked, in both directions."""
    met = None
    if value is None:
        why = why or "no figure"
    elif asked is not None:
        met = abs(value - asked) <= slack if better == "near" else value >= asked if better == "more" else value <= asked
    made = {"point": point, "what": what, "value": value, "unit": unit, "asked": asked, "better": better, "met": met}
    if better == "near":
        made["within"] = slack
    if why:
        made["why"] = why
    return made


def size_of(name):
    """(M, N, K) of a product, of a case's name; None: unknown."""
    text = name.split(" ", 2)[2] if name.count(" ") >= 2 else ""
    parts = text.split("x")
    if len(parts) == 3 and all(p.isdigit() for p in parts):
        m, k, n = map(int, parts)
        return m, n, k
    return SIZES.get(text)


def peer_row(point, k, asked):
    best, why = k.get("peer_us"), k.get("peer_error") or "no peer's time"
    return row(point, k["name"], best and round(best / k["us"], 3), asked,
               why=why if not best else f"cuBLASLt's list: {k['list_error']}" if "list_error" in k else None)


def kernel_rows(kernels):
    own = {k["name"]: k for k in kernels}
    for k in kernels:
        name = k["name"]
        if "of_copy" not in k:
            continue
        if name.endswith(LIBRARY):  # the first answer, in hone; for which form wins
            mine = own.get(name[:-len(LIBRARY)])
            if mine:
                yield row("products", name, round(k["us"] / mine["us"], 3), None, why="its time, of the own kernel's")
            continue
        kind = name.split(" ")[0].rstrip(",")
        if name in WEIGHTS:
            yield row("gemv", name, round(k["of_copy"] * WEIGHTS[name] / k["bytes"], 3), 0.85)
        elif kind == "depthwise":
            yield row("depthwise", name, k["of_copy"], 0.80)
        elif not name.startswith(NO_MOVERS) and k["bytes"] >= 64 * MIB:
            yield row("movers", name, k["of_copy"], 0.90)
        if kind == "product" and "f32" in name:
            size = size_of(name)
            if size and size[0] >= 1024 and size[1] >= 1024 and size[2] >= 512:
                yield peer_row("f32", k, 1.5)
        elif kind == "product" and "," not in name:
            yield peer_row("products", k, 0.95)
        elif kind == "conv":
            yield peer_row("convolutions", k, 1.0)
        elif kind == "attention":
            yield peer_row("attention", k, 0.9)


def geometric(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def best_peer(n):
    """The fastest of a network's peers, and the reasons of those without a time."""
    times = {k: v for k, v in n.get("peers", {}).items() if isinstance(v, (int, float))}
    if not times and isinstance(n.get("peer_ms"), (int, float)):
        times = {"peer": n["peer_ms"]}
    return min(times.values(), default=None), "; ".join(f"{k}: {v}" for k, v in n.get("peers", {}).items() if k not in times)


def network_rows(networks):
    kinds = {}
    for n in networks:
        name = f"{n['network']} {n['precision']}, batch {n['batch']}"
        best, why = best_peer(n)
        ratio = round(n["ms"] / best, 3) if best and n.get("ms") else None
        yield row("networks", name, ratio, 1.1, "less", why=n.get("error") or (why or "no peer's time" if ratio is None else None))
        if ratio:
            kinds.setdefault(f"{n['precision']}, batch {n['batch']}", []).append(ratio)
    for kind, ratios in kinds.items():
        yield row("together", f"{len(ratios)} networks, {kind}", round(geometric(ratios), 3), 0.8, "less")
    if kinds:
        every = [r for ratios in kinds.values() for r in ratios]
        yield row("together", f"all {len(every)}", round(geometric(every), 3), 0.8, "less")


def step_rows(steps):
    yield row("step", f"chain of {steps.get('nodes')} steps", steps.get("beside_us"), 1.5, "less", "us", steps.get("why"))
    yield row("host step", f"chain of {steps.get('nodes')} steps", steps.get("unrecorded_us"), 4, "less", "us", steps.get("unrecorded_why"))
    for p in steps.get("planning", []):
        yield row("planning", p["model"], p.get("ms_per_100"), 20, "less", "ms", p.get("error"))


def training_rows(training):
    for t in training:
        name = f"{t['network']} {t['precision']}, batch {t['batch']}"
        ours, theirs = t.get("ms"), t.get("peer_ms")
        why = t.get("error") or t.get("peer_error")
        yield row("training", name, round(ours / theirs, 3) if ours and theirs else None, 0.9, "less", why=why)
        ours, theirs = t.get("bytes"), t.get("peer_bytes")
        yield row("training memory", name, round(ours / theirs, 3) if ours and theirs else None, 0.8, "less", why=why)


def memory_rows(memory):
    for m in memory:
        name = f"{m['network']} {m['precision']}, batch {m['batch']}"
        if m.get("planned"):
            yield row("memory", name, round(m["allocated"] / m["planned"], 4), 1, "near", slack=0.02)
        theirs = m.get("peer_bytes")
        yield row("memory of PyTorch", name, round(m["allocated"] / theirs, 3) if theirs and m.get("allocated") else None, 0.7, "less",
                  why=m.get("error") or m.get("peer_error"))


def model_rows(models):
    for m in models:
        if "right" in m:
            yield row("right", m["model"], int(bool(m["right"])), 1, why=m.get("error"))
        elif "error" in m:
            yield row("right", m["model"], None, 1, why=m["error"])
        if m.get("same_bits") is not None:
            same = row("same bits", f"{m['model']}, {m.get('runs', 10)} runs", int(m["same_bits"]), 1)
            if m["same_bits"] and m.get("runs", 10) < 100:
                same.update(met=None, why="fewer than 100 runs")
            yield same


def sanitizer_rows(found):
    for tool, t in found.items():
        if not isinstance(t, dict):  # an older record's words
            yield row("sanitizer", tool, None, 0, "less", why=t)
            continue
        whole = t["clean"] == t["parts"]
        yield row("sanitizer", tool, len(t["errors"]) if t["errors"] or whole else None, 0, "less",
                  why=None if whole or t["errors"] else f"{t['parts'] - t['clean']} of {t['parts']} parts ended early: {t.get('why', '?')}")


def made_rows(r):
    o = r.get("operators")
    if o:
        yield row("operators", "hn-check, wrong", len(o["failed"]) if not o.get("error") else None, 0, "less", why=o.get("error"))
    for op, x in (r.get("libraries") or {}).items():
        yield row("operators", f"{op} by cuBLASLt, wrong", len(x["failed"]) if not x.get("error") else None, 0, "less", why=x.get("error"))
    yield from kernel_rows(r.get("kernels") or [])
    if r.get("kernels"):
        yield row("products", "product tf32", None, 0.95, why="hone has no --precision tf32")
    for e in r.get("errors") or []:
        yield row("f32 error", e["what"], int(e["right"]) if e["right"] is not None else None, 1, why=e.get("why"))
    if r.get("steps"):
        yield from step_rows(r["steps"])
    yield from network_rows(r.get("networks") or [])
    yield from training_rows(r.get("training") or [])
    for s in r.get("start") or []:
        ours, theirs = s.get("s"), s.get("peer_s")
        yield row("start", s["network"], round(ours / theirs, 3) if ours and theirs else None, 0.25, "less",
                  why=s.get("error") or s.get("peer_error"))
    yield from memory_rows(r.get("memory") or [])
    for p in r.get("profiles") or []:
        yield row("profile", p["model"], p.get("agreement"), 1, "near", why=p.get("error"), slack=0.03)
    for b in r.get("bias") or []:
        yield row("bias", b["model"], b.get("ratio"), 1, "near", why=b.get("error"), slack=0.02)
    yield from model_rows(r.get("models") or [])
    yield from sanitizer_rows(r.get("sanitizer") or {})


def rows(record):
    """All of them, and one for each demand of which nothing was measured."""
    made = list(made_rows(record))
    there = {m["point"] for m in made}
    parts = record.get("parts", {})
    for point, part in PART.items():
        if point not in there:
            state = parts.get(part, {})
            made.append(row(point, POINTS[point], None, why=state.get("why") or (
                "no row of it was made" if state.get("state") == "done" else f"part {part} was not run")))
    if record.get("emulated"):  # its figures mean nothing
        made = [m if m["point"] in RIGHT else dict(m, met=None) for m in made]
    order = list(POINTS)
    return sorted(made, key=lambda m: order.index(m["point"]))


def verdict(r):
    return "not measured" if r["value"] is None else "told" if r["met"] is None else "met" if r["met"] else "missed"


def line(r):
    value = "-" if r["value"] is None else f"{r['value']:.4g}{' ' + r['unit'] if r['unit'] else ''}"
    asked = "" if r["asked"] is None else f"asked {'at least ' if r['better'] == 'more' else 'at most ' if r['better'] == 'less' else ''}{r['asked']:g}"
    asked += f" within {r['within']:g}" if "within" in r else ""
    why = f" because {r['why']}" if r["value"] is None else f" ({r['why']})" if r.get("why") else ""
    return f"{r['what']:44} {value:>10}  {asked:22} {verdict(r)}{why}"


def table(made, emulated=False):
    """The rows under a heading for each demand, and how many of each are met."""
    lines, last = [], None
    for r in made:
        if r["point"] != last:
            last = r["point"]
            mine = [m for m in made if m["point"] == last]
            count = f"{sum(m['met'] is True for m in mine)} of {len(mine)} met" if not emulated else "emulated: figures mean nothing"
            lines.append(f"{POINTS[last]}: {count}")
        lines.append("  " + line(r))
    return "\n".join(lines)


def wrong(record):
    """What no speed excuses: wrong results, other bits, what the sanitizer found."""
    return [r for r in record.get("rows", []) if r["point"] in RIGHT and r["met"] is False]

#!/usr/bin/env python3
"""Add up TAP.

usage: tally.py FILE.tap...             prints failed and skipped tests with their reasons, then 'N passed, M failed'
                                        (', K skipped' where there are some); exit status 0 when M is 0, else 1
       tally.py --from-meson LOG.json   prints the tests of meson's testlog.json as TAP
"""
import json
import os
import re
import sys

LINE = re.compile(r"(not )?ok\b *(\d+)? *-? *(.*)")


def results(text):
    """TAP -> [(passed|failed|skipped, title, reason)]"""
    found, plan, bailed = [], None, None
    for line in text.splitlines():
        if m := re.match(r"1\.\.(\d+)\s*(?:# *skip *(.*))?$", line, re.I):
            plan = int(m[1])
            if plan == 0:
                found.append(("skipped", "all of it", m[2] or "no reason given"))
                plan = None
        elif m := LINE.match(line):
            title, _, note = m[3].partition(" # ")
            skip = re.match(r"skip\w*:? *(.*)", note, re.I)
            if skip and not m[1]:
                found.append(("skipped", title, skip[1] or "no reason given"))
            else:
                found.append(("failed" if m[1] else "passed", title, note))
        elif line.startswith("Bail out!"):
            bailed = line[len("Bail out!"):].strip()
    if bailed is not None:
        found.append(("failed", "bailed out", bailed))
    elif plan is not None and plan != len(found):
        found.append(("failed", f"planned {plan} tests, ran {len(found)}", ""))
    return found


def tap_of(items):
    for n, (result, title, reason) in enumerate(items, 1):
        title = title.replace("#", "")
        if result == "skipped":
            yield f"ok {n} - {title} # SKIP {reason}"
        else:
            yield f"{'not ok' if result == 'failed' else 'ok'} {n} - {title}" + (f" # {reason}" if reason else "")
    yield f"1..{len(items)}"


def from_meson(path):
    items = []
    with open(path) as f:
        for line in f:
            t = json.loads(line)
            name = t["name"].split(" / ")[-1]
            out = t.get("stdout") or ""
            inside = results(out) if re.search(r"^(not )?ok\b|^1\.\.0", out, re.M) else []
            items += [(r, f"{name}: {title}", why) for r, title, why in inside]
            bad = t["result"] not in ("OK", "SKIP", "EXPECTEDFAIL")
            if bad and not any(r == "failed" for r, _, _ in inside):
                said = [s for s in (t.get("stderr") or "").splitlines()
                        if re.search(r"ERROR|runtime error|assert|Sanitizer", s)]
                why = f"{t['result'].lower()}, status {t['returncode']}"
                items.append(("failed", name, " ".join([why, *said[:1]])))
            elif not inside:
                items.append(("skipped" if t["result"] == "SKIP" else "passed", name, ""))
    return items


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--from-meson":
        print("\n".join(tap_of(from_meson(sys.argv[2]))))
        return 0
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    lines = {"failed": [], "skipped": []}
    for path in sys.argv[1:]:
        part = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf-8", errors="replace") as f:
            for result, title, reason in results(f.read()):
                counts[result] += 1
                if result != "passed":
                    lines[result].append(f"{result}: {part}: {title}" + (f": {reason}" if reason else ""))
    print("\n".join(lines["skipped"] + lines["failed"]))
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())

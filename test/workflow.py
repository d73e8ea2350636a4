#!/usr/bin/env python3
"""The `run:` steps of a workflow file as GitHub's runner runs them, in the order of the file; ends with the first status not 0.

usage: workflow.py WORKFLOW.yml RUNNER-TEMP [NAME=VALUE...]

NAME=VALUE stands in the place of the file's own `env`. Steps that use an action of others are named and left out: the files
and the Python that they bring are here. Conditions are those that the file has: env.NAME != '' and always().
"""
import os
import re
import subprocess
import sys

import yaml


def wanted(condition, env, failed):
    if condition == "always()":
        return True
    m = re.fullmatch(r"env\.(\w+) != ''", condition or "env.PATH != ''")
    if not m:
        sys.exit(f"workflow: a condition that is not known: {condition}")
    return not failed and env.get(m.group(1), "") != ""


def main(path, temp, *settings):
    with open(path, encoding="utf-8") as f:
        workflow = yaml.safe_load(f)
    (job,) = workflow["jobs"].values()
    names = {k: str(v) for k, v in workflow["env"].items()}
    for setting in settings:
        name, value = setting.split("=", 1)
        if name not in names:
            sys.exit(f"workflow: the file sets no {name}")
        names[name] = value
    files = {name: os.path.join(temp, name.lower()) for name in ("GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    for name in files.values():
        open(name, "w").close()
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", temp), "RUNNER_TEMP": temp, **names, **files}
    status = 0
    for step in job["steps"]:
        what = step.get("name", step.get("uses", "a step"))
        if not wanted(step.get("if"), env, status != 0):
            print(f"-- {what}: left out", flush=True)
        elif "uses" in step:
            print(f"-- {what}: an action", flush=True)
        else:
            print(f"-- {what}", flush=True)
            done = subprocess.run(["bash", "-e", "-c", step["run"]], env={**env, **step.get("env", {})})
            status = status or done.returncode
            with open(files["GITHUB_PATH"]) as f:
                added = f.read().splitlines()
            env["PATH"] = ":".join(added[::-1] + [os.environ["PATH"]])
    with open(files["GITHUB_STEP_SUMMARY"]) as f:
        print(f.read(), end="")
    return status


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
"""A step of training in hone and in PyTorch, on five networks: time, memory, and whether both compute the same.

usage: train.py [--nets LIST] [--threads 1,2] [--rounds N] [--seconds S] [--modes eager,compile] [--tools DIR] [--keep DIR]
                [--memory] [--same] [--steps N] [--json FILE]

--nets: of digits, resnet18w16, mobilenetv2, transformer, lstm (all of these), or of those of train_nets.py; more: all of these.
Needs a Python that has torch, onnx and onnxscript, which runs this script. The networks are made here, with random
weights, and exported as PyTorch exports them; both sides train on one fixed batch, with AdamW on cross-entropy. A step is
forward, loss, backward, update. PyTorch: channels last for convolutions, fused AdamW, denormals flushed, the better of
--modes. All of it is interleaved, in rounds; what counts is each side's median of medians.
--memory: PyTorch's allocated peak against hone's arena, trained weights and optimizer state.
--same: losses of --steps (50) steps against PyTorch's, and each gradient of the first one (by a step of plain descent with a rate of
1) against PyTorch's in f64. Status 1 where losses differ by more than 1e-3, and gradients by more than 1e-4 of the largest,
unless PyTorch is as far from itself: of losses in another layout, of gradients in f32. Networks with batch statistics
multiply roundings.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

BATCH = {"digits": 64, "resnet18w16": 64, "mobilenetv2": 64, "transformer": 16, "lstm": 32}
OTHERS = 16  # batch of the networks of train_nets.py


def make_other(net):
    import torch
    from train_nets import CLASSES, MORE

    torch.manual_seed(1)
    module, shape, tokens = MORE[net]
    x = torch.randint(0, tokens, (OTHERS, *shape)) if tokens else torch.randn(OTHERS, *shape)
    return module(), x, torch.randint(0, CLASSES, (OTHERS,))


def make(net):
    """The network and one batch: module, x, labels."""
    if net not in BATCH:
        return make_other(net)
    import torch
    from torch import nn
    from torch.nn import functional as F

    def conv_bn(i, o, k, stride=1, groups=1):
        return nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)

    class Digits(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Sequential(*conv_bn(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
            self.second = nn.Sequential(*conv_bn(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2))
            self.out = nn.Linear(256, 10)

        def forward(self, x):
            return self.out(self.second(self.first(x)).flatten(1))

    class Residual(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.a = nn.Sequential(*conv_bn(i, o, 3, stride), nn.ReLU(), *conv_bn(o, o, 3))
            self.skip = nn.Sequential(*conv_bn(i, o, 1, stride)) if stride != 1 or i != o else nn.Identity()

        def forward(self, x):
            return F.relu(self.a(x) + self.skip(x))

    class ResNet18(nn.Module):
        def __init__(self, w=16):
            super().__init__()
            widths = [w, w, w, 2 * w, 2 * w, 4 * w, 4 * w, 8 * w, 8 * w]
            blocks = [Residual(i, o, 1 if i == o else 2) for i, o in zip(widths, widths[1:])]
            self.body = nn.Sequential(*conv_bn(3, w, 3), nn.ReLU(), *blocks)
            self.out = nn.Linear(8 * w, 10)

        def forward(self, x):
            return self.out(self.body(x).mean((2, 3)))

    class Inverted(nn.Module):
        def __init__(self, i, o, stride, factor):
            super().__init__()
            h = i * factor
            wide = [] if factor == 1 else [*conv_bn(i, h, 1), nn.ReLU6()]
            self.body = nn.Sequential(*wide, *conv_bn(h, h, 3, stride, h), nn.ReLU6(), *conv_bn(h, o, 1))
            self.skip = stride == 1 and i == o

        def forward(self, x):
            return x + self.body(x) if self.skip else self.body(x)

    class MobileNetV2(nn.Module):
        def __init__(self):
            super().__init__()
            parts, i = [*conv_bn(3, 16, 3), nn.ReLU6()], 16
            for factor, o, n, stride in ((1, 8, 1, 1), (6, 16, 2, 2), (6, 24, 2, 2), (6, 32, 3, 2), (6, 48, 2, 1)):
                for k in range(n):
                    parts.append(Inverted(i, o, stride if k == 0 else 1, factor))
                    i = o
            self.body = nn.Sequential(*parts, *conv_bn(i, 256, 1), nn.ReLU6())
            self.out = nn.Linear(256, 10)

        def forward(self, x):
            return self.out(self.body(x).mean((2, 3)))

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.before, self.between, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
            self.qkv, self.mix = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

        def forward(self, x):
            n, t, d = x.shape
            q, k, v = self.qkv(self.before(x)).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            x = x + self.mix(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d))
            return x + self.down(F.gelu(self.up(self.between(x))))

    class Transformer(nn.Module):
        def __init__(self, d=128, layers=2, tokens=256, places=128):
            super().__init__()
            self.token, self.place = nn.Embedding(tokens, d), nn.Parameter(torch.randn(places, d) * 0.02)
            self.blocks, self.norm, self.out = nn.Sequential(*[Block(d, 4) for _ in range(layers)]), nn.LayerNorm(d), nn.Linear(d, 10)

        def forward(self, x):
            return self.out(self.norm(self.blocks(self.token(x) + self.place)).mean(1))

    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.out = nn.LSTM(40, 128, batch_first=True), nn.Linear(128, 12)

        def forward(self, x):
            return self.out(self.layer(x)[0][:, -1])

    torch.manual_seed(1)
    module = {"digits": Digits, "resnet18w16": ResNet18, "mobilenetv2": MobileNetV2, "transformer": Transformer, "lstm": Lstm}[net]()
    n = BATCH[net]
    shape = {"digits": (n, 1, 8, 8), "transformer": (n, 128), "lstm": (n, 100, 40)}.get(net, (n, 3, 32, 32))
    x = torch.randint(0, 256, shape) if net == "transformer" else torch.randn(shape)
    return module, x, torch.randint(0, 10, (n,))


def export(net, folder):
    import numpy
    import torch

    module, x, label = make(net)
    module.eval()
    path = os.path.join(folder, net + ".onnx")
    torch.onnx.export(module, (x,), path, input_names=["x"], output_names=["y"], dynamo=True, optimize=False, verbose=False,
                      external_data=False, dynamic_shapes=({0: torch.export.Dim("N", min=1, max=4096)},))
    numpy.savez(os.path.join(folder, net + ".npz"), x=x.numpy(), label=label.numpy())


def torch_steps(net, mode, threads):
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    module, x, label = make(net)
    if x.dim() == 4:
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    module.train()
    optimizer = torch.optim.AdamW(module.parameters(), 1e-3, fused=True)
    forward = torch.compile(module) if mode == "compile" else module

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(forward(x), label)
        loss.backward()
        optimizer.step()
        return loss.item()

    return module, step


def child(a):
    """Times of PyTorch's steps, as JSON: in a process of its own."""
    import torch

    _, step = torch_steps(a.nets, a.modes, int(a.threads))
    for _ in range(3):
        step()
    out = {}
    if a.memory:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            step()
        with tempfile.NamedTemporaryFile(suffix=".json") as trace:
            profile.export_chrome_trace(trace.name)
            events = json.load(open(trace.name))["traceEvents"]
        out["peak"] = max(e["args"]["Total Allocated"] for e in events if e.get("name") == "[memory]")
    times, end = [], time.perf_counter() + a.seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    out["ms"] = statistics.median(times)
    print(json.dumps(out))


def hone(a, net, threads, *more):
    command = [os.path.join(a.tools, "hone-bench"), "--train", f"{a.keep}/{net}.onnx", "--data", f"{a.keep}/{net}.npz",
               "--batch", str(BATCH.get(net, OTHERS)), "--loss", "ce", "-t", str(threads), "--json", *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["runs"][0]


def measure(a):
    nets, threads, modes = a.nets.split(","), [int(t) for t in a.threads.split(",")], a.modes.split(",")
    peer, ours, memory = {}, {}, {}
    for r in range(a.rounds):
        for net in nets:
            for t in threads:
                for mode in modes:
                    command = [sys.executable, __file__, "--child", "--nets", net, "--modes", mode, "--threads", str(t), "--seconds", str(a.seconds)]
                    q = subprocess.run(command + ["--memory"] * a.memory, capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS=str(t)))
                    if q.returncode == 0:
                        got = json.loads(q.stdout.splitlines()[-1])
                        peer.setdefault((net, t, mode), []).append(got["ms"])
                        if "peak" in got:
                            memory.setdefault(net, {})["torch"] = got["peak"]
                    else:
                        print(f"{net}, {mode}: {q.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                run = hone(a, net, t, "--time", f"{a.seconds}s")
                ours.setdefault((net, t), []).append(run["latency_ms"]["p50"])
                memory.setdefault(net, {})["hone"] = run["memory_bytes"]["arena"] + run["memory_bytes"]["trained"]
            print(f"round {r + 1} of {a.rounds}: {net}", file=sys.stderr)
    result, rows = {"nets": {}, "geomean": {}}, []
    for t in threads:
        ratios = []
        for net in nets:
            best = min((statistics.median(v) for (n, u, _), v in peer.items() if (n, u) == (net, t)), default=None)
            mine = statistics.median(ours[net, t])
            rows.append((net, t, mine, best, mine / best if best else float("nan")))
            if best:
                ratios.append(mine / best)
            result["nets"].setdefault(net, {})[str(t)] = {"hone_ms": mine, "torch_ms": best, "ratio": mine / best if best else None}
        if ratios:
            result["geomean"][str(t)] = statistics.geometric_mean(ratios)
    print(f"{'network':12} threads  hone ms  torch ms  ratio   memory MB, hone  torch  ratio")
    for net, t, mine, best, ratio in rows:
        m = memory.get(net, {})
        peak = f"{m['hone'] / 1e6:16.1f} {m['torch'] / 1e6:6.1f}  {m['hone'] / m['torch']:.3f}" if "torch" in m else f"{m['hone'] / 1e6:16.1f}"
        print(f"{net:12} {t:7} {mine:8.2f} {best or float('nan'):9.2f}  {ratio:.3f} {peak}")
    for t, g in result["geomean"].items():
        print(f"geometric mean, {t} thread{'s' * (t != '1')}: {g:.3f}")
    result["memory"] = memory
    if a.json:
        json.dump(result, open(a.json, "w"), indent=1)


def torch_run(net, steps, dtype="float32", channels_last=False):
    """Losses of AdamW without decay, and the gradients of the first step."""
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(1)  # beside other work, threads of many small operators wait for each other for minutes
    module, x, label = make(net)
    module = module.to(getattr(torch, dtype))
    x = x.to(getattr(torch, dtype)) if x.is_floating_point() else x
    if channels_last and x.dim() == 4:
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    module.train()
    optimizer = torch.optim.AdamW(module.parameters(), 1e-3, weight_decay=0)
    losses, gradients = [], None
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(module(x), label)
        loss.backward()
        gradients = gradients or {k: p.grad.double().numpy().copy() for k, p in module.named_parameters()}
        optimizer.step()
        losses.append(loss.item())
    return losses, gradients


def same(a):
    """Both against PyTorch: losses in f32, gradients in f64."""
    import numpy
    import onnx
    from onnx import numpy_helper

    def weights(path):
        return {w.name: numpy_helper.to_array(w).astype("float64") for w in onnx.load(path).graph.initializer}

    bad = 0
    for net in a.nets.split(","):
        (losses, single), (other, _), (_, exact) = torch_run(net, a.steps), torch_run(net, a.steps, channels_last=True), torch_run(net, 1, "float64")
        got = hone(a, net, 1, "--runs", str(a.steps), "--warmup", "0", "--optimizer", "adamw:weight_decay=0")["train"]["losses"]
        apart, own = (max(abs(p - q) for p, q in zip(losses, v)) for v in (got, other))
        out = os.path.join(a.keep, net + "-step.onnx")
        subprocess.run([os.path.join(a.tools, "hone-distill"), "--student", f"{a.keep}/{net}.onnx", "--data", f"{a.keep}/{net}.npz", "--loss", "ce",
                        "--val", f"{a.keep}/{net}.npz", "--epochs", "1", "--batch", str(BATCH.get(net, OTHERS)), "--optimizer", "sgd:lr=1:momentum=0",
                        "--schedule", "constant", "--warmup", "0", "--train-bn", "--clip", "1e9", "--last", "--force", "-o", out],
                       check=True, capture_output=True)
        before, after = weights(f"{a.keep}/{net}.onnx"), weights(out)
        largest = max(float(numpy.abs(g).max()) for g in exact.values())
        worst = max(float(numpy.abs(before[k] - after[k] - g).max()) for k, g in exact.items()) / largest
        theirs = max(float(numpy.abs(single[k] - g).max()) for k, g in exact.items()) / largest
        fine = apart <= max(1e-3, 2 * own) and worst <= max(1e-4, theirs)
        bad += not fine
        print(f"{net:12} losses of {a.steps} steps within {apart:.1e} (PyTorch's of two layouts {own:.1e}), gradients against f64 within "
              f"{worst:.1e} of the largest (PyTorch's {theirs:.1e}){'' if fine else '  FAILS'}")
    return bad


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--nets", default=",".join(BATCH))
    p.add_argument("--modes", default="eager,compile")
    p.add_argument("--threads", default="1,2")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--seconds", type=float, default=2)
    p.add_argument("--tools", default=os.path.join(os.path.dirname(__file__), "../../build/tools"))
    p.add_argument("--keep")
    p.add_argument("--json")
    p.add_argument("--memory", action="store_true")
    p.add_argument("--same", action="store_true")
    p.add_argument("--child", action="store_true")
    p.add_argument("--steps", type=int, default=50)
    a = p.parse_args()
    if a.nets == "more":
        from train_nets import MORE
        a.nets = ",".join(MORE)
    if a.child:
        return child(a)
    with tempfile.TemporaryDirectory() as folder:
        a.keep = a.keep or folder
        os.makedirs(a.keep, exist_ok=True)
        for net in a.nets.split(","):
            if not os.path.exists(f"{a.keep}/{net}.onnx"):
                export(net, a.keep)
        return (same if a.same else measure)(a) or 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Twenty steps of each optimizer in hone and in PyTorch, from the same weights on the same batch.

usage: optimizers.py [--tools DIR]

Needs a Python that has torch and onnx, which runs this script. Softmax regression, whose weights decay and whose bias
does not; PyTorch in f64, Lion by the formula of its paper (Chen et al., 2023), averages by torch.optim.swa_utils. Status 1
where a weight differs by more than 1e-6 of the largest of its tensor.
"""
import argparse
import os
import subprocess
import sys
import tempfile

SAMPLES, INPUTS, CLASSES, STEPS = 48, 12, 5, 20
CASES = [  # --optimizer of hone, --clip, --ema
    ("sgd:lr=0.1:momentum=0", 0, 0),
    ("sgd:lr=0.1:momentum=0.9", 0, 0),
    ("sgd:lr=0.1:momentum=0.9:nesterov=1", 0, 0),
    ("sgd:lr=0.1:momentum=0.9:weight_decay=0.05", 0, 0),
    ("sgd:lr=0.1:momentum=0.9:nesterov=1:weight_decay=0.05", 0.2, 0.9),
    ("adamw:lr=0.01", 0, 0),
    ("adamw:lr=0.01:weight_decay=0", 0, 0),
    ("adamw:lr=0.01:weight_decay=0.1:beta1=0.8:beta2=0.95:epsilon=1e-3", 0, 0),
    ("adamw:lr=0.01:weight_decay=0.1", 0.2, 0.9),
    ("lion:lr=0.003", 0, 0),
    ("lion:lr=0.003:weight_decay=0.1:beta1=0.8:beta2=0.9", 0.2, 0.9),
]


def make(folder):
    """The model, its weights and the batch."""
    import numpy
    from onnx import TensorProto, helper, numpy_helper, save

    r = numpy.random.default_rng(5)
    x, label = r.standard_normal((SAMPLES, INPUTS)).astype("f"), r.integers(0, CLASSES, SAMPLES)
    w, b = r.standard_normal((INPUTS, CLASSES)).astype("f"), r.standard_normal(CLASSES).astype("f")
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"])
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", INPUTS])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", CLASSES])],
                              [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), f"{folder}/m.onnx")
    numpy.savez(f"{folder}/m.npz", x=x, label=label)
    return x, label, w, b


def hone(a, folder, rule, clip, ema):
    from onnx import load, numpy_helper

    command = [f"{a.tools}/hone-distill", "--student", f"{folder}/m.onnx", "--data", f"{folder}/m.npz", "--val", f"{folder}/m.npz", "--loss", "ce",
               "--epochs", str(STEPS), "--batch", str(SAMPLES), "--optimizer", rule, "--schedule", "constant", "--warmup", "0", "--clip", str(clip),
               "--last", "--force", "-o", f"{folder}/o.onnx"] + (["--ema", str(ema)] if ema else [])
    subprocess.run(command, check=True, capture_output=True)
    return {t.name: numpy_helper.to_array(t).astype("d") for t in load(f"{folder}/o.onnx").graph.initializer}


def lion(torch):
    class Lion(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in group["params"]:
                    m = self.state[p].setdefault("m", torch.zeros_like(p))
                    p.sub_(group["lr"] * (torch.sign(beta1 * m + (1 - beta1) * p.grad) + group["weight_decay"] * p))
                    m.mul_(beta2).add_((1 - beta2) * p.grad)

    return Lion


def torch_steps(rule, clip, ema, x, label, w, b):
    import torch
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = (torch.nn.Parameter(torch.tensor(v, dtype=torch.float64)) for v in (w, b))

    net = Net()
    name, *parts = rule.split(":")
    k = {p.split("=")[0]: float(p.split("=")[1]) for p in parts}
    common = {"lr": k["lr"]}
    if name == "sgd":
        optimizer, decay = torch.optim.SGD, 0
        common.update(momentum=k["momentum"], nesterov=bool(k.get("nesterov")))
    elif name == "adamw":
        optimizer, decay = torch.optim.AdamW, 0.01
        common.update(betas=(k.get("beta1", 0.9), k.get("beta2", 0.999)), eps=k.get("epsilon", 1e-8))
    else:
        cls, decay = lion(torch), 0
        optimizer = lambda groups, lr, betas: cls(groups, {"lr": lr, "betas": betas})
        common.update(betas=(k.get("beta1", 0.9), k.get("beta2", 0.99)))
    decay = k.get("weight_decay", decay)
    optimizer = optimizer([{"params": [net.w], "weight_decay": decay}, {"params": [net.b], "weight_decay": 0}], **common)
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(ema)) if ema else None
    if ema:
        average.update_parameters(net)  # begins with a copy
    x, label = torch.tensor(x, dtype=torch.float64), torch.tensor(label)
    for _ in range(STEPS):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(x @ net.w + net.b, label).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        if ema:
            average.update_parameters(net)
    of = average.module if ema else net
    return {"w": of.w.detach().numpy(), "b": of.b.detach().numpy()}


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--tools", default=os.path.join(os.path.dirname(__file__), "../../build/tools"))
    a = p.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        x, label, w, b = make(folder)
        for rule, clip, ema in CASES:
            got, want = hone(a, folder, rule, clip, ema), torch_steps(rule, clip, ema, x, label, w, b)
            apart = max(abs(got[n] - want[n]).max() / abs(want[n]).max() for n in want)
            bad += not apart <= 1e-6
            print(f"{rule + f', clip {clip}' * (clip > 0) + f', ema {ema}' * (ema > 0):75} {apart:.1e}{'' if apart <= 1e-6 else '  FAILS'}")
    return bool(bad)


sys.exit(main())

#!/usr/bin/env python3
"""Train the networks of the tests and export them, as users do: spots.onnx, waves.onnx, sort.onnx.

usage: make_nets.py [OUT]     OUT is this script's folder unless given; some minutes on one core

Needs PyTorch and onnxscript (made with 2.15.0 and 0.7.2), which the tests do not: what comes out is kept. Their data are made by net_samples.py.
"""
import os
import sys

import numpy as np
import torch
from torch import nn

from net_samples import NETS

HERE = os.path.dirname(os.path.abspath(__file__))


class Separable(nn.Module):
    """Depthwise, then pointwise, each with its norm."""

    def __init__(self, i, o, stride):
        super().__init__()
        self.run = nn.Sequential(nn.Conv2d(i, i, 3, stride, 1, groups=i, bias=False), nn.BatchNorm2d(i), nn.ReLU6(),
                                 nn.Conv2d(i, o, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU6())

    def forward(self, x):
        return self.run(x)


class Spots(nn.Module):
    """Two heads on a plane of 8 by 8: scores, and boxes relative to their cell; a coarser plane is put beside it."""

    inputs, outputs = ["x"], ["scores", "boxes"]

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU())
        self.fine = nn.Sequential(Separable(12, 24, 2), Separable(24, 32, 2), Separable(32, 32, 1))
        self.coarse = Separable(32, 32, 2)
        self.both = Separable(64, 32, 1)
        self.score, self.box = nn.Conv2d(32, 1, 1), nn.Conv2d(32, 4, 1)
        at = torch.arange(8) * 4.0 + 2
        self.register_buffer("centre", torch.stack([at.repeat(8), at.repeat_interleave(8)], -1)[None])

    def forward(self, x):
        fine = self.fine(self.stem(x))
        coarse = nn.functional.interpolate(self.coarse(fine), size=fine.shape[2:], mode="nearest")
        both = self.both(torch.cat([fine, coarse], 1))
        score = self.score(both).flatten(1)
        box = self.box(both).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
        place = self.centre + 4 * torch.tanh(box[..., :2])
        return torch.sigmoid(score), torch.cat([place, 8 * torch.sigmoid(box[..., 2:]) + 2], -1)

    def loss(self, out, truth):
        scores, boxes = out
        has, box = (torch.from_numpy(t) for t in truth)
        weight = 1 + 9 * has
        cls = nn.functional.binary_cross_entropy(scores, has, weight)
        return cls + 0.1 * (has[..., None] * (boxes - box).abs()).sum() / has.sum()


class Waves(nn.Module):
    """LSTM whose state goes in and comes out."""

    inputs, outputs = ["x", "h0", "c0"], ["logits", "h", "c"]

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(2, 32, batch_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, x, h0, c0):
        y, (h, c) = self.rnn(x, (h0.transpose(0, 1).contiguous(), c0.transpose(0, 1).contiguous()))
        return self.head(y[:, -1]), h.transpose(0, 1), c.transpose(0, 1)

    def loss(self, out, truth):
        return nn.functional.cross_entropy(out[0], torch.from_numpy(truth))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = torch.softmax(q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5, -1)
        x = x + self.out((a @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class Sort(nn.Module):
    """A transformer of two blocks that says the digits in order."""

    inputs, outputs = ["tokens"], ["order"]

    def __init__(self, d=48):
        super().__init__()
        self.table, self.place = nn.Embedding(10, d), nn.Parameter(torch.randn(1, 8, d) * 0.1)
        self.blocks = nn.Sequential(Block(d, 4), Block(d, 4))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 10)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.table(tokens) + self.place)))

    def loss(self, out, truth):
        return nn.functional.cross_entropy(out.flatten(0, 1), torch.from_numpy(truth).flatten())


def train(name, net, steps, rate, batch=128):
    samples, right, _ = NETS[name]
    best = torch.optim.AdamW(net.parameters(), rate, weight_decay=1e-2)
    plan = torch.optim.lr_scheduler.OneCycleLR(best, rate, steps)
    for step in range(steps):
        feeds, truth = samples(1000 + step, batch)
        loss = net.loss(net(*(torch.from_numpy(feeds[i]) for i in net.inputs)), truth)
        best.zero_grad()
        loss.backward()
        best.step()
        plan.step()
    net.eval()
    feeds, truth = samples(1, 512)
    with torch.no_grad():
        out = net(*(torch.from_numpy(feeds[i]) for i in net.inputs))
    out = dict(zip(net.outputs, (o.numpy() for o in (out if isinstance(out, tuple) else (out,)))))
    print(name, "right", right(out, truth), "weights", sum(p.numel() for p in net.parameters()), flush=True)


def export(name, net, path):
    feeds, _ = NETS[name][0](2, 2)
    names = net.inputs + net.outputs
    torch.onnx.export(net, tuple(torch.from_numpy(feeds[i]) for i in net.inputs), path, input_names=net.inputs,
                      output_names=net.outputs, dynamic_axes={n: {0: "N"} for n in names}, opset_version=17, dynamo=False)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else HERE
    torch.set_num_threads(1)
    for name, make, steps, rate in (("spots", Spots, 1200, 4e-3), ("waves", Waves, 900, 1e-2), ("sort", Sort, 2500, 2e-3)):
        torch.manual_seed(1)
        np.random.seed(1)
        net = make()
        train(name, net, steps, rate)
        export(name, net, os.path.join(out, name + ".onnx"))


if __name__ == "__main__":
    main()

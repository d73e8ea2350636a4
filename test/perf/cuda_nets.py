#!/usr/bin/env python3
"""usage: cuda_nets.py --export DIR [NET...]     NET-f32.onnx, NET-f16.onnx without the larger weights, which NET-*.json lists
       cuda_nets.py --fill DIR                weights for these, random ones, into NET-*.bin
       cuda_nets.py --run NET                 times in PyTorch: --precision f32,f16, --batch 1,8, --forms eager,graph,compile
       cuda_nets.py --ort NET.onnx            in ONNX Runtime's CUDA provider: --batch
       cuda_nets.py --first NET-f32.onnx      seconds of a Python that opens PyTorch, loads this network and runs it once
       cuda_nets.py --export-train DIR        NET.onnx, NET.npz of train.py's five networks
       cuda_nets.py --train NET               a step of AdamW: --precision f32, bf16
options: --device cpu (default: cuda), --seconds S of each measurement, --small: networks for trying this out

Whole networks as PyTorch modules, for scripts/gpu; JSON lines. Inputs come from pinned memory of the host, results go back
to it. f32 is strict: TF32 is off. compile: torch.compile with max-autotune, recorded as a graph. Needs torch; --export onnx
and onnxscript, too.
"""
import argparse
import gc
import json
import os
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
INLINE = 1024  # bytes of a weight that stays in the file


class Plus(nn.Module):
    def __init__(self, body, skip=None, act=None):
        super().__init__()
        self.body, self.skip, self.act = body, skip or nn.Identity(), act or nn.Identity()

    def forward(self, x):
        return self.act(self.skip(x) + self.body(x))


def conv(i, o, k=3, stride=1, groups=1, act=nn.ReLU):
    parts = [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*parts, act()) if act else nn.Sequential(*parts)


class Classes(nn.Module):
    """Mean over places, then a product."""

    def __init__(self, body, *head):
        super().__init__()
        self.body, self.head = body, nn.Sequential(*head)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


def resnet50():
    parts, i = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for w, n, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(n):
            s = stride if k == 0 else 1
            body = nn.Sequential(conv(i, w, 1), conv(w, w, 3, s), conv(w, 4 * w, 1, act=None))
            parts.append(Plus(body, conv(i, 4 * w, 1, s, act=None) if k == 0 else None, nn.ReLU()))
            i = 4 * w
    return Classes(nn.Sequential(*parts), nn.Linear(i, 1000))


class Squeeze(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.down, self.up = nn.Conv2d(d, d // 4, 1), nn.Conv2d(d // 4, d, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.up(F.relu(self.down(x.mean((2, 3), keepdim=True)))))


def mobilenetv3():
    """The large one: kernel, width inside, width, squeeze, activation, stride."""
    r, h = nn.ReLU, nn.Hardswish
    table = ((3, 16, 16, 0, r, 1), (3, 64, 24, 0, r, 2), (3, 72, 24, 0, r, 1), (5, 72, 40, 1, r, 2), (5, 120, 40, 1, r, 1), (5, 120, 40, 1, r, 1),
             (3, 240, 80, 0, h, 2), (3, 200, 80, 0, h, 1), (3, 184, 80, 0, h, 1), (3, 184, 80, 0, h, 1), (3, 480, 112, 1, h, 1),
             (3, 672, 112, 1, h, 1), (5, 672, 160, 1, h, 2), (5, 960, 160, 1, h, 1), (5, 960, 160, 1, h, 1))
    parts, i = [conv(3, 16, 3, 2, act=h)], 16
    for k, wide, o, squeeze, act, stride in table:
        body = [] if wide == i else [conv(i, wide, 1, act=act)]
        body += [conv(wide, wide, k, stride, wide, act)] + [Squeeze(wide)] * squeeze + [conv(wide, o, 1, act=None)]
        parts.append(Plus(nn.Sequential(*body)) if stride == 1 and i == o else nn.Sequential(*body))
        i = o
    return Classes(nn.Sequential(*parts, conv(i, 960, 1, act=h)), nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, 1000))


class Block(nn.Module):
    """Of a transformer; the norms lie before (a picture's) or behind (a text's)."""

    def __init__(self, d, heads, before=True):
        super().__init__()
        self.a, self.b, self.heads, self.before = nn.LayerNorm(d), nn.LayerNorm(d), heads, before
        self.qkv, self.mix, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attend(self, x):
        n, t, d = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        return self.mix(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, d))

    def forward(self, x):
        if self.before:
            x = x + self.attend(self.a(x))
            return x + self.down(F.gelu(self.up(self.b(x))))
        x = self.a(x + self.attend(x))
        return self.b(x + self.down(F.gelu(self.up(x))))


class Vit(nn.Module):
    def __init__(self, d=384, layers=12, heads=6, places=196):
        super().__init__()
        self.patch, self.first = nn.Conv2d(3, d, 16, 16), nn.Parameter(torch.randn(1, 1, d) * 0.02)
        self.place, self.blocks = nn.Parameter(torch.randn(1, places + 1, d) * 0.02), nn.Sequential(*[Block(d, heads) for _ in range(layers)])
        self.norm, self.out = nn.LayerNorm(d), nn.Linear(d, 1000)

    def forward(self, x):
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat((self.first.expand(y.shape[0], -1, -1), y), 1) + self.place
        return self.out(self.norm(self.blocks(y))[:, 0])


class Bert(nn.Module):
    def __init__(self, d=768, layers=12, heads=12, tokens=30522, places=128):
        super().__init__()
        self.token, self.place, self.first = nn.Embedding(tokens, d), nn.Parameter(torch.randn(places, d) * 0.02), nn.LayerNorm(d)
        self.blocks = nn.Sequential(*[Block(d, heads, False) for _ in range(layers)])

    def forward(self, x):
        return self.blocks(self.first(self.token(x) + self.place))


class Last(nn.Module):
    """LayerNorm over channels."""

    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.wide, self.norm = nn.Conv2d(d, d, 7, padding=3, groups=d), nn.LayerNorm(d)
        self.up, self.down, self.scale = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), nn.Parameter(torch.full((d,), 0.1))

    def forward(self, x):
        y = self.norm(self.wide(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


def convnext():
    parts, i = [nn.Conv2d(3, 96, 4, 4), Last(96)], 96
    for d, n in ((96, 3), (192, 3), (384, 9), (768, 3)):
        parts += ([Last(i), nn.Conv2d(i, d, 2, 2)] if d != i else []) + [ConvNextBlock(d) for _ in range(n)]
        i = d
    return Classes(nn.Sequential(*parts), nn.LayerNorm(i), nn.Linear(i, 1000))


class Yolo(nn.Module):
    """A detector in the manner of YOLOv8n: stages that split and join, three scales up and down, heads of boxes and classes."""

    class Split(nn.Module):
        def __init__(self, i, o, n, skip):
            super().__init__()
            h = o // 2
            self.first, self.last = conv(i, o, 1, act=nn.SiLU), conv((2 + n) * h, o, 1, act=nn.SiLU)
            body = [nn.Sequential(conv(h, h, act=nn.SiLU), conv(h, h, act=nn.SiLU)) for _ in range(n)]
            self.body = nn.ModuleList([Plus(b) if skip else b for b in body])

        def forward(self, x):
            y = list(self.first(x).chunk(2, 1))
            for b in self.body:
                y.append(b(y[-1]))
            return self.last(torch.cat(y, 1))

    def __init__(self, w=16, classes=80):
        super().__init__()
        S, c = self.Split, lambda i, o: conv(i, o, 3, 2, act=nn.SiLU)
        self.a = nn.Sequential(c(3, w), c(w, 2 * w), S(2 * w, 2 * w, 1, True), c(2 * w, 4 * w), S(4 * w, 4 * w, 2, True))
        self.b, self.c = nn.Sequential(c(4 * w, 8 * w), S(8 * w, 8 * w, 2, True)), nn.Sequential(c(8 * w, 16 * w), S(16 * w, 16 * w, 1, True))
        self.squeeze, self.spread = conv(16 * w, 8 * w, 1, act=nn.SiLU), conv(32 * w, 16 * w, 1, act=nn.SiLU)
        self.ub, self.ua = S(24 * w, 8 * w, 1, False), S(12 * w, 4 * w, 1, False)
        self.da, self.db, self.cb, self.cc = c(4 * w, 4 * w), c(8 * w, 8 * w), S(12 * w, 8 * w, 1, False), S(24 * w, 16 * w, 1, False)
        self.heads = nn.ModuleList([nn.Sequential(conv(i, 4 * w, act=nn.SiLU), conv(4 * w, 4 * w, act=nn.SiLU), nn.Conv2d(4 * w, 64 + classes, 1))
                                    for i in (4 * w, 8 * w, 16 * w)])

    def forward(self, x):
        a = self.a(x)
        b = self.b(a)
        y = [self.squeeze(self.c(b))]
        for _ in range(3):
            y.append(F.max_pool2d(y[-1], 5, 1, 2))
        c = self.spread(torch.cat(y, 1))
        b = self.ub(torch.cat((F.interpolate(c, scale_factor=2.0), b), 1))
        a = self.ua(torch.cat((F.interpolate(b, scale_factor=2.0), a), 1))
        b = self.cb(torch.cat((self.da(a), b), 1))
        c = self.cc(torch.cat((self.db(b), c), 1))
        return torch.cat([h(z).flatten(2) for h, z in zip(self.heads, (a, b, c))], 2).sigmoid()


# module, shape of a sample, number of tokens
NETS = {
    "bert": (Bert, (128,), 30522),
    "convnext_tiny": (convnext, (3, 224, 224), 0),
    "mobilenetv3_large": (mobilenetv3, (3, 224, 224), 0),
    "resnet50": (resnet50, (3, 224, 224), 0),
    "vit_small": (Vit, (3, 224, 224), 0),
    "yolo": (Yolo, (3, 640, 640), 0),
}
SMALL = {
    "tiny_conv": (lambda: Classes(nn.Sequential(conv(3, 8, 3, 2), Plus(conv(8, 8))), nn.Linear(8, 10)), (3, 16, 16), 0),
    "tiny_vit": (lambda: Vit(16, 1, 2, 4), (3, 32, 32), 0),
}


def made(nets, name, precision):
    torch.manual_seed(1)
    module, shape, tokens = nets[name]
    return module().eval().to(TYPES[precision]), shape, tokens


def sample(shape, tokens, batch, precision):
    torch.manual_seed(2)
    return torch.randint(0, tokens, (batch, *shape)) if tokens else torch.randn(batch, *shape).to(TYPES[precision])


def say(**row):
    print(json.dumps(row), flush=True)


def reason(e):
    return f"{type(e).__name__}: {e}".splitlines()[0][:200]


def little(tensor):
    """Bytes of a weight, as a file of ONNX holds them."""
    return tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()


def hollow(path, state):
    """The larger weights leave the file; what is to lie where is kept beside it."""
    import onnx

    model, listed, at = onnx.load(path), [], 0
    binary = os.path.basename(path)[:-5] + ".bin"
    for w in model.graph.initializer:
        if w.name not in state or len(w.raw_data) < INLINE:
            continue
        listed.append(w.name)
        size = len(w.raw_data)
        w.ClearField("raw_data")
        w.data_location = onnx.TensorProto.EXTERNAL
        for key, text in (("location", binary), ("offset", str(at)), ("length", str(size))):
            w.external_data.add(key=key, value=text)
        at += size
    onnx.save(model, path)
    with open(path[:-5] + ".json", "w") as f:
        json.dump(listed, f)


def export(nets, names, folder):
    os.makedirs(folder, exist_ok=True)
    for name in names or nets:
        for precision in ("f32", "f16"):
            file = f"{name}-{precision}.onnx"
            try:
                module, shape, tokens = made(nets, name, precision)
                path = os.path.join(folder, file)
                torch.onnx.export(module, (sample(shape, tokens, 2, precision),), path, input_names=["x"], output_names=["y"], dynamo=True,
                                  optimize=False, external_data=False, verbose=False, dynamic_shapes=({0: torch.export.Dim("N", min=1, max=4096)},))
                hollow(path, module.state_dict())
                filled(nets, folder, file)
            except Exception as e:  # one that cannot be exported is no end of the others
                say(network=name, precision=precision, error=reason(e))


def filled(nets, folder, file):
    name, precision = file[:-5].rsplit("-", 1)
    state = made(nets, name, precision)[0].state_dict()
    with open(os.path.join(folder, file[:-5] + ".json")) as f:
        listed = json.load(f)
    with open(os.path.join(folder, file[:-5] + ".bin"), "wb") as f:
        for w in listed:
            f.write(little(state[w]))
    say(file=file)


def fill(nets, folder):
    for file in sorted(os.listdir(folder)):
        if file.endswith(".onnx") and file.rsplit("-", 1)[0] in nets:
            binary = os.path.join(folder, file[:-5] + ".bin")
            if os.path.exists(binary):
                say(file=file)
            else:
                filled(nets, folder, file)


class Peer:
    def __init__(self, device, seconds):
        self.device, self.seconds, self.gpu = device, seconds, device.startswith("cuda")

    def wait(self):
        if self.gpu:
            torch.cuda.synchronize()

    def median_ms(self, call):
        for _ in range(5):
            call()
        took, end = [], time.monotonic() + self.seconds
        while time.monotonic() < end or len(took) < 3:
            begin = time.perf_counter()
            call()
            took.append(time.perf_counter() - begin)
        return round(sorted(took)[len(took) // 2] * 1e3, 4)

    def pinned(self, x):
        return x.pin_memory() if self.gpu else x

    def start_memory(self):
        """What was measured before is gone: its functions have returned."""
        gc.collect()
        if self.gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def memory(self):
        """Bytes that were taken from the device, the context apart."""
        return {"bytes": torch.cuda.max_memory_reserved()} if self.gpu else {}


def eager(f, x, host, peer):
    def call():
        x.copy_(host, non_blocking=True)
        return f(x).cpu()

    return call


def recorded(f, x, host, peer):
    if not peer.gpu:
        return eager(f, x, host, peer)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            f(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = f(x)

    def call():
        x.copy_(host, non_blocking=True)
        graph.replay()
        return y.cpu()

    return call


def timed(module, host, form, peer):
    """Of one form: ms, and bytes of the device."""
    peer.start_memory()
    x = host.to(peer.device)
    if host.dim() == 4:
        x = x.to(memory_format=torch.channels_last)
    with torch.no_grad():
        mode = "max-autotune-no-cudagraphs" if peer.gpu else "default"
        f = torch.compile(module, mode=mode, dynamic=False) if form == "compile" else module
        call = (eager if form == "eager" else recorded)(f, x, host, peer)
        return {"ms": peer.median_ms(call), **peer.memory()}


def run(nets, name, precision, a, peer):
    module, shape, tokens = made(nets, name, precision)
    if len(shape) == 3:
        module = module.to(memory_format=torch.channels_last)
    module = module.to(peer.device)
    for batch in map(int, a.batch.split(",")):
        host = peer.pinned(sample(shape, tokens, batch, precision))
        for form in a.forms.split(","):
            row = {"network": name, "precision": precision, "batch": batch, "form": form}
            try:
                row.update(timed(module, host, form, peer))
            except Exception as e:  # what cannot be recorded or compiled is told
                row["error"] = reason(e)
            say(**row)


def first(nets, path):
    """What this process would do, in another one: PyTorch's own file of the weights is made before."""
    name = os.path.basename(path)[:-5].rsplit("-", 1)[0]
    kept = path[:-5] + ".pt"
    if not os.path.exists(kept):
        torch.save(made(nets, name, "f32")[0].state_dict(), kept)
    return name, kept


def load_and_run(nets, name, kept, device):
    module, shape, tokens = nets[name]
    with torch.device("meta"):
        net = module().eval()
    net.load_state_dict(torch.load(kept, mmap=True, weights_only=True), assign=True)
    net = net.to(device)
    with torch.no_grad():
        net(sample(shape, tokens, 1, "f32").to(device)).cpu()


def time_first(nets, a):
    name, kept = first(nets, a.first)
    command = [sys.executable, __file__, "--load", kept, "--first", name, "--device", a.device] + ["--small"] * a.small
    took = []
    for _ in range(1 if a.small else 3):
        begin = time.monotonic()
        subprocess.run(command, check=True)
        took.append(time.monotonic() - begin)
    say(network=name, s=round(min(took), 3))


def ort(path, a):
    import onnxruntime
    import numpy

    options = {"use_tf32": "0", "enable_cuda_graph": "0"}
    session = onnxruntime.InferenceSession(path, providers=[("CUDAExecutionProvider", options)])
    value = session.get_inputs()[0]
    numbers = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16, "tensor(int64)": numpy.int64}[value.type]
    peer = Peer(a.device, a.seconds)
    for batch in map(int, a.batch.split(",")):
        x = numpy.random.default_rng(1).random([batch if not isinstance(d, int) else d for d in value.shape]).astype(numbers)
        try:
            say(form="ort", batch=batch, ms=peer.median_ms(lambda: session.run(None, {value.name: x})))
        except Exception as e:
            say(form="ort", batch=batch, error=reason(e))


def export_train(folder, small):
    import train

    os.makedirs(folder, exist_ok=True)
    for name in list(train.BATCH)[:1 if small else None]:
        try:
            if not os.path.exists(os.path.join(folder, name + ".onnx")):
                train.export(name, folder)
            say(network=name, batch=train.BATCH[name])
        except Exception as e:
            say(network=name, error=reason(e))


def steps_of(name, form, a, peer):
    import train

    torch.compiler.reset()
    peer.start_memory()
    module, x, label = train.make(name)
    module, x, label = module.to(peer.device).train(), x.to(peer.device), label.to(peer.device)
    if x.dim() == 4:
        module, x = module.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(module.parameters(), 1e-3, fused=True)
    forward = torch.compile(module, mode="max-autotune" if peer.gpu else "default") if form == "compile" else module

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(peer.device.split(":")[0], TYPES[a.precision], enabled=a.precision != "f32"):
            loss = F.cross_entropy(forward(x).float(), label)
        loss.backward()
        optimizer.step()
        return loss.item()

    return {"ms": peer.median_ms(step), **peer.memory()}


def train_step(name, a, peer):
    for form in ("eager", "compile"):
        row = {"network": name, "precision": a.precision, "form": form}
        try:
            row.update(steps_of(name, form, a, peer))
        except Exception as e:
            row["error"] = reason(e)
        say(**row)


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    for name in ("export", "fill", "run", "ort", "first", "load", "export-train", "train"):
        p.add_argument("--" + name)
    p.add_argument("names", nargs="*")
    p.add_argument("--device", default="cuda")
    p.add_argument("--precision", default="f32")
    p.add_argument("--batch", default="1")
    p.add_argument("--forms", default="eager,graph")
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--small", action="store_true")
    a = p.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    nets, peer = SMALL if a.small else NETS, Peer(a.device, a.seconds)
    if a.load:
        load_and_run(nets, a.first, a.load, a.device)
    elif a.export:
        export(nets, a.names, a.export)
    elif a.fill:
        fill(nets, a.fill)
    elif a.run:
        for precision in a.precision.split(","):
            run(nets, a.run, precision, a, peer)
    elif a.ort:
        ort(a.ort, a)
    elif a.first:
        time_first(nets, a)
    elif a.export_train:
        export_train(a.export_train, a.small)
    elif a.train:
        train_step(a.train, a, peer)
    else:
        p.error("what is to be done?")


if __name__ == "__main__":
    main()

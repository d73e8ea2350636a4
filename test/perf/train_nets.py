"""More networks for train.py --nets more: structures that its five do not have, small enough for a minute each."""
import math

import torch
from torch import nn
from torch.nn import functional as F

CLASSES = 10


class Pooled(nn.Module):
    """A body that makes [N, channels, ...], its mean over all else, classes."""

    def __init__(self, channels, *body):
        super().__init__()
        self.body, self.out = nn.Sequential(*body), nn.Linear(channels, CLASSES)

    def forward(self, x):
        return self.out(self.body(x).flatten(2).mean(2))


class Plus(nn.Module):
    def __init__(self, *body):
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x):
        return x + self.body(x)


class ConvNextBlock(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.wide, self.norm = nn.Conv2d(d, d, 7, padding=3, groups=d), nn.LayerNorm(d, 1e-6)
        self.up, self.down, self.scale = nn.Linear(d, 4 * d), nn.Linear(4 * d, d), nn.Parameter(torch.full((d,), 0.5))

    def forward(self, x):
        y = self.norm(self.wide(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, 2, 1)
        self.c, self.up = nn.Conv2d(32, 48, 3, 2, 1, dilation=1), nn.ConvTranspose2d(48, 32, 3, 2, 1, output_padding=1)
        self.last, self.out = nn.ConvTranspose2d(64, 16, 2, 2), nn.Conv2d(32, CLASSES, 1)

    def forward(self, x):
        a = F.leaky_relu(self.a(x), 0.1)
        b = F.elu(self.b(a))
        y = torch.cat((F.softplus(self.up(F.relu(self.c(b)))), b), 1)
        return self.out(torch.cat((F.selu(self.last(y)), a), 1)).amax((2, 3))


class Squeeze(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.down, self.up = nn.Conv2d(d, d // 4, 1), nn.Conv2d(d // 4, d, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(F.silu(self.down(F.adaptive_avg_pool2d(x, 1)))))


def efficient():
    def block(i, o, k, stride):
        h = 4 * i
        return nn.Sequential(nn.Conv2d(i, h, 1, bias=False), nn.BatchNorm2d(h), nn.SiLU(),
                             nn.Conv2d(h, h, k, stride, k // 2, groups=h, bias=False), nn.BatchNorm2d(h), nn.SiLU(),
                             Squeeze(h), nn.Conv2d(h, o, 1, bias=False), nn.BatchNorm2d(o))

    return Pooled(32, nn.Conv2d(3, 16, 3, 2, 1), nn.Hardswish(), block(16, 24, 5, 2), Plus(block(24, 24, 3, 1)),
                  block(24, 32, 5, 2), Plus(block(32, 32, 5, 1)))


class Vit(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.patch, self.first = nn.Conv2d(3, d, 4, 4), nn.Parameter(torch.randn(1, 1, d) * 0.1)
        self.place = nn.Parameter(torch.randn(1, 65, d) * 0.1)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 4, 2 * d, 0.0, "gelu", batch_first=True, norm_first=i > 0)
                                     for i in range(2)])
        self.out = nn.Linear(d, CLASSES)

    def forward(self, x):
        y = self.patch(x).flatten(2).transpose(1, 2)
        y = torch.cat((self.first.expand(y.shape[0], -1, -1), y), 1) + self.place
        for layer in self.layers:
            y = layer(y)
        return self.out(y[:, 0])


class Dilated(nn.Module):
    """Gated, causal, skips added."""

    def __init__(self, d=32):
        super().__init__()
        self.first = nn.Conv1d(8, d, 1)
        self.gates = nn.ModuleList([nn.Conv1d(d, 2 * d, 3, dilation=2 ** i) for i in range(5)])
        self.mix, self.act, self.out = nn.ModuleList([nn.Conv1d(d, d, 1) for _ in range(5)]), nn.PReLU(d), nn.Linear(d, CLASSES)

    def forward(self, x):
        x, skips = self.first(x), 0
        for i, (gate, mix) in enumerate(zip(self.gates, self.mix)):
            a, b = gate(F.pad(x, (2 * 2 ** i, 0))).chunk(2, 1)
            y = mix(torch.tanh(a) * torch.sigmoid(b))
            x, skips = x + y, skips + y
        return self.out(self.act(skips).mean(2))


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn, self.angles = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU()), nn.Linear(32, 9)
        self.body, self.out = nn.Sequential(nn.Conv1d(3, 64, 1), nn.ReLU(), nn.Conv1d(64, 96, 1)), nn.Linear(96, CLASSES)

    def forward(self, x):
        t = self.angles(self.turn(x).amax(2)).reshape(-1, 3, 3) + torch.eye(3)
        return self.out(F.normalize(self.body(torch.bmm(t, x)).amax(2), dim=1) * 5)


class Tagger(nn.Module):
    """Tables, two layers of LSTM both ways, attention over places that are not padding."""

    def __init__(self, d=48):
        super().__init__()
        self.table, self.layers = nn.Embedding(128, 32), nn.LSTM(32, d, 2, batch_first=True, bidirectional=True)
        self.score, self.out = nn.Linear(2 * d, 1), nn.Linear(2 * d, CLASSES)

    def forward(self, x):
        y = self.layers(self.table(x))[0]
        s = torch.softmax(self.score(torch.tanh(y)).squeeze(2).masked_fill(x < 8, -1e4), 1)
        return self.out((s.unsqueeze(2) * y).sum(1))


class Gru(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.layers, self.rnn = nn.GRU(20, d, 2, batch_first=True, bidirectional=True), nn.RNN(2 * d, d, batch_first=True)
        self.out = nn.Linear(d, CLASSES)

    def forward(self, x):
        return self.out(self.rnn(self.layers(x)[0])[1][0])


class Mixer(nn.Module):
    def __init__(self, d=64, places=64):
        super().__init__()
        self.patch = nn.Conv2d(3, d, 4, 4)
        self.rows = nn.ModuleList([nn.Sequential(nn.LayerNorm(places), nn.Linear(places, 96), nn.Mish(), nn.Linear(96, places))
                                   for _ in range(2)])
        self.columns = nn.ModuleList([nn.Sequential(nn.RMSNorm(d), nn.Linear(d, 96), nn.GELU("tanh"), nn.Linear(96, d))
                                      for _ in range(2)])
        self.out = nn.Linear(d, CLASSES)

    def forward(self, x):
        y = self.patch(x).flatten(2)
        for rows, columns in zip(self.rows, self.columns):
            y = y + rows(y)
            y = y + columns(y.transpose(1, 2)).transpose(1, 2)
        return self.out(torch.logsumexp(y, 2))


class Grown(nn.Module):
    """Norms of instances and groups, images that grow, mirrored edges."""

    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.ReflectionPad2d(3), nn.Conv2d(3, 16, 7), nn.InstanceNorm2d(16, affine=True), nn.ReLU(),
                               nn.Conv2d(16, 64, 3, 2, 1, groups=4), nn.GroupNorm(8, 64), nn.LeakyReLU(0.2))
        self.b, self.c = nn.Conv2d(16, 16, 3, padding=1, padding_mode="replicate"), nn.Conv2d(16, CLASSES, 3, padding=1)

    def forward(self, x):
        y = F.interpolate(self.b(F.pixel_shuffle(self.a(x), 2)), scale_factor=2, mode="bilinear", align_corners=False)
        y = F.interpolate(F.avg_pool2d(F.relu6(y), 3, 2, 1), size=(20, 20), mode="bicubic", align_corners=False)
        return self.c(F.max_pool2d(y, 3, 2, 1)).abs().mean((2, 3)).sqrt()


class Windows(nn.Module):
    """Attention within shifted windows, with a table of relative places."""

    def __init__(self, d=48, heads=3, w=4):
        super().__init__()
        self.patch, self.heads, self.w = nn.Conv2d(3, d, 2, 2), heads, w
        self.norm, self.qkv, self.mix = nn.LayerNorm(d), nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.table = nn.Parameter(torch.randn((2 * w - 1) ** 2, heads) * 0.1)
        at = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(w), indexing="ij")).flatten(1)
        apart = (at[:, :, None] - at[:, None]) + w - 1
        self.register_buffer("at", apart[0] * (2 * w - 1) + apart[1])
        self.out = nn.Linear(d, CLASSES)

    def forward(self, x):
        y = self.patch(x).permute(0, 2, 3, 1)
        n, h, _, d = y.shape
        k, w = h // self.w, self.w
        for shift in (0, w // 2):
            z = torch.roll(self.norm(y), (-shift, -shift), (1, 2))
            z = z.reshape(n, k, w, k, w, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, d)
            q, key, v = self.qkv(z).reshape(-1, w * w, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
            a = q @ key.transpose(2, 3) / math.sqrt(d / self.heads) + self.table[self.at].permute(2, 0, 1)
            z = self.mix((a.softmax(3) @ v).transpose(1, 2).reshape(-1, w * w, d))
            z = z.reshape(n, k, k, w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(n, h, h, d)
            y = y + torch.roll(z, (shift, shift), (1, 2))
        return self.out(y.mean((1, 2)))


class Experts(nn.Module):
    """A mixture by einsum, linear attention by running sums."""

    def __init__(self, d=32, experts=4):
        super().__init__()
        self.table, self.qkv = nn.Embedding(64, d), nn.Linear(d, 3 * d)
        self.gate, self.w = nn.Linear(d, experts), nn.Parameter(torch.randn(experts, d, 2 * d) / 6)
        self.down, self.out = nn.Linear(2 * d, d), nn.Linear(d, CLASSES)

    def forward(self, x):
        y = self.table(x)
        q, k, v = self.qkv(y).chunk(3, 2)
        q, k = F.elu(q) + 1, torch.exp(k.clamp(-3, 3))
        state = torch.cumsum(torch.einsum("nti,ntj->ntij", k, v), 1)
        y = y + torch.einsum("nti,ntij->ntj", q, state) / (q * torch.cumsum(k, 1)).sum(2, keepdim=True)
        best, at = self.gate(y).topk(2, 2)
        gates = torch.zeros_like(self.gate(y)).scatter(2, at, best.softmax(2))
        y = y + self.down(F.relu(torch.einsum("nti,eij,nte->ntj", y, self.w, gates)).pow(2))
        return self.out(F.layer_norm(y, y.shape[2:]).mean(1))


IMAGE = (3, 32, 32)
# a network, the shape of a sample, and for tokens how many there are
MORE = {
    "convnext": (lambda: Pooled(32, nn.Conv2d(3, 32, 4, 4), ConvNextBlock(32), ConvNextBlock(32)), IMAGE, 0),
    "unet": (UNet, IMAGE, 0),
    "efficient": (efficient, IMAGE, 0),
    "vit": (Vit, IMAGE, 0),
    "dilated": (Dilated, (8, 128), 0),
    "points": (Points, (3, 256), 0),
    "tagger": (Tagger, (40,), 128),
    "gru": (Gru, (50, 20), 0),
    "mixer": (Mixer, IMAGE, 0),
    "grown": (Grown, IMAGE, 0),
    "windows": (Windows, IMAGE, 0),
    "experts": (Experts, (32,), 64),
}

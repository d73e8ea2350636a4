"""Made-up tasks that the networks beside this file have learned, and how well a network does: numpy alone.

Streams of RandomState are frozen: the same seed gives the same samples everywhere.
"""
import numpy as np

GRID = 8  # cells of the detector's plane, of 4 pixels each
WAVES = 4
TOKENS, DIGITS = 8, 10


def spots(seed, n):
    """Bright discs on a noisy plane: x f32 [n,1,32,32]; the cell of each centre, and its box (x, y, width, height)."""
    rs = np.random.RandomState(seed)
    x = rs.normal(0, 0.15, (n, 1, 32, 32))
    has = np.zeros((n, GRID * GRID), np.float32)
    box = np.zeros((n, GRID * GRID, 4), np.float32)
    rows, cols = np.mgrid[0:32, 0:32] + 0.5
    for i in range(n):
        for _ in range(rs.randint(1, 4)):
            cx, cy, rx, ry = rs.uniform(3, 29), rs.uniform(3, 29), rs.uniform(1.5, 4.5), rs.uniform(1.5, 4.5)
            cell = int(cy / 4) * GRID + int(cx / 4)
            inside = ((cols - cx) / rx) ** 2 + ((rows - cy) / ry) ** 2
            x[i, 0] += rs.uniform(0.6, 1.2) / (1 + np.exp(np.minimum(6 * (inside - 1), 50)))
            has[i, cell] = 1
            box[i, cell] = cx, cy, 2 * rx, 2 * ry
    return {"x": x.astype(np.float32)}, (has, box)


def waves(seed, n):
    """Sine, square, saw and triangle of any phase and length in noise: x f32 [n,40,2], and which it is."""
    rs = np.random.RandomState(seed)
    kind = rs.randint(0, WAVES, n)
    t = np.arange(40)[None] / rs.uniform(8, 16, (n, 1)) + rs.uniform(0, 1, (n, 1))
    part = t % 1
    shapes = np.stack([np.sin(2 * np.pi * part), np.where(part < 0.5, 1.0, -1.0), 2 * part - 1, 4 * np.abs(part - 0.5) - 1])
    wave = shapes[kind, np.arange(n)]
    x = np.stack([wave, np.gradient(wave, axis=1) * 2], -1) * rs.uniform(0.5, 1.5, (n, 1, 1))
    x = x + rs.normal(0, 0.05, x.shape)
    zero = np.zeros((n, 1, 32), np.float32)
    return {"x": x.astype(np.float32), "h0": zero, "c0": zero.copy()}, kind


def digits_to_sort(seed, n):
    """Tokens i64 [n,8] of 0 to 9, and the same in order."""
    tokens = np.random.RandomState(seed).randint(0, DIGITS, (n, TOKENS)).astype(np.int64)
    return {"tokens": tokens}, np.sort(tokens, 1)


def overlap(a, b):
    """Intersection over union of boxes given by their centres."""
    low = np.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    high = np.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    both = np.prod(np.maximum(high - low, 0), -1)
    return both / np.maximum(np.prod(a[..., 2:], -1) + np.prod(b[..., 2:], -1) - both, 1e-9)


def right_spots(out, truth):
    """Share of cells, of those with a disc and of the rest alike, that are told right; boxes have to overlap by half."""
    has, box = truth
    yes = out["scores"] > 0.5
    found = yes & (overlap(out["boxes"], box) > 0.5)
    return 0.5 * (found[has > 0].mean() + (~yes[has == 0]).mean())


def right_waves(out, truth):
    return (out["logits"].argmax(-1) == truth).mean()


def right_order(out, truth):
    return (out["order"].argmax(-1) == truth).mean()


NETS = {
    "spots": (spots, right_spots, 0.9),
    "waves": (waves, right_waves, 0.9),
    "sort": (digits_to_sort, right_order, 0.95),
}

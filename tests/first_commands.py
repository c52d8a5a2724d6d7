"""Thirty first commands and snippets: what people type who come from LiteRT, MediaPipe, ultralytics
and the pipelines of transformers, with the names of this library.

``python -m tests.first_commands`` prints how many work at once, or say the line that does.
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
import warnings
import wave
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import numpy as np
from PIL import Image
from typer.testing import CliRunner

from tests.made_networks import network
from tests.prediction.models import described
from tests.test_gestures import hand_bundle
from tflite_ort.command.cli import app
from tflite_ort.schema import ModelBuilder, Op
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    AudioProperties,
    Content,
    NormalizationOptions,
    ProcessUnit,
    TensorMetadata,
)

SIZE = 64


@dataclass(frozen=True)
class Command:
    """What is typed.

    Args:
        typed: a command line without ``tflite-ort``, or lines of Python.
        shows: what it prints where it works, or says where it does not.
    """

    origin: str
    typed: str
    shows: str
    python: bool = False


_LITERT = """
import numpy as np
from tflite_ort import Interpreter
interpreter = Interpreter(model_path="model.tflite"{more})
interpreter.allocate_tensors()
inp, out = interpreter.get_input_details(), interpreter.get_output_details()
interpreter.set_tensor(inp[0]["index"], np.zeros(inp[0]["shape"], inp[0]["dtype"]))
interpreter.invoke()
print(interpreter.get_tensor(out[0]["index"]).shape)
"""
_TASK = """
from tflite_ort import tasks as mp
from tflite_ort.tasks import vision
options = vision.{task}Options(base_options=mp.BaseOptions(model_asset_path="{model}"))
with vision.{task}.create_from_options(options) as task:
    print(task.{method}(mp.Image.create_from_file("cat.jpg")))
"""
_QUICK = "from tflite_ort import quick\nprint({call})"

COMMANDS: Sequence[Command] = (
    Command("LiteRT", _LITERT.format(more=""), "(1, 3)", python=True),
    Command("LiteRT", _LITERT.format(more=", num_threads=2"), "(1, 3)", python=True),
    Command(
        "LiteRT",
        "import numpy as np\nfrom tflite_ort.compiled_model import CompiledModel\n"
        'model = CompiledModel.from_file("model.tflite")\n'
        "given, made = model.create_input_buffers(0), model.create_output_buffers(0)\n"
        f"given[0].write(np.zeros((1, {SIZE}, {SIZE}, 3), np.float32))\n"
        "model.run_by_index(0, given, made)\nprint(made[0].read(3, np.float32).shape)",
        "(3,)",
        python=True,
    ),
    Command(
        "LiteRT",
        'from tflite_ort import Interpreter\nprint(Interpreter("model.tflite"))',
        "not allocated yet",
        python=True,
    ),
    Command("LiteRT", "run model.tflite", "random values"),
    Command("LiteRT", "run model.tflite cat.jpg", "cat"),
    Command("LiteRT", "run model.tflite --input cat.jpg", "cat"),
    Command("LiteRT", "run model.tflite cat.jpg --labels labels.txt --top 1", "lynx"),
    Command("LiteRT", "benchmark model.tflite", "did you mean 'bench'?"),
    Command("LiteRT", "convert model.tflite", "did you mean 'export'?"),
    Command("LiteRT", "visualize model.tflite", "did you mean 'view'?"),
    Command("LiteRT", "inspect model.tflite", "run in ONNX Runtime"),
    Command(
        "MediaPipe",
        _TASK.format(task="ImageClassifier", model="model.tflite", method="classify"),
        "category_name='cat'",
        python=True,
    ),
    Command(
        "MediaPipe",
        _TASK.format(task="ObjectDetector", model="yolo.tflite", method="detect"),
        "BoundingBox(",
        python=True,
    ),
    Command(
        "MediaPipe",
        _TASK.format(task="HandLandmarker", model="hand_landmarker.task", method="detect"),
        "hand_landmarks=",
        python=True,
    ),
    Command("MediaPipe", "run hand_landmarker.task cat.jpg", "hand landmarker"),
    Command("MediaPipe", "run hand_landmarker.task cat.jpg --output drawn.png", "wrote drawn.png"),
    Command("MediaPipe", "export hand_landmarker.task hand/", "wrote hand/bundle.json"),
    Command("ultralytics", "run yolo.tflite cat.jpg", "person"),
    Command("ultralytics", "run yolo.tflite cat.jpg --output found.jpg", "wrote found.jpg"),
    Command("ultralytics", "predict yolo.tflite cat.jpg", "add --out results.csv"),
    Command("ultralytics", "predict yolo.tflite . --out all.csv --draw drawn", "wrote all.csv"),
    Command("ultralytics", "export yolo.tflite --decode --check", "wrote yolo.onnx"),
    Command("ultralytics", "detect yolo.tflite cat.jpg", "did you mean 'run'?"),
    Command(
        "ultralytics",
        'from tflite_ort import quick\nfound = quick.run("yolo.tflite", "cat.jpg")\n'
        'found.draw("drawn.png")\nprint(found.answer.boxes)',
        "label='person'",
        python=True,
    ),
    Command(
        "transformers",
        _QUICK.format(call='quick.run("model.tflite", "cat.jpg")'),
        "cat",
        python=True,
    ),
    Command(
        "transformers",
        "from PIL import Image\n"
        + _QUICK.format(call='quick.run("model.tflite", Image.open("cat.jpg")).answer.classes'),
        "label='cat'",
        python=True,
    ),
    Command(
        "transformers",
        _QUICK.format(call='quick.run("sound.tflite", "sound.wav")'),
        "speech",
        python=True,
    ),
    Command("transformers", "run sound.tflite sound.wav", "speech"),
    Command(
        "transformers",
        "import numpy as np\nfrom PIL import Image\nfrom tflite_ort import Predictor\n"
        'predictor = Predictor("model.tflite", preprocess=True)\n'
        'print(predictor({"image": [np.array(Image.open("cat.jpg"))] * 4}))',
        "'cat'",
        python=True,
    ),
)


def made(folder: Path) -> None:
    """The files that the commands name."""
    labels = AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    scores = TensorMetadata(name="scores", associated_files=(labels,))
    unit = ProcessUnit(options=NormalizationOptions((0.0,), (255.0,)))
    picture = TensorMetadata(name="image", process_units=(unit,))
    content = network(SIZE, [np.array([[1.0, 4.0, 2.0]])], last=Op.SOFTMAX)
    model = described(content, picture, [scores], {"labels.txt": "dog\ncat\nfox"})
    (folder / "model.tflite").write_bytes(model)
    (folder / "labels.txt").write_text("wolf\nlynx\nbear\n")
    table = np.zeros((1, 4 + 2, 84))
    table[0, :, 3] = [0.5, 0.5, 0.2, 0.1, 0.9, 0]
    names = {"metadata.json": '{"names": {"0": "person", "1": "car"}, "task": "detect"}'}
    yolo = described(network(SIZE, [table]), TensorMetadata(), [], names)
    (folder / "yolo.tflite").write_bytes(yolo)
    (folder / "hand_landmarker.task").write_bytes(hand_bundle())
    builder = ModelBuilder()
    graph = builder.subgraph("main").tensor("sound", (1, 1000)).tensor("y", (1, 2))
    graph.constant("begin", np.array([0, 0], np.int32))
    graph.constant("size", np.array([1, 2], np.int32)).tensor("part", (1, 2))
    graph.operator(Op.SLICE, ["sound", "begin", "size"], ["part"])
    graph.operator(Op.LOGISTIC, ["part"], ["y"]).inputs("sound").outputs("y")
    content_of = Content(content_properties=AudioProperties(sample_rate=16000, channels=1))
    heard = TensorMetadata(name="sound", content=content_of)
    sound = described(builder.write(), heard, [scores], {"labels.txt": "speech\nmusic"})
    (folder / "sound.tflite").write_bytes(sound)
    Image.new("RGB", (200, 100), (90, 120, 30)).save(folder / "cat.jpg")
    with wave.open(str(folder / "sound.wav"), "wb") as stream:
        stream.setnchannels(1)
        stream.setsampwidth(2)
        stream.setframerate(16000)
        stream.writeframes(np.zeros(2000, "<i2").tobytes())


def shown(command: Command) -> str:
    """What a command prints in the present folder."""
    if not command.python:
        return CliRunner().invoke(app, command.typed.split()).output
    printed = StringIO()
    with redirect_stdout(printed), redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(command.typed, "snippet", "exec"), {})
        except Exception:  # a snippet that fails is what is looked for
            return traceback.format_exc()
    return printed.getvalue()


def works(command: Command) -> bool:
    """Whether it shows what it should."""
    return command.shows in shown(command)


def main() -> None:
    count = 0
    with tempfile.TemporaryDirectory() as name:
        made(Path(name))
        os.chdir(name)
        for command in COMMANDS:
            good = works(command)
            count += good
            text = command.typed.strip().splitlines()[-1] if command.python else command.typed
            sys.stdout.write(f"{'works' if good else 'FAILS'}  {command.origin:12}  {text}\n")
        os.chdir("/")
    sys.stdout.write(f"{count} of {len(COMMANDS)}\n")


if __name__ == "__main__":
    main()

"""A picture becomes the same numbers everywhere: in numpy, in a decoded export, in tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.prediction.models import described
from tests.test_cli import call
from tests.test_decode import made, outputs_of, session
from tflite_ort import Predictor, export_onnx
from tflite_ort.decode.image_input import add_image_input
from tflite_ort.decode.picture_input import PictureInput
from tflite_ort.decode.pixel_range import (
    FROM_MINUS_ONE,
    IMAGENET,
)
from tflite_ort.decode.sampling import tensor_of
from tflite_ort.schema import (
    ModelBuilder,
    Op,
    QuantizationParameters,
    TensorType,
)
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    NormalizationOptions,
    ProcessUnit,
    TensorMetadata,
)
from tflite_ort.tasks.network import Network
from tflite_ort.tasks.options import BaseOptions

Array = npt.NDArray[Any]
Image = pytest.importorskip("PIL.Image")


def pixels(height: int, width: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def by_nodes(picture: Array, how: PictureInput) -> Array:
    def write(nodes: Any) -> dict[str, Any]:
        add_image_input(nodes, "tensor", how)
        sizes = [3, how.height, how.width] if how.channels_first else [how.height, how.width, 3]
        return {"made": ("tensor", how.dtype, [1, *sizes])}

    return outputs_of(made(write), {"image": picture})["made"][0]


SIZES = ((37, 53), (300, 500), (1, 9), (40, 1), (48, 60), (480, 641), (5, 3))
WAYS = {
    "stretched": PictureInput(48, 60),
    "minus one to one": PictureInput(60, 60, *FROM_MINUS_ONE),
    "imagenet": PictureInput(32, 32, *IMAGENET),
    "zeros around": PictureInput(60, 60, letterbox=True, outside="zeros"),
    "gray around": PictureInput(60, 48, letterbox=True, outside="gray"),
    "border": PictureInput(48, 60, letterbox=True),
    "blue first": PictureInput(48, 60, *IMAGENET, bgr=True),
    "int32": PictureInput(48, 60, dtype="int32"),
    "channels first": PictureInput(48, 60, *IMAGENET, channels_first=True),
    "uint8": PictureInput(48, 60, dtype="uint8"),
    "int8": PictureInput(48, 60, dtype="int8", letterbox=True, outside="gray"),
    "a table": PictureInput(48, 60, (127.0,), (64.0,), dtype="int8", scale=0.02, zero_point=3),
    "tables": PictureInput(48, 60, *IMAGENET, dtype="uint8", scale=0.0187, zero_point=114),
}


@pytest.mark.parametrize("way", WAYS)
def test_numpy_gives_what_the_nodes_give(way: str) -> None:
    how = WAYS[way]
    for seed, size in enumerate(SIZES):
        picture = pixels(*size, seed)
        found, wanted = tensor_of(picture, how), by_nodes(picture, how)
        assert found.dtype == wanted.dtype == np.dtype(how.dtype)
        np.testing.assert_array_equal(found, wanted, f"{way} of {size}")


# Run, predict, tasks and decoded exports ---------------------------------------------------------

HEIGHT, WIDTH = 12, 20
COUNT = HEIGHT * WIDTH * 3


def flat(dtype: str = "float32", told: NormalizationOptions | None = None) -> bytes:
    """A classifier whose scores are the numbers that a picture becomes."""
    builder = ModelBuilder()
    graph = builder.subgraph("main")
    scale = QuantizationParameters.affine(1 / 128, 128 if dtype == "uint8" else 0)
    kind = TensorType[dtype.upper()]
    stored = None if dtype == "float32" else scale
    graph.tensor("image", (1, HEIGHT, WIDTH, 3), kind, quantization=stored)
    graph.tensor("scores", (1, COUNT), kind, quantization=stored)
    graph.constant("shape", np.array([1, COUNT], np.int32))
    graph.operator(Op.RESHAPE, ["image", "shape"], ["scores"])
    graph.inputs("image").outputs("scores")
    units = () if told is None else (ProcessUnit(options=told),)
    labels = AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    names = "\n".join(f"class {number}" for number in range(COUNT))
    return described(
        builder.write(),
        TensorMetadata(name="image", process_units=units),
        [TensorMetadata(name="scores", associated_files=(labels,))],
        {"labels.txt": names},
    )


@pytest.mark.parametrize(
    ("dtype", "told"),
    [
        ("float32", None),
        ("float32", NormalizationOptions((127.5,), (127.5,))),
        ("float32", NormalizationOptions(*IMAGENET)),
        ("uint8", NormalizationOptions((127.5,), (127.5,))),
        ("uint8", NormalizationOptions(*IMAGENET)),
        ("int8", None),
    ],
)
def test_run_predict_tasks_and_exports_read_the_same_numbers(
    tmp_path: Path, dtype: str, told: NormalizationOptions | None
) -> None:
    content, file = flat(dtype, told), tmp_path / "model.tflite"
    file.write_bytes(content)
    picture = pixels(33, 47)
    Image.fromarray(picture).save(tmp_path / "picture.png")
    result = call("run", file, tmp_path / "picture.png", "--output", tmp_path / "y.npy")
    assert result.exit_code == 0, result.output
    run = np.load(tmp_path / "y.npy")[0]

    predicted = Predictor(content, preprocess=True, labels=False)({"image": [picture]})["scores"]
    np.testing.assert_array_equal(predicted[0], run)

    out = tmp_path / "rows.npz"
    assert call("predict", file, tmp_path / "picture.png", "--out", out).exit_code == 0
    with np.load(out) as rows:
        np.testing.assert_array_equal(rows["scores"][0], run)

    scale, point = {"float32": (1, 0), "uint8": (1 / 128, 128), "int8": (1 / 128, 0)}[dtype]
    real = (run.astype(np.float32) - np.float32(point)) * np.float32(scale)
    order = np.argsort(-real, kind="stable")
    task = Network(memoryview(content), BaseOptions(model_asset_buffer=content), "classifier")
    found = task(picture, roi=np.array([0.5, 0.5, 1, 1, 0], np.float32))
    np.testing.assert_array_equal(found["scores"], real[order])

    exported = session(export_onnx(file, decode="image"))
    np.testing.assert_array_equal(outputs_of(exported, {"image": picture})["scores"], real[order])

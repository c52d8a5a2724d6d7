"""A picture becomes the same numbers everywhere: in numpy, in a decoded export, in tasks."""

from __future__ import annotations

import json
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
from tflite_ort.decode.picture_input import PictureInput, prepared
from tflite_ort.decode.pixel_range import (
    ASSUMED,
    FROM_MINUS_ONE,
    FROM_ZERO,
    IMAGENET,
    METADATA,
    PIXELS,
    PixelRange,
    pixel_range,
)
from tflite_ort.decode.sampling import WHOLE, _whole_places, tensor_of
from tflite_ort.decode.warp import places
from tflite_ort.schema import (
    AddOptions,
    DivOptions,
    Model,
    ModelBuilder,
    MulOptions,
    Op,
    QuantizationParameters,
    SubOptions,
    Tensor,
    TensorType,
    read_model,
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
    """What the nodes make of a picture, at the places that they find or are given."""
    size, tensor = (picture.shape[1], picture.shape[0]), (how.width, how.height)
    at = places(np.array(WHOLE, np.float32), size, tensor, how.letterbox)

    def write(nodes: Any) -> dict[str, Any]:
        add_image_input(nodes, "tensor", how)
        sizes = [3, how.height, how.width] if how.channels_first else [how.height, how.width, 3]
        return {"made": ("tensor", how.dtype, [1, *sizes])}

    feeds = {"image": picture, **({"places": at} if how.placed else {})}
    return outputs_of(made(write), feeds)["made"][0]


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


@pytest.mark.parametrize("outside", ["border", "zeros", "gray"])
def test_places_between_two_32nds_are_those_of_the_tasks(outside: str) -> None:
    """There a line of a tensor may not lie in a line of the picture."""
    how = PictureInput(128, 128, letterbox=True, outside=outside, placed=True)
    for size in ((300, 451), (451, 300), (97, 33), (512, 512)):
        picture = pixels(*size)
        np.testing.assert_array_equal(tensor_of(picture, how), by_nodes(picture, how), str(size))
    x, _ = _whole_places((451, 300), (128, 128), True)
    assert x.ndim == 2  # such lines are tried here


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
    assert call("predict", file, tmp_path / "picture.png", "--out", out, "--raw").exit_code == 0
    with np.load(out) as rows:
        np.testing.assert_array_equal(rows["scores"][0], run)

    scale, point = {"float32": (1, 0), "uint8": (1 / 128, 128), "int8": (1 / 128, 0)}[dtype]
    real = (run.astype(np.float32) - np.float32(point)) * np.float32(scale)
    order = np.argsort(-real, kind="stable")
    task = Network(memoryview(content), BaseOptions(model_asset_buffer=content), "classifier")
    found = task(picture, roi=np.array([0.5, 0.5, 1, 1, 0], np.float32))
    np.testing.assert_array_equal(found["scores"], real[order])

    exported = session(export_onnx(file, decode="image", decode_inputs=True))
    np.testing.assert_array_equal(outputs_of(exported, {"image": picture})["scores"], real[order])


# Ranges that a model shows -----------------------------------------------------------------------


def starting(*steps: tuple[Op, Any, Any], stored: tuple[float, int] | None = None) -> Model:
    """A model of a picture [1, 8, 8, 3] whose first operators have these constants; or that makes
    codes of int8 of it first, by a scale and a zero point."""
    builder = ModelBuilder()
    graph = builder.subgraph("main").tensor("x", (1, 8, 8, 3))
    last = "x"
    for number, (op, constant, options) in enumerate(steps):
        graph.constant(f"c{number}", np.asarray(constant, np.float32))
        graph.tensor(f"y{number}", (1, 8, 8, 3))
        graph.operator(op, [last, f"c{number}"], [f"y{number}"], options)
        last = f"y{number}"
    if stored is not None:
        codes = QuantizationParameters.affine(*stored)
        graph.tensor("q", (1, 8, 8, 3), TensorType.INT8, quantization=codes)
        graph.operator(Op.QUANTIZE, [last], ["q"])
        last = "q"
    graph.tensor("end", (1, 8, 8, 3)).operator(Op.RELU, [last], ["end"])
    graph.inputs("x").outputs("end")
    return read_model(builder.write())


def mul(number: Any) -> tuple[Op, Any, Any]:
    return Op.MUL, number, MulOptions()


def sub(number: Any) -> tuple[Op, Any, Any]:
    return Op.SUB, number, SubOptions()


MEANS, DEVIATIONS = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        (starting(mul(1 / 127.5), sub(1.0)), PIXELS),
        (starting((Op.DIV, 255.0, DivOptions())), PIXELS),
        (starting((Op.ADD, -127.5, AddOptions()), mul(1 / 128)), PIXELS),
        (starting(sub([123.68, 116.78, 103.94])), PIXELS),
        (starting(mul(2.0), sub(1.0)), FROM_ZERO),
        (starting(sub(0.5), mul(2.0)), FROM_ZERO),
        (starting(sub(MEANS), (Op.DIV, DEVIATIONS, DivOptions())), FROM_ZERO),
        (starting(mul(255.0), sub(127.5)), FROM_ZERO),
        (starting(mul(127.5), (Op.ADD, 127.5, AddOptions())), FROM_MINUS_ONE),
        (starting(stored=(1.0, -128)), PIXELS),
        (starting(stored=(1 / 255, -128)), FROM_ZERO),
        (starting(stored=(1 / 127.5, -1)), FROM_MINUS_ONE),
        (starting(stored=(0.0187, -14)), IMAGENET),
        (starting(), None),
        (starting(mul(0.0)), None),
        (starting(mul(1e30)), None),
        (starting(*[mul(1e38)] * 11), None),
        (starting(*[(Op.DIV, 1e-45, DivOptions())] * 11, stored=(1e-45, 0)), None),
        (starting(stored=(0.5, 0)), None),
    ],
)
def test_a_model_shows_the_range_of_its_pixels(model: Model, shown: Any) -> None:
    found = pixel_range(model, 0, int(model.subgraphs[0].inputs[0]))
    if shown is None:
        assert (found.mean, found.std, found.source) == (*FROM_ZERO, ASSUMED)
    else:
        assert (found.mean, found.std) == shown
        assert "at its start show" in found.source


def test_what_the_metadata_say_counts_more() -> None:
    model = starting(mul(1 / 127.5), sub(1.0))
    said = NormalizationOptions((3.0,), (4.0,))
    told = TensorMetadata(process_units=(ProcessUnit(options=said),))
    assert pixel_range(model, 0, 0, told) == PixelRange((3.0,), (4.0,), METADATA)
    for useless in (NormalizationOptions((1.0, 2.0), (1.0,)), NormalizationOptions((1.0,), (0.0,))):
        told = TensorMetadata(process_units=(ProcessUnit(options=useless),))
        assert pixel_range(model, 0, 0, told).mean == PIXELS[0]


@pytest.mark.parametrize(
    ("scale", "point", "mean", "std", "pixels"),
    [
        (1 / 128, 128, 127.5, 127.5, True),  # a scale that was rounded
        (1 / 255, 0, 0.0, 255.0, True),
        (0.02, 0, 0.0, 255.0, False),
        (1 / 128, 100, 127.5, 127.5, False),
    ],
)
def test_codes_are_pixels_where_both_mean_the_same(
    scale: float, point: int, mean: float, std: float, pixels: bool
) -> None:
    stored = QuantizationParameters.affine(scale, point)
    tensor = Tensor(shape=(1, 4, 4, 3), type=TensorType.UINT8, quantization=stored)
    how = prepared(tensor, PixelRange((mean,), (std,), METADATA))
    assert how is not None
    assert how.takes_pixels is pixels
    if not pixels:
        real = (np.arange(256) - mean) / std / np.float32(scale)
        wanted = np.clip(np.round(real) + point, 0, 255)
        np.testing.assert_array_equal(how.codes(), wanted)


@pytest.mark.parametrize("scale", [1e-45, 3e38, float("inf"), float("nan")])
def test_numbers_that_a_file_makes_up_make_no_warning(scale: float) -> None:
    stored = QuantizationParameters.affine(scale, 5)
    tensor = Tensor(shape=(1, 4, 4, 3), type=TensorType.INT8, quantization=stored)
    how = prepared(tensor, PixelRange((3e38,), (1e-45,), METADATA))
    assert how is not None
    assert tensor_of(pixels(9, 9), how).shape == (4, 4, 3)
    real = PictureInput(4, 4, (3e38,), (1e-45,))
    assert tensor_of(pixels(9, 9), real).dtype == np.float32


def test_float_pictures_without_metadata_are_said_to_be_assumed(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(flat())
    Image.fromarray(pixels(9, 9)).save(tmp_path / "p.png")
    said = call("run", tmp_path / "model.tflite", tmp_path / "p.png").stdout.splitlines()[0]
    assert "pixels from 0 to 1, assumed" in said
    assert "--mean 127.5 --std 127.5: -1 to 1" in said
    found = json.loads(
        call(
            "run",
            tmp_path / "model.tflite",
            tmp_path / "p.png",
            "--json",
            "--mean",
            "127.5",
            "--std",
            "127.5",
        ).stdout
    )
    assert found["scores"]["min"] < 0

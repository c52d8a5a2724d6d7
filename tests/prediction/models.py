"""Small models whose rows are known."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.schema import (
    AddOptions,
    Buffer,
    FullyConnectedOptions,
    GatherOptions,
    Metadata,
    ModelBuilder,
    Op,
    RandomOptions,
    ReducerOptions,
    ReshapeOptions,
    TensorType,
    read_model,
    write_model,
)
from tflite_ort.schema.file.model_metadata import (
    NAME,
    AssociatedFile,
    AssociatedFileType,
    AudioProperties,
    Content,
    ImageProperties,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    SubGraphMetadata,
    TensorMetadata,
    write_metadata,
)

Array = npt.NDArray[Any]

LABELS = ("red", "green", "blue")


def sums(whole: bool = False) -> bytes:
    """[1, 4] floats -> their sum and 1, [1, 1].

    Args:
        whole: the sum goes over the first axis too.
    """
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", (1, 4)).tensor("total", () if whole else (1, 1)).tensor("y", (1, 1))
    main.constant("axes", np.int32([0, 1] if whole else [1])).constant("one", np.float32([[1]]))
    main.operator(Op.SUM, ["x", "axes"], ["total"], ReducerOptions(keep_dims=not whole))
    main.operator(Op.ADD, ["total", "one"], ["y"], AddOptions())
    main.inputs("x").outputs("y")
    return builder.write()


def colours(named: str = "y", beside: str | None = None) -> bytes:
    """A float image [1, 8, 8, 3], normalised to [-1, 1] -> the mean of each channel [1, 3], with
    labels, and its amount, named `beside`, if this is a name."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("image", (1, 8, 8, 3)).tensor(named, (1, 3))
    main.constant("axes", np.int32([1, 2]))
    main.operator(Op.MEAN, ["image", "axes"], [named], ReducerOptions())
    if beside:
        main.tensor(beside, (1, 3)).operator(Op.ABS, [named], [beside])
    main.inputs("image").outputs(named, *([beside] if beside else []))
    image = TensorMetadata(
        name="image",
        content=Content(content_properties=ImageProperties()),
        process_units=(ProcessUnit(options=NormalizationOptions(mean=(127.5,), std=(127.5,))),),
    )
    labels = AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    scores = TensorMetadata(name="scores", associated_files=(labels,))
    made = (scores, TensorMetadata(name=beside)) if beside else (scores,)
    return described(builder.write(), image, made, {"labels.txt": "\n".join(LABELS)})


def loudness(rate: int = 8000) -> bytes:
    """Sound [1, 800] -> the mean of its squares [1]."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("sound", (1, 800)).tensor("squares", (1, 800)).tensor("power", (1,))
    main.constant("axes", np.int32([1]))
    main.operator(Op.SQUARE, ["sound"], ["squares"])
    main.operator(Op.MEAN, ["squares", "axes"], ["power"], ReducerOptions())
    main.inputs("sound").outputs("power")
    properties = AudioProperties(sample_rate=rate, channels=1)
    sound = TensorMetadata(name="sound", content=Content(content_properties=properties))
    return described(builder.write(), sound, [TensorMetadata(name="power")], {})


def of_any_length(sound: bool) -> bytes:
    """The sum of sound of any length [-1], or of a picture of any size [-1, -1, 3]."""
    shape, signature = ((1,), (-1,)) if sound else ((1, 1, 3), (-1, -1, 3))
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", shape).tensor("sum", ()).constant(
        "axes", np.arange(len(shape), dtype=np.int32)
    )
    main.operator(Op.SUM, ["x", "axes"], ["sum"], ReducerOptions())
    main.inputs("x").outputs("sum")
    model = read_model(builder.write())
    graph = model.subgraphs[0]
    (place,) = graph.inputs
    tensors = list(graph.tensors)
    tensors[place] = replace(tensors[place], shape_signature=signature)
    content = write_model(replace(model, subgraphs=(replace(graph, tensors=tuple(tensors)),)))
    properties = AudioProperties(sample_rate=8000, channels=1) if sound else ImageProperties()
    taken = TensorMetadata(name="x", content=Content(content_properties=properties))
    return described(content, taken, [TensorMetadata(name="sum")], {})


def above_zero() -> bytes:
    """[4] floats -> where they are above 0, [n, 1]: a shape that depends on the row."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", (4,)).tensor("above", (4,), TensorType.BOOL)
    main.tensor("where", (4, 1), TensorType.INT64).constant("zero", np.float32([0]))
    main.operator(Op.GREATER, ["x", "zero"], ["above"])
    main.operator(Op.WHERE, ["above"], ["where"])
    main.inputs("x").outputs("where")
    return builder.write()


def noise() -> bytes:
    """[4] floats and random numbers added to them: no batch gives what single runs give."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", (4,)).tensor("drawn", (4,)).tensor("y", (4,))
    main.constant("sizes", np.int32([4]))
    main.operator(Op.RANDOM_UNIFORM, ["sizes"], ["drawn"], RandomOptions(seed=1, seed2=2))
    main.operator(Op.ADD, ["x", "drawn"], ["y"], AddOptions())
    main.inputs("x").outputs("y")
    return builder.write()


def picks() -> bytes:
    """[1] int32 -> the element of [10, 20, 30] at this place, [1]; fails at other places."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("place", (1,), TensorType.INT32).tensor("y", (1,))
    main.constant("numbers", np.float32([10, 20, 30]))
    main.operator(Op.GATHER, ["numbers", "place"], ["y"], GatherOptions())
    main.inputs("place").outputs("y")
    return builder.write()


def dense_layer(inputs: int, outputs: int) -> bytes:
    """[1, inputs] floats -> [1, outputs], by random weights."""
    weights = np.random.default_rng(0).normal(size=(outputs, inputs)).astype(np.float32)
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", (1, inputs)).tensor("y", (1, outputs)).constant("weights", weights)
    main.operator(Op.FULLY_CONNECTED, ["x", "weights", None], ["y"], FullyConnectedOptions())
    main.inputs("x").outputs("y")
    return builder.write()


def scalar_model() -> bytes:
    """[1, 4] floats -> their sum, without dimensions."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("x", (1, 4)).tensor("y", ()).constant("axes", np.int32([0, 1]))
    main.operator(Op.SUM, ["x", "axes"], ["y"], ReducerOptions())
    main.inputs("x").outputs("y")
    return builder.write()


def two_inputs() -> bytes:
    """[1, 2, 2] and [4] floats -> their sum [1, 4]."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("a", (1, 2, 2)).tensor("flat", (1, 4)).tensor("b", (4,)).tensor("y", (1, 4))
    main.constant("shape", np.int32([1, 4]))
    main.operator(Op.RESHAPE, ["a", "shape"], ["flat"], ReshapeOptions(new_shape=(1, 4)))
    main.operator(Op.ADD, ["flat", "b"], ["y"], AddOptions())
    main.inputs("a", "b").outputs("y")
    return builder.write()


def described(
    content: bytes, given: TensorMetadata, made: Sequence[TensorMetadata], files: dict[str, str]
) -> bytes:
    """A model with metadata of its input and its outputs, and with files behind it."""
    model = read_model(content)
    graph = SubGraphMetadata(input_tensor_metadata=(given,), output_tensor_metadata=tuple(made))
    text = write_metadata(ModelMetadata(name="test", subgraph_metadata=(graph,)))
    buffer = Buffer(data=np.frombuffer(text, np.uint8))
    named = (Metadata(NAME, len(model.buffers)),)
    stream = io.BytesIO(
        write_model(replace(model, buffers=(*model.buffers, buffer), metadata=named))
    )
    stream.seek(0, io.SEEK_END)
    if files:
        with zipfile.ZipFile(stream, "a") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    return stream.getvalue()

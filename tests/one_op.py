"""Models of one operator, compared three ways: LiteRT, ONNX Runtime and the numpy kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.oracle import litert
from tests.placements import where
from tflite_ort import Interpreter
from tflite_ort.schema import (
    ModelBuilder,
    Op,
    QuantizationParameters,
    SparsityParameters,
    SubgraphBuilder,
    TensorType,
)
from tflite_ort.schema.builder import tensor_type
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class T:
    """A tensor of a small model. It is a constant if it has `data` or `raw`.

    Args:
        scale, zero_point: one each, or one for each channel along `axis`. Without a scale the
            tensor is not quantised.
        raw: the bytes of a constant as the file stores them.
        sparsity: how the data of a sparse constant are ordered.
    """

    shape: tuple[int, ...]
    type: TensorType = TensorType.FLOAT32
    scale: float | Sequence[float] | None = None
    zero_point: int | Sequence[int] = 0
    axis: int = 0
    data: Array | None = None
    raw: bytes | None = None
    sparsity: SparsityParameters | None = None
    shape_signature: tuple[int, ...] | None = None
    is_variable: bool = False

    @classmethod
    def constant(cls, data: npt.ArrayLike, type: TensorType | None = None, **more: Any) -> T:
        """A constant. Its type follows from the dtype of the array unless `type` is set."""
        array = np.asarray(data)
        type = tensor_type(array.dtype) if type is None else type
        return cls(array.shape, type, data=array, **more)

    @property
    def is_constant(self) -> bool:
        return self.data is not None or self.raw is not None

    def declare(self, graph: SubgraphBuilder, name: str) -> None:
        """Add the tensor to a subgraph."""
        quantization = None
        if self.scale is not None:
            quantization = QuantizationParameters.affine(self.scale, self.zero_point, self.axis)
        if self.raw is not None:
            graph.constant(
                name, self.raw, self.type, quantization, shape=self.shape, sparsity=self.sparsity
            )
        elif self.data is not None:
            graph.constant(name, self.data, self.type, quantization)
        else:
            graph.tensor(
                name,
                self.shape,
                self.type,
                quantization,
                is_variable=self.is_variable,
                shape_signature=self.shape_signature,
            )

    def random(self, rng: np.random.Generator, low: float = -4.0, high: float = 4.0) -> Array:
        """Random values: the whole range of a quantised type, uniform in [low, high) for others."""
        dtype = NUMPY_DTYPE[self.type]
        if self.type is TensorType.BOOL:
            return rng.integers(0, 2, self.shape).astype(np.bool_)
        if self.scale is not None or dtype in (np.int8, np.uint8):
            lowest, highest = quantized_range(self.type)
            return rng.integers(lowest, highest + 1, self.shape).astype(dtype)
        if dtype.kind in "iu":
            return rng.integers(int(low), int(high) + 1, self.shape).astype(dtype)
        return rng.uniform(low, high, self.shape).astype(dtype)


@dataclass(frozen=True)
class Node:
    """An operator of a small model. Its inputs and outputs are names of tensors.

    Args:
        op: an operator of TFLite, or the name of a custom operator.
    """

    op: Op | str
    inputs: Sequence[str | None]
    outputs: Sequence[str]
    options: Any = None
    version: int = 1
    intermediates: Sequence[str] = ()


def add_subgraph(
    model: ModelBuilder, name: str, tensors: Mapping[str, T], nodes: Sequence[Node]
) -> SubgraphBuilder:
    """Add a subgraph with these tensors and operators. It has no inputs and outputs yet."""
    graph = model.subgraph(name)
    for key, t in tensors.items():
        t.declare(graph, key)
    for node in nodes:
        graph.operator(
            node.op,
            node.inputs,
            node.outputs,
            node.options,
            version=node.version,
            intermediates=node.intermediates,
        )
    return graph


def graph_model(tensors: Mapping[str, T], nodes: Sequence[Node], outputs: Sequence[str]) -> bytes:
    """The bytes of a model of `nodes`. Tensors that no operator makes are its inputs."""
    made = {name for node in nodes for name in (*node.outputs, *node.intermediates)}
    inputs = [
        name
        for name, t in tensors.items()
        if name not in made and not t.is_constant and not t.is_variable
    ]
    model = ModelBuilder()
    add_subgraph(model, "main", tensors, nodes).inputs(*inputs).outputs(*outputs)
    return model.write()


def one_op_model(
    op: Op | str,
    inputs: Sequence[T | None],
    outputs: Sequence[T],
    options: Any = None,
    version: int = 1,
) -> bytes:
    """The bytes of a model of one operator. None leaves out an optional input."""
    tensors = {f"in{i}": t for i, t in enumerate(inputs) if t is not None}
    names = [None if t is None else f"in{i}" for i, t in enumerate(inputs)]
    results = [f"out{i}" for i in range(len(outputs))]
    tensors.update(zip(results, outputs, strict=True))
    return graph_model(tensors, [Node(op, names, results, options, version)], results)


@dataclass(frozen=True)
class Case:
    """One row of a family's table: an operator with its tensors and options.

    Args:
        low, high: the range of random inputs that are floats or integers without a scale.
        quanta: how far a quantised result of ONNX Runtime may be from LiteRT's, in quanta.
        rtol: the tolerance of floats, relative to the largest magnitude.
        reference: the kernels of LiteRT that the numpy kernel is compared with. Integers have to be
            equal.
        runs_on: where the interpreter has to run the operator by default. A result without elements
            may also be a constant.
        feeds: the inputs, if they are not random.
    """

    name: str
    op: Op
    inputs: Sequence[T | None]
    outputs: Sequence[T]
    options: Any = None
    version: int = 1
    low: float = -4.0
    high: float = 4.0
    quanta: int = 1
    rtol: float = 1e-5
    reference: str = "reference"
    runs_on: str = "ort"
    feeds: Sequence[Array] | None = field(default=None, repr=False)

    def model(self) -> bytes:
        return one_op_model(self.op, self.inputs, self.outputs, self.options, self.version)

    def arrays(self, rng: np.random.Generator) -> list[Array]:
        if self.feeds is not None:
            return list(self.feeds)
        return [
            t.random(rng, self.low, self.high)
            for t in self.inputs
            if t is not None and not t.is_constant
        ]


def ours(
    model: bytes, feeds: Sequence[Array], providers: Sequence[Any] | None = None, **options: Any
) -> tuple[list[Array], set[str]]:
    """The outputs of our interpreter, and where its operators ran.

    Args:
        providers: of ONNX Runtime. An empty list leaves numpy alone.
    """
    interpreter = Interpreter(model_content=model, providers=providers, num_threads=1, **options)
    details = interpreter.get_input_details()
    for detail, array in zip(details, feeds, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    return outputs, {where(row) for row in interpreter.delegation()}


def check(case: Case, seed: int = 0) -> None:
    """Compare ONNX Runtime and the numpy kernel with LiteRT on random inputs drawn from `seed`."""
    print(f"{case.name}: seed {seed}")
    feeds = case.arrays(np.random.default_rng(seed))
    model = case.model()
    expected = litert(model, feeds, case.reference)
    by_numpy, _ = ours(model, feeds, providers=[])
    for want, got in zip(expected, by_numpy, strict=True):
        assert_close(got, want, 0, case.rtol, f"{case.name}: numpy against {case.reference}")
    by_ort, runners = ours(model, feeds)
    places = {case.runs_on} if any(want.size for want in expected) else {case.runs_on, "constant"}
    assert runners <= places, f"{case.name} runs on {runners}"
    if case.runs_on == "ort":
        default = litert(model, feeds, "default")
        for want, other, got in zip(default, expected, by_ort, strict=True):
            nearest = want if distance(got, want) <= distance(got, other) else other
            assert_close(got, nearest, case.quanta, case.rtol, f"{case.name}: ORT against LiteRT")
        for output, got, *wanted in zip(case.outputs, by_ort, default, expected, strict=True):
            if output.scale is not None and got.size:
                EXACT[case.op].count(got, wanted)


@dataclass
class Exact:
    """Quantised elements of ONNX Runtime: all, and those that equal one of LiteRT's kernels."""

    same: int = 0
    all: int = 0

    def count(self, got: Array, wanted: Sequence[Array]) -> None:
        self.same += max(int(np.count_nonzero(got == want)) for want in wanted)
        self.all += got.size


# Of all cases checked so far.
EXACT: dict[Op, Exact] = defaultdict(Exact)


def distance(got: Array, want: Array) -> float:
    if got.shape != want.shape:
        return float("inf")
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
    return float(np.nanmax(difference, initial=0.0))


def assert_close(got: Array, want: Array, quanta: int, rtol: float, what: str) -> None:
    """Assert that dtypes and shapes are equal and that values are near each other.

    Integers differ by `quanta` at most, floats by `rtol` of the largest magnitude.
    """
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    if want.dtype.kind in "iu":
        worst = np.max(np.abs(got.astype(np.int64) - want.astype(np.int64)), initial=0)
        limit = quanta if want.dtype.itemsize <= 2 else 0
        assert worst <= limit, f"{what}: off by {worst}, at most {limit} allowed"
    elif want.dtype.kind == "f":
        finite = np.isfinite(want)
        assert np.array_equal(np.isfinite(got), finite), f"{what}: not finite in other places"
        assert np.array_equal(got[~finite], want[~finite], equal_nan=True), what
        magnitude = np.max(np.abs(want[finite]), initial=0.0)
        worst = np.max(np.abs(got[finite] - want[finite]), initial=0.0)
        assert worst <= rtol * max(magnitude, 1e-30), f"{what}: off by {worst} of {magnitude}"
    else:
        assert np.array_equal(got, want), what

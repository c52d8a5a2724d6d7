"""Networks of random operators: what each family leaves behind, its neighbours can use."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, assert_close, distance, graph_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    GatherOptions,
    Op,
    Padding,
    Pool2DOptions,
    ReducerOptions,
    ReshapeOptions,
    StridedSliceOptions,
    TensorType,
    UnpackOptions,
)
from tflite_ort.schema.values.semantics import conv_output_size

Array = npt.NDArray[Any]
FLOAT32, INT8, UINT8 = TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8
ACTIVATIONS = tuple(ActivationFunctionType)[:4]
SCALE, ZERO_POINTS = 0.05, {INT8: -7, UINT8: 121}
NETWORKS, MANY = 60, 2000


@dataclass(frozen=True)
class Value:
    """A tensor of the network, and by how many quanta two right runtimes may differ in it."""

    name: str
    shape: tuple[int, ...]
    quanta: int = 0


class Network:
    """A network that grows operator by operator; all its tensors have one type and one scale, so
    that a quantum of difference stays one on its way."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.type = self.draw.choice((FLOAT32, INT8, UINT8))
        self.tensors: dict[str, T] = {}
        self.nodes: list[Node] = []
        side = self.draw.randint(2, 7)
        shape = (self.draw.choice((1, 1, 2)), side, side + 1, self.draw.randint(1, 4))
        self.values = [self._value(shape, 0)]
        length = self.draw.randint(3, 15)
        while len(self.nodes) < length:
            self.draw.choice(STEPS)(self)

    def model(self, outputs: Sequence[Value]) -> bytes:
        return graph_model(self.tensors, self.nodes, [value.name for value in outputs])

    def outputs(self) -> list[Value]:
        """What nothing uses, and some that other operators use too."""
        used = {name for node in self.nodes for name in node.inputs}
        return [v for v in self.values if v.name not in used or self.draw.random() < 0.15]

    def pick(self, rank: int = 0) -> Value | None:
        """One of the last values, of this rank if one is asked for."""
        fitting = [v for v in self.values if not rank or len(v.shape) == rank]
        return self.draw.choice(fitting[-4:]) if fitting else None

    def emit(
        self, op: Op, inputs: Sequence[str], shape: Sequence[int], quanta: int, options: Any = None
    ) -> None:
        if math.prod(shape) <= 10_000:
            value = self._value(tuple(shape), quanta)
            self.nodes.append(Node(op, inputs, [value.name], options, self._version(op)))
            self.values.append(value)

    def constant(self, array: npt.ArrayLike, **more: Any) -> str:
        return self._add(T.constant(np.asarray(array), **more))

    def integers(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int32))

    def operand(self, shape: tuple[int, ...]) -> str:
        """A constant of the network's type."""
        tensor = self._tensor(shape)
        return self._add(T(**{**_fields(tensor), "data": tensor.random(self.rng)}))

    def layer(self, shape: tuple[int, ...], axis: int) -> tuple[str, str]:
        """Weights and bias; the weights of a channel add up to at most 1."""
        terms, count = math.prod(shape) // shape[axis], shape[axis]
        if self.type is FLOAT32:
            weights = self.rng.uniform(-1, 1, shape).astype(np.float32) / terms
            bias = self.rng.uniform(-1, 1, count).astype(np.float32)
            return self.constant(weights.astype(np.float32)), self.constant(bias)
        zero_point, scale = (0 if self.type is INT8 else 128), 1 / 128 / terms
        codes = self.rng.integers(-127, 128, shape) + zero_point
        dtype = np.int8 if self.type is INT8 else np.uint8
        return (
            self.constant(codes.astype(dtype), scale=scale, zero_point=zero_point),
            self.constant(
                self.rng.integers(-2000, 2000, count).astype(np.int32), scale=SCALE * scale
            ),
        )

    def activation(self) -> ActivationFunctionType:
        return self.draw.choice(ACTIVATIONS)

    def _version(self, op: Op) -> int:
        return 1 if self.type is not INT8 or op in (Op.PACK, Op.RESHAPE, Op.UNPACK) else 2

    def _tensor(self, shape: tuple[int, ...]) -> T:
        if self.type is FLOAT32:
            return T(shape)
        return T(shape, self.type, scale=SCALE, zero_point=ZERO_POINTS[self.type])

    def _value(self, shape: tuple[int, ...], quanta: int) -> Value:
        return Value(self._add(self._tensor(shape)), shape, quanta)

    def _add(self, tensor: T) -> str:
        name = f"t{len(self.tensors)}"
        self.tensors[name] = tensor
        return name


def _fields(tensor: T) -> dict[str, Any]:
    return {key: getattr(tensor, key) for key in ("shape", "type", "scale", "zero_point")}


# Steps: one more operator, if there is a value that it fits -------------------------------------


def convolution(net: Network) -> None:
    if (x := net.pick(rank=4)) is None:
        return
    depthwise, stride = net.draw.random() < 0.4, net.draw.randint(1, 2)
    channels = x.shape[3] if depthwise else net.draw.randint(1, 5)
    kernel = net.draw.randint(1, min(3, *x.shape[1:3]))
    padding = net.draw.choice((Padding.SAME, Padding.VALID))
    filter = (1, kernel, kernel, channels) if depthwise else (channels, kernel, kernel, x.shape[3])
    weights, bias = net.layer(filter, 3 if depthwise else 0)
    options: Any = DepthwiseConv2DOptions if depthwise else Conv2DOptions
    more = {"depth_multiplier": 1} if depthwise else {}
    net.emit(
        Op.DEPTHWISE_CONV_2D if depthwise else Op.CONV_2D,
        [x.name, weights, bias],
        (x.shape[0], *_moved(padding, x, kernel, stride), channels),
        x.quanta + 1,
        options(
            padding=padding,
            stride_h=stride,
            stride_w=stride,
            fused_activation_function=net.activation(),
            **more,
        ),
    )


def pooling(net: Network) -> None:
    if (x := net.pick(rank=4)) is None:
        return
    cells, stride = net.draw.randint(1, min(3, *x.shape[1:3])), net.draw.randint(1, 2)
    padding = net.draw.choice((Padding.SAME, Padding.VALID))
    options = Pool2DOptions(
        padding=padding, stride_h=stride, stride_w=stride, filter_height=cells, filter_width=cells
    )
    op = net.draw.choice((Op.MAX_POOL_2D, Op.AVERAGE_POOL_2D))
    shape = (x.shape[0], *_moved(padding, x, cells, stride), x.shape[3])
    net.emit(op, [x.name], shape, x.quanta + 1, options)


def _moved(padding: Padding, x: Value, kernel: int, stride: int) -> list[int]:
    return [conv_output_size(padding, size, kernel, stride, 1) for size in x.shape[1:3]]


def fully_connected(net: Network) -> None:
    if (x := net.pick()) is not None and x.shape:
        depth, units = x.shape[-1], net.draw.randint(1, 5)
        weights, bias = net.layer((units, depth), 0)
        options = FullyConnectedOptions(fused_activation_function=net.activation())
        shape = (math.prod(x.shape) // depth, units)
        net.emit(Op.FULLY_CONNECTED, [x.name, weights, bias], shape, x.quanta + 1, options)


def addition(net: Network) -> None:
    if (x := net.pick()) is None:
        return
    others = [v for v in net.values if v.shape == x.shape]
    options = AddOptions(fused_activation_function=net.activation())
    if net.draw.random() < 0.5:
        other = net.draw.choice(others)
        quanta = x.quanta + other.quanta + 1
        net.emit(Op.ADD, [x.name, other.name], x.shape, quanta, options)
        return
    shape = tuple(net.draw.choice((1, size)) for size in x.shape)
    operands = [x.name, net.operand(shape[net.draw.randint(0, len(shape)) :])]
    net.draw.shuffle(operands)
    net.emit(Op.ADD, operands, x.shape, x.quanta + 1, options)


def broadcasting(net: Network) -> None:
    """The sum of two computed values, of which either may be repeated along some axes."""
    if (x := net.pick()) is None:
        return
    other = net.draw.choice([v for v in net.values if _fits(v.shape, x.shape)])
    operands = [x.name, other.name]
    net.draw.shuffle(operands)
    options = AddOptions(fused_activation_function=net.activation())
    shape = np.broadcast_shapes(x.shape, other.shape)
    net.emit(Op.ADD, operands, shape, x.quanta + other.quanta + 1, options)


def _fits(one: Sequence[int], other: Sequence[int]) -> bool:
    pairs = zip(one[::-1], other[::-1], strict=False)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def reshaping(net: Network) -> None:
    if (x := net.pick()) is None:
        return
    sizes: list[int] = []
    rest = math.prod(x.shape)
    while rest > 1 and len(sizes) < 3:
        sizes.append(net.draw.choice([n for n in range(1, rest + 1) if rest % n == 0]))
        rest //= sizes[-1]
    sizes.insert(net.draw.randint(0, len(sizes)), rest)
    shape = net.integers(*sizes)
    net.emit(Op.RESHAPE, [x.name, shape], sizes, x.quanta, ReshapeOptions(new_shape=tuple(sizes)))


def transposition(net: Network) -> None:
    if (x := net.pick()) is not None and x.shape:
        order = net.draw.sample(range(len(x.shape)), len(x.shape))
        shape = [x.shape[axis] for axis in order]
        net.emit(Op.TRANSPOSE, [x.name, net.integers(*order)], shape, x.quanta)


def concatenation(net: Network) -> None:
    if (x := net.pick()) is None or not x.shape:
        return
    axis = net.draw.randrange(len(x.shape))
    outside = x.shape[:axis], x.shape[axis + 1 :]
    fitting = [
        v
        for v in net.values
        if len(v.shape) == len(x.shape) and (v.shape[:axis], v.shape[axis + 1 :]) == outside
    ]
    parts = [x, *net.draw.choices(fitting, k=net.draw.randint(1, 2))]
    shape = (*outside[0], sum(v.shape[axis] for v in parts), *outside[1])
    quanta = max(v.quanta for v in parts)
    options = ConcatenationOptions(axis=axis - net.draw.choice((0, len(x.shape))))
    net.emit(Op.CONCATENATION, [v.name for v in parts], shape, quanta, options)


def slicing(net: Network) -> None:
    if (x := net.pick()) is None or not x.shape:
        return
    steps = [net.draw.choice((1, 1, 2, -1)) for _ in x.shape]
    shape = [-(-size // abs(step)) for size, step in zip(x.shape, steps, strict=True)]
    mask, zeros = (1 << len(x.shape)) - 1, net.integers(*[0] * len(x.shape))
    options = StridedSliceOptions(begin_mask=mask, end_mask=mask)
    inputs = [x.name, zeros, zeros, net.integers(*steps)]
    net.emit(Op.STRIDED_SLICE, inputs, shape, x.quanta, options)


def padding(net: Network) -> None:
    if (x := net.pick()) is not None and x.shape:
        around = np.array([[net.draw.randint(0, 1) for _ in range(2)] for _ in x.shape], np.int32)
        shape = [size + int(pair.sum()) for size, pair in zip(x.shape, around, strict=True)]
        net.emit(Op.PAD, [x.name, net.constant(around)], shape, x.quanta)


def mean(net: Network) -> None:
    if (x := net.pick()) is None or not x.shape:
        return
    axes = net.draw.sample(range(len(x.shape)), net.draw.randint(1, len(x.shape)))
    keep = net.draw.random() < 0.5
    shape = [1 if i in axes else size for i, size in enumerate(x.shape) if keep or i not in axes]
    inputs = [x.name, net.integers(*axes)]
    net.emit(Op.MEAN, inputs, shape, x.quanta + 1, ReducerOptions(keep_dims=keep))


def gathering(net: Network) -> None:
    if (x := net.pick()) is not None and x.shape:
        axis = net.draw.randrange(len(x.shape))
        rows = net.integers(*net.draw.choices(range(x.shape[axis]), k=2))
        shape = (*x.shape[:axis], 2, *x.shape[axis + 1 :])
        net.emit(Op.GATHER, [x.name, rows], shape, x.quanta, GatherOptions(axis=axis))


def unpacking(net: Network) -> None:
    if (x := net.pick()) is None or not x.shape:
        return
    axis = net.draw.randrange(len(x.shape))
    if x.shape[axis] > 4:
        return
    shape = x.shape[:axis] + x.shape[axis + 1 :]
    parts = [net._value(shape, x.quanta) for _ in range(x.shape[axis])]
    options = UnpackOptions(num=len(parts), axis=axis)
    net.nodes.append(Node(Op.UNPACK, [x.name], [v.name for v in parts], options))
    net.values += parts


STEPS: tuple[Callable[[Network], None], ...] = (
    convolution,
    convolution,
    pooling,
    fully_connected,
    addition,
    addition,
    broadcasting,
    reshaping,
    transposition,
    concatenation,
    slicing,
    padding,
    mean,
    gathering,
    unpacking,
)


def tolerance(want: Array) -> float:
    """Relative to the largest magnitude 1e-5 of it, or of 1: larger terms may have cancelled."""
    return 1e-5 / min(1.0, max(float(np.abs(want).max(initial=0)), 1e-6))


def check(seed: int) -> None:
    """The numpy kernels are LiteRT's reference ones; ONNX Runtime is near one of LiteRT's."""
    print(f"seed {seed}")
    net = Network(seed)
    outputs, feeds = net.outputs(), [net.tensors["t0"].random(net.rng)]
    model = net.model(outputs)
    reference, default = (litert(model, feeds, kernels) for kernels in ("reference", "default"))
    by_numpy, by_ort = (ours(model, feeds, runners)[0] for runners in ((), None))
    signed = exported(model, feeds, weights="int8")
    for value, *results in zip(
        outputs, reference, default, by_numpy, by_ort, exported(model, feeds), signed, strict=True
    ):
        expected, other, in_numpy, *in_ort = results
        assert_close(in_numpy, expected, 0, tolerance(expected), f"{value.name} in numpy")
        for got in in_ort:
            nearest = min(expected, other, key=lambda each: distance(got, each))
            limit = 10 * tolerance(nearest)
            assert_close(got, nearest, value.quanta, limit, f"{value.name} in ONNX Runtime")


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_random_network(seed: int) -> None:
    check(seed)


def test_networks_drawn_anew(request: pytest.FixtureRequest) -> None:
    """In thorough runs alone."""
    if request.config.getoption("--thorough"):
        for _ in range(MANY):
            check(random.randrange(2**32))

"""TensorFlow's random numbers: those that it draws with the same seeds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.random_boxes import Box, Wanted, boxes_of, drawn_box
from tflite_ort.fallback_kernels.idioms.random_streams import (
    Draws,
    Stream,
    full_integers,
    integers,
    normal,
    truncated_normal,
    uniform,
    unit_double,
)
from tflite_ort.fallback_kernels.random import shape_of
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.arithmetic.generators import (
    ALGORITHMS,
    PHILOX,
    PHILOX_LANES,
    SKIPPED,
    SPARE,
)
from tflite_ort.schema.shapes.registry import shown
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]
Fill = Callable[[Stream, int, np.dtype[Any]], Array]


class _Position:
    """How far a stateful operator is in its stream."""

    def __init__(self, op: View) -> None:
        node = node_of(op)
        self.stream = Stream.of_seeds(node["seed"], node["seed2"])

    def taken(self, blocks: int) -> Stream:
        """The stream from here; the next one begins `blocks` later."""
        now, self.stream = self.stream, self.stream.after(blocks)
        return now


def _stream(op: View, given: dict[str, Array]) -> Stream:
    """That of a stateless operator."""
    if "seed" in given:
        if given["seed"].shape != (2,):
            raise KernelError(f"a seed of {given['seed'].shape}, expected (2,)")
        return Stream.scrambled(given["seed"])
    algorithm = int(given["alg"].item())
    if algorithm not in ALGORITHMS:
        raise KernelError(f"the random numbers of algorithm {algorithm} are not known")
    if given["key"].shape != (1,) or given["counter"].shape != (2,):
        raise KernelError(f"a key of {given['key'].shape}, a counter of {given['counter'].shape}")
    low, high = given["counter"].tolist()
    return Stream(int(given["key"].item()), low, high)


def _given(op: View, inputs: Inputs) -> dict[str, Array]:
    return dict(zip(op.names, inputs, strict=True))


_FILLS: dict[str, Fill] = {
    "Uniform": uniform,
    "Normal": normal,
    "StandardNormal": normal,
    "TruncatedNormal": truncated_normal,
    "UniformFullInt": full_integers,
}


def _kind(op: View) -> str:
    """What an operator draws, by its name."""
    name = op.name.removeprefix("Flex").removeprefix("Stateless").removesuffix("V2")
    return name.removeprefix("Random")


@flex_kernel("RandomUniform", "RandomStandardNormal", "TruncatedNormal", state=_Position)
def stateful(op: View, inputs: Inputs, state: State) -> Outputs:
    """The next numbers of the stream."""
    shape = shape_of(inputs[0])
    count = math.prod(shape)
    stream = state.taken(count * SPARE)
    return (_FILLS[_kind(op)](stream, count, op.output.dtype).reshape(shape),)


@flex_kernel(
    "StatelessRandomNormal",
    "StatelessRandomNormalV2",
    "StatelessRandomUniform",
    "StatelessRandomUniformV2",
    "StatelessRandomUniformFullInt",
    "StatelessRandomUniformFullIntV2",
    "StatelessTruncatedNormal",
    "StatelessTruncatedNormalV2",
)
def stateless(op: View, inputs: Inputs, state: State) -> Outputs:
    """The numbers that follow from the seeds."""
    given = _given(op, inputs)
    shape, stream = shape_of(given["shape"]), _stream(op, given)
    return (_FILLS[_kind(op)](stream, math.prod(shape), op.output.dtype).reshape(shape),)


def _between(stream: Stream, shape: tuple[int, ...], low: Array, high: Array) -> Outputs:
    if low.size != 1 or high.size != 1 or low.item() >= high.item():
        raise KernelError(f"integers from {shown(low)} to {shown(high)}")
    return (integers(stream, math.prod(shape), low, high).reshape(shape),)


@flex_kernel("RandomUniformInt", state=_Position)
def stateful_integers(op: View, inputs: Inputs, state: State) -> Outputs:
    """The next integers of the stream."""
    shape = shape_of(inputs[0])
    return _between(state.taken(math.prod(shape) * SPARE), shape, *inputs[1:])


@flex_kernel("StatelessRandomUniformInt", "StatelessRandomUniformIntV2")
def stateless_integers(op: View, inputs: Inputs, state: State) -> Outputs:
    """The integers that follow from the seeds."""
    given = _given(op, inputs)
    return _between(_stream(op, given), shape_of(given["shape"]), given["minval"], given["maxval"])


@flex_kernel("StatelessRandomGetAlg")
def algorithm(op: View, inputs: Inputs, state: State) -> Outputs:
    """Philox."""
    return (np.array(PHILOX, np.int32),)


@flex_kernel("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def key_counter(op: View, inputs: Inputs, state: State) -> Outputs:
    """The key and the counter that two seeds are scrambled to."""
    stream = _stream(op, {"seed": inputs[0]})
    key = np.array([stream.key], np.uint64)
    counter = np.array([stream.low, stream.high], np.uint64)
    return (key, counter, np.array(PHILOX, np.int32))[: len(op.outputs)]


@flex_kernel("RandomShuffle", state=_Position)
def shuffle(op: View, inputs: Inputs, state: State) -> Outputs:
    """The rows in another order: each is exchanged with one after it, or stays."""
    (x,) = inputs
    if not x.ndim or x.size <= 1 or len(x) <= 1:
        return (x.copy(),)
    count = len(x)
    words = state.taken(-(-(count - 1) // PHILOX_LANES)).words(count - 1).tolist()
    order = list(range(count))
    for place in range(count - 1):
        other = place + words[place] % (count - place)
        order[place], order[other] = order[other], order[place]
    return (x[order],)


def _classes(stream: Stream, logits: Array, samples: int, dtype: np.dtype[Any]) -> Array:
    """Classes [batch, samples] by the softmax of their logits; one that is not finite has none."""
    if logits.ndim != 2 or not logits.shape[1] or samples < 0:
        raise KernelError(f"{samples} samples of logits {logits.shape}")
    batch, wide = len(logits), logits.astype(np.float64)
    drawn = unit_double(stream.words(2 * batch * samples)).reshape(batch, samples)
    found = np.empty((batch, samples), dtype)
    for row, (values, units) in enumerate(zip(wide, drawn, strict=True)):
        finite = np.isfinite(values)
        most = values[finite].max(initial=-np.inf) if finite.any() else 0.0
        sums = np.cumsum(np.where(finite, np.exp(np.where(finite, values, most) - most), 0.0))
        found[row] = np.searchsorted(sums, units * sums[-1], side="right")
    return found


@flex_kernel("Multinomial", state=_Position)
def multinomial(op: View, inputs: Inputs, state: State) -> Outputs:
    """The next classes of the stream."""
    logits, samples = inputs[0], int(inputs[1].item())
    whole = -(-samples // PHILOX_LANES) * PHILOX_LANES
    stream = state.taken(max(0, len(logits) * whole * SKIPPED))
    return (_classes(stream, logits, samples, op.output.dtype),)


@flex_kernel("StatelessMultinomial")
def stateless_multinomial(op: View, inputs: Inputs, state: State) -> Outputs:
    """The classes that follow from the seeds."""
    given = _given(op, inputs)
    stream, samples = _stream(op, given), int(given["num_samples"].item())
    return (_classes(stream, given["logits"], samples, op.output.dtype),)


def _gamma(alpha: float, draws: Draws) -> float:
    """A number of the gamma distribution by Marsaglia and Tsang (2000), of an exponential one for
    1."""
    if alpha == 1:
        return -math.log1p(-draws.uniform())
    less = alpha < 1
    d = alpha + (2.0 / 3 if less else -1.0 / 3)
    c = 1.0 / 3 / math.sqrt(d)
    while True:
        x = draws.normal()
        v = 1 + c * x
        if v <= 0:
            continue
        v, u = v * v * v, draws.uniform()
        squeezed = u < 1 - 0.0331 * (x * x) * (x * x)
        if squeezed or _log(u) < 0.5 * x * x + d * (1 - v + math.log(v)):
            return float(d * v * (draws.uniform() ** (1 / alpha) if less else 1))


def _log(x: float) -> float:
    return math.log(x) if x else -math.inf


def _poisson(rate: float, draws: Draws, most: float) -> float:
    """A number of the Poisson distribution: by Knuth below 10, else by the transformed rejection of
    Hormann (1993)."""
    if rate < 10:
        product, count, least = draws.uniform(), 0.0, math.exp(-rate)
        while product > least:
            product, count = product * draws.uniform(), count + 1
        return count
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    while True:
        u, v = draws.uniform() - 0.5, draws.uniform()
        shifted = 0.5 - abs(u)
        if not shifted:
            continue
        k = math.floor((2 * a / shifted + b) * u + rate + 0.43)
        if k > most:
            continue
        if shifted >= 0.07 and v <= 0.9277 - 3.6224 / (b - 2):
            return k
        if k < 0 or (shifted < 0.013 and v > shifted):
            continue
        s = _log(v * inverse / (a / (shifted * shifted) + b))
        if s <= -rate + k * math.log(rate) - math.lgamma(k + 1):
            return k


# So many numbers are drawn one by one at most.
_MOST_DRAWN = 1 << 22


def _drawn(
    op: View, stream: Stream | _Position, shape: tuple[int, ...], parameters: Array
) -> Outputs:
    """Numbers of `shape` for each parameter, [*shape, *parameters.shape], each from the blocks of
    its place; all those of a parameter lie beside each other."""
    each, dtype = math.prod(shape), op.output.dtype
    total = each * parameters.size
    if total > _MOST_DRAWN:
        raise KernelError(f"{total} numbers are too many to be drawn one by one")
    if isinstance(stream, _Position):
        stream = stream.taken(total * SPARE)
    is_gamma = "Gamma" in op.name
    values = parameters.astype(np.float64).reshape(-1).tolist()
    if not all(math.isfinite(value) and value >= 0 for value in values) or (
        is_gamma and 0 in values
    ):
        raise KernelError(f"parameters {shown(parameters)}, expected positive numbers")
    most = float(np.iinfo(dtype).max if dtype.kind == "i" else np.finfo(dtype).max)
    found = np.empty((len(values), each))
    for row, value in enumerate(values):
        for place in range(each):
            draws = Draws(stream.after((row * each + place) * SPARE))
            found[row, place] = _gamma(value, draws) if is_gamma else _poisson(value, draws, most)
    return (found.T.reshape(*shape, *parameters.shape).astype(dtype),)


@flex_kernel("RandomGamma", "RandomPoisson", "RandomPoissonV2", state=_Position)
def stateful_rejection(op: View, inputs: Inputs, state: State) -> Outputs:
    """The next numbers of the stream, `shape` for each parameter."""
    return _drawn(op, state, shape_of(inputs[0]), inputs[1])


@flex_kernel("StatelessRandomGammaV2", "StatelessRandomGammaV3", "StatelessRandomPoisson")
def stateless_rejection(op: View, inputs: Inputs, state: State) -> Outputs:
    """The numbers that follow from the seeds, of a shape that ends with that of the parameters."""
    given = _given(op, inputs)
    shape, parameters = shape_of(given["shape"]), inputs[-1]
    samples = shape[: len(shape) - parameters.ndim]
    if (*samples, *parameters.shape) != shape:
        raise KernelError(f"parameters of {parameters.shape} for numbers of {shape}")
    return _drawn(op, _stream(op, given), samples, parameters)


_BOXES = "SampleDistortedBoundingBox"


@flex_kernel(_BOXES, _BOXES + "V2", state=_Position)
def stateful_box(op: View, inputs: Inputs, state: State) -> Outputs:
    """A part of an image that is drawn next."""
    return _box(op, inputs, state.taken(node_of(op)["max_attempts"]))


@flex_kernel(f"Stateless{_BOXES}")
def stateless_box(op: View, inputs: Inputs, state: State) -> Outputs:
    """The part of an image that follows from the seeds."""
    return _box(op, inputs, _stream(op, _given(op, inputs)))


def _box(op: View, inputs: Inputs, stream: Stream) -> Outputs:
    """Where a part of an image begins, its size, and the box of it."""
    node, (image, boxes) = node_of(op), inputs[:2]
    if image.shape != (3,) or boxes.ndim != 3 or boxes.shape[2] != 4:
        raise KernelError(f"an image of {shown(image)} and boxes of shape {boxes.shape}")
    height, width = (int(size) for size in image[:2])
    if min(height, width) <= 0:
        raise KernelError(f"an image of {shown(image)}")
    covered = node.attributes.get("min_object_covered")
    covered = float(inputs[2].item()) if covered is None else covered
    known = boxes_of(boxes.reshape(-1, 4).tolist(), height, width)
    if not known and not node["use_image_if_no_bounding_boxes"]:
        raise KernelError("no boxes")
    ratios, areas = node["aspect_ratio_range"], node["area_range"]
    if len(ratios) != 2 or len(areas) != 2 or not 0 <= covered <= 1:
        raise KernelError(f"parts of ratios {ratios} and areas {areas} that cover {covered}")
    wanted = Wanted(ratios, areas, covered, node["max_attempts"])
    box = drawn_box(stream, height, width, known or [Box(0, 0, height, width)], wanted)
    sizes = np.array([height, width, height, width], np.float32)
    share = np.array([box.y, box.x, box.y_end, box.x_end], np.float32) / sizes
    begin, size = [box.y, box.x, 0], [box.y_end - box.y, box.x_end - box.x, -1]
    dtype = op.outputs[0].dtype
    signed = np.array([begin, size], np.int64).astype(dtype)
    return signed[0], signed[1], share.reshape(1, 1, 4)


refuse_rest("random")

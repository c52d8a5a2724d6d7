"""Shape rules of TensorFlow's random operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, flex_rule, listed, of_rank, same_shape
from tflite_ort.schema.values.sizes import differ, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]

flex_rule("RandomShuffle")(same_shape)


@flex_rule(
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "StatelessRandomGammaV2",
    "StatelessRandomGammaV3",
    "StatelessRandomNormal",
    "StatelessRandomNormalV2",
    "StatelessRandomPoisson",
    "StatelessRandomUniform",
    "StatelessRandomUniformFullInt",
    "StatelessRandomUniformFullIntV2",
    "StatelessRandomUniformInt",
    "StatelessRandomUniformIntV2",
    "StatelessRandomUniformV2",
    "StatelessTruncatedNormal",
    "StatelessTruncatedNormalV2",
    "TruncatedNormal",
)
def of_shape(op: View) -> Shapes | None:
    """What the first input says."""
    of_rank(op, "shape", 1)
    if "seed" in op.names and differ(of_rank(op, "seed", 1), (2,)):
        raise ModelError(f"{op.label}: a seed of {op['seed'].shape}, expected (2,)")
    shape = listed(op["shape"])
    return None if shape is None else (shape,)


@flex_rule("RandomGamma", "RandomPoisson", "RandomPoissonV2")
def of_parameters(op: View) -> Shapes | None:
    """What the first input says, of each parameter."""
    of_rank(op, "shape", 1)
    shape = listed(op["shape"])
    return None if shape is None else ((*shape, *op.present_inputs()[1].shape),)


@flex_rule("Multinomial", "StatelessMultinomial")
def multinomial(op: View) -> Shapes:
    """[batch, samples]."""
    batch, _ = of_rank(op, "logits", 2)
    of_rank(op, "num_samples", 0)
    (count, *_) = listed(op["num_samples"]) or (unknown_size(),)
    return ((batch, count),)


@flex_rule("StatelessRandomGetAlg")
def algorithm(op: View) -> Shapes:
    """A number."""
    return ((),)


@flex_rule("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def key_counter(op: View) -> Shapes:
    """A key, a counter of two numbers, and the algorithm."""
    if differ(of_rank(op, "seed", 1), (2,)):
        raise ModelError(f"{op.label}: a seed of {op['seed'].shape}, expected (2,)")
    return ((1,), (2,), ())[: len(op.outputs)]


@flex_rule(
    "SampleDistortedBoundingBox",
    "SampleDistortedBoundingBoxV2",
    "StatelessSampleDistortedBoundingBox",
)
def part_of_image(op: View) -> Shapes:
    """Where it begins, its size, and one box."""
    return (3,), (3,), (1, 1, 4)

"""Shape rules of TensorFlow's layers of neural networks."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.flex.pooling import channels_of, is_channels_first
from tflite_ort.schema.shapes.registry import (
    Shape,
    Shapes,
    broadcast,
    flex_rule,
    listed,
    of_rank,
    same_shape,
)
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import differ, is_known, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]

flex_rule("Elu", "LeakyRelu", "Relu", "Relu6", "Selu", "Sigmoid", "Softplus", "Softsign")(
    same_shape
)


@flex_rule("LogSoftmax", "Softmax")
def rows(op: View) -> Shapes:
    """As the input, which has rows."""
    (x,) = op.present_inputs()
    if not x.shape:
        raise ModelError(f"{op.label}: a scalar has no rows")
    return (x.shape,)


@flex_rule("LRN")
def local_response(op: View) -> Shapes:
    """As the images."""
    return (of_rank(op, "input", 4),)


@flex_rule("BiasAdd", "BiasAddV1")
def bias_add(op: View) -> Shapes:
    """As the value, whose channels the bias has numbers for."""
    value, bias = op["value"].shape, of_rank(op, "bias", 1)
    if len(value) < 2 or differ(bias, (channels_of(op),)):
        raise ModelError(f"{op.label}: a bias of {bias} for {value}")
    return (value,)


@flex_rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(op: View) -> Shapes:
    """As the input, then one number for each channel; the last result is a 0."""
    given = ("scale", "offset") if node_of(op)["is_training"] else ("scale", "offset", *_MOMENTS)
    channels = batch_norm_channels(op, *given)
    return (op["x"].shape, *(channels,) * 4, ())[: len(op.outputs)]


def batch_norm_channels(op: View, *names: str) -> Shape:
    """The shape of the inputs of these names: a number for each channel of `x`."""
    x, channels = op["x"].shape, (channels_of(op),)
    if len(x) not in (4, 5) or len(x) != len(str(node_of(op)["data_format"])):
        raise ModelError(f"{op.label}: input {x} in {node_of(op)['data_format']}")
    for name in names:
        if len(op[name].shape) != 1 or differ(op[name].shape, channels):
            raise ModelError(f"{op.label}: {name} {op[name].shape} for {channels[0]} channels")
    return channels


_MOMENTS = ("mean", "variance")


@flex_rule("SoftmaxCrossEntropyWithLogits")
def cross_entropy(op: View) -> Shapes:
    """A number for each row, and the gradient."""
    whole = broadcast(op, of_rank(op, "features", 2), of_rank(op, "labels", 2))
    return (whole[:1], whole)


@flex_rule("InTopK", "InTopKV2")
def in_top_k(op: View) -> Shapes:
    """Whether the target of each row is there."""
    rows, targets = of_rank(op, "predictions", 2), of_rank(op, "targets", 1)
    if differ(rows[:1], targets):
        raise ModelError(f"{op.label}: {targets} targets of predictions {rows}")
    return (targets,)


@flex_rule("TopK", "TopKV2")
def top_k(op: View) -> Shapes:
    """The best of each row, and their places."""
    shape = op["input"].shape
    if not shape:
        raise ModelError(f"{op.label}: a scalar has no rows")
    if op.name == "FlexTopK":
        count = node_of(op)["k"]
    else:
        (count, *_) = listed(op["k"]) or (unknown_size(),)
    if is_known(count, shape[-1]) and not 0 <= count <= shape[-1]:
        raise ModelError(f"{op.label}: the best {count} of {shape[-1]}")
    return ((*shape[:-1], count),) * 2


def format_places(op: View) -> list[int]:
    """Where each dimension of the new format is in the old one."""
    old, new = str(node_of(op)["src_format"]), str(node_of(op)["dst_format"])
    if len(old) not in (4, 5) or sorted(old) != sorted(new) or len(set(old)) != len(old):
        raise ModelError(f"{op.label}: formats {old!r} and {new!r}")
    return [old.index(each) for each in new]


@flex_rule("DataFormatDimMap")
def dimension_map(op: View) -> Shapes:
    """As the input."""
    format_places(op)
    return (op["x"].shape,)


@flex_rule("DataFormatVecPermute")
def permutation(op: View) -> Shapes:
    """As the input: numbers, or pairs, of all dimensions."""
    shape, count = op["x"].shape, len(format_places(op))
    if len(shape) not in (1, 2) or differ(shape, (count, 2)[: len(shape)]):
        raise ModelError(f"{op.label}: {shape}, expected {count} numbers or pairs")
    return (shape,)


def per_channel(op: View, rank: int) -> tuple[int, ...]:
    """The shape in which one number for each channel broadcasts; -1 stands for the channels."""
    axis = 1 if is_channels_first(op) else rank - 1
    return tuple(-1 if place == axis else 1 for place in range(rank))

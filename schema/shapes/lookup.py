"""Shape rules of the operators that look rows up by key."""

from __future__ import annotations

from math import prod
from typing import Any

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import LSHProjectionType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.layer_options import LSHProjectionOptions
from tflite_ort.schema.shapes.registry import Shape, Shapes, rule, shown
from tflite_ort.schema.values.sizes import differ, is_known, unknown_shape
from tflite_ort.schema.values.view import Array, OperatorView


@rule(Op.EMBEDDING_LOOKUP)
def embedding_lookup(op: OperatorView[Any]) -> Shapes | None:
    """[N, D...]: a row of the table [rows, D...] for each id."""
    ids, table = op["ids"].shape, op["table"]
    if len(ids) != 1 or table.rank < 2:
        raise ModelError(f"ids of shape {ids} for a table of shape {table.shape}")
    made = op.output.type
    if made not in (table.type, TensorType.FLOAT32, TensorType.FLOAT16):
        raise ModelError(f"{made.name} rows from a table of {table.type.name}")
    quantization = table.quantization
    if quantization is None or not quantization.per_channel:
        return ((ids[0], *table.shape[1:]),)
    if (quantization.axis, quantization.scale.size) != (0, table.shape[0]):
        raise ModelError(f"{quantization.scale.size} scales for rows of shape {table.shape}")
    if made is table.type:
        raise ModelError(f"{made.name} rows of {quantization.scale.size} scales")
    return ((ids[0], *table.shape[1:]),)


def combined_shape(shape: Array, params: Shape) -> Shape:
    """EMBEDDING_LOOKUP_SPARSE's dense shape, whose last dimension gives way to a row."""
    result: Shape = (*shape.tolist()[:-1], *params[1:])
    if shape.ndim != 1 or not shape.size or len(params) < 2 or min(result) < 0:
        raise ModelError(f"dense shape {shown(shape)} of rows of params {params}")
    return result


@rule(Op.EMBEDDING_LOOKUP_SPARSE)
def embedding_lookup_sparse(op: OperatorView[Any]) -> Shapes | None:
    """The dense shape with a row of `params` for its last size."""
    ids, indices = op["ids"].shape, op["indices"].shape
    dense, weights = op["dense_shape"].shape, op["weights"].shape
    if not len(ids) == 1 == len(weights) or len(indices) != 2:
        raise ModelError(f"ids {ids}, indices {indices} and weights {weights} are of other ranks")
    if differ(ids, indices[:1]) or differ(ids, weights):
        raise ModelError(f"{ids[0]} ids, {indices[0]} indices and {weights[0]} weights")
    if differ(dense, indices[1:]):
        raise ModelError(f"a dense shape of shape {dense} for indices of shape {indices}")
    shape = op["dense_shape"].data
    if shape is None:
        if not is_known(*dense):
            return None
        return ((*unknown_shape(dense[0] - 1), *op["params"].shape[1:]),)
    return (combined_shape(shape, op["params"].shape),)


@rule(Op.HASHTABLE_LOOKUP)
def hashtable_lookup(op: OperatorView[Any]) -> Shapes | None:
    """[N, D...]: a value for each key looked up, and whether it was found."""
    ids, keys = op["lookup"].shape, op["keys"].shape
    values = op["values"].shape
    empty = is_known(*keys) and not prod(keys)
    if not len(ids) == 1 == len(keys) or differ(values[:1], keys) or empty:
        raise ModelError(f"lookups {ids} of keys {keys} with values {values}")
    return ((*ids, *values[1:]), ids)


def lsh_sizes(options: LSHProjectionOptions, seeds: Shape) -> tuple[int, int]:
    """(hashes, bits of one) of LSH_PROJECTION."""
    if len(seeds) != 2 or seeds[1] > 32:
        raise ModelError(f"hash has shape {seeds}, expected [H, bits] of at most 32 bits")
    if options.type not in (LSHProjectionType.SPARSE, LSHProjectionType.DENSE):
        raise ModelError(f"projection {options.type.name} is neither SPARSE nor DENSE")
    return seeds[0], seeds[1]


@rule(Op.LSH_PROJECTION)
def lsh_projection(op: OperatorView[Any]) -> Shapes:
    """[hashes] of a sparse projection, [hashes * bits] of a dense one."""
    hashes, bits = lsh_sizes(op.options, op["hash"].shape)
    items = op["input"].shape
    if not items or not items[0]:
        raise ModelError(f"input has shape {items}, expected at least one item")
    weight = op.get("weight")
    if weight is not None and weight.shape != items[:1]:
        raise ModelError(f"weight has shape {weight.shape}, expected {items[:1]}")
    return ((hashes if op.options.type == LSHProjectionType.SPARSE else hashes * bits,),)


@rule(Op.SKIP_GRAM)
def skip_gram(op: OperatorView[Any]) -> None:
    """As many strings as the sentence has groups of words."""

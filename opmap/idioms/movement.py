"""Shared by the operators that move elements and do not compute with them."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.graph.forms import same_order as same_order
from tflite_ort.opmap.graph.rows import has_rows
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, TensorView, Untranslatable
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, named_types
from tflite_ort.schema.values.sizes import is_known, is_one, may_differ, same_elements

# 4-bit and 2-bit values stand in the graph as 8-bit ones.
_MOVED = named_types("f16 f32 f64 bool i2 i4 i8 i16 i32 i64 u4 u8 u16 u32 u64 str")


def moved_domain(*tensors: TensorView) -> Domain:
    """The domain in which codes pass unchanged from tensor to tensor.

    It is STORED, or FILE where a quantized tensor meets one without a scale.

    Raises:
        Untranslatable: elements that are not moved in ONNX.
    """
    for tensor in tensors:
        if tensor.type not in _MOVED:
            raise Untranslatable(f"{tensor.type.name} elements are not moved in ONNX")
    return Domain.STORED if len({t.is_quantized for t in tensors}) == 1 else Domain.FILE


def integers(tensor: TensorView) -> list[int]:
    """The values of an integer constant, flat."""
    if tensor.data is None:
        raise Untranslatable(f"{tensor.name!r} is not a constant")
    return [int(value) for value in tensor.data.reshape(-1)]


def code_constant(g: Graph, code: int, tensor: TensorView, domain: Domain) -> ir.Value:
    """The scalar that the file writes as `code`, in the type of `tensor` in `domain`."""
    stored = domain is Domain.STORED and tensor.is_quantized
    type = carried_type(tensor) if stored else tensor.type
    shift = 128 if type is not tensor.type else 0
    return g.constant(code + shift, NUMPY_DTYPE[type])


def widened(g: Graph, value: ir.Value, type: TensorType) -> ir.Value:
    """int16 as int32, for operators that ONNX Runtime lacks for 16 bits."""
    if type in (TensorType.INT16, TensorType.UINT16):
        return g.cast(value, ir.DataType.INT32)
    return value


def narrowed(g: Graph, value: ir.Value, type: TensorType) -> ir.Value:
    """The way back from `widened`."""
    if type in (TensorType.INT16, TensorType.UINT16):
        return g.cast(value, ir.DataType[type.name])
    return value


def is_told(wanted: TensorView, input: TensorView, output: TensorView) -> bool:
    """Whether a computed shape is that of the output, and fits the input: a size of another tensor
    may differ from the one that the output takes to fit. Of sizes that the input lacks one can be
    inferred, if there is no other unknown one."""
    if wanted.sizes is None:
        return False
    pairs = zip(wanted.sizes.reshape(-1).tolist(), output.shape, strict=True)
    stated = [n if is_known(size) and size == -1 else size for size, n in pairs]
    if may_differ(stated, output.shape) or not same_elements(input.shape, output.shape):
        return False
    unknown = [size for size in output.shape if not is_known(size)]
    return len(unknown) < 2 or all(any(size is n for n in input.shape) for size in unknown)


def keeps_rows(input: TensorView, output: TensorView, g: Graph, domain: Domain) -> bool:
    """Whether `output`, which has the elements of `input` in their order, is written as its rows:
    only dimensions before the last change, of a tensor that stands in the graph as rows."""
    if domain is not Domain.STORED or input.rank < 2 or output.rank < 2:
        return False
    if may_differ(input.shape[-1:], output.shape[-1:]):
        return False
    if not same_elements(input.shape, output.shape):  # a Reshape finds out
        return False
    given = input.rank == 2 or g.layout(input, rows=True) is Layout.ROWS
    if not given or not (output.rank == 2 or has_rows(output)):
        return False
    value = g.read(input, layout=Layout.ROWS, domain=domain)
    g.write(output, value, layout=Layout.ROWS, domain=domain)
    return True


def picked(
    g: Graph, value: ir.Value, shape: Sequence[int], indices: ir.Value, axis: int, rank: int = 1
) -> ir.Value:
    """Gather of `value`, which has `shape`, along an axis. Where there are pairs around nodes the
    axis goes first, unless only sizes of 1 are before it: NPUs pick wrong elements of some sizes
    along an axis between others.

    Args:
        rank: of the indices.
    """
    last = len(shape) - 1
    if not g.target.paired_codes or axis == last or all(map(is_one, shape[:axis])):
        return g.op("Gather", value, indices, axis=axis)
    first = g.op("Transpose", value, perm=[axis, *range(axis), *range(axis + 1, last + 1)])
    back = [*range(rank, rank + axis), *range(rank), *range(rank + axis, rank + last)]
    return g.op("Transpose", g.op("Gather", first, indices, axis=0), perm=back)

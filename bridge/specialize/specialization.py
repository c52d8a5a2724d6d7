"""A subgraph for given input shapes: shapes carried through it, what is constant computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.custom.kernels import Preparer
from tflite_ort.fallback_kernels import Kernel, custom_kernel, kernel
from tflite_ort.schema import (
    ModelError,
    Op,
    OperatorView,
    Specialized,
    SubGraph,
    Tensor,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file
from tflite_ort.schema.file.flow import order_problems
from tflite_ort.schema.shapes import output_shapes
from tflite_ort.schema.shapes.registry import Shapes, check_rank, rule_of
from tflite_ort.schema.values.inlining import FlatModel
from tflite_ort.schema.values.operators import check_inputs, is_flex, key_of
from tflite_ort.schema.values.regions import FUNCTIONS
from tflite_ort.schema.values.resolve import (
    meter_of,
    operator_view,
    quantization_as,
    tensor_views,
)
from tflite_ort.schema.values.result_types import result_type
from tflite_ort.schema.values.sizes import (
    LARGEST_SIZE,
    is_known,
    known_product,
    unknown_shape,
)
from tflite_ort.schema.values.view import VariableKey
from tflite_ort.specialize.called_subgraphs import REGIONS, is_caller, with_bodies
from tflite_ort.specialize.computed_sizes import PADDING, bytes_of, check_result, is_small
from tflite_ort.specialize.folding import OF_SHAPE, folded
from tflite_ort.specialize.hash_tables import constant_tables
from tflite_ort.specialize.resources import NAMES, Contents, Resources
from tflite_ort.specialize.size_lists import complete_lists, with_size_lists
from tflite_ort.versioning.registry import Pair, Registry

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

# Where an operator is that does not fit.
_CALLED = ", in subgraph"
# The rank of their results does not depend on that of their first input.
_OF_ANY_RANK = OF_SHAPE | {Op.RESHAPE}


def specialize(
    model: FlatModel,
    subgraph: int,
    shapes: Mapping[int, Shape],
    kernels: Registry[Kernel],
    preparers: Mapping[Pair, Preparer] = MappingProxyType({}),
) -> Specialized:
    """Subgraph `subgraph` with its inputs shaped as `shapes` says, else as the file says.

    Args:
        preparers: what stands in for the shape rules of operators that a user registered.

    Raises:
        ModelError: an operator cannot take the shapes that reach it; names the operator.
        KernelError: what a user registered failed to prepare.
    """
    contents = Contents(constant_tables(model))
    contents.lists.lasting = [size for shape in shapes.values() for size in shape]
    given = partial(_bytes_given, model.subgraphs[subgraph], shapes)
    while True:
        contents.changed = False
        meter = meter_of(model, given)
        specializer = _Specializer(model, kernels, preparers, contents, meter, (subgraph,))
        graph = specializer.specialized(shapes)
        if not contents.changed:
            return graph


def _bytes_given(graph: SubGraph, shapes: Mapping[int, Shape]) -> int:
    """What the inputs of a subgraph take, shaped as `shapes` says, else as the file says."""
    inputs = [(graph.tensors[index], shapes.get(index)) for index in graph.inputs]
    return sum(
        known_product(tensor.shape if shape is None else shape) * NUMPY_DTYPE[tensor.type].itemsize
        for tensor, shape in inputs
    )


@record
class _Specializer:
    """Makes a subgraph ready, and those that it calls.

    Args:
        contents: what the resources hold, as far as it is known by now.
        meter: counts called operators, constants and options.
        calls: the subgraph, after those that call it.
        runs: its operators run; one of a region only names a function, whatever its types are.
    """

    model: FlatModel
    kernels: Registry[Kernel]
    preparers: Mapping[Pair, Preparer]
    contents: Contents
    meter: Meter
    calls: tuple[int, ...]
    runs: bool = True

    def specialized(
        self,
        shapes: Mapping[int, Shape],
        given: Sequence[TensorView] = (),
        handles: Mapping[int, VariableKey] | None = None,
        filled: set[VariableKey] | None = None,
    ) -> Specialized:
        """The last of `calls`, with inputs shaped as `shapes` says or as the caller's `given`.

        Args:
            handles: of the caller.
            filled: see `Resources`; those filled here are added.
        """
        number = self.calls[-1]
        graph, tensors = self.model.subgraphs[number], self._tensors(shapes)
        resources = Resources(self.contents, tensors, filled=set() if filled is None else filled)
        resources.take(graph.inputs, given, handles or {})
        live: list[OperatorView[Any]] = []
        folded: list[OperatorView[Any]] = []
        variables = {tensor.index for tensor in tensors if tensor.is_variable}
        for problem in order_problems(self.model, graph, variables):
            raise ModelError(problem)
        for index in range(len(graph.operators)):
            op = operator_view(self.model, number, index, tensors, self.meter)
            op = resources.without_handle(op)
            if op.op in NAMES or (variables and _sets_variables(op)):
                folded.append(op)
                continue
            op, is_constant = self._with_shapes(op, graph.tensors, resources)
            for tensor in op.outputs:
                if op.op in PADDING or not is_small(tensor, self.meter):
                    self._check_size(tensor, op)
                    check_result(op, tensor, self.meter)
                tensors[tensor.index] = tensor
            (folded if is_constant else live).append(op)
        return Specialized(
            number,
            tensors,
            live,
            folded,
            graph.inputs,
            graph.outputs,
            {**_variable_tensors(number, tensors), **resources.keys()},
            resources.handles,
        )

    def _tensors(self, shapes: Mapping[int, Shape]) -> list[TensorView]:
        """The tensors of the subgraph as the file has them, but for these shapes."""
        number = self.calls[-1]
        tensors = tensor_views(self.model, number, self.meter)
        for index, shape in shapes.items():
            tensors[index] = replace(tensors[index], shape=shape)
        for index in self.model.subgraphs[number].inputs:
            if not is_small(tensors[index], self.meter):
                self._check_size(tensors[index], f"input {tensors[index].name!r}")
        return tensors

    def _check_size(self, tensor: TensorView, what: object) -> None:
        self.meter.check("tensor_bytes", bytes_of(tensor), what)

    def _with_shapes(
        self, op: OperatorView[Any], declared: Sequence[Tensor], resources: Resources
    ) -> tuple[OperatorView[Any], bool]:
        """`op` with the shapes of its outputs, and whether these are constants."""
        if is_caller(op):
            enter = partial(self._enter, resources, op)
            op = with_bodies(op, resources, enter)
            if op.op not in REGIONS:
                return op, False
        prepare = self.preparers.get((key_of(op), op.version))
        is_custom = op.op is Op.CUSTOM
        is_ours = self.kernels.shares(custom_kernel if is_custom else kernel, op)
        if is_ours:  # a user's may take other types
            if self.runs or op.op not in FUNCTIONS:
                check_inputs(op)
            op = resources.with_position(_retyped(op, declared))
        if prepare is not None:
            op = _prepared(op, declared, prepare)
        else:  # a user's may have the name of one of ours, and other shapes
            op = _reshaped(op, declared, has_rule=is_ours or not is_custom)
        if is_flex(op.custom_code):
            lists = self.contents.lists
            op = lists.sized(op, (self.calls, op.index), resources.tensors)
            self.contents.changed |= lists.found(op)
        constants = folded(op, self.kernels, self.meter)
        if constants is None:
            op = with_size_lists(op, self.kernels)
            constants = complete_lists(op.outputs)
        if constants is None or not op.outputs:
            return op, False
        return replace(op, outputs=tuple(_with_data(op.outputs, constants))), True

    def _enter(
        self,
        resources: Resources,
        caller: OperatorView[Any],
        subgraph: int,
        given: Sequence[TensorView] | None,
    ) -> Specialized:
        """A subgraph that is called; what it imports is known to be there if it runs surely."""
        size = 1 + len(self.model.subgraphs[subgraph].operators)
        self.meter.spend("called_operators", size, f"the call of subgraph {subgraph}")
        runs = self.runs and given is not None
        body = replace(self, calls=(*self.calls, subgraph), runs=runs)
        filled = resources.filled if caller.op is Op.CALL_ONCE else set(resources.filled)
        try:
            return body.specialized({}, given or (), resources.handles, filled)
        except ModelError as error:
            if type(error) is not ModelError or _CALLED in str(error):
                raise
            raise ModelError(f"{error}{_CALLED} {subgraph}, which {caller.label} calls") from error


def _sets_variables(op: OperatorView[Any]) -> bool:
    """Whether `op` gives variables the zeros that they start with."""
    return any(tensor.is_variable for tensor in op.outputs)


def _variable_tensors(subgraph: int, tensors: Sequence[TensorView]) -> dict[int, VariableKey]:
    return {index: (subgraph, index) for index, tensor in enumerate(tensors) if tensor.is_variable}


def _reshaped(
    op: OperatorView[Any], declared: Sequence[Tensor], has_rule: bool
) -> OperatorView[Any]:
    """`op` with the shapes of its outputs that follow from its inputs."""
    if op.op not in _OF_ANY_RANK and False in [each.ranked for each in op.present_inputs()]:
        return _unranked(op)
    try:
        shapes = output_shapes(op) if has_rule else None
        if shapes is None and op.op is Op.CUSTOM and _as_declared(op, declared):
            return op
    except Untranslatable:
        return _with_unknown_sizes(op, declared)
    except ModelError as error:
        if type(error) is not ModelError or op.label in str(error):
            raise
        raise ModelError(f"{op.label}: {error}") from error
    except MALFORMED_OPERATOR as error:
        raise ModelError(f"{op.label}: {said_of_file(error)}") from error
    if shapes is None:
        return _unranked(op) if rule_of(op.op) is not None else _with_unknown_sizes(op, declared)
    return _shaped_as(op, shapes)


def _shaped_as(op: OperatorView[Any], shapes: Shapes) -> OperatorView[Any]:
    """`op` with these shapes of its outputs."""
    if len(shapes) != len(op.outputs):
        raise ModelError(f"{op.label} has {len(op.outputs)} outputs, expected {len(shapes)}")
    for shape in shapes:
        check_rank(len(shape))
    for size in chain(*shapes):
        if type(size) is not int or not 0 <= size <= LARGEST_SIZE:
            _check_sizes(op, shapes)
            break
    else:
        for out, shape in zip(op.outputs, shapes, strict=True):
            if out.dynamic or out.shape != shape:
                break
        else:
            return op
    outputs = zip(op.outputs, shapes, strict=True)
    return replace(op, outputs=tuple(replace(out, shape=shape) for out, shape in outputs))


def _check_sizes(op: OperatorView[Any], shapes: Shapes) -> None:
    """
    Raises:
        ModelError: a size is no integer, negative or beyond 32 bits.
    """
    if not all(map(_is_size, chain.from_iterable(shapes))):  # made of constants of another type
        raise ModelError(f"{op.label}: sizes that are no integers: {shapes}")
    if any(is_known(size) and not 0 <= size <= LARGEST_SIZE for size in chain(*shapes)):
        raise ModelError(f"{op.label}: sizes that are negative or beyond 32 bits: {shapes}")


def _retyped(op: OperatorView[Any], declared: Sequence[Tensor]) -> OperatorView[Any]:
    """`op` with the types of its results that its kernel gives them; codes have the scale that the
    file says, even if it says another type."""
    type = result_type(op)
    if type is None or all(tensor.type is type for tensor in op.outputs):
        return op
    outputs = (
        tensor
        if tensor.type is type
        else replace(tensor, type=type, quantization=quantization_as(declared[tensor.index], type))
        for tensor in op.outputs
    )
    return replace(op, outputs=tuple(outputs))


def _is_size(size: Any) -> bool:
    integer = isinstance(size, int | np.integer) and not isinstance(size, bool)
    return integer or not is_known(size)


def _prepared(
    op: OperatorView[Any], declared: Sequence[Tensor], prepare: Preparer
) -> OperatorView[Any]:
    """`op` with the outputs that its registration gives it."""
    dynamic = any(tensor.dynamic for tensor in op.present_inputs())
    outputs = prepare(op, not dynamic and _as_declared(op, declared))
    if outputs is None:
        return _with_unknown_sizes(op, declared)
    return replace(op, outputs=tuple(outputs))


def _unranked(op: OperatorView[Any]) -> OperatorView[Any]:
    return replace(op, outputs=tuple(replace(out, ranked=False) for out in op.outputs))


def _with_unknown_sizes(op: OperatorView[Any], declared: Sequence[Tensor]) -> OperatorView[Any]:
    """`op` with nothing but the rank of its outputs taken from the file, if it says one."""
    outputs = (
        replace(out, shape=unknown_shape(out.rank))
        if out.rank or declared[out.index].has_rank
        else replace(out, ranked=False)
        for out in op.outputs
    )
    return replace(op, outputs=tuple(outputs))


def _as_declared(op: OperatorView[Any], declared: Sequence[Tensor]) -> bool:
    """The file says what shapes `op` makes, and its inputs have the shapes of the file."""
    return all(
        tensor.shape == declared[tensor.index].shape
        and -1 not in (declared[tensor.index].shape_signature or ())
        and (tensor.rank > 0 or declared[tensor.index].has_rank)
        for tensor in (*op.present_inputs(), *op.outputs)
    )


def _with_data(outputs: Sequence[TensorView], arrays: Sequence[Array]) -> list[TensorView]:
    views = []
    for tensor, array in zip(outputs, arrays, strict=True):
        array.flags.writeable = False
        known = replace(tensor, constant=array, shape=array.shape, ranked=True, sizes=None)
        views.append(replace(known, computed=True))
    return views

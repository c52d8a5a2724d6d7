"""The ONNX graph under construction, and the forms of TFLite tensors in it.

A tensor can have several *forms* in the graph. A form is a layout (channels-last as in TFLite, or
channels-first as ONNX convolutions take it) and a domain (`REAL` numbers, the `STORED` codes of a
quantized tensor, or the codes as the `FILE` has them). A translator reads the form it needs and
writes the form it has computed. A missing form is derived once from one that exists.

Quantized int8 tensors are carried as uint8 with the zero point moved by 128: the same real values,
with which ONNX Runtime's integer operators are fast and exact. `STORED` codes are such carried
codes. `FILE` codes are int8 again, for CAST and for the graph's own inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph.forms import (
    Domain,
    Form,
    Layout,
    Target,
    carried,
    carried_type,
    form_suffix,
    has_rows_alone,
    same_order,
)
from tflite_ort.opmap.graph.nodes import Attempt, Build
from tflite_ort.opmap.graph.quantized_nodes import QuantizedNodes
from tflite_ort.opmap.graph.rows import (
    as_rows,
    as_vector,
    has_rows,
    is_vector,
    row_shape,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    ActivationFunctionType,
    OperatorView,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.values.complex_pairs import is_complex, paired, paired_shape, part_dtype
from tflite_ort.schema.values.sizes import is_known, one_is_inferred

# Adds the nodes of an operator to a graph; Untranslatable leaves the graph as it was.
Translate = Callable[[OperatorView[Any], "Graph"], None]


# Of these the integer versions, into which ONNX Runtime fuses them, need an element.
_FAILING_ON_NONE = frozenset({"Add", "Mul", "Softmax"})
# Longer names of tensors are written once, of their codes.
_LONG_NAME = 100


class Graph(QuantizedNodes):
    """The ONNX nodes, and the forms of every tensor so far."""

    def __init__(self, target: Target, translate: Translate | None = None) -> None:
        super().__init__(TensorType.INT8 if target.weights == "int8" else TensorType.UINT8)
        self.target, self.opset = target, target.opset
        self._translate = translate
        self._within = ""
        self._body = ""
        self.output_names: set[str] = set()
        self._bases: dict[int, str] = {}
        self._after_tensors: set[str] = set()

    # What translators use -------------------------------------------------------------------

    def read(
        self,
        tensor: TensorView,
        *,
        layout: Layout = Layout.LAST,
        domain: Domain = Domain.REAL,
        rank: int | None = None,
    ) -> ir.Value:
        """The value of `tensor` in a form, which is derived and recorded if it is missing.

        Args:
            rank: prepend dimensions of size 1 up to this rank, so that a channels-first read of a
                tensor of lower rank broadcasts as TFLite's channels-last one does.

        Raises:
            Untranslatable: the tensor has no value in this graph.
        """
        if layout is Layout.ROWS and tensor.is_constant and is_vector(tensor):
            return self._constant_form(as_vector(tensor), Layout.LAST, domain)
        if rank is not None and rank > tensor.rank and layout is Layout.FIRST:
            return self._read_expanded(tensor, layout, domain, rank)
        form = self.form(tensor, layout, domain)
        forms = self._forms.setdefault(tensor.index, {})
        if form not in forms:
            self._record(tensor, form, self._derive(tensor, form, forms))
        return forms[form]

    def whole(self, tensor: TensorView) -> ir.Value:
        """The integers of `tensor` in int64, such as indices, sizes or counts. Their scale, if the
        file has one, is ignored."""
        return self.cast(self.read(tensor, domain=Domain.FILE), ir.DataType.INT64)

    def write(
        self,
        tensor: TensorView,
        value: ir.Value,
        *,
        layout: Layout = Layout.LAST,
        domain: Domain = Domain.REAL,
        activation: ActivationFunctionType = ActivationFunctionType.NONE,
    ) -> None:
        """Record `value` as `tensor`; real numbers for a quantized tensor are quantized first.

        Args:
            activation: as Relu or Clip of reals, or as Clip of codes unless their range implies it.
        """
        form = self.form(tensor, layout, domain)
        if tensor.is_quantized:
            if form[1] is Domain.REAL:
                value = self.quantize(self._safe_if_empty(value, tensor), tensor)
                form = (form[0], Domain.STORED)
            value = self._clamp_codes(value, tensor, form[1], activation)
        else:
            value = self._clamp(value, activation, tensor)
        for stale in list(self._forms.get(tensor.index, ())):  # of a variable that is set anew
            self._forget(tensor.index, stale)
        self._record(tensor, form, value)

    def _safe_if_empty(self, value: ir.Value, tensor: TensorView) -> ir.Value:
        """`value`, ready to be quantized even if `tensor` has no elements.

        An integer operator of ONNX Runtime would then end the process, or give nothing at all. In
        an exported file, open sizes are taken not to be 0: else most operators would be slower.
        """
        producer = value.producer()
        empty = self.target.fallback if tensor.dynamic else 0 in tensor.shape
        if not empty or producer is None:
            return value
        return self.apart(value) if producer.op_type in _FAILING_ON_NONE else value

    def body(self, arguments: Sequence[ir.DataType], build: Build) -> ir.Graph:
        """The body of a Scan, a Loop or an If: the nodes that `build` adds.

        It may use values and forms from outside. A new form would be a value of the body that a
        later `read` hands out outside of it, so a `read` or `write` that records one raises. The
        tensors of a called subgraph go into a graph of their own, see `of_subgraph`.

        Args:
            arguments: their types, one for each.
            build: takes the arguments and returns the results, which must be new values.

        Raises:
            RuntimeError: `build` records a form; the message names the tensor and the body.
        """
        sizes, body = dict(self._sizes), self._body
        self._body = f"{self._label}/body"
        try:
            return super().body(arguments, build)
        finally:
            self._sizes = sizes  # those looked up inside have no value outside
            self._body = body

    def read_steps(
        self,
        tensor: TensorView,
        step: float = 1.0,
        *,
        layout: Layout = Layout.LAST,
        rank: int | None = None,
        from_zero_point: bool = True,
    ) -> ir.Value:
        """The codes of a quantized `tensor` in float32, counted from its zero point, times `step`.

        `read` gives real numbers: its step is the scale of the tensor. This is the one way to read
        codes with another step. It is a scaling for one operator, so it is not recorded as a form.
        With a step of few digits the numbers are exact, and halves stay halves.

        Args:
            rank: as in `read`.
            from_zero_point: False counts from code 0 of the file.

        Raises:
            Untranslatable: `tensor` has no scale, or several.
        """
        quantization = tensor.quantization
        if quantization is None:
            raise Untranslatable(f"{tensor.name!r} has no scale")
        if not from_zero_point:
            codes = self.read(tensor, layout=layout, domain=Domain.STORED, rank=rank)
            return self.steps_of_codes(codes, tensor, step)
        if tensor.data is not None and not quantization.per_channel:
            steps = tensor.data.astype(np.float64) - quantization.scalar_zero_point
            real = (steps * step).astype(np.float32)
            constant = replace(tensor, constant=real, type=TensorType.FLOAT32, quantization=None)
            return self._read_expanded(constant, layout, Domain.REAL, max(rank or 0, tensor.rank))
        codes = self.read(tensor, layout=layout, domain=Domain.STORED, rank=rank)
        type = carried_type(tensor)
        return self._decoded(codes, type, self._parameters(tensor, type, step))

    # What the lowering loop uses ---------------------------------------------------------------

    def add_input(
        self, tensor: TensorView, name: str, shape: Sequence[int | str] | None
    ) -> ir.Value:
        """Add an input of the graph for `tensor`, in the layout that the target has for it."""
        layout = self.target.layout(tensor)
        value = ir.Value(
            self._unique(name),
            dtype=self.boundary_type(tensor),
            shape=None if shape is None else paired_shape(tensor, layout.order(shape)),
        )
        self._bases.setdefault(tensor.index, name)
        self._record(tensor, self.form(tensor, layout, self.target.boundary), value)
        return value

    def boundary_type(self, tensor: TensorView) -> ir.DataType:
        """The type of `tensor` as an input or output of the graph."""
        return ir.DataType.from_numpy(part_dtype(self.target.boundary_dtype(tensor)))

    def reserve(self, names: Sequence[str]) -> None:
        """Keep `names` free for the graph's outputs."""
        self._names.update(names)

    def stand_in(self, tensors: Sequence[TensorView]) -> None:
        """Give the outputs of a refused operator values, so that later operators can be tried."""
        for tensor in tensors:
            value = ir.Value(self._unique(f"{self._label}/refused"))
            for domain in (Domain.FILE, self.target.boundary):
                self._record(tensor, self.form(tensor, Layout.LAST, domain), value)

    def at(self, op: OperatorView[Any], group: Sequence[OperatorView[Any]] = ()) -> Attempt:
        """Name the nodes added inside after `op`; take them back if it is untranslatable.

        Args:
            group: the operators that are translated together with it.
        """
        self._label = self._within + op.label
        self._sized = [tensor for each in group or (op,) for tensor in each.present_inputs()]
        self._made = op.outputs
        self._made_by.update((tensor.index, op) for tensor in op.outputs)
        return Attempt(self)

    # Called subgraphs ----------------------------------------------------------------------------

    def of_subgraph(self) -> Graph:
        """A graph for the tensors of a called subgraph, which adds its nodes to this graph."""
        inner = Graph(self.target, self._translate)
        inner.nodes, inner.constants, inner._names = self.nodes, self.constants, self._names
        inner._counts, inner._after_tensors = self._counts, self._after_tensors
        inner._within, inner._depth = f"{self._label}/", self._depth
        return inner

    def translate(self, op: OperatorView[Any], inner: Graph) -> None:
        """Add the nodes of an operator of a called subgraph.

        Raises:
            Untranslatable: with the reason.
        """
        if self._translate is None:
            raise Untranslatable("subgraphs are not translated here")
        self._translate(op, inner)

    def forms_as(self, tensor: TensorView, other: TensorView) -> Mapping[Form, ir.Value]:
        """The forms of `tensor` for `other`, a tensor of another subgraph with the same bytes."""
        quantization = tensor.quantization
        if quantization is None or other.quantization is None:
            same = quantization is other.quantization
        else:
            same = quantization.equals(other.quantization)
        forms = self._forms.get(tensor.index, {})
        whole = {form: value for form, value in forms.items() if form[0] is not Layout.ROWS}
        if same and whole and tensor.rank == other.rank:
            return whole
        form = self.form(other, Layout.LAST, Domain.FILE)
        return {form: self.read(tensor, layout=Layout.LAST, domain=Domain.FILE)}

    def take(self, tensor: TensorView, forms: Mapping[Form, ir.Value]) -> None:
        """Record `forms` as the forms of `tensor`."""
        for form, value in forms.items():
            self._record(tensor, form, value)

    # Forms ---------------------------------------------------------------------------------------

    def form(self, tensor: TensorView, layout: Layout, domain: Domain) -> Form:
        """The canonical form: a layout or domain that makes no difference is the default one."""
        if (
            tensor.rank < 3
            or is_complex(tensor)
            or (layout is Layout.ROWS and not has_rows(tensor))
        ):
            layout = Layout.LAST
        if not tensor.is_quantized:
            domain = Domain.REAL
        elif domain is Domain.FILE and carried_type(tensor) is tensor.type:
            domain = Domain.STORED
        return layout, domain

    def _record(self, tensor: TensorView, form: Form, value: ir.Value) -> None:
        if self._body:
            layout, domain = form
            raise RuntimeError(
                f"internal error: {self._body} records tensor {tensor.name!r} as {layout.value}, "
                f"{domain.value}: it has no value outside of the body; read it before"
            )
        forms = self._forms.setdefault(tensor.index, {})
        self._journal.append((tensor.index, form, forms.get(form)))
        forms[form], layout = value, form[0]
        if self.target.only_runs and is_known(*tensor.shape):
            self._tell_shape(value, tensor, layout)
        named = value.name in self._after_tensors or value.name in self.output_names
        if value.producer() is None or named:
            return
        if not self._is_long_again(tensor, form, forms):
            value.name = self._unique(self._base(tensor) + form_suffix(tensor, form))
            self._after_tensors.add(value.name)

    def _is_long_again(
        self, tensor: TensorView, form: Form, forms: Mapping[Form, ir.Value]
    ) -> bool:
        """Whether the codes of the tensor have its long name already, and `form` is its real
        numbers: these get a short name. Names of hundreds of letters take more room than small
        weights."""
        if form[1] is not Domain.REAL or not tensor.is_quantized:
            return False
        codes = any(domain is not Domain.REAL for _, domain in forms)
        return codes and len(self._base(tensor)) > _LONG_NAME

    def _base(self, tensor: TensorView) -> str:
        """The name of `tensor`, with its index if the name is taken. Names of its values begin
        so."""
        if tensor.index not in self._bases:
            name = self._within + (tensor.name or "tensor")
            taken = not tensor.name or name in self._names
            self._bases[tensor.index] = f"{name}#{tensor.index}" if taken else name
        return self._bases[tensor.index]

    def _forget(self, index: int, form: Form) -> None:
        self._journal.append((index, form, self._forms[index].pop(form)))

    def _derive(self, tensor: TensorView, form: Form, forms: dict[Form, ir.Value]) -> ir.Value:
        layout, domain = form
        if tensor.is_constant:
            return self._constant_form(tensor, layout, domain)
        if not forms:
            raise Untranslatable(f"tensor {tensor.name!r} has no value here")
        if layout is Layout.ROWS:
            return self._derive_rows(tensor, domain, forms)
        if has_rows_alone(forms):
            for _, present in [key for key in forms if key[0] is Layout.ROWS]:
                rows, sizes = forms[Layout.ROWS, present], row_shape(tensor)
                if min(sizes) > 0 and rows.producer() is not None:
                    rows.shape = sizes
                whole = self.reshape(rows, tensor.shape)
                self._record(tensor, (Layout.LAST, present), whole)
            return self.read(tensor, layout=layout, domain=domain)
        if not tensor.is_quantized:
            return self._relayout(tensor, forms[self._other(layout), domain], layout)
        stored = (layout, Domain.STORED)
        if self.target.real_transposes and domain is Domain.REAL and stored not in forms:
            other = self._other(layout)
            if any(there is other for there, _ in forms):
                return self._relayout(tensor, self.read(tensor, layout=other), layout)
        if stored not in forms:
            self._record(tensor, stored, self._derive_stored(tensor, layout, forms))
        if domain is Domain.REAL:
            return self._dequantize(forms[stored], tensor, carried_type(tensor))
        if domain is Domain.FILE:
            return self._recode(forms[stored], tensor, carried_type(tensor), tensor.type)
        return forms[stored]

    def _derive_rows(
        self, tensor: TensorView, domain: Domain, forms: dict[Form, ir.Value]
    ) -> ir.Value:
        stored = forms.get((Layout.ROWS, Domain.STORED))
        if domain is Domain.REAL and stored is not None:
            return self._dequantize(stored, tensor, carried_type(tensor))
        return self.op("Reshape", self.read(tensor, domain=domain), self.ints(row_shape(tensor)))

    def _derive_stored(
        self, tensor: TensorView, layout: Layout, forms: dict[Form, ir.Value]
    ) -> ir.Value:
        for other, domain in forms:
            if domain is Domain.STORED and other is not Layout.ROWS:
                return self._relayout(tensor, forms[other, domain], layout)
        place = Layout.LAST if (Layout.LAST, Domain.FILE) in forms else Layout.FIRST
        value = self._recode(forms[place, Domain.FILE], tensor, tensor.type, carried_type(tensor))
        if layout is place:
            return value
        self._record(tensor, (place, Domain.STORED), value)
        return self._relayout(tensor, value, layout)

    @staticmethod
    def _other(layout: Layout) -> Layout:
        return Layout.LAST if layout is Layout.FIRST else Layout.FIRST

    def _relayout(self, tensor: TensorView, value: ir.Value, to: Layout) -> ir.Value:
        rank = tensor.rank
        if (
            not self.transposes_cancel(tensor)
            and same_order(tensor.shape)
            and (not tensor.dynamic or one_is_inferred(tensor.shape))
        ):
            # Nothing changes place in memory.
            return self.reshape(value, to.shape(tensor.shape))
        permutation = to.permutation(rank) if to is Layout.FIRST else Layout.FIRST.inverse(rank)
        return self.op("Transpose", value, perm=permutation)

    def transposes_cancel(self, tensor: TensorView) -> bool:
        """Whether Transposes of `tensor` cancel others: ONNX Runtime's own layers of codes are
        channels-last, and have one before and one after them."""
        return self.target.channels_last and tensor.is_quantized and tensor.rank == 4

    def _read_expanded(
        self, tensor: TensorView, layout: Layout, domain: Domain, rank: int
    ) -> ir.Value:
        shape = (1,) * (rank - tensor.rank) + tensor.shape
        if not tensor.is_constant:
            value = self.read(tensor, domain=domain)
            value = self.op("Unsqueeze", value, self.ints(range(rank - tensor.rank)))
            return self.op("Transpose", value, perm=layout.permutation(rank))
        assert tensor.data is not None
        expanded = replace(tensor, shape=shape, constant=tensor.data.reshape(shape))
        return self._constant_form(expanded, layout, domain)

    def _constant_form(self, tensor: TensorView, layout: Layout, domain: Domain) -> ir.Value:
        if layout is Layout.ROWS:
            return self._constant_form(as_rows(tensor), Layout.LAST, domain)
        assert tensor.data is not None
        data = np.transpose(tensor.data, layout.permutation(tensor.rank))
        quantization = tensor.quantization
        if not tensor.is_quantized or quantization is None or domain is Domain.FILE:
            return self.constants.add(paired(data), tensor.name)
        codes, zero_point = carried(
            data, tensor.type, quantization.zero_point, carried_type(tensor)
        )
        stored = self.constants.add(codes, tensor.name)
        if domain is Domain.STORED:
            return stored
        axis = layout.axis(quantization.axis, tensor.rank) if quantization.per_channel else 0
        return self._dequantized_constant(stored, quantization.scale, zero_point, axis, tensor.name)

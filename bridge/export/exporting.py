"""A whole model as one ``.onnx`` file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import onnx

from tflite_ort.base.suggestions import suggestion
from tflite_ort.base.warned import warn_caller
from tflite_ort.batching.samples import left_open
from tflite_ort.bundles.bundle import Source
from tflite_ort.custom.export import DOMAIN, untranslated, with_custom_nodes
from tflite_ort.custom.kernels import BoundResolver
from tflite_ort.export.check import check_export
from tflite_ort.export.decoded import IMAGE, write_decoded
from tflite_ort.export.finishing import finish
from tflite_ort.export.form import Form, Written
from tflite_ort.export.shapes import Given, Shaped, name_batch, shaped
from tflite_ort.export.signature_state import SharedState, shared_state
from tflite_ort.export.state import first_values, layers_with_state, lower_with_state
from tflite_ort.model.missing_operators import check_operators
from tflite_ort.model.opening import check_hybrid, check_resolver, model_source
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.model.signature_model import signature_model, signature_of
from tflite_ort.opmap import Lowered, Target
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.providers.model_session import model_session
from tflite_ort.schema import (
    Budgets,
    DelegateError,
    ExportError,
    ExportWarning,
    InsufficientMemory,
    Model,
    ModelError,
    OperatorView,
    Specialized,
    Untranslatable,
    read_model,
)
from tflite_ort.schema.file.check import check
from tflite_ort.schema.values.operators import is_flex
from tflite_ort.specialize.specialization import specialize
from tflite_ort.versioning.resolver import OpResolver

_ADVICE = f"custom_ops='domain' writes custom operators as nodes of the domain {DOMAIN}."
_IN_NUMPY = "Interpreter has numpy kernels for these operators."
_ANEW = (
    "each run starts {} from zero, as a layer over whole sequences does; stateful=True "
    "(--stateful) makes its state inputs and outputs, and stateful=False says this"
)
_NAMED = 8  # inputs in a message
_KNOWN_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
# They have no results; see `opmap/flex/checks.py`.
_WITHOUT_RESULT = frozenset({"FlexAssert", "FlexPrintV2"})


def export_onnx(
    model: str | os.PathLike[str] | bytes | memoryview | Model,
    output: str | os.PathLike[str] | None = None,
    *,
    weights: str | None = None,
    hybrid: str | None = None,
    input_shapes: Given | None = None,
    batch: int | str | None = None,
    resolver: OpResolver | None = None,
    custom_ops: str | None = None,
    stateful: bool | None = None,
    external_roots: Sequence[str | os.PathLike[str]] = (),
    budgets: Budgets | None = None,
    check: bool = False,
    decode: bool | str = False,
    **written: Unpack[Written],
) -> onnx.ModelProto:
    """Translate a TFLite model into ONNX (opset 21; hash tables also need ``ai.onnx.ml``).

    Args:
        model: a ``.tflite`` file, a bundle with one model, the bytes of either, or a `Model`.
        output: the file to write; weights above 2 GB go into a second file, ``<output>.data``.
        weights: ``"uint8"``, the default without `for_`, is exact on every CPU; ``"int8"`` keeps
            int8: on x86 without VNNI that needs ``session.x64quantprecision`` in ONNX Runtime.
        hybrid: how floats meet integer weights, see `Interpreter`; default ``"float"``.
        input_shapes: shapes by input name. A size that is None or a name stays open:
            ``{"image": ("batch", None, None, 3)}``. Another first size than 1 makes a batch of
            these inputs. Sizes that the file leaves open are open, or fixed with an ExportWarning.
        batch: a number or a name: all inputs and outputs get a batch of this size as their first
            dimension, see `batched_model`; may raise Unbatchable. `input_shapes` are of one sample.
        resolver: where translators are looked up; default `BuiltinOpResolver`.
        custom_ops: ``"domain"`` writes a custom operator without a translation as a node of the
            domain ``tflite.custom``, its options as attributes. None refuses such a model.
        stateful: variables become inputs and outputs, ``h`` and ``h_next``, which ``tflite.state``
            in the metadata lists, see `first_state`. False: every run starts from the first values;
            None: with an ExportWarning, where only layers over sequences have variables.
        external_roots, budgets: see `read_model`; a `Model` keeps its own.
        check: run file and interpreter on the same random inputs, see `check_export`.
        decode: True returns boxes, landmarks, masks or classes; ``"image"`` also takes a picture.
        written: the form of the file, such as `signature`, `opset`, `float16`: see `Written`.

    Returns:
        The ONNX model, without the data of weights that are in a second file. Names, dtypes and
        layout are the TFLite model's, but a complex value is two floats. Nodes are named as
        ``CONV_2D_12/Conv``; `properties` explains ``metadata_props``.

    Raises:
        ModelError, VersionError, OSError: a file cannot be read or written, or exceeds a budget.
        ExportError: lists all operators without a translation; graph does not load; `check` fails.
    """
    form = _chosen_form(weights, hybrid, custom_ops, decode, batch, written)
    resolver, sizes = resolver or BuiltinOpResolver(), (input_shapes or {}, batch)
    source, origin, shared, form = _source(model, budgets, external_roots, form, resolver)
    aim, state = (form, form.target(weights, hybrid)), (shared, stateful)
    with _enough_memory():
        given, lowered = _told(_translated(source, sizes, resolver, aim, custom_ops, state))
        proto = form.write(lowered.model, source, origin, path := None if decode else output)
    if check:
        check_export(proto, path, given, hybrid=hybrid, resolver=resolver, form=form)
    return write_decoded(proto, given, origin, decode, output, form) if decode else proto


def made_for(target: Target, model: Source, resolver: OpResolver) -> onnx.ModelProto:
    """As `export_onnx`, in memory, of the nodes that suit what runs it.

    Raises:
        BridgeError: as `export_onnx`.
    """
    source, _, shared, form = _source(model, None, (), Form(), resolver)
    _, lowered, _ = _translated(source, ({}, None), resolver, (form, target), None, (shared, True))
    return Form().write(lowered.model, source, None, None)


def _translated(
    source: Model,
    sizes: tuple[Given, int | str | None],
    resolver: OpResolver,
    aim: tuple[Form, Target],
    custom_ops: str | None,
    state: tuple[SharedState, bool | None],
) -> tuple[Model, Lowered, str]:
    """The model of these shapes and of this batch, what it becomes, and why sizes that the file
    leaves open are fixed; empty where they are not."""
    domain, (shapes, batch) = custom_ops is not None, sizes
    _check_shapes(shapes)
    if domain:
        resolver = with_custom_nodes(resolver, untranslated(source, resolver))
    check_operators(source, resolver)

    def lower(as_signed: bool) -> tuple[Shaped, Lowered]:
        given = shaped(source, shapes, batch, resolver, as_signed=as_signed)
        lowered = _lowered(given, resolver, *aim, domain=domain, state=state)
        if isinstance(batch, str):
            name_batch(lowered.model.graph, given.model, batch)
        return given, lowered

    graph = source.subgraphs[0]
    is_fixed = aim[0].preset.fixed
    signed = () if is_fixed else left_open(source, shapes, of_sample=batch is not None)
    given, lowered, fixed = _opened(lower, [graph.tensors[index].name for index in signed])
    return given.model, lowered, fixed


def _told(translated: tuple[Model, Lowered, str]) -> tuple[Model, Lowered]:
    """What was translated; a warning says which sizes are fixed."""
    model, lowered, fixed = translated
    if fixed:
        warn_caller(fixed, ExportWarning)
    return model, lowered


def _opened(
    lower: Callable[[bool], tuple[Shaped, Lowered]], names: Sequence[str]
) -> tuple[Shaped, Lowered, str]:
    """With the sizes open that the file leaves open, or with those that it has where an operator
    cannot be translated so, and why."""
    if not names:
        return *lower(False), ""
    try:
        return *lower(True), ""
    except (ExportError, ModelError) as error:
        refused = str(error)
    shown = ", ".join(map(repr, names[:_NAMED]))
    try:
        return *lower(False), (
            f"sizes of {shown} that the file leaves open are fixed; with them open {refused}"
        )
    except ModelError as error:
        raise ExportError(
            f"with the sizes of {shown} that the file declares {error}; with them open {refused} "
            "input_shapes fixes them."
        ) from error


@contextmanager
def _enough_memory() -> Iterator[None]:
    """Names what there is too little memory for."""
    try:
        yield
    except MemoryError as error:
        raise InsufficientMemory(f"the model cannot be exported: {error}") from error


def _source(
    model: Source | Model,
    budgets: Budgets | None,
    external_roots: Sequence[str | os.PathLike[str]],
    form: Form,
    resolver: OpResolver,
) -> tuple[Model, Source | None, SharedState, Form]:
    """The model, of a signature if `form` names one, what it was read from, the state that it
    shares with other signatures, and the form that suits it."""
    origin = None
    _check_source(model)
    check_resolver(resolver)
    if isinstance(model, Model):
        source = model
        check(source)
    else:
        origin = model_source(model, budgets=budgets)
        source = read_model(origin, external_roots=external_roots, budgets=budgets)
    if not source.subgraphs:
        raise ExportError("The model has no subgraph.")
    if budgets is not None:
        source = replace(source, budgets=budgets)
    shared = shared_state(source, resolver)
    if form.signature is not None:
        index = signature_of(source, form.signature).subgraph_index
        source = signature_model(source, form.signature)
        shared = shared.moved({0: index, index: 0})
    form.check(source)
    form = form.laid_out(source)
    with _enough_memory():
        return form.prepared(source), origin, shared, form


def _chosen_form(
    weights: str | None,
    hybrid: str | None,
    custom_ops: str | None,
    decode: bool | str,
    batch: int | str | None,
    written: Written,
) -> Form:
    for name in written.keys() - Written.__annotations__.keys():
        near = suggestion(name, [*Written.__annotations__, *export_onnx.__annotations__])
        raise TypeError(f"export_onnx takes no {name!r}{near}")
    if isinstance(names := written.get("nchw", ()), str | bool):
        raise TypeError(f"nchw is a list of inputs and outputs, such as ['image'], got {names!r}")
    form = Form.of(written)
    if decode and not (form.plain and batch is None):
        raise ValueError(
            "decode takes no batch, opset, float16, nchw, rename or external_data, and no for_, "
            "dequantize, float_io or lstm_clip"
        )
    if decode not in (False, True, IMAGE):
        raise ValueError(f"decode must be True, False or {IMAGE!r}, got {decode!r}")
    if weights not in (None, "uint8", "int8"):
        raise ValueError(f"weights must be 'uint8' or 'int8', got {weights!r}")
    if custom_ops not in (None, "domain"):
        raise ValueError(f"custom_ops must be 'domain' or None, got {custom_ops!r}")
    check_hybrid(form.hybrid(hybrid))
    return form


def _check_source(model: object) -> None:
    """
    Raises:
        TypeError: it is something else, such as an interpreter.
    """
    if not isinstance(model, Model | str | os.PathLike | bytes | bytearray | memoryview):
        kind = type(model).__name__
        raise TypeError(f"model must be a path, the bytes of a file or a Model, got {kind}")


def _check_shapes(input_shapes: object) -> None:
    """
    Raises:
        TypeError: it is no table.
    """
    if not isinstance(input_shapes, Mapping):
        raise TypeError(
            'input_shapes is a dictionary by input, such as {"image": ("batch", None, None, 3)}, '
            f"got {input_shapes!r}"
        )


def _lowered(
    given: Shaped,
    resolver: OpResolver,
    form: Form,
    target: Target,
    *,
    domain: bool,
    state: tuple[SharedState, bool | None],
) -> Lowered:
    """The primary subgraph as one graph; custom operators without a translation as nodes of the
    domain `tflite.custom`, if they are to be.

    Args:
        state: what signatures share, and whether it becomes inputs and outputs.
    """
    with closing(BoundResolver(resolver, given.model)) as bound:
        model = bound.model_for(0, given.shapes)
        graph = specialize(model, 0, given.shapes, bound.kernels, bound.preparers())
        values = first_values(graph, bound)
    if any(is_flex(code.custom_code or "") for code in given.model.operator_codes):
        graph = without_prints(graph)
    shared, stateful = state
    is_asked = stateful is None and not form.state_defaults
    anew = layers_with_state(graph) if is_asked else []
    shared_or_none = None if anew or stateful is False else shared
    name = given.model.subgraphs[0].name or "main"
    lower = partial(
        lower_with_state, graph, values, target=target, name=name, shared=shared_or_none
    )
    try:
        lowered = lower(resolver.translators)
    except Untranslatable as error:  # of an output
        raise ExportError(f"an output cannot be exported: {error}") from error
    if domain and lowered.refusals:
        refused = [op for op in graph.operators if op.index in lowered.refusals and op.custom_code]
        custom = with_custom_nodes(resolver, {(op.name, op.version) for op in refused})
        lowered = lower(custom.translators)
    if lowered.refusals:
        raise _refused(graph, lowered.refusals, resolver, advise=not domain)
    signed = target.weights == "int8"
    finish(lowered.model, given.model, form, signed_weights=signed)
    _check_loads(lowered.model)
    if anew:
        warn_caller(_ANEW.format(", ".join(anew[:_NAMED])), ExportWarning)
    return lowered


def _check_loads(model: ir.Model) -> None:
    """Load the graph as it is to be written, without optimisations: what ONNX Runtime refuses is
    not written. Nodes of other domains need libraries of their own, and are not looked at."""
    if not model.graph.outputs:
        raise ExportError("The model has no output.")
    if any(node.domain not in _KNOWN_DOMAINS for node in model.graph.all_nodes()):
        return
    try:
        model_session(model, num_threads=1, optimized=False)
    except DelegateError as error:
        raise ExportError(f"the result is no valid graph. {error}") from error


def _refused(
    graph: Specialized, refusals: Mapping[int, str], resolver: OpResolver, *, advise: bool
) -> ExportError:
    """Lists the operators with the reasons, and says what to do instead."""
    refused = [op for op in graph.operators if op.index in refusals]
    lines = [f"  {op.label} version {op.version}: {refusals[op.index]}" for op in refused]
    count = f"{len(lines)} of {len(graph.operators)} operators cannot be exported:"
    advice = [_ADVICE] if advise and any(op.custom_code for op in refused) else []
    if all(resolver.kernels.of(op) is not None for op in refused):
        advice.append(_IN_NUMPY)
    return ExportError("\n".join([count, *lines, *advice]))


def without_prints(graph: Specialized) -> Specialized:
    """A subgraph and those that it calls without prints, assertions, and what only they read."""
    operators = [_within(op) for op in graph.operators]
    idle = {op.index for op in operators if op.name in _WITHOUT_RESULT}
    if idle:
        wanted = set(graph.outputs)
        read = {t.index for op in operators if op.index in idle for t in op.present_inputs()}
        for op in reversed(operators):
            made = {out.index for out in op.outputs}
            only_read = bool(made) and made <= read and made.isdisjoint(wanted)
            if only_read and not op.bodies and not op.variables():
                idle.add(op.index)
                read.update(tensor.index for tensor in op.present_inputs())
            elif op.index not in idle:
                wanted.update(tensor.index for tensor in op.present_inputs())
    elif all(one is other for one, other in zip(operators, graph.operators, strict=True)):
        return graph
    return replace(graph, operators=[op for op in operators if op.index not in idle])


def _within(op: OperatorView[Any]) -> OperatorView[Any]:
    bodies = tuple(map(without_prints, op.bodies))
    same = all(one is other for one, other in zip(bodies, op.bodies, strict=True))
    return op if same else replace(op, bodies=bodies)

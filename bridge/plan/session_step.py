"""A partition in ONNX Runtime: a session bound to the arrays of the tensors that cross."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.opmap import Lowered, Target
from tflite_ort.opmap.graph.costs import layer_costs
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.plan.bound_step import bound_run
from tflite_ort.plan.boundary import BoundaryTensor
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.in_place import Pairs, in_place_pairs, share
from tflite_ort.plan.memory import Memory
from tflite_ort.plan.partition import Partition
from tflite_ort.plan.parts import Wholes, take_wholes
from tflite_ort.plan.refusals import LeftToTheCPU
from tflite_ort.plan.runs import Run
from tflite_ort.providers.binding import DeviceTensor
from tflite_ort.providers.delegates import Delegate
from tflite_ort.providers.model_session import model_session
from tflite_ort.providers.provider import ON_CPU, Provider
from tflite_ort.providers.session import Session
from tflite_ort.providers.shared_sessions import may_share
from tflite_ort.providers.stored_graph import COMPILED, StoredGraph
from tflite_ort.providers.traits import traits_of
from tflite_ort.schema import DelegateError, Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known, known_product

if TYPE_CHECKING:
    from tflite_ort.plan.recording import Recorder

_NO_TENSORS: list[BoundaryTensor] = []

_CONVOLUTIONS = (Op.CONV_2D, Op.DEPTHWISE_CONV_2D, Op.CONV_3D)
_CODES = (TensorType.INT8, TensorType.UINT8)
_TOGETHER = 16  # channels of a convolution that are computed together
# A string of C++ holds so many characters itself.
_HELD = 15


@record
class SessionStep:
    """A partition made ready.

    Args:
        providers: by operator, the execution providers that ONNX Runtime really uses.
    """

    run: Run
    providers: Mapping[int, str]


def session_step(
    part: Partition, lowered: Lowered, delegate: Delegate, memory: Memory, context: PlanContext
) -> SessionStep:
    """One session over the tensors that enter and leave a partition.

    Raises:
        LeftToTheCPU: some operators are better run by the next delegate.
        DelegateError: ONNX Runtime could not make it, or not as a strict context wants it.
    """
    backend, pairs, wholes, threads = part.backend, Pairs(), Wholes(), context.num_threads
    provider = delegate.provider
    part, passed = _without_passed(part, lowered.model.graph, memory)
    if not part.outputs:
        session, providers, inputs, outputs = None, dict[int, str](), _NO_TENSORS, _NO_TENSORS
    else:
        if provider == ON_CPU:
            wholes = take_wholes(part, lowered.model.graph, memory.variables)
            shorten_boundary(lowered.model.graph)
            if threads != 1 and not saves_time(part.operators):
                threads = 1
        session = _session(lowered.model, provider, context, threads)
        providers = _providers(part, session, delegate, context)
        if traits_of(delegate.name).takes_all_nodes and not context.continued:
            pairs = in_place_pairs(part.inputs, [*part.outputs, *part.copies], lowered.model.graph)
            share(pairs, memory)
        inputs, outputs = _boundary(part, traits_of(delegate.name).target, memory, wholes)
        if session.on_device and not any(op.bodies for op in part.operators):
            _try(session, inputs)
    if context.recorder is not None:
        facts = {"backend": backend, "noted": context.continued, "in_place": pairs}
        facts["alone"] = threads == 1
        context.recorder.add(context.scope, session, inputs, outputs, passed, **facts)
        if session is not None:
            _check_saved(session, provider, context.recorder)
            if may_share(provider, threads):
                context.recorder.share(session)
    lowered.release()
    run = bound_run(session, inputs, outputs, passed, memory, noted=context.continued)
    return SessionStep(run, providers)


def _check_saved(session: Session, provider: Provider, recorder: Recorder) -> None:
    """See whether what a provider has compiled can be loaded again: not all can."""
    saved = session.saved
    if saved is None or saved.kind != COMPILED:
        return
    try:
        Session(StoredGraph(saved.kind, str(saved.files[0])), provider)
    except DelegateError as error:
        recorder.spoil(f"{provider.name} cannot load what it has compiled: {error}")


def _boundary(
    part: Partition, target: Target, memory: Memory, wholes: Wholes
) -> tuple[list[BoundaryTensor], list[BoundaryTensor]]:
    """What enters and leaves a session.

    Args:
        target: of the provider, which says how the boundary is carried.
    """

    def crossing(tensor: TensorView, place: DeviceTensor | None = None) -> BoundaryTensor:
        return BoundaryTensor.of(tensor, target.boundary_dtype(tensor), memory, place)

    inputs = [crossing(t, part.places.get(t.index)) for t in part.inputs]
    outputs = [crossing(t, part.places.get(t.index)) for t in part.outputs]
    made = [*outputs, *map(crossing, part.copies)]
    return (
        [wholes.of(x, wholes.inputs) for x in inputs],
        [wholes.of(x, wholes.outputs) for x in made],
    )


def _try(session: Session, inputs: Sequence[BoundaryTensor]) -> None:
    """A first run, over zeros: some devices compile only then, and may fail to. It is not for
    loops, which may not end with zeros.

    Raises:
        DelegateError: it failed.
    """
    if not any(x.tensor.dynamic or x.dtype == np.object_ for x in inputs):
        session.call([np.zeros(x.tensor.shape, x.dtype) for x in inputs])


def _providers(
    part: Partition, session: Session, delegate: Delegate, context: PlanContext
) -> dict[int, str]:
    """The execution providers that run the nodes of each operator.

    An operator whose nodes were merged into others has those of the operators beside it.

    Raises:
        LeftToTheCPU: some operators are better run by the next delegate.
        DelegateError: the delegate was given no node, or not all and the context is strict.
    """
    assigned = session.assigned()
    if not assigned:
        return {op.index: delegate.name for op in part.operators}
    strays = sorted(node for node, name in assigned.items() if name != delegate.name)
    if strays and context.strict:
        raise DelegateError(f"{delegate.name} was not given {', '.join(strays)}")
    everywhere = list(dict.fromkeys(assigned.values()))
    if delegate.name not in everywhere:
        raise DelegateError("ONNX Runtime gave it none of the nodes")
    used: dict[str, dict[str, None]] = {}
    for node, name in assigned.items():
        used.setdefault(node.partition("/")[0], {})[name] = None
    left = [op for op in part.operators if used.get(op.label, {}).keys() - {delegate.name}]
    if left and _next_takes_them(delegate, context):
        raise LeftToTheCPU(delegate, left)
    return _with_merged(
        part, {op.index: used.get(op.label, {}) for op in part.operators}, everywhere
    )


def _with_merged(
    part: Partition, used: dict[int, dict[str, None]], everywhere: Sequence[str]
) -> dict[int, str]:
    """The providers of each operator; one without nodes of its own has those of what reads its
    results, or of what makes its inputs."""
    readers: dict[int, dict[str, None]] = {}
    for op in reversed(part.operators):
        if not used[op.index]:
            used[op.index] = {x: None for out in op.outputs for x in readers.get(out.index, ())}
        for tensor in op.present_inputs():
            readers.setdefault(tensor.index, {}).update(used[op.index])
    makers: dict[int, dict[str, None]] = {}
    for op in part.operators:
        if not used[op.index]:
            given = (makers.get(tensor.index, {}) for tensor in op.present_inputs())
            used[op.index] = {name: None for names in given for name in names}
        makers.update((out.index, used[op.index]) for out in op.outputs)
    return {index: ", ".join(names or everywhere) for index, names in used.items()}


def _next_takes_them(delegate: Delegate, context: PlanContext) -> bool:
    """Whether what the delegate leaves is better off with a delegate that takes all nodes."""
    someone = any(traits_of(each.name).takes_all_nodes for each in context.delegates)
    return someone and traits_of(delegate.name).whole_graphs_only


def _session(
    model: ir.Model, provider: Provider, context: PlanContext, num_threads: int
) -> Session:
    profile = context.profile
    prefix = None if profile is None else profile.prefix
    save = None if context.recorder is None else context.recorder.file()
    given = [] if profile is None else model.graph.nodes
    makers = {value.name: node.name for node in given for value in node.outputs}
    kept = save is not None or context.tuner is not None
    session = model_session(
        model, provider, num_threads=num_threads, kept=kept, profile=prefix, save=save
    )
    if profile is not None:
        profile.add(session, makers)
    return session


def _without_passed(
    part: Partition, graph: ir.Graph, memory: Memory
) -> tuple[Partition, list[tuple[TensorView, TensorView]]]:
    """`part` and `graph` without the outputs that are inputs, such as what a loop hands on as it
    is, and without inputs that nothing reads; and these pairs of input and output."""
    sources = {id(value): t for value, t in zip(graph.inputs, part.inputs, strict=True)}
    passed: list[tuple[TensorView, TensorView]] = []
    outputs = list(part.outputs)
    for value, tensor in zip(list(graph.outputs), [*part.outputs, *part.copies], strict=True):
        if tensor.index in part.places:
            continue
        node = value.producer()
        assert node is not None
        source = sources.get(id(node.inputs[0])) if node.op_type == "Identity" else None
        if source is None or source.type is not tensor.type:
            continue
        if memory.variables.keys() & {source.index, tensor.index}:
            continue
        passed.append((source, tensor))
        outputs.remove(tensor)
        graph.outputs.remove(value)
        graph.nodes.remove(node)
    read = graph.read_ids()
    if not passed and read.issuperset(map(id, graph.inputs)):
        return part, passed
    graph.inputs = [value for value in graph.inputs if id(value) in read]
    inputs = [sources[id(value)] for value in graph.inputs]
    return replace(part, inputs=inputs, outputs=outputs), passed


def saves_time(operators: Sequence[OperatorView[Any]]) -> bool:
    """Whether two threads are likely to run these operators sooner than one.

    ONNX Runtime hands most layers to all threads of a session, small ones too, and waits for them.
    So a layer that takes less than handing it over is slower with two threads. How often a loop
    runs is not known: it is slower where its body takes less than handing over two layers.
    """
    costs = layer_costs()
    bodies = [body.operators for op in operators for body in op.bodies]
    longest = max((sum(map(_microseconds, _with_bodies(body))) for body in bodies), default=0.0)
    if longest > 2 * costs.handed_over:
        return True
    if not all(is_known(*x.shape) for op in operators for x in op.outputs):
        return True
    times = map(_microseconds, operators)
    return sum(time / 2 - costs.handed_over for time in times if time > costs.shared) > 0


def _with_bodies(operators: Sequence[OperatorView[Any]]) -> Iterator[OperatorView[Any]]:
    """The operators, and those of the subgraphs that they call."""
    for op in operators:
        yield op
        for body in op.bodies:
            yield from _with_bodies(body.operators)


def _microseconds(op: OperatorView[Any]) -> float:
    """About what an operator takes on one thread."""
    if not op.outputs:
        return 0.0
    costs, made = layer_costs(), known_product(op.outputs[0].shape)
    constants = [known_product(x.shape) for x in op.present_inputs() if x.is_constant]
    least = max(made * costs.element, sum(constants) * costs.weight)
    filter = op.inputs[1] if len(op.inputs) > 1 else None
    if filter is None or not filter.shape or not is_known(*filter.shape):
        return least
    codes = op.outputs[0].type in _CODES
    product = costs.code_product if codes else costs.float_product
    if op.op in _CONVOLUTIONS:
        channels = max(1, op.outputs[0].shape[-1])
        cells = made / channels
        depthwise = op.op is Op.DEPTHWISE_CONV_2D
        if depthwise:
            product = costs.code_depthwise if codes else costs.float_depthwise
        window = known_product(filter.shape) / (filter.shape[-1] if depthwise else filter.shape[0])
        padded = -(-channels // _TOGETHER) * _TOGETHER
        return cells * padded * window * product
    if op.op in (Op.FULLY_CONNECTED, Op.TRANSPOSE_CONV, Op.BATCH_MATMUL):
        return max(least, made * filter.shape[-1] * product)
    return least


def shorten_boundary(graph: ir.Graph) -> None:
    """Rename the inputs and outputs that have long names.

    ONNX Runtime copies these names at each run, and takes memory for each long one. Six inputs and
    five outputs take a microsecond less with short ones.
    """
    long = [value for value in (*graph.inputs, *graph.outputs) if len(value.name) > _HELD]
    if not long:
        return
    nodes = graph.all_nodes()
    values = chain.from_iterable([node.outputs for node in nodes])
    bodies = chain.from_iterable([node.bodies for node in nodes])
    inner = chain.from_iterable([(*body.inputs, *body.initializers.values()) for body in bodies])
    taken = {value.name for value in (*graph.inputs, *values, *inner)} | graph.initializers.keys()
    free = (name for name in map("t{}".format, count()) if name not in taken)
    for value, name in zip(long, free, strict=False):
        value.name = name

"""The kernels and functions that a user registered, made ready for one interpreter."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tflite_ort.base.optional import late
from tflite_ort.schema import Model, OperatorView
from tflite_ort.schema.file.flow import inlined_subgraph
from tflite_ort.schema.values.inlining import FlatModel, flat
from tflite_ort.schema.values.inputs import Inputs
from tflite_ort.schema.values.operators import Key, is_flex, key_of
from tflite_ort.schema.values.sizes import may_differ
from tflite_ort.versioning.registry import Entry, Pair
from tflite_ort.versioning.resolver import OpResolver, operator_key

with late:  # few models have operators that a user registered
    from tflite_ort.custom import functions, life_cycle
    from tflite_ort.schema.flex import datasets, lists, rewriting, tensor_arrays
    from tflite_ort.schema.values import attention_composite

if TYPE_CHECKING:
    from tflite_ort.versioning.registration import Function, Registration

# The outputs of an operator with their shapes, None where these depend on data; it is told
# whether the shapes that the file declares still hold.
Preparer = Callable[[OperatorView[Any], bool], "functions.Outputs | None"]


Nodes = dict[tuple[int, int], "life_cycle.LifeCycleNode"]  # by subgraph and index


def _rewritten(model: Model, resolver: OpResolver) -> Model:
    """`model` with TFLite's operators in the place of TensorFlow's that compute the same, but for
    those that a user registered."""
    names = {code.custom_code or "" for code in model.operator_codes}
    if not any(map(is_flex, names)):
        return model
    kept = {str(key) for key, _ in resolver.registered}
    if names.isdisjoint(kept):
        model = lists.with_tensors(tensor_arrays.as_lists(datasets.as_loops(model)))
    return rewriting.rewritten(model, kept)


class BoundResolver(OpResolver):
    """A resolver whose registered kernels are ready for one model, until it is closed.

    Args:
        resolver: whose operators it has.
        model: as read.
        num_threads: for kernels that ask.

    Attributes:
        model: the model with composites replaced by what they call.

    As TFLite does when it loads a model, every node whose kernel has a life cycle is initialised
    here; `close` frees it, or the end of the resolver, which lasts as long as what runs the nodes.

    Raises:
        ModelError: a composite calls itself, or does not fit its subgraph.
        KernelError: `init` of a kernel failed; the nodes before are freed.
    """

    def __init__(self, resolver: OpResolver, model: Model, num_threads: int = 0) -> None:
        super().__init__()
        self._whole = model = _rewritten(model, resolver)
        self.model = flat(model)
        self._of_any_size: FlatModel | None = None
        self.translators = resolver.translators.copy()
        self.kernels = resolver.kernels.copy()
        self.registered.update(resolver.registered)
        self._shape_functions: dict[Pair, Preparer] = {}
        self._with_life_cycle: list[Pair] = []
        self._nodes: Nodes = {}
        self._finalizer: Callable[[], object] = _nothing
        present = {(operator_key(code), code.version) for code in model.operator_codes}
        for key, version in present & self.registered.keys():
            self._bind(key, version, self.registered[key, version])
        if self._with_life_cycle:
            with ExitStack() as if_one_fails:
                self._finalizer = weakref.finalize(self, _free, self._nodes)
                if_one_fails.callback(self.close)
                self._initialize(_standalone(model), num_threads)
                if_one_fails.pop_all()

    def is_checked(self, op: OperatorView[Any]) -> bool:
        """Whether numpy runs `op` after ONNX Runtime, for comparison."""
        registration = self.registered.get((key_of(op), op.version))
        return registration is not None and registration.check

    def preparers(self) -> Mapping[Pair, Preparer]:
        """What gives the outputs of registered operators their shapes, for one allocation: in it,
        a node prepares once for the same shapes."""
        occasion, node_of = object(), _finder(self._nodes)

        def prepare(op: OperatorView[Any], declared: bool) -> functions.Outputs | None:
            return None if functions.is_dynamic(op) else node_of(op).prepare(op, occasion)

        return {**self._shape_functions, **dict.fromkeys(self._with_life_cycle, prepare)}

    def model_for(self, subgraph: int, shapes: Mapping[int, tuple[Any, ...]]) -> FlatModel:
        """`model`, or, where the inputs of a subgraph have other shapes than in the file, one whose
        attention composites take these."""
        declared = self.model.subgraphs[subgraph].tensors
        resized = any(may_differ(shape, declared[index].shape) for index, shape in shapes.items())
        if not resized or self._nodes:  # nodes are found by their place
            return self.model
        if self._of_any_size is None:
            whole = attention_composite.with_attention_of_any_size(self._whole)
            self._of_any_size = self.model if whole is self._whole else flat(whole)
        return self._of_any_size

    def close(self) -> None:
        """Free every node, once.

        Raises:
            KernelError: `free` of a kernel raised; the others are freed.
        """
        self.model = self._of_any_size = FlatModel(Model())
        self._whole = Model()
        self._finalizer()

    def _bind(self, key: Key, version: int, registration: Registration) -> None:
        shapes, function = registration.shapes, registration.function
        if registration.has_life_cycle:
            # The resolver itself here would last until a garbage collection.
            self._add_kernel(key, version, registration, _invoked, _finder(self._nodes))
            self._with_life_cycle.append((key, version))
            return
        if shapes is not None:
            self._shape_functions[key, version] = lambda op, _: functions.shaped(op, shapes)
        if function is None:
            return
        plain = functions.PlainFunction(function)
        self._add_kernel(key, version, registration, plain.kernel, _no_state)
        if shapes is None and isinstance(key, str):
            self._shape_functions[key, version] = lambda op, declared: (
                op.outputs if declared else plain.tried(op)
            )

    def _add_kernel(
        self,
        key: Key,
        version: int,
        registration: Registration,
        kernel: Function,
        state: Callable[[OperatorView[Any]], Any],
    ) -> None:
        inputs = Inputs.of(registration.inputs).with_constants(())
        self.kernels.replace(Entry(key, version, version, inputs, kernel, state))

    def _initialize(self, subgraphs: Iterable[int], num_threads: int) -> None:
        """Make the nodes of these subgraphs ready."""
        operators = (
            (subgraph, index, operator)
            for subgraph in subgraphs
            for index, operator in enumerate(self.model.subgraphs[subgraph].operators)
        )
        for subgraph, index, operator in operators:
            code = self.model.operator_codes[operator.opcode_index]
            pair = operator_key(code), code.version
            if pair in self._with_life_cycle:
                label = f"{code.custom_code or code.builtin_code.name}_{index}"
                data = operator.custom_options
                options = b"" if data is None else data.tobytes()
                node = life_cycle.LifeCycleNode(self.registered[pair], label, options, num_threads)
                self._nodes[subgraph, index] = node


def _finder(nodes: Nodes) -> Callable[[OperatorView[Any]], life_cycle.LifeCycleNode]:
    return lambda op: nodes[op.subgraph, op.index]


def _nothing() -> None:
    """What frees no node."""


def _free(nodes: Nodes) -> None:
    with ExitStack() as each_even_if_one_fails:
        for node in reversed(nodes.values()):
            each_even_if_one_fails.callback(node.free)


def _standalone(model: Model) -> list[int]:
    """The subgraphs that run by themselves: the first, and those that no composite stands for."""
    inside = {inlined_subgraph(model, op) for graph in model.subgraphs for op in graph.operators}
    return [number for number in range(len(model.subgraphs)) if number not in inside - {0}]


# Kernels as the engine calls them ----------------------------------------------------------------


def _no_state(op: OperatorView[Any]) -> None:
    """With a state, even this one, a kernel is run at every invoke and never ahead of them."""


def _invoked(op: OperatorView[Any], inputs: Sequence[Any], state: life_cycle.LifeCycleNode) -> Any:
    return state.invoke(op, inputs)

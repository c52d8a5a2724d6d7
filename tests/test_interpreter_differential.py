"""The same calls in the same order on LiteRT and on ours: the same results and exceptions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.litert_models import permute_uint8, running_sum, two_signatures
from tests.models import MODELS_DIR
from tests.one_op import T, one_op_model
from tests.test_details import difference
from tests.test_interpreter import batched_convolution
from tflite_ort import Interpreter
from tflite_ort.schema import AddOptions, Op, ReshapeOptions, TensorType

SUM = one_op_model(
    Op.ADD,
    [T((1, 3), shape_signature=(-1, 3)), T((1, 3), shape_signature=(-1, 3))],
    [T((1, 3), shape_signature=(-1, 3))],
    AddOptions(),
)
RESHAPED = one_op_model(
    Op.RESHAPE,
    [T((2, 3), TensorType.INT32), T.constant(np.int32([-1, 3]))],
    [T((2, 3), TensorType.INT32)],
    ReshapeOptions(),
)


@dataclass(frozen=True)
class Subject:
    """A model with shapes that its inputs may be given, among them some that do not fit."""

    model: Callable[[], bytes]
    shapes: list[tuple[int, ...]]


SUBJECTS = {
    "sum": Subject(lambda: SUM, [(1, 3), (2, 3), (4, 3), (2, 2), (3,), (0, 3)]),
    "convolution": Subject(batched_convolution, [(1, 8, 8, 3), (3, 8, 8, 3), (2, 8, 8, 5)]),
    "uint8": Subject(permute_uint8, [(1, 4), (2, 4), (2, 2, 4)]),
    "reshaped": Subject(lambda: RESHAPED, [(2, 3), (4, 3), (3, 2), (2, 2)]),
    "signatures": Subject(two_signatures, [(1,), (5,), (2, 2)]),
    "state": Subject(running_sum, [(1, 2), (2, 2)]),
}
# Variable tensors and resources.
STATEFUL = {
    "tf__lstm_seq_f32.tflite": [(1, 28, 16), (2, 28, 16)],
    "pypi-pymicro-wakeword__hey_jarvis.tflite": [(1, 3, 40), (1, 3, 39)],
}
SUBJECTS |= {
    name: Subject((MODELS_DIR / name).read_bytes, shapes)
    for name, shapes in STATEFUL.items()
    if (MODELS_DIR / name).exists()
}
BAD_SHAPES: list[Any] = [(-1, 3), 5, [[1, 2]], "abc", None, [2**31]]
BAD_VALUES: list[Any] = [None, 3.0, "text", [[1, 2], [3]], np.zeros((1, 3)), np.zeros(7, np.int16)]
BAD_INDICES: list[Any] = [-1, 99, 1.0, "0"]


@dataclass
class Outcome:
    """What a call returned, or raised."""

    value: Any = None
    error: Exception | None = None

    @classmethod
    def of(cls, call: Callable[[], Any]) -> Outcome:
        try:
            return cls(call())
        except (ValueError, RuntimeError, TypeError, OverflowError) as error:
            # Its frames would hold what LiteRT counts as a reference to its memory.
            return cls(error=error.with_traceback(None))


@dataclass
class Contents:
    """Which tensors have values that both sides must agree on."""

    known: set[int] = field(default_factory=set)
    sized: bool = True  # False after an allocation failed: LiteRT frees what it happens to free


class Calls(RuleBasedStateMachine):
    """Random calls; what LiteRT leaves undefined (memory it did not write) is not compared."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[Any] = []

    @initialize(
        name=st.sampled_from(sorted(SUBJECTS)),
        kind=st.sampled_from(["AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES"]),
    )
    def load(self, name: str, kind: str) -> None:
        self.subject = SUBJECTS[name]
        model = self.subject.model()
        self.ours = Interpreter(model_content=model, num_threads=1)
        self.theirs = LiteRT(
            model_content=model, experimental_op_resolver_type=OpResolverType[kind]
        )
        self.inputs = [detail["index"] for detail in self.ours.get_input_details()]
        self.outputs = [detail["index"] for detail in self.ours.get_output_details()]
        self.count = len(self.ours.get_tensor_details())
        self.contents = Contents()

    def both(self, call: Callable[[Any], Any]) -> Outcome:
        """Make the same call on both; refuse different outcomes."""
        ours, theirs = (Outcome.of(lambda x=x: call(x)) for x in (self.ours, self.theirs))
        if theirs.error is None:
            assert ours.error is None, f"{ours.error!r}, LiteRT returned {theirs.value!r}"
        else:
            expected = next(k for k in type(theirs.error).__mro__ if k.__module__ == "builtins")
            assert isinstance(ours.error, expected), (
                f"{ours.error!r}, returned {ours.value!r}; LiteRT raised {theirs.error!r}"
            )
        self.compared = ours, theirs
        return theirs

    def same_values(self, index: int) -> None:
        ours, theirs = (outcome.value for outcome in self.compared)
        assert type(ours) is type(theirs)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if index in self.contents.known:
            largest = np.max(np.abs(theirs), initial=1.0)
            np.testing.assert_allclose(ours, theirs, atol=1e-5 * largest)

    # Calls that are made on purpose ---------------------------------------------------------------

    @rule(data=st.data(), strict=st.booleans())
    def resize(self, data: st.DataObject, strict: bool) -> None:
        index = data.draw(st.sampled_from(self.inputs))
        shape = data.draw(st.sampled_from(self.subject.shapes))
        before = self.ours.get_input_details()[self.inputs.index(index)]["shape"].tolist()
        outcome = self.both(lambda x: x.resize_tensor_input(index, shape, strict))
        if outcome.error is None and before != list(shape):
            self.contents.known.discard(index)

    @rule()
    def allocate(self) -> None:
        ready = self.ours._subgraph(0).executor.plan is not None
        outcome = self.both(lambda x: x.allocate_tensors())
        if self.held:
            return
        self.contents.sized = outcome.error is None
        if not ready or outcome.error:
            self.contents.known.clear()

    @rule(data=st.data(), seed=st.integers(0, 1000))
    def set(self, data: st.DataObject, seed: int) -> None:
        position = data.draw(st.integers(0, len(self.inputs) - 1))
        detail = self.ours.get_input_details()[position]
        value = np.random.default_rng(seed).integers(0, 100, tuple(detail["shape"]))
        index = detail["index"]
        if not self.contents.sized:
            return
        if self.both(lambda x: x.set_tensor(index, value.astype(detail["dtype"]))).error is None:
            self.contents.known.add(index)

    @rule()
    def invoke(self) -> None:
        outcome = self.both(lambda x: x.invoke())
        if outcome.error is None:
            ready = self.contents.known.issuperset(self.inputs)
            for index in self.outputs:
                (self.contents.known.add if ready else self.contents.known.discard)(index)
            if not ready:
                self.both(lambda x: x.reset_all_variables())

    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from([*self.inputs, *self.outputs]))
        if self.contents.sized and self.both(lambda x: x.get_tensor(index)).error is None:
            self.same_values(index)

    @rule()
    def reset(self) -> None:
        self.both(lambda x: x.reset_all_variables())

    @rule()
    def tell(self) -> None:
        for name in ("get_input_details", "get_output_details", "get_signature_list"):
            self.both(lambda x, name=name: getattr(x, name)())
            assert difference(*(outcome.value for outcome in self.compared)) == []

    @precondition(lambda self: self.contents.sized)
    @rule(data=st.data())
    def hold(self, data: st.DataObject) -> None:
        index = data.draw(st.sampled_from([*self.inputs, *self.outputs]))
        if self.both(lambda x: x.tensor(index)()).error is None:
            self.same_values(index)
            self.held.append([outcome.value for outcome in self.compared])
        del self.compared

    @precondition(lambda self: bool(self.held))
    @rule(slices=st.booleans())
    def let_go(self, slices: bool) -> None:
        views = self.held.pop()
        if slices and views[0].ndim and len(views[0]):
            views = [view[:1] for view in views]
            self.both(lambda x: x.invoke())
        del views

    @rule(key=st.sampled_from(["add", "multiply", "no such", "", None]), n=st.integers(0, 5))
    def call(self, key: str | None, n: int) -> None:
        x = np.arange(n, dtype=np.float32)
        outcome = self.both(lambda lib: lib.get_signature_runner(key)(x=x))
        if outcome.error is None:
            ours, theirs = (each.value for each in self.compared)
            assert difference(ours, theirs) == []
        if outcome.error is None and key == "add":
            self.contents = Contents({*self.inputs, *self.outputs})

    # Calls that cannot work -----------------------------------------------------------------------

    @rule(index=st.sampled_from(BAD_INDICES))
    def wrong_index(self, index: Any) -> None:
        self.both(lambda x: x.get_tensor(index))
        self.both(lambda x: x.set_tensor(index, np.zeros((1, 3), np.float32)))
        self.both(lambda x: x.tensor(index)())
        if not isinstance(index, int):
            return
        self.both(lambda x: x.resize_tensor_input(index, (1, 3)))
        self.both(lambda x: x.get_tensor(0, index))
        self.both(lambda x: x.get_tensor_details(index))
        self.both(lambda x: x._get_tensor_details(index, 0))

    @rule(data=st.data(), shape=st.sampled_from(range(len(BAD_SHAPES))), strict=st.booleans())
    def wrong_shape(self, data: st.DataObject, shape: int, strict: bool) -> None:
        index = data.draw(st.sampled_from(self.inputs))
        self.both(lambda x: x.resize_tensor_input(index, BAD_SHAPES[shape], strict))
        if shape == 0 and not self.held:  # LiteRT wants to allocate anew, ours is as it was
            self.contents.known.clear()
            self.allocate()

    @rule(data=st.data(), value=st.sampled_from(range(len(BAD_VALUES))))
    def wrong_value(self, data: st.DataObject, value: int) -> None:
        index = data.draw(st.sampled_from(self.inputs))
        self.both(lambda x: x.set_tensor(index, BAD_VALUES[value]))


test_calls = pytest.mark.filterwarnings("ignore::UserWarning")(Calls.TestCase)

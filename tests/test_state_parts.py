"""Variables that are parts of what a session makes, and inputs that it has in another shape."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.one_op import Node, T
from tests.optimised import optimised_nodes
from tests.registered import opened
from tests.subgraph_models import HANDLE, Sub, check_invokes, invoked, model_of
from tflite_ort import Interpreter, KernelError, Registration
from tflite_ort.plan import session_step
from tflite_ort.schema import (
    CallOnceOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    Op,
    StridedSliceOptions,
    TensorType,
    VarHandleOptions,
)

Sizes = tuple[int, ...]
CODES = {"type": TensorType.INT8, "scale": 0.5, "zero_point": 3}


def stream(kept: Sizes, new: Sizes, axis: int, begin: int, *after: Node, codes: bool) -> bytes:
    """State and new cells are joined, of which cells from `begin` on become the state."""
    form = CODES if codes else {"type": TensorType.FLOAT32}
    size = kept[axis] + new[axis]
    joined = (*kept[:axis], size, *kept[axis + 1 :])
    rank = len(kept)
    first, last, step = np.zeros(rank, np.int32), np.array(joined, np.int32), np.ones(rank)
    first[axis], last[axis] = begin, begin + kept[axis]
    zeros = np.zeros(kept, np.int8 if codes else np.float32)
    tensors = {
        "h": HANDLE,
        **{name: T(kept, **form) for name in ("state", "next")},
        "x": T(new, **form),
        **{name: T(joined, **form) for name in ("joined", "y")},
        "first": T.constant(first),
        "last": T.constant(last),
        "step": T.constant(step.astype(np.int32)),
    }
    handle = Node(Op.VAR_HANDLE, [], ["h"], VarHandleOptions(container="", shared_name="v"))
    nodes = [
        Node(Op.CALL_ONCE, [], [], CallOnceOptions(init_subgraph_index=1)),
        handle,
        Node(Op.READ_VARIABLE, ["h"], ["state"]),
        Node(Op.CONCATENATION, ["state", "x"], ["joined"], ConcatenationOptions(axis)),
        Node(
            Op.STRIDED_SLICE, ["joined", "first", "last", "step"], ["next"], StridedSliceOptions()
        ),
        Node(Op.ASSIGN_VARIABLE, ["h", "next"], []),
        *(after or [Node(Op.MAXIMUM, ["joined", "joined"], ["y"])]),
    ]
    start = Sub(
        {"h": HANDLE, "zeros": T.constant(zeros, **({} if not codes else CODES))},
        [handle, Node(Op.ASSIGN_VARIABLE, ["h", "zeros"], [])],
    )
    return model_of(Sub(tensors, nodes, ["x"], ["y"]), start)


def drawn(shape: Sizes, codes: bool, count: int = 6) -> Sequence[Sequence[np.ndarray]]:
    rng = np.random.default_rng(1)
    numbers = [rng.integers(-100, 100, shape) for _ in range(count)]
    return [[each.astype(np.int8 if codes else np.float32)] for each in numbers]


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize(
    ("kept", "new", "axis", "begin", "slices"),
    [
        ((1, 4, 1, 3), (1, 2, 1, 3), 1, 2, 0),  # the last ones
        ((4, 3), (1, 3), 0, 1, 0),
        ((1, 1, 5), (1, 1, 2), 2, 1, 0),  # some in the middle
        ((1, 4, 3), (1, 2, 3), 1, 0, 0),  # the first ones
        ((2, 4, 3), (2, 1, 3), 1, 1, 1),  # of two batches, which do not follow each other
        ((1, 4, 3), (1, 4, 1), 2, 1, 1),  # of every cell some channels
    ],
)
def test_a_part_that_is_whole_in_memory_is_not_copied(
    kept: Sizes, new: Sizes, axis: int, begin: int, slices: int, codes: bool
) -> None:
    model = stream(kept, new, axis, begin, codes=codes)
    check_invokes(model, drawn(new, codes))
    assert optimised_nodes(model)["Slice"] == slices


def test_a_reset_and_a_stored_plan_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, feeds = stream((1, 4, 3), (1, 2, 3), 1, 2, codes=True), drawn((1, 2, 3), True)
    plain = Interpreter(model_content=model, providers=[])
    first = Interpreter(model_content=model, cache=tmp_path)
    first.allocate_tensors()
    monkeypatch.delattr(session_step, "model_session")  # what is stored is not made again
    stored = Interpreter(model_content=model, cache=tmp_path)
    plain.allocate_tensors()
    stored.allocate_tensors()
    for _ in range(2):
        for given in feeds:
            want = invoked(plain, given)
            np.testing.assert_array_equal(invoked(first, given), want)
            np.testing.assert_array_equal(invoked(stored, given), want)
        for interpreter in (plain, first, stored):
            interpreter.reset_all_variables()


@pytest.mark.parametrize("providers", [None, []])
def test_an_invoke_that_fails_leaves_the_part_as_it_was(providers: list[str] | None) -> None:
    own = Node("Own", ["joined"], ["y"])
    model = stream((4, 3), (1, 3), 0, 1, own, codes=False)
    calls = iter([False, True, True, False, True])

    def function(x: np.ndarray) -> np.ndarray:
        if next(calls, False):
            raise OSError("not today")
        return x * 2

    ours = opened(model, Registration(function=function), providers=providers)
    ours.allocate_tensors()
    state = np.zeros((4, 3), np.float32)
    failures = 0
    for (given,) in drawn((1, 3), False):
        joined = np.concatenate([state, given])
        while True:
            try:
                (got,) = invoked(ours, [given])
                break
            except KernelError:
                failures += 1
        np.testing.assert_array_equal(got, joined * 2)
        state = joined[1:]
    assert failures == 3


@pytest.mark.parametrize("named", [False, True], ids=["inside", "also an output"])
def test_an_input_needs_no_reshape(named: bool) -> None:
    tensors = {
        "x": T((2, 6)),
        "sizes": T.constant(np.int32([3, 4])),
        **dict.fromkeys("ry", T((3, 4))),
    }
    nodes = [Node(Op.RESHAPE, ["x", "sizes"], ["r"]), Node(Op.NEG, ["r"], ["y"])]
    model = model_of(Sub(tensors, nodes, ["x"], ["r", "y"] if named else ["y"]))
    values = np.arange(12, dtype=np.float32).reshape(2, 6)
    check_invokes(model, [[values], [-values]])
    assert optimised_nodes(model)["Reshape"] == named


@pytest.mark.parametrize("readers", [0, 1], ids=["alone", "read again"])
def test_an_output_needs_no_reshape(
    readers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a layer are bound as they are; so they are where a stored plan is loaded."""
    rng = np.random.default_rng(2)
    tensors = {
        "x": T((2, 3, 4)),
        "w": T.constant(rng.normal(0, 1, (5, 4)).astype(np.float32)),
        "v": T.constant(rng.normal(0, 1, (5, 5)).astype(np.float32)),
        **dict.fromkeys("yz", T((2, 3, 5))),
    }
    options = FullyConnectedOptions(keep_num_dims=True)
    layers = (["x", "w"], "y"), (["y", "v"], "z")
    nodes = [Node(Op.FULLY_CONNECTED, inputs, [made], options) for inputs, made in layers]
    model = model_of(Sub(tensors, nodes[: 1 + readers], ["x"], ["y", "z"][: 1 + readers]))
    feeds = drawn((2, 3, 4), False)
    check_invokes(model, feeds)
    assert optimised_nodes(model)["Reshape"] == 0
    first = Interpreter(model_content=model, cache=tmp_path)
    first.allocate_tensors()
    monkeypatch.delattr(session_step, "model_session")  # what is stored is not made again
    stored = Interpreter(model_content=model, cache=tmp_path)
    stored.allocate_tensors()
    for given in feeds:
        for got, want in zip(invoked(stored, given), invoked(first, given), strict=True):
            assert got.shape == (2, 3, 5)
            np.testing.assert_array_equal(got, want)


def test_outputs_of_one_value_have_arrays_of_their_own() -> None:
    tensors = {
        "x": T((2, 6)),
        "sizes": T.constant(np.int32([3, 4])),
        **dict.fromkeys("ab", T((3, 4))),
        "n": T((2, 6)),
    }
    nodes = [
        Node(Op.NEG, ["x"], ["n"]),
        Node(Op.RESHAPE, ["n", "sizes"], ["a"]),
        Node(Op.RESHAPE, ["n", "sizes"], ["b"]),
    ]
    values = np.arange(12, dtype=np.float32).reshape(2, 6)
    check_invokes(model_of(Sub(tensors, nodes, ["x"], ["a", "b", "n"])), [[values], [-values]])

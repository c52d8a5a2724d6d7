"""Unrolled recurrent cells as one node, against LiteRT and the operators one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers, unfused
from tests.rules.unrolled import (
    RELU,
    STEPS,
    Step,
    Unrolled,
    gru_after,
    gru_before,
    gru_torch,
    lstm,
    lstm_joined,
    rnn,
    rnn_relu,
    run,
)
from tflite_ort import Interpreter, export_onnx
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import AddOptions, Op

Array = npt.NDArray[np.float32]
CELLS = {"GRU", "LSTM", "RNN"}
CUTS = ("unpack", "split", "slice", "gather", "strided_slice")
each_step = pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)


def check(content: bytes, feeds: Sequence[Array], rtol: float = 3e-6) -> dict[str, int]:
    """Hold the outputs against LiteRT and the operators one by one; returns the recurrent nodes."""
    got = answers(content, list(feeds))
    for other in (litert(content, feeds), unfused(content, list(feeds))):
        for one, wanted in zip(got, other, strict=True):
            np.testing.assert_allclose(one, wanted, rtol=0, atol=rtol * max(1, abs(wanted).max()))
    nodes = optimised_nodes(content)
    return {name: nodes[name] for name in CELLS if nodes[name]}


def last(history: list[list[str]]) -> str:
    return history[-1][0]


def outputs(history: list[list[str]]) -> list[str]:
    return [states[0] for states in history]


@each_step
@pytest.mark.parametrize("seed", range(3))
def test_steps_are_one_node(step: Step, seed: int) -> None:
    """Of random sizes, inputs cut out by any operator, and outputs joined by any."""
    rng = np.random.default_rng([seed, list(STEPS).index(step)])
    print("seed", seed)
    steps, batch, inputs, units = (int(n) for n in rng.integers([3, 1, 1, 1], [13, 4, 9, 9]))
    net = Unrolled(steps, batch, inputs, units, bool(rng.integers(2)), seed)
    at_once = step is not lstm_joined and bool(rng.integers(2))
    initial = str(rng.choice(["zeros", "input"]))
    history = run(net, step, CUTS[rng.integers(len(CUTS))], initial, at_once=at_once)
    joined = [last(history), net.packed(outputs(history), int(rng.integers(3)))]
    joined.append(net.joined(outputs(history)[:: rng.choice([1, -1])], int(rng.integers(2))))
    if STEPS[step] == "LSTM":
        joined.append(history[-1][1])
    assert check(net.model(*joined), net.feeds()) == {STEPS[step]: 1}


@pytest.mark.parametrize("steps", range(1, 13))
def test_any_number_of_steps(steps: int) -> None:
    """One step alone is no sequence; a second one makes it one."""
    initial = "input" if steps in (1, 2, 5) else "zeros"
    net = Unrolled(steps, seed=steps)
    history = run(net, gru_after, initial=initial)
    assert check(net.model(last(history)), net.feeds()) == ({"GRU": 1} if steps > 1 else {})


@each_step
def test_a_constant_state_before_the_first_step(step: Step) -> None:
    """What it gives is folded: the node begins with the second step."""
    net = Unrolled()
    history = run(net, step, initial="constant")
    assert check(net.model(*outputs(history)), net.feeds()) == {STEPS[step]: 1}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize(("time_major", "batch"), [(False, 3), (True, 3), (False, 1)])
def test_products_of_all_steps_at_once(how: str, batch: int, *, time_major: bool) -> None:
    net = Unrolled(5, batch, time_major=time_major)
    history = run(net, gru_torch, how, at_once=True)
    assert check(net.model(last(history)), net.feeds()) == {"GRU": 1}
    counts = optimised_nodes(net.model(last(history)))
    assert not counts["Gemm"] and not counts["MatMul"]


@pytest.mark.parametrize("batch", [1, 2])
@each_step
def test_steps_from_the_last_one_to_the_first(step: Step, batch: int) -> None:
    net = Unrolled(5, batch)
    history = run(net, step, rows=net.rows("unpack")[::-1])
    joined = net.packed(outputs(history)[::-1], 1)
    assert check(net.model(joined, last(history)), net.feeds()) == {STEPS[step]: 1}


def test_a_reversed_product_in_both_directions() -> None:
    net = Unrolled(6)
    forward = run(net, gru_torch, at_once=True)
    turned = net.reversed(net.product("x", "Wb", 3 * net.units), 1)
    net.weights |= {"R": net.constant(net.rng.normal(size=(9, 3)))}
    rows = net.rows("slice", turned)
    states, backward = [net.initial("zeros")], []
    for x in rows:
        states = gru_torch(net, x, True, states)
        backward.append(states[0])
    sides = [net.packed(outputs(forward), 1), net.packed(backward[::-1], 1)]
    content = net.model(net.joined(sides, 2))
    assert check(content, net.feeds()) == {"GRU": 2}
    assert not optimised_nodes(content)["ReverseSequence"]


def test_some_of_the_steps_of_a_sequence() -> None:
    """Every second one, and those from the third on."""
    for part in (slice(None, None, 2), slice(2, None), slice(4, 1, -1)):
        net = Unrolled(7, 2)
        history = run(net, lstm, rows=net.rows("unpack")[part])
        assert check(net.model(last(history)), net.feeds()) == {"LSTM": 1}


def test_some_of_the_outputs() -> None:
    net = Unrolled(6, 2)
    states = outputs(run(net, gru_before))
    content = net.model(states[1], net.packed(states[2:5], 1), net.add(states[0], states[5]))
    assert check(content, net.feeds()) == {"GRU": 1}


def test_layers_step_by_step() -> None:
    """The second layer takes its step before the first one takes the next."""
    net = Unrolled(5, 2)
    first, second, third = [net.initial("zeros")], [net.initial("input")], [net.initial("zeros")]
    weights: list[dict[str, str]] = [{}, {}, {}]
    for x in net.rows("unpack"):
        for layer, states in enumerate((first, second, third)):
            net.weights = weights[layer]
            states[:] = (gru_after, gru_torch, rnn)[layer](net, x, False, states)
            (x,) = states
    assert check(net.model(*third, *first), net.feeds()) == {"GRU": 2, "RNN": 1}


def test_inputs_of_the_steps_that_are_no_sequence() -> None:
    """Two inputs in turn, and what stays the same in all steps beside each."""
    net = Unrolled(4, 2)
    for name in ("other", "same"):
        net.tensors[name] = net.tensors["x"].__class__((2, net.inputs))
    rows = net.rows("unpack")
    turns = [rows[0], net.one(Op.TANH, "other"), rows[2], rows[1]]
    history = run(net, lstm_joined, rows=[net.joined([x, "same"], 1) for x in turns])
    assert check(net.model(last(history)), net.feeds()) == {"LSTM": 1}


def test_ones_between_the_dimensions() -> None:
    net = Unrolled(4, 2, time_major=True)
    rows = [net.reshaped(x, 1, 2, 5) for x in net.rows("slice")]
    h, states = net.reshaped(net.initial("input"), 1, 2, 3), []
    for x in rows:
        (h,) = gru_torch(net, x, False, [h])
        states.append(h)
    content = net.model(net.reshaped(net.joined(states, 0), 4, 2, 3))
    assert check(content, net.feeds()) == {"GRU": 1}


@pytest.mark.parametrize("step", [gru_after, lstm, rnn])
def test_weights_of_8_bits(step: Step) -> None:
    """They become floats; where rows are rounded, the steps stay."""
    net = Unrolled(5, codes=True)
    content, feeds = net.model(last(run(net, step))), net.feeds()
    (got,), (wanted,) = answers(content, feeds), unfused(content, feeds)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=3e-6)
    np.testing.assert_allclose(got, litert(content, feeds)[0], rtol=0, atol=0.03)
    assert optimised_nodes(content)[STEPS[step]] == 1
    assert not CELLS & optimised_nodes(content, hybrid="dynamic").keys()


def test_many_weights_of_8_bits_stay_codes() -> None:
    """One row of 2^19 recurrent weights is multiplied by the codes."""
    net = Unrolled(3, units=420, codes=True)
    content = net.model(last(run(net, gru_after)))
    exact = exact_weight_type() == "int8"
    assert ("GRU" in optimised_nodes(content)) is not exact


# What is no such cell ----------------------------------------------------------------------------

Change = Callable[[Unrolled, str, bool, Sequence[str], int], list[str]]


def other_bias(net: Unrolled, x: str, done: bool, h: Sequence[str], k: int) -> list[str]:
    net.weights["W bias"] = net.constant(np.full(9, k * 1e-3))
    return gru_after(net, x, done, h)


def other_gate_order(net: Unrolled, x: str, done: bool, h: Sequence[str], k: int) -> list[str]:
    return (gru_after if k % 2 else gru_torch)(net, x, done, h)


def clipped(net: Unrolled, x: str, done: bool, h: Sequence[str], k: int) -> list[str]:
    bound = net.constant(0.1)
    return [net.one(Op.MINIMUM, state, bound) for state in gru_after(net, x, done, h)]


def scaled(net: Unrolled, x: str, done: bool, h: Sequence[str], k: int) -> list[str]:
    return [net.mul(state, net.constant(0.5)) for state in gru_after(net, x, done, h)]


def fused_relu(net: Unrolled, x: str, done: bool, h: Sequence[str], k: int) -> list[str]:
    (state,) = gru_after(net, x, done, h)
    options = AddOptions(fused_activation_function=RELU)
    net.nodes[-1] = replace(net.nodes[-1], options=options)
    return [state]


def mixed_rows(net: Unrolled, x: str, done: bool, h: Sequence[str], k: int) -> list[str]:
    """A RESHAPE through which the elements of rows change places."""
    (state,) = gru_after(net, x, done, h)
    order = net.constant([1, 0], np.int32)
    turned = net.made(Op.TRANSPOSE, [state, order], (3, 2))[0]
    return [net.reshaped(turned, 2, 3)]


def other_rest(net: Unrolled, x: str, done: bool, h: Sequence[str], k: int) -> list[str]:
    """2 - z in place of 1 - z."""
    (state,) = gru_after(net, x, done, h)
    place = max(place for place, node in enumerate(net.nodes) if node.op is Op.SUB)
    net.nodes[place] = replace(
        net.nodes[place], inputs=[net.constant(2.0), net.nodes[place].inputs[1]]
    )
    return [state]


def no_reset_gate(net: Unrolled, x: str, done: bool, h: Sequence[str], k: int) -> list[str]:
    """The candidate is multiplied by a tanh, which is no gate."""
    (state,) = gru_after(net, x, done, h)
    place = max(place for place, node in enumerate(net.nodes) if node.op is Op.LOGISTIC)
    net.nodes[place] = replace(net.nodes[place], op=Op.TANH)
    return [state]


CHANGES: list[Change] = [
    *(other_bias, other_gate_order, clipped, scaled, fused_relu, mixed_rows, other_rest),
    no_reset_gate,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_only_looks_like_it_has_no_node(change: Change) -> None:
    net = Unrolled(4, 2)
    states, history = [net.initial("zeros")], []
    for k, x in enumerate(net.rows("unpack")):
        states = change(net, x, False, states, k)
        history += states
    assert check(net.model(*history), net.feeds()) == {}


def test_other_constants_from_one_step_on_are_another_node() -> None:
    net = Unrolled(5, 2)
    states = [net.initial("zeros")]
    for k, x in enumerate(net.rows("unpack")):
        if k == 2:
            net.weights["R"] = net.constant(net.rng.normal(size=(9, 3)))
        states = gru_after(net, x, False, states)
    content, feeds = net.model(*states), net.feeds()
    assert check(content, feeds) == {"GRU": 2}


def test_other_constants_in_one_step() -> None:
    """The two steps before it are equal, and the two behind it."""
    net = Unrolled(5, 2)
    states = [net.initial("zeros")]
    for k, x in enumerate(net.rows("unpack")):
        kept = dict(net.weights)
        if k == 2:
            net.weights["R"] = net.constant(net.rng.normal(size=(9, 3)))
        states = gru_after(net, x, False, states)
        net.weights |= kept
    content = net.model(*states)
    assert check(content, net.feeds()) == {"GRU": 2}
    assert optimised_nodes(content)["Tanh"] == 1


def inner(net: Unrolled, op: Op, place: int) -> str:
    """What an operator of this kind makes."""
    return [node.outputs[0] for node in net.nodes if node.op is op][place]


@pytest.mark.parametrize(("op", "place"), [(Op.LOGISTIC, 3), (Op.TANH, 2), (Op.FULLY_CONNECTED, 4)])
def test_what_is_inside_is_read_elsewhere(op: Op, place: int) -> None:
    net = Unrolled(4, 2)
    history = run(net, gru_after)
    content = net.model(last(history), net.one(Op.NEG, inner(net, op, place)))
    assert check(content, net.feeds()) == {}


def test_a_cell_state_between_is_read_elsewhere() -> None:
    net = Unrolled(4, 2)
    history = run(net, lstm)
    assert check(net.model(last(history), history[1][1]), net.feeds()) == {}


def test_an_input_that_is_computed_from_the_state() -> None:
    """A decoder takes its last output as its next input."""
    net = Unrolled(4, 2, 5, 5)
    states, x = [net.initial("input")], net.rows("unpack")[0]
    for _ in range(4):
        states = gru_after(net, x, False, states)
        x = net.one(Op.TANH, states[0])
    assert check(net.model(*states), net.feeds()) == {}


def test_more_rows_than_are_written_down() -> None:
    """A batch of two million rows takes no memory before it runs."""
    net = Unrolled(3, 2**21, 1, 1)
    history = run(net, rnn)
    assert not CELLS & optimised_nodes(net.model(last(history))).keys()


def test_weights_that_are_not_finite() -> None:
    net = Unrolled(3)
    net.weights["R"] = net.constant(np.where(np.eye(9, 3) > 0, np.inf, 0.5))
    history = run(net, gru_after)
    assert not CELLS & optimised_nodes(net.model(last(history))).keys()


# Where else --------------------------------------------------------------------------------------


@each_step
def test_exports_have_the_node(step: Step, tmp_path: Path) -> None:
    net = Unrolled(4, 2)
    history = run(net, step)
    content, feeds = net.model(net.packed(outputs(history), 1)), net.feeds()
    (tmp_path / "m.tflite").write_bytes(content)
    export_onnx(tmp_path / "m.tflite", tmp_path / "m.onnx")
    nodes = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert [name for name in nodes if name in CELLS] == [STEPS[step]]
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (got,) = session.run(None, {session.get_inputs()[0].name: feeds[0]})
    np.testing.assert_allclose(got, litert(content, feeds)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("step", [gru_after, lstm, rnn_relu])
@pytest.mark.parametrize("at_once", [False, True])
def test_exports_of_an_open_batch_have_the_node(
    step: Step, tmp_path: Path, *, at_once: bool
) -> None:
    """The samples of a batch are rows of the node."""
    net = Unrolled(4)
    history = run(net, step, "slice", at_once=at_once)
    content = net.model(net.packed(outputs(history), 1), last(history))
    (tmp_path / "m.tflite").write_bytes(content)
    export_onnx(tmp_path / "m.tflite", tmp_path / "m.onnx", batch="N")
    nodes = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert STEPS[step] in nodes
    assert not {"Sigmoid", "Exp", "Tanh", "Gemm", "MatMul"} & set(nodes)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (given,) = session.get_inputs()
    for count in (1, 3, 211):
        samples = net.rng.normal(size=(count, 4, 5)).astype(np.float32)
        got = session.run(None, {given.name: samples.reshape(count, *given.shape[1:])})
        for number in (0, count - 1):
            for one, wanted in zip(got, litert(content, [samples[number, None]]), strict=True):
                np.testing.assert_allclose(
                    one[number].reshape(-1), wanted.reshape(-1), rtol=0, atol=1e-5
                )


def test_batches_of_several_rows_have_the_node(tmp_path: Path) -> None:
    """Two rows of each of three samples, between which the steps stand."""
    net = Unrolled(4, 2, time_major=True)
    history = run(net, gru_torch, "slice", at_once=True)
    content = net.model(last(history))
    (tmp_path / "m.tflite").write_bytes(content)
    export_onnx(tmp_path / "m.tflite", tmp_path / "m.onnx", batch=3)
    assert "GRU" in [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    samples = net.rng.normal(size=(3, 4, 2, 5)).astype(np.float32)
    (got,) = session.run(None, {session.get_inputs()[0].name: samples})
    wanted = [litert(content, [sample])[0] for sample in samples]
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)


def test_all_tensors_can_be_kept() -> None:
    net = Unrolled(3)
    history = run(net, gru_after)
    content = net.model(last(history))
    interpreter = Interpreter(
        model_content=content, cache=False, experimental_preserve_all_tensors=True
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], net.feeds()[0])
    interpreter.invoke()
    for detail in interpreter.get_tensor_details():
        interpreter.get_tensor(detail["index"])


@pytest.mark.parametrize("step", [rnn, rnn_relu])
def test_an_infinity_in_one_step(step: Step) -> None:
    """Each unit becomes what LiteRT makes of it, and the rows beside stay as they are."""
    net = Unrolled(4, 2)
    content = net.model(*outputs(run(net, step)))
    (x,) = net.feeds()
    x[0, 2, 1] = np.inf
    for got, wanted in zip(answers(content, [x]), litert(content, [x]), strict=True):
        np.testing.assert_allclose(got[1], wanted[1], rtol=0, atol=1e-5)

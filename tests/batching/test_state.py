"""State in batches: each sample has a row of its own."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.batching.single_runs import opened, run
from tests.litert_models import running_sum
from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model
from tests.subgraph_models import HANDLE, Sub, invoked, model_of
from tflite_ort import (
    BatchWarning,
    Interpreter,
    Unbatchable,
    batched_model,
    export_onnx,
    first_state,
)
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    CallOnceOptions,
    Op,
    RandomOptions,
    ReducerOptions,
    ReshapeOptions,
    SequenceRNNOptions,
    TensorType,
    VarHandleOptions,
    read_model,
    write_model,
)

STEPS, SAMPLES = 3, 3


@pytest.mark.parametrize(
    "name", ["tf__lstm_seq_f32.tflite", "pypi-pymicro-wakeword__hey_jarvis.tflite"]
)
def test_states_of_samples_do_not_meet(name: str) -> None:
    model = model_path(name).read_bytes()
    rng = np.random.default_rng(0)
    steps = []
    with opened(model) as interpreter:
        details = interpreter.get_input_details()
    for _ in range(STEPS):
        drawn = (rng.uniform(-1, 1, (SAMPLES, *each["shape"])) for each in details)
        arrays = [
            (values * (127 if np.dtype(each["dtype"]).kind == "i" else 1)).astype(each["dtype"])
            for values, each in zip(drawn, details, strict=True)
        ]
        steps.append(arrays)
    with opened(model, batch=SAMPLES, providers=None) as together:
        got = [run(together, [each[:, 0] for each in arrays]) for arrays in steps]
    for sample in range(SAMPLES):
        with opened(model, providers=None) as alone:
            for arrays, results in zip(steps, got, strict=True):
                (want,) = run(alone, [each[sample] for each in arrays])
                assert np.allclose(results[0][sample], want[0], atol=1e-5)


def test_states_of_an_open_batch_start_in_one_row() -> None:
    proto = export_onnx(running_sum(), batch="N", state_defaults=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    y, state = session.run(["y", "state_next"], {"x": x})
    assert np.array_equal(y, x)
    (y,) = session.run(["y"], {"x": x, "state": state})
    assert np.array_equal(y, x + x / 2)


@pytest.mark.parametrize("stateful", [True, False])
def test_states_of_several_rows_a_sample(stateful: bool) -> None:
    """Two sequences a sample: the state of an open batch has twice as many rows as samples."""
    model, steps = _sequences_in_pairs(), np.random.default_rng(1).uniform(-1, 1, (2, 3, 4, 5, 2))
    steps = steps.astype(np.float32)
    proto = export_onnx(model, batch="N", stateful=stateful)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    state = first_state(proto)
    assert [value.shape for value in state.values()] == [(1, 3)] * stateful
    for number, step in enumerate(steps):
        y, *after = session.run(None, {"x": step, **state})
        state = dict(zip(state, after, strict=True))
        assert [value.shape for value in after] == [(6, 3)] * stateful
        for sample in range(SAMPLES):
            with opened(model, providers=None) as alone:
                for earlier in steps[: number + 1] if stateful else [step]:
                    (want,) = run(alone, [earlier[sample : sample + 1]])
            assert np.allclose(y[sample], want[0], atol=1e-6)


def _sequences_in_pairs() -> bytes:
    """An RNN over [2, 5, 4] of each sample [1, 4, 5, 2]."""
    rng = np.random.default_rng(0)
    tensors = {
        "x": T((1, 4, 5, 2)),
        "order": T.constant(np.array([0, 3, 2, 1], np.int32)),
        "turned": T((1, 2, 5, 4)),
        "shape": T.constant(np.array([2, 5, 4], np.int32)),
        "pair": T((2, 5, 4)),
        "weights": T.constant(rng.uniform(-1, 1, (3, 4)).astype(np.float32)),
        "recurrent": T.constant(rng.uniform(-1, 1, (3, 3)).astype(np.float32)),
        "bias": T.constant(rng.uniform(-1, 1, 3).astype(np.float32)),
        "state": T((2, 3), is_variable=True),
        "steps": T((2, 5, 3)),
        "whole": T.constant(np.array([1, 2, 5, 3], np.int32)),
        "y": T((1, 2, 5, 3)),
    }
    rnn = SequenceRNNOptions(fused_activation_function=ActivationFunctionType.TANH)
    nodes = [
        Node(Op.TRANSPOSE, ["x", "order"], ["turned"]),
        Node(Op.RESHAPE, ["turned", "shape"], ["pair"]),
        Node(
            Op.UNIDIRECTIONAL_SEQUENCE_RNN,
            ["pair", "weights", "recurrent", "bias", "state"],
            ["steps"],
            rnn,
        ),
        Node(Op.RESHAPE, ["steps", "whole"], ["y"]),
    ]
    return graph_model(tensors, nodes, ["y"])


@pytest.mark.parametrize("batch", [SAMPLES, None])
@pytest.mark.parametrize("op", [Op.REVERSE_V2, Op.SUM])
def test_a_start_that_reads_a_variable_reads_one_row(op: Op, batch: int | None) -> None:
    """Along its first axis, which is that of the samples in a batch."""
    options = ReducerOptions(keep_dims=True) if op is Op.SUM else None
    first, axis = T.constant(np.float32([1, 2])), T.constant(np.int32([0]))
    names = (VarHandleOptions(shared_name=name) for name in "vww")
    handles = [Node(Op.VAR_HANDLE, [], [each], next(names)) for each in ("h", "g", "g")]
    row = T((1,)) if op is Op.SUM else T((2,))
    start = Sub(
        {"h": HANDLE, "g": HANDLE, "k": first, "axis": axis, "r": T((2,)), "m": row},
        [
            *handles[:2],
            Node(Op.ASSIGN_VARIABLE, ["h", "k"], []),
            Node(Op.READ_VARIABLE, ["h"], ["r"]),
            Node(op, ["r", "axis"], ["m"], options),
            Node(Op.ASSIGN_VARIABLE, ["g", "m"], []),
        ],
    )
    main = Sub(
        {"g": HANDLE, "x": T((1, 2)), "w": row, "y": T((1, 2))},
        [
            Node(Op.CALL_ONCE, [], [], CallOnceOptions(1)),
            handles[2],
            Node(Op.READ_VARIABLE, ["g"], ["w"]),
            Node(Op.ADD, ["x", "w"], ["y"], AddOptions()),
        ],
        ["x"],
        ["y"],
    )
    x = np.arange(2 * SAMPLES, dtype=np.float32).reshape(SAMPLES, 2)
    model = write_model(batched_model(read_model(model_of(main, start)), batch))
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (got,) = invoked(interpreter, [x])
    assert got.tolist() == (x + ([3, 3] if op is Op.SUM else [2, 1])).tolist()


def test_random_numbers_are_refused() -> None:
    shape, out = T((1,), TensorType.INT32), T((4,))
    options = RandomOptions(seed=1, seed2=2)
    model = one_op_model(Op.RANDOM_UNIFORM, [shape], [out], options)
    with pytest.raises(Unbatchable, match="RANDOM_UNIFORM_0 cannot run over a batch") as caught:
        batched_model(read_model(model), 2)
    assert (caught.value.operator, caught.value.index) == ("RANDOM_UNIFORM", 0)


def regrouping() -> bytes:
    """Two rows a sample, in one."""
    options = ReshapeOptions(new_shape=(1, -1, 2))
    return one_op_model(Op.RESHAPE, [T((1, 4))], [T((1, 2, 2))], options)


def test_a_resize_that_mixes_samples_warns_once() -> None:
    interpreter = Interpreter(model_content=regrouping())
    interpreter.resize_tensor_input(0, (3, 4))
    with pytest.warns(BatchWarning, match="out0"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, (4, 4))
    interpreter.allocate_tensors()


def test_shapes_that_make_a_batch_keep_samples_apart() -> None:
    proto = export_onnx(regrouping(), input_shapes={"in0": ("N", 4)}, state_defaults=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    (y,) = session.run(None, {"in0": x})
    assert np.array_equal(y, x.reshape(3, 2, 2))


def test_a_resize_to_what_one_sample_cannot_fill_warns() -> None:
    options = ReshapeOptions(new_shape=(1, 4, 2))
    model = one_op_model(Op.RESHAPE, [T((1, 8))], [T((1, 4, 2))], options)
    interpreter = Interpreter(model_content=model)
    interpreter.resize_tensor_input(0, (2, 4))
    with pytest.warns(BatchWarning, match="out0"):
        interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.arange(8, dtype=np.float32).reshape(2, 4))
    interpreter.invoke()
    assert np.array_equal(interpreter.get_tensor(1).ravel(), np.arange(8))

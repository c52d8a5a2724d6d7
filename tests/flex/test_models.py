"""Keras' recurrent networks and other models with lists, with an open batch, against TensorFlow."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tflite_ort import Interpreter, export_onnx

Array = npt.NDArray[Any]

FOLDER = Path(__file__).parent / "models"
NAMES = sorted(path.stem for path in FOLDER.glob("*.tflite"))
# The recurrent nodes that a network becomes; without any the loop stays.
_NODES = {
    "LSTM 1": "lstm lstm_sequence lstm_states lstm_backwards lstm_hard lstm_open_time "
    "lstm_last_open_time lstm_dropout time_distributed",
    "GRU 1": "gru gru_reset_before gru_open_time",
    "RNN 1": "rnn rnn_open_time",
    "LSTM 2": "bidirectional stacked",
    "GRU 2": "bidirectional_open_time stacked_open_time",
}
NODES = {
    name: {kind.split()[0]: int(kind.split()[1])}
    for kind, names in _NODES.items()
    for name in names.split()
}
FUNCTIONS = (
    *(
        "concatenated",
        "dataset",
        "dataset_batches",
        "dataset_nested",
        "dataset_pairs",
        "divided",
        "growing",
        "map_fn",
        "map_fn_two",
        "printed",
        "scan",
        "scattered",
        "shortened",
    ),
)
SEEDED = ("lstm_dropout",)  # numpy counts what is not drawn here
PRINTING = ("printed",)  # numpy prints, and of one sample alone
RECURRENT = {"LSTM", "GRU", "RNN", "Loop"}


def recorded(name: str) -> Iterator[tuple[Array, list[Array]]]:
    """The input and TensorFlow's outputs for each batch."""
    with np.load(FOLDER / f"{name}.npz") as stored:
        for batch in (1, 3):
            wants = [stored[key] for key in sorted(stored) if key.startswith(f"{batch}.")]
            yield stored[f"{batch}.input"], wants[:-1]


def close(got: Sequence[Array], want: Sequence[Array], place: str) -> None:
    assert len(got) == len(want)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-6, err_msg=place)


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("name", NAMES)
def test_interpreter(name: str, providers: Sequence[str] | None) -> None:
    interpreter = Interpreter(str(FOLDER / f"{name}.tflite"), providers=providers)
    (given,) = interpreter.get_input_details()
    for x, want in recorded(name):
        interpreter.resize_tensor_input(given["index"], x.shape)
        interpreter.allocate_tensors()
        if providers is None and name not in (*PRINTING, *SEEDED):
            assert {row.runs_on for row in interpreter.delegation()} <= {"ort", "constant"}
        close(_run(interpreter, x), want, f"batch {len(x)}")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PRINTING])
def test_batch(name: str) -> None:
    """`batch=` gives each sample what it has alone; a network runs over all samples at once."""
    ((first, _), *_, (x, want)) = recorded(name)
    assert (len(first), len(x)) == (1, 3)
    alone = Interpreter(str(FOLDER / f"{name}.tflite"))
    (given,) = alone.get_input_details()
    if name in FUNCTIONS:  # they mix the samples, or go through them one by one
        alone.resize_tensor_input(given["index"], first.shape)
        alone.allocate_tensors()
        rows = [_run(alone, sample[None]) for sample in x]
        want = [np.concatenate(np.atleast_1d(*each)) for each in zip(*rows, strict=True)]
    whole = Interpreter(str(FOLDER / f"{name}.tflite"), batch=3)
    whole.resize_tensor_input(given["index"], x.shape)
    whole.allocate_tensors()
    got = _run(whole, x)[: len(want)]  # after them come the sizes of results that depend on data
    close([mine.reshape(each.shape) for mine, each in zip(got, want, strict=True)], want, name)


def _run(interpreter: Interpreter, x: Array) -> list[Array]:
    (given,) = interpreter.get_input_details()
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


@pytest.mark.parametrize("name", sorted(NODES))
def test_open_batch(name: str) -> None:
    """An export with a batch is the same nodes, and its time stays open; one of no samples gives
    none, as in TensorFlow. ONNX Runtime's LSTM and GRU end the process there."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = export_onnx(FOLDER / f"{name}.tflite", batch="N")
    kinds = Counter(op_types(model.graph))
    assert {kind: kinds[kind] for kind in RECURRENT & kinds.keys()} == NODES[name]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    assert given.shape[0] == "N"
    for x, want in recorded(name):
        close(session.run(None, {given.name: x}), want, f"batch {len(x)}")
        nothing = session.run(None, {given.name: x[:0]})
        assert [each.shape for each in nothing] == [(0, *each.shape[1:]) for each in want]


def op_types(graph: onnx.GraphProto) -> Iterator[str]:
    """Those of the nodes of a graph and of the graphs in it."""
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from op_types(attribute.g)


@pytest.mark.parametrize("name", NAMES)
def test_export(name: str) -> None:
    """Open sizes stay open, and a recurrent layer is one node."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = export_onnx(FOLDER / f"{name}.tflite")
    kinds = Counter(op_types(model.graph))
    if name in NODES:
        assert {kind: kinds[kind] for kind in RECURRENT & kinds.keys()} == NODES[name]
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (given,) = session.get_inputs()
    for x, want in recorded(name):
        close(session.run(None, {given.name: x}), want, f"batch {len(x)}")

"""Parts cut out of models: what comes along, what is refused, and that they give the same."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models import model_path
from tflite_ort import Interpreter, extract
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.schema import Model, read_model, write_model
from tflite_ort.verification.extraction import ExtractionError, one_operator

NETWORK = "mlperf-tiny__kws_ref_model.tflite"
LOOP = "tf__gru_f32.tflite"


@pytest.fixture(scope="module")
def network() -> Model:
    return read_model(model_path(NETWORK))


def ran(model: Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    interpreter = Interpreter(model_content=write_model(model))
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


@pytest.mark.parametrize("name", [NETWORK, LOOP])
def test_two_halves_give_what_the_whole_gives(name: str) -> None:
    whole = read_model(model_path(name))
    graph = whole.subgraphs[0]
    middle = graph.operators[len(graph.operators) // 2].outputs[0]
    halves = extract(whole, (), [middle]), extract(whole, [middle], ())
    details = Interpreter(model_path(name)).get_input_details()
    inputs = list(random_inputs(details, 0).values())
    between = ran(halves[0], inputs)
    np.testing.assert_array_equal(ran(halves[1], between)[0], ran(whole, inputs)[0])
    assert sum(len(half.subgraphs[0].operators) for half in halves) == len(graph.operators)


def test_only_what_is_needed_comes_along(network: Model) -> None:
    part, inputs, outputs = one_operator(network, 0)
    operator = network.subgraphs[0].operators[0]
    assert inputs == [operator.inputs[0]] and outputs == list(operator.outputs)
    assert len(part.subgraphs[0].tensors) == len(set(operator.inputs)) + 1
    assert len(part.buffers) < len(network.buffers) and part.buffers[0].data is None
    assert len(part.operator_codes) == 1


def test_signatures_stay_where_they_name_all_inputs_and_outputs() -> None:
    model = read_model(model_path("litert__multi_signature_def.tflite"))
    assert extract(model, (), ()).signature_defs
    graph = model.subgraphs[0]
    start = graph.operators[0].outputs[0]
    if start not in graph.outputs:
        assert not extract(model, [start], ()).signature_defs


def test_metadata_are_cut_to_the_tensors_that_are_left() -> None:
    model = read_model(model_path("tflite-support__deeplabv3.tflite"))
    names = {entry.name for entry in model.metadata}
    middle = model.subgraphs[0].operators[1].outputs[0]
    first, last = extract(model, (), [middle]), extract(model, [middle], ())
    assert "TFLITE_METADATA" in {entry.name for entry in first.metadata} & names
    interpreter = Interpreter(model_content=write_model(first))
    assert interpreter.metadata.inputs[0].mean == (127.5,)
    assert not interpreter.metadata.outputs
    assert Interpreter(model_content=write_model(last)).metadata.outputs[0].table.name


@pytest.mark.parametrize(
    ("start", "stop", "message"),
    [
        (["inpu_1"], [], "no tensor named 'inpu_1'; did you mean 'input_1'?"),
        ([], ["Input"], "no tensor named 'Input'; did you mean 'input_1'?"),
        ([10_000], [], "no tensor 10000"),
        (["Identity"], [], "no operator is left to compute tensor 'Identity'"),
        ([], ["input_1"], "no operator is left to compute tensor 'input_1'"),
    ],
)
def test_what_cannot_be_cut_is_refused(
    network: Model, start: list[str | int], stop: list[str | int], message: str
) -> None:
    with pytest.raises(ExtractionError, match=message):
        extract(network, start, stop)


def test_a_start_must_lead_to_a_stop(network: Model) -> None:
    graph = network.subgraphs[0]
    first, last = graph.operators[0].outputs[0], graph.operators[-1].outputs[0]
    with pytest.raises(ExtractionError, match="does not lead to"):
        extract(network, [last], [first])


def test_subgraphs_that_are_called_come_along() -> None:
    model = read_model(model_path(LOOP))
    loop = next(
        i
        for i, op in enumerate(model.subgraphs[0].operators)
        if model.operator_codes[op.opcode_index].builtin_code.name == "WHILE"
    )
    assert len(one_operator(model, loop)[0].subgraphs) == len(model.subgraphs)
    other = next(i for i in range(len(model.subgraphs[0].operators)) if i != loop)
    assert len(one_operator(model, other)[0].subgraphs) == 1


def test_operators_by_the_names_that_reports_give_them() -> None:
    path = model_path("mlperf-tiny__kws_ref_model.tflite")
    model = read_model(path)
    graph = model.subgraphs[0]
    first, last = graph.operators[2], graph.operators[4]
    named = extract(model, ["CONV_2D_2"], ["CONV_2D_4"])
    by_index = extract(model, [first.inputs[0] or 0], [last.outputs[0]])
    assert write_model(named) == write_model(by_index)
    assert len(named.subgraphs[0].operators) == 3 and len(named.subgraphs[0].inputs) == 1
    with pytest.raises(ExtractionError, match="no tensor named 'CONV_2D_3'"):
        extract(model, ["CONV_2D_3"], [])

"""Signatures: what is asked of them by name, and a signature as a model's primary subgraph."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.models import model_path
from tests.test_cli import call, refusal
from tests.test_cli_run import two_signatures
from tflite_ort import BridgeError, Interpreter, TensorError
from tflite_ort.command.inspect_tables import _short
from tflite_ort.command.model_costs import costs
from tflite_ort.model.signature_model import signature_model
from tflite_ort.schema import (
    AddOptions,
    Conv2DOptions,
    LessOptions,
    Model,
    ModelBuilder,
    Op,
    Padding,
    TensorType,
    WhileOptions,
    read_model,
    write_model,
)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.tflite"
    path.write_bytes(two_signatures())
    return path


def test_a_signature_tells_where_its_operators_run(two: Path) -> None:
    interpreter = Interpreter(two)
    assert [row.operator for row in interpreter.delegation("both")] == ["ADD", "SUB"]
    assert [row.operator for row in interpreter.delegation("twice")] == ["ADD"]
    runner = interpreter.get_signature_runner("both")
    assert {row.subgraph for row in runner.delegation()} == {1}
    assert {time.operator for time in interpreter.profile(2, "both")} == {"ADD_0", "SUB_1"}
    assert runner.load_times.translate > 0
    with pytest.raises(TensorError, match="Invalid signature_key"):
        interpreter.delegation("neither")


def counting_model() -> Model:
    """``count`` of subgraph 3 counts to its limit by a WHILE of subgraphs 1 and 2."""
    builder = ModelBuilder()
    first = builder.subgraph("first").tensor("p", (2,)).tensor("q", (2,))
    first.operator(Op.ADD, ["p", "p"], ["q"], AddOptions()).inputs("p").outputs("q")
    first.signature("twice", {"x": "p"}, {"y": "q"})
    kind = TensorType.INT32
    cond = builder.subgraph("cond").tensor("i", (), kind).tensor("n", (), kind)
    cond.tensor("less", (), TensorType.BOOL).operator(Op.LESS, ["i", "n"], ["less"], LessOptions())
    cond.inputs("i", "n").outputs("less")
    body = builder.subgraph("body").tensor("i", (), kind).tensor("n", (), kind)
    body.tensor("next", (), kind).constant("one", np.int32(1))
    body.operator(Op.ADD, ["i", "one"], ["next"], AddOptions()).inputs("i", "n").outputs(
        "next", "n"
    )
    main = builder.subgraph("main").tensor("limit", (), kind).constant("zero", np.int32(0))
    main.tensor("i", (), kind).tensor("n", (), kind)
    options = WhileOptions(cond_subgraph_index=1, body_subgraph_index=2)
    main.operator(Op.WHILE, ["zero", "limit"], ["i", "n"], options)
    main.inputs("limit").outputs("i").signature("count", {"to": "limit"}, {"counted": "i"})
    return builder.model()


def test_a_signature_becomes_the_primary_subgraph() -> None:
    made = signature_model(counting_model(), "count")
    interpreter = Interpreter(model_content=write_model(made))
    (given,), (counted,) = interpreter.get_input_details(), interpreter.get_output_details()
    assert (given["name"], counted["name"]) == ("to", "counted")
    interpreter.allocate_tensors()
    interpreter.set_tensor(given["index"], np.int32(7))
    interpreter.invoke()
    assert interpreter.get_tensor(counted["index"]) == 7
    twice = interpreter.get_signature_runner("twice")
    np.testing.assert_array_equal(twice(x=np.float32([1, 2]))["y"], [2, 4])


def test_an_operator_without_options_still_calls_subgraph_0() -> None:
    builder = ModelBuilder()
    first = builder.subgraph("first").tensor("p", (2,)).tensor("q", (2,))
    first.operator(Op.ADD, ["p", "p"], ["q"], AddOptions()).inputs("p").outputs("q")
    second = builder.subgraph("second").tensor("a", (2,)).tensor("b", (2,))
    second.operator(Op.CALL_ONCE, [], []).operator(Op.ADD, ["a", "a"], ["b"], AddOptions())
    second.inputs("a").outputs("b").signature("go")
    made = signature_model(builder.model(), "go")
    options = made.subgraphs[0].operators[0].options
    assert options is not None and options.init_subgraph_index == 1  # type: ignore[attr-defined]


def test_tensors_with_the_name_of_an_argument_get_another() -> None:
    builder = ModelBuilder()
    graph = builder.subgraph("main")
    for name in ("x", "y", "z"):
        graph.tensor(name, (2,))
    graph.operator(Op.ADD, ["x", "x"], ["y"], AddOptions())
    graph.operator(Op.ADD, ["y", "y"], ["z"], AddOptions())
    graph.inputs("x").outputs("z").signature("go", {"y": "x"}, {"x": "z"})
    names = [tensor.name for tensor in signature_model(builder.model(), "go").subgraphs[0].tensors]
    assert names == ["y", "y#1", "x"]


# The command line --------------------------------------------------------------------------------


def test_inspect_lists_signatures_and_takes_one(two: Path) -> None:
    found = json.loads(call("inspect", two, "--json").stdout)
    assert [each["key"] for each in found["signatures"]] == ["twice", "both"]
    assert found["bytes"] == two.stat().st_size
    assert [row["operator"] for row in found["operators"]] == ["ADD"]
    found = json.loads(call("inspect", two, "--json", "--signature", "both").stdout)
    assert [row["operator"] for row in found["operators"]] == ["ADD", "SUB"]
    assert [each["name"] for each in found["subgraphs"][0]["inputs"]] == ["left", "right"]
    text = call("inspect", two).stdout
    assert "left, right" in text and "0 parameters" in text


def test_inspect_takes_several_models(two: Path, tmp_path: Path) -> None:
    custom = ModelBuilder()
    graph = custom.subgraph("main").tensor("x", (2,)).tensor("y", (2,))
    graph.operator("Nowhere", ["x"], ["y"]).inputs("x").outputs("y")
    (tmp_path / "custom.tflite").write_bytes(custom.write())
    result = call("inspect", two, tmp_path / "custom.tflite")
    assert result.exit_code == 3
    assert f"{two}:" in result.stdout and "cannot run: " in result.stdout
    both = json.loads(call("inspect", two, tmp_path / "custom.tflite", "--json").stdout)
    assert [each["runs"] for each in both] == [True, False]
    result = call("inspect", tmp_path / "none.tflite", two)
    assert result.exit_code == 1 and "left, right" in result.stdout


def test_bench_and_verify_take_a_signature(two: Path) -> None:
    result = call("bench", two, "--signature", "both", "--rounds", "1", "--min-time", "0.001",
                  "--threads", "1", "--check", "--no-memory")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "sum: " in result.stdout
    result = call("verify", two, "--signature", "both", "--json", "-")
    assert result.exit_code == 0, result.output
    names = {each["name"] for each in json.loads(result.stdout)["runtimes"][0]["outputs"]}
    assert names == {"sum", "difference"}
    assert "no signature 'bot'" in refusal("verify", two, "--signature", "bot")


# Costs -------------------------------------------------------------------------------------------


def test_costs_of_a_convolution() -> None:
    builder = ModelBuilder()
    graph = builder.subgraph("main").tensor("x", (1, 8, 8, 3)).tensor("y", (1, 4, 4, 16))
    graph.tensor("z", (1, 4, 4, 16)).constant("w", np.ones((16, 3, 3, 3), np.float32))
    graph.constant("b", np.ones(16, np.float32))
    options = Conv2DOptions(padding=Padding.SAME, stride_w=2, stride_h=2)
    graph.operator(Op.CONV_2D, ["x", "w", "b"], ["y"], options)
    graph.operator(Op.ADD, ["y", "y"], ["z"], AddOptions()).inputs("x").outputs("z")
    found = costs(builder.model())
    assert found.parameters == 16 * 27 + 16
    assert found.constant_bytes == 4 * found.parameters
    assert found.multiply_adds == 16 * 16 * 27
    # x is 768 bytes and y and z 1024 each: z takes the place of x where that is wide enough.
    assert (found.peak, found.peak_at) == (2048, 1)
    assert found.arena == 2048


def test_costs_of_a_shared_network() -> None:
    found = costs(read_model(model_path("tflite-support__mobilenet_v2_1.0_224_quant.tflite")))
    assert 3.4e6 < found.parameters < 3.6e6  # 3.47 M as published
    assert 2.9e8 < found.multiply_adds < 3.1e8  # 300 M as published


def test_calls_in_a_row_are_as_the_first_one(two: Path) -> None:
    """Arrays like those of the last call are copied without further questions: what else may come
    between two such calls changes nothing."""
    runner = Interpreter(two).get_signature_runner("twice")
    (name,) = runner.get_input_details()
    (detail,) = runner.get_input_details().values()
    rng, size = np.random.default_rng(8), tuple(detail["shape"])

    def right(shape: tuple[int, ...]) -> None:
        value = rng.normal(0, 1, shape).astype(np.float32)
        (got,) = runner(**{name: value}).values()
        np.testing.assert_array_equal(got, value + value)
        got[...] = 7  # a copy: the next result does not know of it

    wider = (*size[:-1], size[-1] + 3)
    for shape in (size, size, size, wider, wider, wider, size, size):
        right(shape)
    for wrong in (
        {name: np.zeros(size).tolist()},
        {name: np.zeros(size)},
        {"other": np.zeros(size, np.float32)},
        {},
    ):
        with pytest.raises(TensorError):
            runner(**wrong)
        right(size)
    strided = rng.normal(0, 1, (*size, 2)).astype(np.float32)[..., 1]
    (got,) = runner(**{name: strided}).values()
    np.testing.assert_array_equal(got, strided + strided)


def test_runners_of_one_interpreter_take_turns(two: Path) -> None:
    interpreter = Interpreter(two)
    first, second = (interpreter.get_signature_runner("twice") for _ in range(2))
    (name,) = first.get_input_details()
    (detail,) = first.get_input_details().values()
    for turn in range(4):
        for runner, value in ((first, turn), (second, -turn)):
            array = np.full(detail["shape"], value, np.float32)
            (got,) = runner(**{name: array}).values()
            np.testing.assert_array_equal(got, 2 * array)
    interpreter.close()
    with pytest.raises(BridgeError):
        first(**{name: array})


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999"), (1234, "1.23 k"), (999_499, "999 k"), (999_999, "1 M"), (10**13, "10000 G")],
)
def test_numbers_have_the_unit_that_fits(count: int, text: str) -> None:
    assert _short(count) == text

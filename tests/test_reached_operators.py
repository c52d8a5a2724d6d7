"""What runs is what the chosen subgraph reaches: an operator that nothing runs harms others not."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T
from tests.ops.test_state import X, add, floats
from tests.oracle import litert_interpreter
from tests.subgraph_models import Sub, model_of
from tests.test_cli import call, refusal
from tflite_ort import (
    ExportError,
    ExportWarning,
    Interpreter,
    UnresolvedOperator,
    UnsupportedVersion,
    export_onnx,
    export_signatures,
)
from tflite_ort.compiled_model import CompiledModel
from tflite_ort.schema import AddOptions, IfOptions, Op, TensorType, VersionError

ONES = {"x": floats(1, 2)}
TENSORS = {"x": X, "y": X}
GOOD = Sub(TENSORS, [add("x", "x", "y")], ["x"], ["y"], "good")
LACKING = Sub(TENSORS, [Node("Turbo", ["x"], ["y"])], ["x"], ["y"], "lacking")
NEW = Sub(TENSORS, [Node(Op.ADD, ["x", "x"], ["y"], AddOptions(), version=9)], ["x"], ["y"], "new")
FLAG = T((), TensorType.BOOL)


def branching(then: int, otherwise: int) -> Sub:
    """It reaches two other subgraphs."""
    node = Node(Op.IF, ["c", "x"], ["y"], IfOptions(then, otherwise))
    return Sub({**TENSORS, "c": FLAG}, [node], ["c", "x"], ["y"], "branching")


def plain(sub: Sub) -> Sub:
    """It is no signature."""
    return Sub(sub.tensors, sub.nodes, sub.inputs, sub.outputs)


FIRST, LAST = model_of(GOOD, LACKING), model_of(LACKING, GOOD)


@pytest.mark.parametrize("content", [FIRST, LAST], ids=["first", "last"])
def test_a_signature_runs_beside_one_that_lacks_an_operator(content: bytes) -> None:
    mine, theirs = Interpreter(model_content=content), litert_interpreter(content)
    for interpreter in (mine, pickle.loads(pickle.dumps(mine)), theirs):
        runner = interpreter.get_signature_runner("good")
        np.testing.assert_array_equal(runner(**ONES)["y"], floats(2, 4))
        lacking = interpreter.get_signature_runner("lacking")
        assert list(lacking.get_input_details()) == ["x"]
        with pytest.raises(RuntimeError, match="unresolved custom op: Turbo"):
            lacking(**ONES)
    with pytest.raises(UnresolvedOperator, match="custom op 'Turbo' version '1'"):
        mine.get_signature_runner("lacking")(**ONES)


def test_the_primary_subgraph_needs_no_more_than_it_reaches() -> None:
    for interpreter in (Interpreter(model_content=FIRST), litert_interpreter(FIRST)):
        interpreter.allocate_tensors()
    for interpreter in (Interpreter(model_content=LAST), litert_interpreter(LAST)):
        with pytest.raises(RuntimeError, match="unresolved custom op: Turbo"):
            interpreter.allocate_tensors()


def test_the_bodies_of_branches_are_reached() -> None:
    content = model_of(branching(1, 2), plain(GOOD), plain(LACKING), GOOD)
    interpreter = Interpreter(model_content=content)
    with pytest.raises(UnresolvedOperator):
        interpreter.get_signature_runner("branching")(c=np.array(True), **ONES)
    np.testing.assert_array_equal(interpreter.get_signature_runner("good")(**ONES)["y"], [2, 4])
    for signature in (None, "branching"):
        with pytest.raises(UnresolvedOperator):
            export_onnx(content, signature=signature)


def test_versions_are_strict_where_they_are_reached() -> None:
    """LiteRT loads none of these."""
    for content in (model_of(NEW, GOOD), model_of(branching(1, 2), plain(GOOD), plain(NEW), GOOD)):
        with pytest.raises(UnsupportedVersion, match="'ADD' version '9'"):
            Interpreter(model_content=content)
    interpreter = Interpreter(model_content=model_of(GOOD, NEW))
    interpreter.allocate_tensors()
    with pytest.raises(UnsupportedVersion, match="'ADD' version '9'"):
        interpreter.get_signature_runner("new")(**ONES)


def test_a_batch_and_the_cache_need_no_more(tmp_path: Path) -> None:
    rows = {"x": np.stack([floats(1, 2), floats(3, 4)])}
    runner = Interpreter(model_content=FIRST, batch=2).get_signature_runner("good")
    np.testing.assert_array_equal(runner(**rows)["y"], 2 * rows["x"])
    for _ in range(2):  # the second one finds the plan of the first one
        interpreter = Interpreter(model_content=LAST, cache=tmp_path)
        np.testing.assert_array_equal(interpreter.get_signature_runner("good")(**ONES)["y"], [2, 4])
        with pytest.raises(UnresolvedOperator):
            interpreter.allocate_tensors()


def test_a_compiled_model_runs_the_signatures_that_it_can() -> None:
    compiled = CompiledModel.from_buffer(LAST)
    number = compiled.get_signature_index("good")
    given, made = compiled.create_input_buffers(number), compiled.create_output_buffers(number)
    given[0].write(floats(1, 2))
    compiled.run_by_index(number, given, made)
    np.testing.assert_array_equal(made[0].read(2, np.float32), floats(2, 4))
    assert not compiled.is_fully_accelerated()
    with pytest.raises(RuntimeError, match="Turbo"):
        CompiledModel.from_buffer(model_of(LACKING))


def test_the_signatures_that_can_be_are_exported(tmp_path: Path) -> None:
    with pytest.warns(ExportWarning, match=r"not written:\n  'lacking': .*op: Turbo"):
        files = export_signatures(LAST, tmp_path, check=True)
    assert files == {"good": tmp_path / "good.onnx"}
    assert [each.name for each in tmp_path.iterdir()] == ["good.onnx"]
    with pytest.raises(VersionError):
        export_signatures(model_of(LACKING), tmp_path)
    both = model_of(LACKING, NEW)
    with pytest.raises(ExportError, match=r"(?s)no signature.*'lacking': .*Turbo.*'new': .*ADD"):
        export_signatures(both, tmp_path)
    written = export_onnx(FIRST, custom_ops="domain", signature="lacking")
    assert [node.domain for node in written.graph.node] == ["tflite.custom"]


def test_the_command_line_says_which_signature_lacks_what(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(LAST)
    for content, code in ((LAST, 3), (FIRST, 0)):
        path.write_bytes(content)
        shown = call("inspect", path, "--json")
        record: dict[str, Any] = json.loads(shown.stdout)
        missing = {each["key"]: each["missing"] for each in record["signatures"]}
        assert (shown.exit_code, missing["good"]) == (code, [])
        assert "'Turbo'" in missing["lacking"][0]
        assert "Turbo version 1" in call("inspect", path).stdout
    assert "needed by the signatures 'lacking' alone" in call("versions", path).stdout
    said = refusal("export", path, tmp_path / "all", "--all-signatures")
    assert "signature 'lacking' is not written" in said and "Turbo" in said
    assert [each.name for each in (tmp_path / "all").iterdir()] == ["good.onnx"]

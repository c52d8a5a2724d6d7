"""Small files stay small: what they may unfold into is bounded in time and memory."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.one_op import Node, T, graph_model
from tests.ops.custom_op import custom_model
from tflite_ort import AllocationError, BudgetExceeded, Budgets, Interpreter, export_onnx
from tflite_ort.command.cli import app
from tflite_ort.command.demo import digits_model
from tflite_ort.schema import (
    AddOptions,
    BroadcastToOptions,
    Buffer,
    CallOptions,
    ConcatenationOptions,
    DimensionMetadata,
    DimensionType,
    FillOptions,
    IfOptions,
    Int32Vector,
    LessOptions,
    Model,
    Op,
    Operator,
    OperatorCode,
    PackOptions,
    SparsityParameters,
    SplitOptions,
    SubGraph,
    Tensor,
    TensorType,
    TensorView,
    TileOptions,
    WhileOptions,
    read_model,
    write_model,
)
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.specialize.computed_sizes import bytes_of, is_small

ROOT = Path(__file__).parents[1]
ONE = np.float32([1])

# Opens, allocates and exports each file NAME=PATH; prints what happened, in how many seconds of the
# processor and with how many megabytes more than before.
OPENED = """
import json, resource, sys, time, warnings
from pathlib import Path
from tflite_ort import BridgeError, Interpreter, export_onnx
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (24 << 30, 24 << 30))
def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024
for argument in sys.argv[1:]:
    name, path = argument.split("=")
    Path("/proc/self/clear_refs").write_text("5")
    before, results = memory("VmRSS"), []
    actions = [lambda: Interpreter(path).allocate_tensors(), lambda: export_onnx(path)]
    for action in actions[:1] if name.endswith("outputs") else actions:
        started, result = time.process_time(), ""
        try:
            action()
        except BridgeError as error:
            result = f"{type(error).__name__}: {error}"
        results.append([result, time.process_time() - started])
    print(json.dumps([name, results, memory("VmHWM") - before]), flush=True)
"""


def f32(*shape: int) -> T:
    return T(shape)


def calling(levels: int, code: Op, options: Callable[[int], Any]) -> bytes:
    """Each subgraph calls the next one twice; the last adds."""
    graphs = []
    for level in range(levels + 1):
        flag = Tensor((1,), TensorType.BOOL, 0, "c")
        tensors = (*(Tensor((1,), TensorType.FLOAT32, 0, name) for name in "xyz"), flag)
        first, second = (0,), (1,)
        operators: tuple[Operator, ...] = ()
        if code is Op.IF:
            operators = (Operator(2, (0, 0), (3,), LessOptions()),)
            first, second = (3, 0), (3, 1)
        if code is Op.WHILE and level < levels:
            tensors = (*tensors[:2], *tensors[:1])
        own = options(level + 1)
        calls = (Operator(0, first, (1,), own), Operator(0, second, (2,), own))
        adds = (Operator(1, (0, 0), (1,), AddOptions()), Operator(1, (1, 0), (2,), AddOptions()))
        operators = adds if level == levels else (*operators, *calls)
        graphs.append(SubGraph(tensors, (0,), (2,), operators))
    codes = tuple(map(OperatorCode, (code, Op.ADD, Op.LESS)))
    model = Model(version=3, operator_codes=codes, subgraphs=tuple(graphs), buffers=(Buffer(),))
    return write_model(model)


def looping(levels: int) -> bytes:
    """WHILE in WHILE, each looked at twice since its body changes the state's size."""
    graphs = []
    for level in range(levels):
        tensors = tuple(Tensor((1,), TensorType.FLOAT32, 0, name) for name in "xyz")
        own = WhileOptions(cond_subgraph_index=levels + 1, body_subgraph_index=level + 1)
        operators = (Operator(0, (0,), (1,), own), Operator(0, (1,), (2,), own))
        graphs.append(SubGraph(tensors, (0,), (2,), operators))
    tensors = tuple(Tensor((1,), TensorType.FLOAT32, 0, name) for name in "xy")
    graphs.append(SubGraph(tensors, (0,), (1,), (Operator(1, (0, 0), (1,), AddOptions()),)))
    flag = (tensors[0], Tensor((1,), TensorType.BOOL, 0, "c"))
    graphs.append(SubGraph(flag, (0,), (1,), (Operator(2, (0, 0), (1,), LessOptions()),)))
    codes = tuple(map(OperatorCode, (Op.WHILE, Op.ADD, Op.LESS)))
    model = Model(version=3, operator_codes=codes, subgraphs=tuple(graphs), buffers=(Buffer(),))
    return write_model(model)


def broadcasts(count: int = 2000) -> bytes:
    size = 1 << 18
    tensors = {"x": T.constant(ONE), "s": T.constant(np.int32([size])), "y": f32(size)}
    nodes, last = [], "y"
    for i in range(count):
        tensors |= {f"b{i}": f32(size), f"a{i}": f32(size)}
        nodes.append(Node(Op.BROADCAST_TO, ["x", "s"], [f"b{i}"], BroadcastToOptions(), 2))
        nodes.append(Node(Op.ADD, [last, f"b{i}"], [f"a{i}"], AddOptions()))
        last = f"a{i}"
    return graph_model(tensors, nodes, [last])


def tiles() -> bytes:
    """1 MB, tiled by 4 again and again."""
    size = 1 << 18
    tensors = {"t0": T.constant(np.zeros(1, np.float32)), "big": T.constant(np.int32([size]))}
    tensors |= {"four": T.constant(np.int32([4])), "t1": f32(size)}
    nodes = [Node(Op.TILE, ["t0", "big"], ["t1"], TileOptions())]
    for i in range(1, 7):
        size *= 4
        tensors[f"t{i + 1}"] = f32(size)
        nodes.append(Node(Op.TILE, [f"t{i}", "four"], [f"t{i + 1}"], TileOptions()))
    return graph_model(tensors, nodes, ["t7"])


def fill(dimensions: int) -> bytes:
    """A FILL whose list of sizes is computed."""
    tensors = {"d": T((dimensions,), TensorType.INT32), "v": T.constant(np.float32(1)), "y": f32(1)}
    return graph_model(tensors, [Node(Op.FILL, ["d", "v"], ["y"], FillOptions())], ["y"])


def joined(count: int, op: Op, shape: tuple[int, ...], options: Any) -> bytes:
    tensors = {f"x{i}": f32(1) for i in range(count)} | {"y": f32(*shape)}
    return graph_model(tensors, [Node(op, [f"x{i}" for i in range(count)], ["y"], options)], ["y"])


def sums(count: int) -> bytes:
    names = [f"y{i}" for i in range(count)]
    tensors = {"x": f32(1), **{name: f32(1) for name in names}}
    return graph_model(tensors, [Node(Op.ADD, ["x", "x"], [n], AddOptions()) for n in names], names)


def same_output(count: int) -> bytes:
    model = read_model(sums(1))
    graph = replace(model.subgraphs[0], outputs=model.subgraphs[0].outputs * count)
    return write_model(replace(model, subgraphs=(graph,)))


def unread_inputs(count: int) -> bytes:
    tensors = {"x": f32(1), **{f"i{i}": f32(1) for i in range(count)}, "y": f32(1)}
    return graph_model(tensors, [Node(Op.ADD, ["x", "x"], ["y"], AddOptions())], ["y"])


def sparse() -> bytes:
    """One value in a matrix of 10 GB."""
    side = 50_000
    first, ends = Int32Vector(np.zeros(1, np.int32)), Int32Vector(np.array([0, 1], np.int32))
    level = DimensionMetadata(DimensionType.SPARSE_CSR, 0, ends, first)
    sparsity = SparsityParameters((0, 1), None, (level, level))
    model = read_model(
        graph_model(
            {"x": f32(1), "w": T.constant(ONE), "y": f32(1)},
            [Node(Op.ADD, ["x", "w"], ["y"], AddOptions())],
            ["y"],
        )
    )
    graph = model.subgraphs[0]
    x, w, y = graph.tensors
    w = replace(w, shape=(side, side), sparsity=sparsity)
    return write_model(replace(model, subgraphs=(replace(graph, tensors=(x, w, y)),)))


def flexbuffer(levels: int = 60) -> bytes:
    """A map of a vector of four times the same vector of four times the same..."""
    data, at = bytearray([1, 4]), 1  # a vector [null] without its type, at 1; then its type
    data = bytearray([1, 0, 0])
    at = 1  # size 1, value 0, type null
    for _ in range(levels):
        start = len(data) + 1
        data.append(4)
        data += bytes([start + i - at for i in range(4)])
        data += bytes([10 << 2] * 4)
        at = start
    key = len(data)
    data += b"k\0"
    data.append(1)
    keys = len(data)
    data.append(keys - key)
    data += bytes([len(data) - keys, 1, 1])
    root = len(data)
    data.append(root - at)
    data.append(10 << 2)
    return bytes(data + bytes([len(data) - root, 9 << 2, 1]))


def flex() -> bytes:
    model = read_model(custom_model("Mfcc", [f32(1)], [f32(1)]))
    (operator,) = model.subgraphs[0].operators
    operator = replace(operator, custom_options=np.frombuffer(flexbuffer(), np.uint8))
    graph = replace(model.subgraphs[0], operators=(operator,))
    return write_model(replace(model, subgraphs=(graph,)))


# What the file is, how it is answered, in how many seconds and megabytes. Calls, branches and loops
# would take years without a budget; with it 1.5 s on a slow processor.
HOSTILE: dict[str, tuple[Callable[[], bytes], str, float, int]] = {
    "calls": (lambda: calling(30, Op.CALL, CallOptions), "called_operators", 2, 50),
    "branches": (lambda: calling(30, Op.IF, lambda i: IfOptions(i, i)), "called_operators", 10, 50),
    "loops": (lambda: looping(30), "called_operators", 10, 50),
    "broadcasts": (broadcasts, "folded_bytes", 4, 400),
    "tiles": (tiles, "folded_bytes", 4, 500),
    "sparse": (sparse, "folded_bytes", 2, 50),
    "fill": (lambda: fill(10**8), "lists 100000000 numbers, at most 128", 2, 50),
    "concatenation": (
        lambda: joined(4000, Op.CONCATENATION, (4000,), ConcatenationOptions(axis=0)), "", 4, 100
    ),
    "pack": (
        lambda: joined(4000, Op.PACK, (4000, 1), PackOptions(values_count=4000)), "", 6, 100
    ),
    "outputs": (lambda: sums(10_000), "outputs", 12, 400),
    "repeated outputs": (lambda: same_output(200_000), "", 4, 400),
    "inputs": (lambda: unread_inputs(10_000), "", 6, 100),
    "flexbuffer": (flex, "option_values", 2, 50),
    "a large tensor": (
        lambda: graph_model(
            {"x": f32(1 << 28), "y": f32(1 << 28)},
            [Node(Op.ADD, ["x", "x"], ["y"], AddOptions())],
            ["y"],
        ),
        "",
        2,
        50,
    ),
    "a larger tensor": (
        lambda: graph_model(
            {"x": f32(1 << 29), "y": f32(1 << 29)},
            [Node(Op.ADD, ["x", "x"], ["y"], AddOptions())],
            ["y"],
        ),
        "tensor_bytes",
        2,
        50,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Any], float]]:
    """By file, what came of it in a process of its own."""
    folder, arguments = tmp_path_factory.mktemp("hostile"), []
    for number, (name, (make, *_)) in enumerate(HOSTILE.items()):
        path, content = folder / f"{number}.tflite", make()
        assert len(content) < 2 << 20
        path.write_bytes(content)
        arguments.append(f"{name}={path}")
    command = [sys.executable, "-c", OPENED, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=900)
    lines = map(json.loads, done.stdout.splitlines())
    return {name: (results, grown) for name, results, grown in lines}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_small_file_stays_small(name: str, answers: dict[str, tuple[list[Any], float]]) -> None:
    _, answer, seconds, megabytes = HOSTILE[name]
    assert name in answers, "the process ended before, or there"
    results, grown = answers[name]
    for result, taken in results:
        known = answer in Budgets.names()
        expected = f"raise it with budgets=Budgets({answer}=" if known else answer
        assert bool(result) == bool(answer), result
        assert expected in result
        assert taken < seconds
    assert grown < megabytes


def test_what_exceeds_a_budget_runs_with_a_larger_one() -> None:
    model = calling(3, Op.CALL, CallOptions)
    tight = Budgets(called_operators=20)
    with pytest.raises(
        BudgetExceeded, match="called operators, more than the limit of 20"
    ) as caught:
        Interpreter(model_content=model, budgets=tight)
    assert caught.value.name == "called_operators"
    assert isinstance(caught.value, (ValueError, RuntimeError))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.name, again.needed, again.limit) == (caught.value.name, caught.value.needed, 20)
    with pytest.raises(BudgetExceeded):
        export_onnx(model, budgets=tight)
    with pytest.raises(BudgetExceeded):
        export_onnx(read_model(model), budgets=tight)
    with pytest.raises(BudgetExceeded):
        export_onnx(read_model(model, budgets=tight))
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, ONE)
    interpreter.invoke()
    assert interpreter.get_tensor(2) == 3.0**8
    assert len(export_onnx(model).graph.node) >= 16


def test_budgets_of_another_type_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="budgets must be Budgets, got dict"):
        Interpreter(digits_model("int8"), budgets={"tables": 1})  # type: ignore[arg-type]


def test_what_is_free_is_asked_for_large_tensors_alone() -> None:
    asked: list[str] = []

    def free() -> dict[str, int]:
        asked.append("free")
        return {"tensor_bytes": 1 << 20}

    meter = Meter(Budgets(tensor_bytes=1 << 10, result_bytes=1 << 12), free)
    small, large = (TensorView(0, "", TensorType.FLOAT32, (n,)) for n in (10, 1000))
    assert is_small(small, meter)
    assert not asked
    assert not is_small(large, meter)
    meter.check("tensor_bytes", bytes_of(large))
    meter.check("tensor_bytes", bytes_of(large))
    assert asked == ["free"]
    with pytest.raises(BudgetExceeded):
        meter.check("tensor_bytes", 1 << 21)
    assert not is_small(small, Meter(Budgets(used={}), free))  # all that is asked for is noted


@pytest.mark.parametrize("name", ["tables", "folded_bytes", "tensor_bytes", "outputs"])
def test_each_budget_is_kept(name: str) -> None:
    """The same file runs with what it uses, and with no less."""
    size = T.constant(np.int32([100]))
    tensors = {"x": f32(100), "c": T.constant(ONE), "s": size, "b": f32(100), "y": f32(100)}
    nodes = [
        Node(Op.BROADCAST_TO, ["c", "s"], ["b"], BroadcastToOptions(), 2),
        Node(Op.ADD, ["x", "b"], ["y"], AddOptions()),
    ]
    model, used = graph_model(tensors, nodes, ["y"]), dict[str, int]()
    Interpreter(model_content=model, budgets=Budgets(used=used)).allocate_tensors()
    assert used[name] > 0
    enough = replace(Budgets(), **{name: used[name]})
    Interpreter(model_content=model, budgets=enough).allocate_tensors()
    with pytest.raises(BudgetExceeded, match=name):
        little = replace(Budgets(), **{name: used[name] - 1})
        Interpreter(model_content=model, budgets=little).allocate_tensors()


def test_a_resized_tensor_has_a_budget() -> None:
    interpreter = Interpreter(model_content=sums(1))
    interpreter.resize_tensor_input(0, [1 << 16, 1 << 17])
    with pytest.raises(BudgetExceeded, match=r"input 'x' asks for 34359738368 tensor bytes"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [3])
    interpreter.allocate_tensors()


def with_archive(model: bytes, size: int) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("labels.txt", bytes(size))
    return model + archive.getvalue()


def test_an_archive_is_not_unpacked_beyond_its_budget(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(with_archive(sums(1), 1 << 20))
    assert path.stat().st_size < 4096
    assert len(Interpreter(path).metadata.files["labels.txt"]) == 1 << 20
    tight = Budgets(metadata_bytes=1000)
    needed = (1 << 20) + 4096
    with pytest.raises(BudgetExceeded, match=f"the archive of files asks for {needed} metadata"):
        _ = Interpreter(path, budgets=tight).metadata
    exported = export_onnx(path, budgets=tight)
    assert (
        "metadata_bytes"
        in {p.key: p.value for p in exported.metadata_props}["tflite.metadata_error"]
    )


def test_shapes_of_many_inputs_are_told_shortly() -> None:
    content = joined(4000, Op.PACK, (4000, 1), PackOptions(values_count=4000))
    model = read_model(content)
    graph = model.subgraphs[0]
    tensors = (replace(graph.tensors[0], shape=(2,)), *graph.tensors[1:])
    content = write_model(replace(model, subgraphs=(replace(graph, tensors=tensors),)))
    with pytest.raises(AllocationError, match="and 3992 more differ") as caught:
        Interpreter(model_content=content).allocate_tensors()
    assert len(str(caught.value)) < 300


def test_a_split_into_many_runs_in_onnx_runtime() -> None:
    names = [f"y{i}" for i in range(300)]
    tensors = {"a": T.constant(np.int32(0)), "x": f32(300), **{name: f32(1) for name in names}}
    split = Node(Op.SPLIT, ["a", "x"], names, SplitOptions(num_splits=300))
    interpreter = Interpreter(model_content=graph_model(tensors, [split], names))
    interpreter.allocate_tensors()
    assert [row.runs_on for row in interpreter.delegation()] == ["ort"]


@pytest.mark.parametrize("value", [-1, 1.5, "many"])
def test_budgets_are_whole_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match="budget tables has to be a whole number from 0 on"):
        Budgets(tables=value)


def test_budgets_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(calling(3, Op.CALL, CallOptions))
    for verb in ("run", "export", "inspect"):
        done = CliRunner().invoke(app, [verb, str(path), "--budget", "called_operators=20"])
        assert "raise it with --budget called_operators=" in done.output.replace("\n", " ")
        done = CliRunner().invoke(app, [verb, str(path), "--budget", "called_operators=1000"])
        assert done.exit_code == 0
        assert "raise it" not in done.output
    done = CliRunner().invoke(app, ["bench", str(path), "--budget", "called_operators=20"])
    assert "raise it with --budget called_operators=" in done.output.replace("\n", " ")
    enough = ["--budget", "called_operators=1000"]
    quick = ["--rounds", "1", "--min-time", "0", "--threads", "1", "--no-litert"]
    done = CliRunner().invoke(app, ["bench", str(path), *quick, *enough])
    assert done.exit_code == 0
    for wrong in ("tables", "tablets=3", "tables=x", "tables=-1"):
        done = CliRunner().invoke(app, ["run", str(path), "--budget", wrong])
        assert done.exit_code == 2

"""What an operator takes beside its inputs and its result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, one_op_model
from tests.samples import sample, types
from tests.subgraph_models import Sub, model_of
from tflite_ort import AllocationError, Interpreter
from tflite_ort.base.records import replace
from tflite_ort.fallback_kernels.idioms.parts import in_parts
from tflite_ort.providers import session
from tflite_ort.providers.plain_session import PlainSession
from tflite_ort.schema import (
    AddOptions,
    CastOptions,
    ConcatenationOptions,
    DivOptions,
    MulOptions,
    Op,
    ReducerOptions,
    ResizeBilinearOptions,
    SubOptions,
    TensorType,
    read_model,
    write_model,
)
from tflite_ort.schema.values.operators import INPUTS

ROOT = Path(__file__).parents[1]

# The most memory of this process alone: `ru_maxrss` begins with that of the process that starts it.
PEAK = """
import sys
import numpy as np
from tflite_ort import Interpreter

def peak():
    with open("/proc/self/status") as rows:
        return next(int(row.split()[1]) for row in rows if row.startswith("VmHWM"))

interpreter = Interpreter(model_path=sys.argv[1])
interpreter.allocate_tensors()
for detail in interpreter.get_input_details():
    drawn = np.random.default_rng(1).integers(1, 99, detail["shape"])
    interpreter.set_tensor(detail["index"], drawn.astype(detail["dtype"]))
start = peak()
interpreter.invoke()
print(peak() - start)
"""

# What the process has taken since the model was ready, after each of three invokes.
TAKEN = """
import sys
import numpy as np
from tflite_ort import Interpreter

def private():
    with open("/proc/self/smaps_rollup") as rows:
        return sum(int(row.split()[1]) for row in rows if row.startswith("Private_Dirty"))

interpreter = Interpreter(model_path=sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
detail = interpreter.get_input_details()[0]
interpreter.set_tensor(detail["index"], np.ones(detail["shape"], np.float32))
before = private()
for _ in range(3):
    interpreter.invoke()
    print(private() - before)
"""


def _steps(*values: int) -> T:
    return T.constant(np.array(values, np.int32))


INT8, INT16, INT32 = TensorType.INT8, TensorType.INT16, TensorType.INT32
PADDING = T.constant(np.array(1, np.int16))


def _outer(op: Op, type: TensorType, columns: int, options: Any = None) -> bytes:
    """A column of 2^18 numbers and a row, which broadcast."""
    shapes, scale = ((1 << 18, 1), (1, columns), (1 << 18, columns)), 0.1
    if type is INT32 or op in (Op.FLOOR_DIV, Op.RIGHT_SHIFT):
        scale = None
    first, second, result = (T(shape, type, scale) for shape in shapes)
    return one_op_model(op, [first, second], [result], options)


MODELS = {
    "ADD of 16-bit codes": _outer(Op.ADD, INT16, 64, AddOptions()),
    "SUB of 16-bit codes": _outer(Op.SUB, INT16, 64, SubOptions()),
    "MUL of 16-bit codes": _outer(Op.MUL, INT16, 64, MulOptions()),
    "SQUARED_DIFFERENCE of 8-bit codes": _outer(Op.SQUARED_DIFFERENCE, INT8, 64),
    "FLOOR_DIV of bytes": _outer(Op.FLOOR_DIV, INT8, 64),
    "RIGHT_SHIFT": _outer(Op.RIGHT_SHIFT, INT16, 64),
    "DIV of integers": _outer(Op.DIV, INT32, 40, DivOptions()),
    "POW of integers": _outer(Op.POW, INT32, 40),
    # One element has no neighbours, whatever its dilation is.
    "DILATE of ones": one_op_model(
        Op.DILATE,
        [T((1, 1, 2, 3, 4), INT16), _steps(999, 499, 2, 7, 2), PADDING],
        [T((1, 1, 3, 15, 7), INT16)],
    ),
    "DILATE of twos": one_op_model(
        Op.DILATE,
        [T((2,) * 7, INT16), _steps(*[8] * 7), PADDING],
        [T((9,) * 7, INT16)],
    ),
    **{
        op.name: one_op_model(
            op,
            [T((1 << 20, 5, 7, 1), INT32), _steps(1, 2)],
            [T((1 << 20, 1), INT32)],
            ReducerOptions(),
        )
        for op in (Op.MEAN, Op.SUM, Op.REDUCE_PROD)
    },
    "RESIZE_BILINEAR": one_op_model(
        Op.RESIZE_BILINEAR,
        [T((1, 1, 30_000, 1), INT16, scale=0.1), _steps(30_000, 1)],
        [T((1, 30_000, 1, 1), INT16, scale=0.1)],
        ResizeBilinearOptions(),
    ),
    **{
        f"CAST to {type.name}": one_op_model(
            Op.CAST, [T((1 << 23, 2))], [T((1 << 23, 2), type)], CastOptions()
        )
        for type in (INT32, TensorType.UINT8)
    },
}


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in this way on Linux alone")
@pytest.mark.parametrize("name", MODELS)
def test_it_is_bounded(name: str, tmp_path: Path) -> None:
    """Each took up to 3 GB."""
    file = tmp_path / "model.tflite"
    file.write_bytes(MODELS[name])
    command = [sys.executable, "-c", PEAK, str(file)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=300)
    assert int(done.stdout) < 128 << 10


@pytest.mark.parametrize("shapes", [((300, 1, 1, 5), (7, 70, 1)), ((1 << 17,), ()), ((0, 3), (3,))])
def test_parts_make_up_the_whole(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    first, second = (np.random.default_rng(0).integers(-9, 9, shape) for shape in shapes)
    parts = in_parts(np.subtract, first, second, dtype=np.int16)
    assert parts.dtype == np.int16
    np.testing.assert_array_equal(parts, first - second)


@pytest.mark.parametrize("type", [INT32, TensorType.FLOAT32], ids=lambda type: type.name)
@pytest.mark.parametrize(
    "op",
    [Op.MEAN, Op.REVERSE_V2, Op.PAD, Op.ONE_HOT, Op.UNSORTED_SEGMENT_SUM, Op.SPLIT_V],
    ids=lambda op: op.name,
)
def test_a_list_of_millions_is_refused_before_it_is_read(op: Op, type: TensorType) -> None:
    """Each took up to 3.8 GB when it ran, most before its error."""
    content, _ = sample(op, next(iter(types(op))))
    model = read_model(content)
    (graph,) = model.subgraphs
    place = INPUTS[op].lists[0]
    index = graph.operators[0].inputs[place]
    tensors = list(graph.tensors)
    tensors[index] = replace(tensors[index], shape=(1 << 12, 1 << 13), type=type, buffer=0)
    graph = replace(graph, tensors=tuple(tensors), inputs=(*graph.inputs, index))
    interpreter = Interpreter(model_content=write_model(replace(model, subgraphs=(graph,))))
    with pytest.raises(
        AllocationError, match=r"lists 33554432 numbers, at most 128|FLOAT32 is not"
    ):
        interpreter.allocate_tensors()


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in this way on Linux alone")
def test_a_network_keeps_the_memory_of_one_run(tmp_path: Path) -> None:
    """Its first run takes memory tensor by tensor, the next in one piece; only one is kept."""
    size, ops = 1 << 21, (Op.SIN, Op.COS, Op.EXP, Op.SQRT, Op.LOG, Op.TANH)
    tensors = {op.name: T((1, size)) for op in ops}
    nodes = [Node(op, ["x"], [op.name]) for op in ops]
    joined = Node(Op.CONCATENATION, list(tensors), ["all"], ConcatenationOptions(axis=1))
    mean = Node(Op.MEAN, ["all", "axis"], ["y"], ReducerOptions())
    rest = {"x": T((1, size)), "all": T((1, size * len(ops))), "axis": _steps(1), "y": T((1,))}
    path = tmp_path / "wide.tflite"
    path.write_bytes(model_of(Sub({**tensors, **rest}, [*nodes, joined, mean], ["x"], ["y"])))
    taken = _taken(path)
    needed = 2 * size * len(ops) * 4 // 1024
    assert needed * 0.9 < taken[1] < needed * 1.3, taken
    assert taken[2] <= taken[1] * 1.05, taken


def test_the_first_run_of_a_session_alone_gives_memory_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original, given = PlainSession.run_with_iobinding, []

    def noted(self: PlainSession, bound: Any, options: Any) -> None:
        given.append(options is session._FIRST_RUN_OPTIONS)
        original(self, bound, options)

    monkeypatch.setattr(PlainSession, "run_with_iobinding", noted)
    size = (1 << 20,)
    steps = [Node(Op.NEG, ["x"], ["y"]), Node(Op.NEG, ["y"], ["z"])]
    model = model_of(Sub({name: T(size) for name in "xyz"}, steps, ["x"], ["z"]))
    both = [Interpreter(model_content=model) for _ in range(2)]  # which share a session
    for interpreter in both:
        interpreter.allocate_tensors()
    given.clear()  # of what the library tries once in a process
    for interpreter in both:
        interpreter.invoke()
        interpreter.invoke()
    assert given == [True, False, False, False]


def _taken(path: Path) -> list[int]:
    """Kilobytes, as `TAKEN` prints them."""
    done = subprocess.run(
        [sys.executable, "-c", TAKEN, path], capture_output=True, text=True, check=True
    )
    return [int(line) for line in done.stdout.split()]

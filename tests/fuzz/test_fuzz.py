"""The fuzzer: a number is a file, its processes outlive files, nothing that it found is back."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import lines, tree_sparsity
from tests.fuzz.compare import difference
from tests.fuzz.corpus import MOST_DECLARED, Corpus, fixed_corpus, small_corpus
from tests.fuzz.describe import operators, plain
from tests.fuzz.litert import LiteRT, Question
from tests.fuzz.mutate import CHANGES, GRAFTS, mutant
from tests.fuzz.regressions import FOLDER, known
from tests.fuzz.tree import Unfit, data_of, with_data
from tests.one_op import Node, T, one_op_model
from tests.subgraph_models import Sub, model_of
from tflite_ort.schema import (
    AddOptions,
    Conv2DOptions,
    FillOptions,
    Model,
    Op,
    TensorType,
    WhileOptions,
    read_model,
    write_model,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import densify

pytestmark = pytest.mark.usefixtures("unmeasured")

ROOT = Path(__file__).parents[2]


def fuzz(*arguments: str) -> str:
    """What ``python -m tests.fuzz`` prints; it finds no fault."""
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return small_corpus()


def test_a_number_names_a_file(corpus: Corpus) -> None:
    again = small_corpus()
    assert corpus.digest == again.digest
    for number in range(200):
        assert mutant(corpus, "x", number) == mutant(again, "x", number)
    assert mutant(corpus, "x", 0).content != mutant(corpus, "y", 0).content


def test_the_fixed_seeds_have_every_operator_of_the_small_ones(corpus: Corpus) -> None:
    seeds = fixed_corpus()
    assert fixed_corpus().digest == seeds.digest
    kinds = {operators(seed.content) for seed in seeds.seeds}
    ones = {operators(s.content) for s in corpus.seeds if len(s.model.subgraphs[0].operators) == 1}
    assert ones <= kinds


def test_models_of_giant_tensors_are_no_seeds() -> None:
    """Small files can declare gigabytes; what is made of those takes too much."""
    most = MOST_DECLARED // 2
    fitting, beyond, far = (
        one_op_model(Op.NEG, [T((size,), TensorType.INT8)], [T((size,), TensorType.INT8)])
        for size in (most, most + 1, 1 << 30)
    )
    assert len(far) < 1000
    assert [seed.content for seed in Corpus([far, fitting, beyond]).seeds] == [fitting]


@pytest.mark.parametrize("change", [*CHANGES, *GRAFTS], ids=lambda change: change.__name__)
def test_every_change_is_one(change: Callable[..., Model], corpus: Corpus) -> None:
    """It finds something to change in one of the seeds, and the result can be written."""
    draw = random.Random(0)
    for _ in range(400):
        model = draw.choice(corpus.seeds).model
        donors = (draw.choice(corpus.seeds).model,) if change in GRAFTS else ()
        try:
            if write_model(change(draw, model, *donors)) != write_model(model):
                return
        except (Unfit, ValueError, TypeError):
            continue
    pytest.fail("it never changed anything")


def test_a_sparse_constant_has_the_values_of_the_dense_one() -> None:
    draw, weights = random.Random(0), np.arange(1, 25, dtype=np.int8).reshape(2, 3, 4)
    content = one_op_model(Op.NEG, [T.constant(weights)], [T((2, 3, 4))])
    for _ in range(20):
        model = tree_sparsity.sparse(draw, read_model(content))
        tensor = model.subgraphs[0].tensors[0]
        data = model.buffers[tensor.buffer].data
        assert tensor.sparsity is not None and data is not None
        values = np.frombuffer(data.tobytes(), NUMPY_DTYPE[tensor.type])
        dense = densify(values, tensor.shape, tensor.sparsity)
        assert np.isin(dense - weights, [0, *-weights.reshape(-1)]).all()
        assert 0 < np.count_nonzero(dense == weights) < weights.size


def test_differences_have_kinds() -> None:
    one = np.ones(3, np.float32)
    assert difference([one], [one * (1 + 1e-6)], [False]) == ""
    assert difference([one], [one * (1 + 5e-4)], [False]) == "1e-4"
    assert difference([one], [one * np.nan], [False]) == "nan"
    assert difference([one], [one[:2]], [False]) == "shape"
    codes = np.array([1, 2, 3], np.int8)
    assert difference([codes], [codes + np.int8(1)], [True]) == ""
    assert difference([codes], [codes + np.int8(1)], [False]) == "integers"
    assert difference([codes], [codes + np.int8(2)], [True]) == "2 quanta"


def test_a_file_may_differ_for_two_reasons_which_are_named(tmp_path: Path) -> None:
    """LiteRT reads weights of 16 bits as bytes, and a bias of 32 bits as one of 64."""
    i16, rng = TensorType.INT16, np.random.default_rng(0)
    weights = T.constant(rng.integers(0, 256, (2, 1, 1, 3)).astype(np.int16), scale=0.01)
    bias = T.constant(np.array([900, -700], np.int32), scale=0.001)
    inputs, outputs = (
        [T((1, 3, 3, 3), i16, scale=0.1), weights, bias],
        [T((1, 3, 3, 2), i16, scale=1)],
    )
    options = Conv2DOptions(stride_h=1, stride_w=1)
    file = tmp_path / "both.tflite"
    file.write_bytes(one_op_model(Op.CONV_2D, inputs, outputs, options))
    assert fuzz("--judge", str(file)).splitlines() == [
        f"{file}: explained: weights of 2, 4 and 16 bits with activations of 16 + "
        "biases of another type than an option says | CONV_2D"
    ]


def test_what_one_side_refuses_is_sorted_by_what_it_says() -> None:
    names = [name for rows in (lines.REFUSED_HERE, lines.REFUSED_THERE) for name, *_ in rows]
    assert len(names) == len(set(names)) and lines.UNSORTED not in names
    for error, kind in (
        (
            "AllocationError: operator 3: tensor 5 has a value before it is computed",
            "a result that",
        ),
        ("KernelError: GELU_0 failed to invoke: tensor 'x' is not quantized by a single", "codes"),
        ("MalformedModel: no valid buffer: group 7, and there are 0 at", "damage in a part"),
        ("OddError: a word that nobody has heard", lines.UNSORTED),
    ):
        assert lines.sorted_by(lines.REFUSED_HERE, error).startswith(kind)


HOSTILE = """
import os, signal, sys
from tests.fuzz.mutate import Mutant
from tests.fuzz.pool import judge_all
from tests.ops.test_control_flow import MODELS

def make(number):
    if number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 3:
        raise ValueError("a file that the fuzzer itself cannot judge")
    content = open(sys.argv[1], "rb").read() if number == 2 else MODELS["if"][0]
    return Mutant(number, content, 5)

judge_all(make, iter(range(5)), lambda each: print(each.number, each.stage), patience=(1, 2))
"""


def endless() -> bytes:
    """A loop whose condition is always true."""
    count, flag = T((), TensorType.INT32), T((), TensorType.BOOL)
    loop = Node(Op.WHILE, ["i"], ["o"], WhileOptions(1, 2))
    return model_of(
        Sub({"i": count, "o": count}, [loop], ["i"], ["o"]),
        Sub({"i": count, "t": flag}, [Node(Op.EQUAL, ["i", "i"], ["t"])], ["i"], ["t"]),
        Sub({"i": count, "o": count}, [Node(Op.NEG, ["i"], ["o"])], ["i"], ["o"]),
    )


def test_a_process_that_ends_in_a_file_is_recorded_and_replaced(tmp_path: Path) -> None:
    """A crash, a loop that LiteRT does not leave either and a fault of the fuzzer, among files that
    run."""
    loop = tmp_path / "endless.tflite"
    loop.write_bytes(endless())
    command = [sys.executable, "-c", HOSTILE, str(loop)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    told = ["0 done", "1 death", "2 loop", "3 fault of the fuzzer", "4 done"]
    assert done.stdout.splitlines() == told


COUNTED = """
import sys
from tests.fuzz.litert import Answer
from tests.fuzz.mutate import Mutant
from tests.fuzz.pool import Slot

class Refusing:
    def ask(self, question):
        return Answer("read", "it is damaged")

for name in sys.argv[1:]:
    slot = Slot(lambda number: Mutant(number, open(name, "rb").read(), 5), False, (2, 4))
    slot.litert = Refusing()
    print(slot._is_loop(0))
"""


def counted(forever: bool) -> bytes:
    """A loop from an input to another one, or for ever."""
    count, flag, one = T((), TensorType.INT32), T((), TensorType.BOOL), T.constant(np.int32(1))
    loop = Node(Op.WHILE, ["i", "n"], ["o", "m"], WhileOptions(1, 2))
    step = Node(Op.ADD, ["i", "one"], ["o"], AddOptions())
    far = Node(Op.LESS_EQUAL if forever else Op.LESS, ["n" if forever else "i", "n"], ["t"])
    both = {"i": count, "n": count}
    return model_of(
        Sub({**both, "o": count, "m": count}, [loop], ["i", "n"], ["o", "m"]),
        Sub({**both, "t": flag}, [far], ["i", "n"], ["t"]),
        Sub({**both, "one": one, "o": count}, [step], ["i", "n"], ["o", "n"]),
    )


def test_a_loop_that_its_inputs_ask_for_is_no_hang(tmp_path: Path) -> None:
    """LiteRT may not tell: it refuses a file that runs here."""
    files = [tmp_path / "fed.tflite", tmp_path / "endless.tflite"]
    for file, forever in zip(files, (False, True), strict=True):
        file.write_bytes(counted(forever))
    command = [sys.executable, "-c", COUNTED, *map(str, files)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_constants_that_called_subgraphs_are_given_are_taken_out() -> None:
    """LiteRT writes what they are given over the data, which other tensors may have too."""
    model = read_model(endless())
    (number,) = model.subgraphs[1].inputs
    given = with_data(model, 1, number, np.int32(7).tobytes())
    repaired = plain(write_model(given))
    assert repaired is not None and plain(write_model(model)) is None
    graph = read_model(repaired).subgraphs[1]
    assert data_of(given, given.subgraphs[1].tensors[number]) is not None
    assert data_of(read_model(repaired), graph.tensors[number]) is None


def test_results_that_the_asking_process_has_no_room_for() -> None:
    """They are not sent: a process that judges files has 4 GiB."""
    dims, value = T.constant(np.int32([1 << 28, 2])), T.constant(np.int8(1))
    content = one_op_model(Op.FILL, [dims, value], [T((1, 1), TensorType.INT8)], FillOptions())
    litert = LiteRT()
    stages = [litert.ask(Question(each, 0)).stage for each in (content, small_fill())]
    litert.close()
    assert stages == ["too large", "done"]


def small_fill() -> bytes:
    dims, value = T.constant(np.int32([2, 2])), T.constant(np.int8(1))
    return one_op_model(Op.FILL, [dims, value], [T((2, 2), TensorType.INT8)], FillOptions())


# A process that serves LiteRT, and what asks it; the model of a file is the first argument.
SERVED = """
import os, signal, socket, sys, time
from multiprocessing.connection import Connection
from pathlib import Path
from tests.fuzz import litert_process
from tests.fuzz.litert import Question

def served():
    mine, theirs = socket.socketpair()
    if not (server := os.fork()):
        mine.close()
        litert_process._serve(theirs.detach())
        os._exit(0)
    theirs.close()
    return Connection(mine.detach()), server, Path(f"/proc/{server}/task/{server}/children")
"""
RENEWED = """
litert_process._MOST_HELD, seen = int(sys.argv[2]), set()
connection, server, children = served()
for _ in range(3):
    connection.send(Question(Path(sys.argv[1]).read_bytes(), 0))
    assert connection.recv().stage == "done"
    seen |= {*children.read_text().split()}
connection.close()
os.waitpid(server, 0)
print(len(seen) > 1)
"""


@pytest.mark.parametrize("most", [0, 1 << 34])
def test_a_process_that_holds_much_gives_way_to_another(most: int, tmp_path: Path) -> None:
    file = tmp_path / "fill.tflite"
    file.write_bytes(small_fill())
    command = [sys.executable, "-c", SERVED + RENEWED, str(file), str(most)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(not most)]


STEPS = """
(connection, server, children), stages = served(), []
for content in (Path(sys.argv[1]).read_bytes(), b"no model", b"neither"):
    connection.send(Question(content, 0))
    stages.append(connection.recv().stage)
    if len(stages) == 1:
        child = children.read_text().strip()
        while "S (sleeping)" not in Path(f"/proc/{child}/status").read_text():
            time.sleep(0.01)
        os.kill(int(child), signal.SIGSEGV)
        while "Z (zombie)" not in Path(f"/proc/{child}/status").read_text():
            time.sleep(0.01)
connection.close()
os.waitpid(server, 0)
print(*stages)
"""


def test_a_process_that_dies_between_questions_answers_none(tmp_path: Path) -> None:
    """A file that LiteRT has run can leave memory behind that ends the process later."""
    file = tmp_path / "fill.tflite"
    file.write_bytes(small_fill())
    command = [sys.executable, "-c", SERVED + STEPS, str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["done", "read", "read"]


def test_nothing_that_was_found_is_back() -> None:
    fuzz("--regressions")
    assert {row.file for row in known()} == {path.name for path in FOLDER.glob("*.tflite")}
    assert all(len(row.content) < 1 << 15 and row.was for row in known())


def test_a_short_run_finds_no_fault(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    thorough = request.config.getoption("--thorough")
    salt = str(random.randrange(2**32)) if thorough else "suite"
    seconds = "300" if thorough else "20"
    arguments = ("--fixed", "--salt", salt, "--seconds", seconds, "--keep", str(tmp_path))
    print(fuzz(*arguments, "--count", "100000" if thorough else "400"))
    (file,) = tmp_path.glob("report-*.json")
    report = json.loads(file.read_text())
    assert report["files"] > 0 and report["stages"]["done"] > 0
    assert report["litert"]["done"] > 0

"""Bundles: what is in them, models that run out of them, and bundles that lie."""

from __future__ import annotations

import io
import json
import os
import random
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.made_bundles import (
    EVERY,
    LITERTLM,
    NESTED,
    ONE,
    PACKED,
    TASK,
    TWO,
    WITH_FILES,
    litertlm,
    task,
)
from tflite_ort import (
    BridgeError,
    BudgetExceeded,
    Budgets,
    ExportError,
    Interpreter,
    MalformedBundle,
    MalformedModel,
    MissingEntry,
    export_onnx,
    open_bundle,
)
from tflite_ort.bundles.litertlm import Header, SectionMetadata, SectionObject
from tflite_ort.command.cli import app
from tflite_ort.export.bundle import export_bundle
from tflite_ort.metadata import associated_files
from tflite_ort.schema import UnsupportedSchema
from tflite_ort.schema.file.write import write_table

MUTATIONS = 200
MOST_BYTES = 4 << 20


def added(**source: object) -> float:
    """What a model of `adding` adds."""
    interpreter = Interpreter(**source)  # type: ignore[arg-type]
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.zeros(2, np.float32))
    interpreter.invoke()
    return float(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])


def names(content: bytes) -> list[str]:
    return [entry.name for entry in open_bundle(content).entries]


def test_a_task_and_its_models() -> None:
    bundle = open_bundle(TASK)
    assert bundle.kind == "task"
    assert [entry.name for entry in bundle.models] == ["a_detector.tflite", "b_landmarks.tflite"]
    assert bundle.text("notes.txt") == "text"
    assert added(model_content=TASK, model="a_detector") == 1
    assert added(model_content=TASK, model="b_landmarks.tflite") == 2
    assert bundle.model("a_detector").subgraphs[0].operators


def test_stored_entries_are_views_of_the_file() -> None:
    bundle = open_bundle(TASK)
    whole = np.frombuffer(TASK, np.uint8).ctypes.data
    content = np.frombuffer(bundle.content("a_detector.tflite"), np.uint8)
    assert whole < content.ctypes.data < whole + len(TASK)
    assert content.tobytes() == ONE


def test_bundles_in_a_bundle() -> None:
    assert names(NESTED) == [
        "inner.task",
        "inner.task/a_detector.tflite",
        "inner.task/b_landmarks.tflite",
        "inner.task/notes.txt",
        "packed.task",
        "packed.task/a_detector.tflite",
        "packed.task/b_landmarks.tflite",
        "packed.task/zeros",
        "main.tflite",
    ]
    assert added(model_content=NESTED, model="packed.task/b_landmarks.tflite") == 2
    with pytest.raises(MissingEntry, match="has 2 entries called 'a_detector'"):
        open_bundle(NESTED).model("a_detector")
    interpreter = Interpreter(model_content=NESTED, model="main")
    assert interpreter.metadata.files == {"l.txt": b"x"}


def test_files_behind_a_model() -> None:
    bundle = open_bundle(WITH_FILES)
    assert bundle.kind == "tflite"
    assert [(e.name, e.kind) for e in bundle.entries] == [
        ("model.tflite", "model"),
        ("labels.txt", "file"),
    ]
    assert bundle.text("labels.txt") == "cat\ndog"
    assert names(ONE) == ["model.tflite"]


def test_sections() -> None:
    bundle = open_bundle(LITERTLM)
    assert bundle.kind == "litertlm"
    assert bundle.properties == {"Authors": "tests"}
    assert [(entry.name, entry.kind) for entry in bundle.entries] == [
        ("llmmetadataproto", "LlmMetadataProto"),
        ("sp_tokenizer", "SP_Tokenizer"),
        ("prefill_decode.tflite", "model"),
        ("embedder.tflite", "model"),
        ("prefill_decode.tfliteweights", "TFLiteWeights"),
    ]
    assert bundle.text("sp_tokenizer") == "tokens"
    assert bundle.models[0].properties["backend_constraint"] == "cpu"
    assert added(model_content=LITERTLM, model="embedder") == 2


def test_a_bundle_of_one_model_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "one.task"
    path.write_bytes(task({"only.tflite": TWO}))
    assert added(model_path=path) == 2
    assert len(export_onnx(path).graph.node) == 1
    with pytest.raises(
        MissingEntry, match="has 2 models; name one with model=; there are 'a_detector"
    ):
        Interpreter(model_content=TASK)
    with pytest.raises(MissingEntry, match="has no entry called 'c'; there are 'a_detector"):
        Interpreter(model_content=TASK, model="c")


def test_sections_of_the_same_kind_are_numbered() -> None:
    twice = litertlm([(3, ONE, {}), (3, TWO, {}), (99, b"?", {})])
    assert names(twice) == ["tflitemodel_0.tflite", "tflitemodel_1.tflite", "section_type_99"]


def test_many_sections_of_the_same_kind() -> None:
    """Time grows with their number: with its square, these would take minutes."""
    count = 60_000
    sections = SectionMetadata(tuple(SectionObject((), 0, 0, 99) for _ in range(count)))
    header = write_table(Header(None, sections), b"LTLM")
    start = LITERTLM[:24] + struct.pack("<Q", 32 + len(header))
    began = time.process_time()
    assert names(start + header)[-1] == f"section_type_99_{count - 1}"
    assert time.process_time() - began < 30


def test_what_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(MalformedBundle, match="begins neither"):
        open_bundle(b"not a bundle at all")
    with pytest.raises(BridgeError, match="Could not open"):
        open_bundle(tmp_path / "absent.task")
    with pytest.raises(UnsupportedSchema, match=r"version 2\.5\.0"):
        open_bundle(LITERTLM.replace(b"LITERTLM\1", b"LITERTLM\2"))


@pytest.mark.parametrize(
    "name",
    ["../x", "/x", "a/../../x", "a//b", "C:x", "a\\b", "x\n", "a/./b", "x.", "n" * 300, "a\u202eb"],
)
def test_names_that_lead_elsewhere(name: str) -> None:
    with pytest.raises(MalformedBundle, match="entry name"):
        open_bundle(task({name: b"x"}))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_are_one() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a.txt", b"1")
        archive.writestr("A.TXT", b"2")
    with pytest.raises(MalformedBundle, match="two entries are called"):
        open_bundle(stream.getvalue())
    with pytest.raises(MalformedBundle, match="is a file and a folder"):
        open_bundle(task({"a": b"", "a.b": b"", "a/b": b""}))


def test_names_in_many_folders() -> None:
    """Each folder of a name took memory, so that 64 KB of them took 600 MB."""
    longest = "/".join("a" * 64)
    assert open_bundle(task({longest: b"x"})).content(longest) == b"x"
    deep = task({"/".join("a" * 32_000): b"x"})
    tracemalloc.start()
    with pytest.raises(MalformedBundle, match="more than 63 folders"):
        open_bundle(deep)
    assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    tracemalloc.stop()


def test_a_bomb_is_not_unpacked() -> None:
    bomb = task({"zeros": bytes(50 << 20), "model.tflite": ONE}, packed=True)
    tracemalloc.start()
    with pytest.raises(BudgetExceeded, match="bundle bytes"):
        open_bundle(bomb, budgets=Budgets(bundle_bytes=1 << 20))
    assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    tracemalloc.stop()
    assert open_bundle(bomb).entry("zeros").size == 50 << 20


def test_bombs_in_bombs_count_together() -> None:
    inner = task({"zeros": bytes(600_000)}, packed=True)
    outer = task({"a.task": inner, "b.task": inner})
    assert len(open_bundle(outer, budgets=Budgets(bundle_bytes=1_200_000)).entries) == 4
    with pytest.raises(BudgetExceeded):
        open_bundle(outer, budgets=Budgets(bundle_bytes=1_000_000))


def test_bundles_nested_without_end() -> None:
    content = TASK
    for _ in range(20):
        content = task({"x.task": content})
    assert max(entry.name.count("/") for entry in open_bundle(content).entries) == 3


def changed(content: bytes, at: int, form: str, value: int) -> bytes:
    changed = bytearray(content)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


def record(content: bytes, number: int = 0) -> int:
    """Where a record of the directory is."""
    at = -1
    for _ in range(number + 1):
        at = content.index(b"PK\1\2", at + 1)
    return at


LIES: dict[str, tuple[Callable[[], bytes], str]] = {
    "larger than it says": (
        lambda: changed(PACKED, record(PACKED, 2) + 24, "<L", 500),
        "has more bytes, not 500",
    ),
    "smaller than it says": (
        lambda: changed(PACKED, record(PACKED, 2) + 24, "<L", 1001),
        "has 1000 bytes, not 1001",
    ),
    "another checksum": (
        lambda: changed(PACKED, record(PACKED, 2) + 16, "<L", 1),
        "checksum",
    ),
    "another method": (lambda: changed(TASK, record(TASK) + 10, "<H", 12), "method 12"),
    "encrypted": (lambda: changed(TASK, record(TASK) + 8, "<H", 1), "encrypted"),
    "a link": (lambda: changed(TASK, record(TASK) + 38, "<L", 0o120777 << 16), "is a link"),
    "two at one place": (
        lambda: changed(
            changed(TASK, record(TASK, 1) + 42, "<L", 0), record(TASK, 1) + 46, "<B", ord("a")
        ),
        "contradicts its record",
    ),
    "past the end": (lambda: changed(TASK, record(TASK) + 42, "<L", 1 << 30), "past the files"),
    "sizes of stored bytes": (lambda: changed(TASK, record(TASK) + 20, "<L", 5), "is stored in 5"),
    "more records": (
        lambda: changed(TASK, len(TASK) - 14, "<L", 0x40004),
        "directory of|ends|no record",
    ),
    "cut short": (lambda: TASK[:-1], "no end"),
}


@pytest.mark.parametrize("lie", LIES)
def test_archives_that_lie(lie: str) -> None:
    content, message = LIES[lie]
    with pytest.raises(MalformedBundle, match=message):
        bundle = open_bundle(content())
        for entry in bundle.entries:
            bundle.content(entry.name)


def test_entries_that_overlap() -> None:
    inner = task({"a.txt": b"1" * 40, "b.txt": b"2" * 40})
    # The first one is made to reach over the header of the second one.
    longer = inner
    for at in (record(inner) + 20, record(inner) + 24):
        longer = changed(longer, at, "<L", 60)
    with pytest.raises(MalformedBundle, match="overlaps"):
        open_bundle(longer)


def test_sections_that_overlap_and_that_leave_the_file() -> None:
    def moved(begin: int, end: int) -> bytes:
        good = litertlm([(1, b"x" * 100, {}), (1, b"y" * 100, {})])
        old = struct.pack("<Q", 32768), struct.pack("<Q", 32868)
        return good.replace(old[0], struct.pack("<Q", begin)).replace(
            old[1], struct.pack("<Q", end)
        )

    assert len(open_bundle(moved(32768, 32868)).entries) == 2
    for begin, end in ((16400, 16500), (8, 100)):
        with pytest.raises(MalformedBundle, match="overlaps"):
            open_bundle(moved(begin, end))
    for begin, end in ((32768, 1 << 40), (40000, 32868), (1 << 63, (1 << 64) - 1)):
        with pytest.raises(MalformedBundle, match="leaves the file"):
            open_bundle(moved(begin, end))


def test_files_behind_a_model_that_would_begin_before_it(tmp_path: Path) -> None:
    content = changed(WITH_FILES, len(WITH_FILES) - 6, "<L", 500_000_000)
    path = tmp_path / "m.tflite"
    path.write_bytes(content)
    with pytest.raises(MalformedBundle, match="directory of"):
        open_bundle(content)
    for source in (content, path):
        with pytest.raises(MalformedModel, match="associated files cannot be read"):
            associated_files(source)


def test_zip_with_64_bit_sizes() -> None:
    stream = io.BytesIO()
    with (
        zipfile.ZipFile(stream, "w") as archive,
        archive.open("a.tflite", "w", force_zip64=True) as f,
    ):
        f.write(ONE)
    assert added(model_content=stream.getvalue()) == 1


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, mostly in what describes the entries; or cut, or doubled."""
    changed = bytearray(content)
    marks = [at for mark in (b"PK", b"LITERTLM") for at in _all(content, mark)]
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(changed))
        if rng.random() < 0.8:
            at = min(rng.choice(marks) + rng.randrange(400), len(changed) - 1)
        size = min(rng.choice([1, 2, 4, 8]), len(changed) - at)
        number = rng.choice([0, 1, 0x7F, 0xFF, len(content), rng.getrandbits(8 * size)])
        changed[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
    if rng.random() < 0.1:
        del changed[rng.randrange(len(changed)) :]
    if rng.random() < 0.1:
        changed += changed[rng.randrange(len(changed)) :]
    return bytes(changed)


def _all(content: bytes, mark: bytes) -> list[int]:
    found, at = [], content.find(mark)
    while at >= 0:
        found.append(at)
        at = content.find(mark, at + 1)
    return found


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("kind", EVERY)
def test_mutated_bundles(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    thorough = request.config.getoption("--thorough")
    rng = random.Random(kind)
    out, budgets = tmp_path / "out", Budgets(bundle_bytes=1 << 20, metadata_bytes=1 << 20)
    opened = 0
    tracemalloc.start()
    for number in range(1000 if thorough else MUTATIONS):
        content = mutated(EVERY[kind], rng)
        try:
            bundle = open_bundle(content, budgets=budgets)
            for entry in bundle.entries:
                bundle.content(entry.name)
            opened += 1
            if thorough or number % 10 == 0:
                export_bundle(bundle, out, budgets=budgets)
        except (BridgeError, OSError):
            continue
        finally:
            assert tracemalloc.get_traced_memory()[1] < len(content) * 8 + MOST_BYTES, number
    tracemalloc.stop()
    assert opened, "no mutation was harmless: they test only the first check"
    assert {each.name for each in tmp_path.iterdir()} <= {"out"}


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "two.task"
    path.write_bytes(task({"a.tflite": ONE, "in.task": TASK, "notes.txt": b"n"}))
    run = CliRunner().invoke
    shown = run(app, ["inspect", str(path)]).output
    assert "in.task/b_landmarks.tflite" in shown
    assert "model a.tflite:" in shown
    one = run(app, ["inspect", str(path), "--model", "in.task/b_landmarks.tflite"])
    assert "ADD" in one.output, one.output
    result = run(app, ["export", str(path), str(tmp_path / "out"), "--check"])
    assert result.exit_code == 0, result.output
    index = json.loads((tmp_path / "out" / "bundle.json").read_text())
    assert [each["file"] for each in index["models"]] == [
        "a.onnx",
        "in.task.a_detector.onnx",
        "in.task.b_landmarks.onnx",
    ]
    assert index["models"][0]["inputs"] == [{"name": "x", "type": "float", "shape": [2]}]
    assert (tmp_path / "out" / "files" / "in.task" / "notes.txt").read_bytes() == b"text"


def test_models_that_cannot_be_exported_are_listed(tmp_path: Path) -> None:
    bundle = open_bundle(task({"good.tflite": ONE, "bad.tflite": ONE[:60]}))
    with pytest.raises(
        ExportError, match=r"1 of 2 models cannot be exported; all else is in .*:\n  bad\.tflite: "
    ):
        export_bundle(bundle, tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["bundle.json", "good.onnx"]

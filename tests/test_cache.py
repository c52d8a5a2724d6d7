"""The cache of compiled models: the same numbers, whatever is found there."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cached import ADD, KEYWORDS, assert_same, entries, is_hit, made
from tests.models import MODELS_DIR, model_path
from tests.one_op import Node, T, graph_model, one_op_model
from tflite_ort import BridgeError, CacheWarning, Interpreter, Registration, WellKnownOpResolver
from tflite_ort.cache import folder as folders
from tflite_ort.cache.folder import CacheFolder
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.schema import AddOptions, GatherOptions, Op, TensorType

# Enough for the suite; benchmarks/caching.py runs all.
SMALL = [path for path in sorted(MODELS_DIR.glob("*.tflite")) if path.stat().st_size <= 3 << 20]


def attempt(path: Path, cache: Path | bool) -> Any:
    """What `made` gives, or the error."""
    try:
        return made(Interpreter(path, cache=cache))
    except BridgeError as error:
        return [type(error).__name__, str(error)]


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_a_network_of_the_cache_gives_the_same(path: Path, tmp_path: Path) -> None:
    want = attempt(path, False)
    assert_same(attempt(path, tmp_path), want)
    assert_same(attempt(path, tmp_path), want)


def test_a_hit_translates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = model_path(KEYWORDS)
    want = made(Interpreter(path, cache=tmp_path))
    monkeypatch.setattr("tflite_ort.interpreter.executor.build", None)
    monkeypatch.setattr("tflite_ort.interpreter.loading.read", None)
    interpreter = Interpreter(path, cache=tmp_path)
    assert_same(made(interpreter), want)
    assert is_hit(interpreter)


@pytest.mark.parametrize(("most", "form"), [(64 << 20, "packed"), (-1, "mapped")])
def test_graphs_have_the_form_that_is_read_fast(
    most: int, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph with large weights by their bytes; one of a node alone is small."""
    monkeypatch.setattr("tflite_ort.providers.settings.MAPPED_BYTES", most)
    path = model_path(KEYWORDS)
    assert_same(made(Interpreter(path, cache=tmp_path)), made(Interpreter(path)))
    made(Interpreter(model_content=ADD, cache=tmp_path))
    found = []
    for given in ({"model_path": path}, {"model_content": ADD}):
        interpreter = Interpreter(**given, cache=tmp_path)
        assert is_hit(interpreter)
        entry = interpreter._shared.cache.find(0, {})
        found += [step["graph"][0] for step in entry.document.hot["plan"]["steps"]]
    assert found == [form, "small"]


def test_hits_of_one_entry_keep_what_is_their_own(tmp_path: Path) -> None:
    path = model_path("tflm__trained_lstm.tflite")
    want = made(Interpreter(path, cache=tmp_path))
    one, other = (Interpreter(path, cache=tmp_path) for _ in range(2))
    assert is_hit(one)
    assert is_hit(other)
    assert_same(made(one), want)
    assert one._shared.state.variables
    assert_same(made(other), want)  # and not what follows on the state of the first


def test_a_hit_tells_all_that_the_file_says(tmp_path: Path) -> None:
    path, tellings = model_path(KEYWORDS), []
    for cache in (False, tmp_path, tmp_path):
        interpreter = Interpreter(path, cache=cache)
        interpreter.allocate_tensors()
        placements = interpreter.delegation()
        names = [each.name for each in interpreter.metadata.inputs]
        details = interpreter.get_tensor_details()
        constants = [
            interpreter.get_tensor(each["index"])
            for each in interpreter.get_tensor_details()
            if "weights" in each["name"]
        ]
        tellings.append([placements, names, details, constants, interpreter._get_ops_details()])
    for telling in tellings[1:]:
        assert telling[0] == tellings[0][0]
        assert_same(telling[1:], tellings[0][1:])


def test_steps_of_kernels_come_from_the_cache_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_path("tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite")
    given = {"num_threads": 1, "providers": ["CPUExecutionProvider"]}
    delegates = [replace(each, max_versions={Op.LOGISTIC: 0}) for each in chosen(path, given)]
    given = {"num_threads": 1, "providers": delegates}
    want = made(Interpreter(path, cache=tmp_path, **given))
    monkeypatch.setattr("tflite_ort.interpreter.executor.build", None)
    monkeypatch.setattr("tflite_ort.interpreter.loading.read", None)
    interpreter = Interpreter(path, cache=tmp_path, **given)
    assert_same(made(interpreter), want)
    assert is_hit(interpreter)
    assert {row.runs_on for row in interpreter.delegation()} >= {"ort", "numpy"}


def chosen(path: Path, given: dict[str, Any]) -> list[Any]:
    return list(Interpreter(path, **given)._delegates)


def test_an_operator_that_fails_says_the_same(tmp_path: Path) -> None:
    model = one_op_model(
        Op.GATHER, [T((3,)), T((1,), TensorType.INT32)], [T((1,))], GatherOptions()
    )

    def message(cache: Path | bool) -> str:
        interpreter = Interpreter(model_content=model, cache=cache)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[1]["index"], np.int32([9]))
        with pytest.raises(BridgeError) as error:
            interpreter.invoke()
        return str(error.value)

    want = message(False)
    assert [message(tmp_path), message(tmp_path)] == [want, want]


def test_signatures_and_new_shapes_have_entries_of_their_own(tmp_path: Path) -> None:
    path = model_path("mediapipe__test_two_signature_keys_model.tflite")
    for _ in range(2):
        plain, cached = Interpreter(path), Interpreter(path, cache=tmp_path)
        for key, names in plain.get_signature_list().items():
            assert cached.get_signature_list()[key] == names
            for size in (2, 5):
                feeds = {name: np.arange(size, dtype=np.float32) for name in names["inputs"]}
                want = plain.get_signature_runner(key)(**feeds)
                assert_same(cached.get_signature_runner(key)(**feeds), want)
    assert len(entries(tmp_path)) >= 2


def test_a_resolver_of_the_library_is_known_again_after_its_use(tmp_path: Path) -> None:
    path, resolver = model_path(KEYWORDS), WellKnownOpResolver()
    interpreters = [Interpreter(path, cache=tmp_path, resolver=resolver) for _ in range(2)]
    for interpreter in interpreters:
        interpreter.allocate_tensors()
    again = Interpreter(path, cache=tmp_path, resolver=resolver)
    again.allocate_tensors()
    assert is_hit(again)


@pytest.mark.parametrize(
    "given",
    [
        {"num_threads": 2},
        {"experimental_preserve_all_tensors": True},
        {"hybrid": "dynamic"},
        {"strict": True},
        {"batch": 2},
        {"resolver": WellKnownOpResolver()},
        {"providers": []},
        {"providers": [("CPUExecutionProvider", {})] * 2},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_a_plan_depends_on_is_in_its_key(given: dict[str, Any], tmp_path: Path) -> None:
    path = model_path(KEYWORDS)
    Interpreter(path, cache=tmp_path).allocate_tensors()
    before = entries(tmp_path)
    assert_same(made(Interpreter(path, cache=tmp_path, **given)), made(Interpreter(path, **given)))
    assert len(entries(tmp_path)) == len(before) + 1


def test_another_model_is_another_entry(tmp_path: Path) -> None:
    for addend in (1.0, 2.0):
        tensors = {"x": T((2,)), "y": T((2,)), "k": T.constant(np.full(2, addend, np.float32))}
        model = graph_model(tensors, [Node(Op.ADD, ["x", "k"], ["y"], AddOptions())], ["y"])
        for _ in range(2):
            interpreter = Interpreter(model_content=model, cache=tmp_path)
            interpreter.allocate_tensors()
            interpreter.invoke()
            output = interpreter.get_output_details()[0]["index"]
            assert interpreter.get_tensor(output).tolist() == [addend, addend]
    assert len(entries(tmp_path)) == 2


def test_custom_code_is_never_cached(tmp_path: Path) -> None:
    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.ADD, Registration(function=lambda x, y: x * y))
    interpreter = Interpreter(model_content=ADD, cache=tmp_path, resolver=resolver)
    interpreter.allocate_tensors()
    assert entries(tmp_path) == []
    changed = BuiltinOpResolver()
    changed.translators.remove(Op.ADD, 1)
    Interpreter(model_content=ADD, cache=tmp_path, resolver=changed).allocate_tensors()
    assert entries(tmp_path) == []


def test_a_copy_is_a_hit(tmp_path: Path) -> None:
    first = Interpreter(model_content=ADD, cache=tmp_path)
    first.allocate_tensors()
    assert is_hit(first.copy())
    assert is_hit(pickle.loads(pickle.dumps(first)))


def test_a_folder_that_onnx_runtime_cannot_name_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "\udcff"
    with pytest.warns(CacheWarning, match=r"dcff' is no UTF-8"):
        assert made(Interpreter(model_content=ADD, cache=folder))
    assert not folder.exists()


def test_files_that_others_move_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = CacheFolder(str(tmp_path), lambda: 1 << 30)
    stage = folder.stage()
    files = [stage / name for name in "ab"]
    for file in files:
        file.write_bytes(b"1234")
    found = folders._plain_files

    def moved(path: str) -> list[os.DirEntry[str]]:
        entries = list(found(path))
        files[0].unlink(missing_ok=True)
        return entries

    monkeypatch.setattr(folders, "_plain_files", moved)
    assert folder.clear() == 4
    assert not list(tmp_path.iterdir())

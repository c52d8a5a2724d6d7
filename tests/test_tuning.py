"""Lowerings that are chosen by timing them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.one_op import T, one_op_model
from tests.rnn_models import Svdf
from tests.rules.test_pooled_columns import network
from tflite_ort import Interpreter
from tflite_ort.command.cli import app
from tflite_ort.schema import ActivationFunctionType as Act
from tflite_ort.schema import (
    CacheWarning,
    Conv2DOptions,
    ModelBuilder,
    Op,
    QuantizationParameters,
    SubgraphBuilder,
    TensorType,
)
from tflite_ort.tuning.tuner import Tuning

_affine = QuantizationParameters.affine


def image_model() -> bytes:
    """Two first layers of an image network, int8, of the same shape."""
    builder = ModelBuilder()
    add_layers(builder.subgraph("main"))
    return builder.write()


def add_layers(main: SubgraphBuilder) -> None:
    rng = np.random.default_rng(3)
    main.tensor("x", (1, 48, 64, 3), TensorType.INT8, _affine(0.02, 3))
    for name in ("a", "b"):
        codes = rng.integers(-127, 127, (8, 3, 3, 3), np.int8, endpoint=True)
        main.constant(f"{name}/w", codes, TensorType.INT8, _affine([0.01] * 8, [0] * 8, 0))
        main.tensor(name, (1, 24, 32, 8), TensorType.INT8, _affine(0.1, 0))
        options = Conv2DOptions(stride_w=2, stride_h=2)
        main.operator(Op.CONV_2D, ["x", f"{name}/w", None], [name], options, version=3)
    main.inputs("x").outputs("a", "b")


def tuned(model: bytes, file: Path, **more: Any) -> tuple[list[str], Interpreter]:
    """The layers that were timed, and the interpreter."""
    timed: list[str] = []
    interpreter = Interpreter(model_content=model, tune=Tuning(file, progress=timed.append, **more))
    interpreter.allocate_tensors()
    return timed, interpreter


def outputs(interpreter: Interpreter) -> list[np.ndarray[Any, Any]]:
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()[0]
    image = np.random.default_rng(0).integers(-128, 127, details["shape"], np.int8)
    interpreter.set_tensor(details["index"], image)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def chosen(file: Path) -> dict[str, str]:
    (layers,) = json.loads(file.read_text())["machines"].values()
    return dict(layers)


def test_equal_layers_are_timed_once_and_read_the_next_time(tmp_path: Path) -> None:
    model, file = image_model(), tmp_path / "folder" / "tuning.json"
    timed, first = tuned(model, file)
    assert timed == ["CONV_2D_0"]
    layers = chosen(file)
    assert len(layers) == 1
    assert next(iter(layers)).startswith("CONV_2D INT8[1x48x64x3] const INT8*[8x3x3x3] -")
    before = file.read_bytes()
    again, second = tuned(model, file)
    assert again == []
    assert file.read_bytes() == before
    plain = Interpreter(model_content=model)
    for one, two, three in zip(outputs(first), outputs(second), outputs(plain), strict=True):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(one, three)


def test_a_layer_and_its_maximum_are_timed_as_one(tmp_path: Path) -> None:
    """Beside the layer alone, for where the two stay apart; what the table says is taken."""
    model, file = network(size=(83, 85), channels=(3, 8)), tmp_path / "tuning.json"
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    _, first = tuned(model, file)
    found = chosen(file)
    (pair,) = (layer for layer in found if " + MAX_POOL_2D " in layer)
    again, _ = tuned(model, file)
    assert again == []
    text = json.loads(file.read_text())
    (table,) = text["machines"].values()
    graphs = []
    for name in ("windows", "pooled 8x1"):
        table[pair] = name
        table |= {layer: "windows" for layer in found if layer != pair}
        file.write_text(json.dumps(text))
        _, other = tuned(model, file)
        graphs.append(_graphs(path, file, "1"))
        np.testing.assert_array_equal(outputs(other)[0], outputs(first)[0])
    assert graphs[0] != graphs[1]


def test_two_processes_with_one_table_make_the_same_graphs(tmp_path: Path) -> None:
    """Byte for byte, though Python orders sets otherwise in each."""
    model, file = tmp_path / "model.tflite", tmp_path / "tuning.json"
    content, svdf = image_model(), Svdf(weights="integer", activation=Act.RELU, batch=1)
    layers = []
    for each in (content, svdf.model()):
        model.write_bytes(each)
        tuned(each, file)
        layers.append(len(chosen(file)))
        seen = [_graphs(model, file, seed) for seed in "123"]
        assert seen[0] == seen[1] == seen[2]
        assert seen[0]
    assert layers == [1, 2]
    before = _graphs(model, file, "1")
    text = json.loads(file.read_text())
    (table,) = text["machines"].values()
    table.update((layer, "rows") for layer in table if layer.startswith("SVDF"))
    file.write_text(json.dumps(text))
    assert _graphs(model, file, "1") != before


def _graphs(model: Path, file: Path, seed: str) -> list[str]:
    """The digests of the graphs that a new process hands to ONNX Runtime."""
    code = """if True:
        import hashlib, sys
        from tflite_ort import Interpreter
        from tflite_ort.providers import session, trials

        class Seen(session.PlainSession):
            def __init__(self, source, *rest):
                print(hashlib.sha256(source).hexdigest())
                super().__init__(source, *rest)

        trials.exact_weight_type(), trials.multiplies_in_pairs()
        session.PlainSession = Seen
        Interpreter(sys.argv[1], tune=sys.argv[2], cache=False).allocate_tensors()
    """
    made = subprocess.run(
        [sys.executable, "-c", code, str(model), str(file)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.split()


def test_another_number_of_threads_is_another_machine(tmp_path: Path) -> None:
    model, file = image_model(), tmp_path / "tuning.json"
    tuned(model, file)
    Interpreter(model_content=model, num_threads=2, tune=file).allocate_tensors()
    assert len(json.loads(file.read_text())["machines"]) == 2


def test_what_the_file_says_is_taken(tmp_path: Path) -> None:
    model, file = image_model(), tmp_path / "tuning.json"
    tuned(model, file)
    text = json.loads(file.read_text())
    (machine,) = text["machines"]
    expected = outputs(Interpreter(model_content=model))
    for name in ("windows", "columns 4x4", "no lowering"):
        for layer in text["machines"][machine]:
            text["machines"][machine][layer] = name
        file.write_text(json.dumps(text))
        timed, interpreter = tuned(model, file)
        # What no lowering is called is found anew.
        assert timed == (["CONV_2D_0"] if name == "no lowering" else [])
        assert "no lowering" not in chosen(file).values()
        for one, two in zip(outputs(interpreter), expected, strict=True):
            np.testing.assert_array_equal(one, two)


def test_without_time_the_model_decides_and_nothing_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "tuning.json"
    timed, _ = tuned(image_model(), file, seconds=0.0)
    assert timed == []
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 99}', '{"format": 1, "machines": 3}'])
def test_a_damaged_file_is_no_table(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tuning.json"
    file.write_text(text)
    if "machines" in text:
        timed, _ = tuned(image_model(), file)
    else:
        with pytest.warns(CacheWarning, match="tuning.json"):
            timed, _ = tuned(image_model(), file)
    assert timed == ["CONV_2D_0"]
    assert len(chosen(file)) == 1


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.warns(CacheWarning):
        timed, _ = tuned(image_model(), blocked / "tuning.json")
    assert timed == ["CONV_2D_0"]


def test_the_command(tmp_path: Path) -> None:
    model, file = tmp_path / "m.tflite", tmp_path / "tuning.json"
    model.write_bytes(image_model())
    for seconds, said in (
        (0, "0 layers timed in 0.0 s, 1 left for want of time (--seconds)\n"),
        (20, "1 layer timed in"),
        (20, "1 timed before; kept in"),
    ):
        asked = ["tune", str(model), "--out", str(file), "--seconds", str(seconds)]
        result = CliRunner().invoke(app, asked)
        assert result.exit_code == 0, result.output
        assert re.sub(r"\d\.\d s", "0.0 s", said) in re.sub(r"\d\.\d s", "0.0 s", result.output)
    lone = tmp_path / "lone.tflite"
    lone.write_bytes(one_op_model(Op.ABS, [T((4,))], [T((4,))]))
    result = CliRunner().invoke(app, ["tune", str(lone), "--out", str(file)])
    assert "lone.tflite: no layer has several lowerings" in result.output
    assert CliRunner().invoke(app, ["tune", str(tmp_path / "none.tflite")]).exit_code == 1


def test_the_command_times_the_layers_of_all_signatures(tmp_path: Path) -> None:
    builder = ModelBuilder()
    main = builder.subgraph("main").tensor("p", (4,)).tensor("q", (4,))
    main.operator(Op.ABS, ["p"], ["q"])
    main.inputs("p").outputs("q").signature("first")
    second = builder.subgraph("second")
    add_layers(second)
    second.signature("second")
    path, file = tmp_path / "m.tflite", tmp_path / "tuning.json"
    path.write_bytes(builder.write())
    result = CliRunner().invoke(app, ["tune", str(path), "--out", str(file)])
    assert "1 layer timed" in result.output
    timed: list[str] = []
    tuning = Tuning(file, progress=timed.append)
    interpreter = Interpreter(path, tune=tuning)
    interpreter.get_signature_runner("second")(x=np.zeros((1, 48, 64, 3), np.int8))
    assert not timed


def test_another_process_reads_the_results(tmp_path: Path) -> None:
    model, file = tmp_path / "m.tflite", tmp_path / "tuning.json"
    model.write_bytes(image_model())
    tuned(model.read_bytes(), file)
    program = (
        "import sys; from tflite_ort import Interpreter; "
        "from tflite_ort.tuning.tuner import Tuning; "
        "i = Interpreter(sys.argv[1], tune=Tuning(sys.argv[2], progress=print)); "
        "i.allocate_tensors(); print('ready')"
    )
    run = [sys.executable, "-c", program, str(model), str(file)]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "ready\n"


def test_the_verb_says_what_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(image_model())
    (tmp_path / "file").touch()
    monkeypatch.setenv("TFLITE_ORT_CACHE", str(tmp_path / "file"))
    run = [sys.executable, "-m", "tflite_ort", "tune", str(model)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "; not kept" in done.stdout
    assert "; kept" not in done.stdout

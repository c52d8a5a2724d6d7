"""Other packages add operators, decoders and traits: the package in examples, and broken ones."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.made_networks import network
from tests.one_op import Node, T, graph_model
from tests.pages.blocks import ROOT
from tests.test_cli import call
from tflite_ort import InstalledOpResolver, Interpreter, UnresolvedOperator
from tflite_ort.base import entry_points
from tflite_ort.providers import traits

PACKAGE = ROOT / "examples" / "package"


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    """What is known of installed packages is forgotten before and after."""
    entry_points.loaded.cache_clear()
    yield
    entry_points.loaded.cache_clear()


def install(folder: Path, name: str, points: str) -> None:
    """What an installer leaves of a package."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    told = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    groups = told["entry-points"].items()
    lines = [
        line
        for group, points in groups
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (tmp_path / "site").mkdir()
    install(tmp_path / "site", "tflite_ort_example", "\n".join(lines))
    monkeypatch.syspath_prepend(str(PACKAGE))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path


def doubling() -> bytes:
    tensor = T((3,))
    nodes = [Node("ExampleDouble", ["x"], ["y"])]
    return graph_model({"x": tensor, "y": tensor}, nodes, ["y"])


def test_an_operator_of_another_package(example: Path) -> None:
    with pytest.raises(UnresolvedOperator):
        Interpreter(model_content=doubling()).allocate_tensors()
    interpreter = Interpreter(model_content=doubling(), resolver=InstalledOpResolver())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.float32([1, 2, 3]))
    interpreter.invoke()
    found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(found, [2, 4, 6])
    assert not InstalledOpResolver(names=()).versions("ExampleDouble")
    path = example / "double.tflite"
    path.write_bytes(doubling())
    shown = call("run", path, "--resolver", "tflite_ort:InstalledOpResolver")
    assert shown.exit_code == 0, shown.output


def test_a_decoder_of_another_package(example: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (9, 9)).save(example / "p.png")
    model = example / "bright.tflite"
    model.write_bytes(network(16, [np.array([[0.0, np.log(3.0)]])]))
    for how in ((), ("--decode", "brightness")):
        shown = call("run", model, example / "p.png", *how).stdout.splitlines()
        assert shown[1].startswith("brightness (")
        assert shown[2:4] == ["class 1  75.0 %", "class 0  25.0 %"]


def test_traits_of_another_package(example: Path) -> None:
    assert traits.traits_of("ExampleExecutionProvider").host_memory
    assert traits.traits_of("OtherExecutionProvider") is traits.UNKNOWN


def test_a_broken_package_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "broken", "[tflite_ort.operators]\nlost = no_such_module_at_all:add\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.warns(UserWarning, match="broken cannot be used as 'lost'"):
        InstalledOpResolver()

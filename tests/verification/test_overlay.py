"""Overlays for Model Explorer, and the verb that opens it."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.models import model_path
from tests.verification.reports import HARM, hostile, plentiful
from tflite_ort import export_onnx
from tflite_ort.base.optional import optional_module
from tflite_ort.command import view as view_module
from tflite_ort.command.cli import app
from tflite_ort.schema import (
    AddOptions,
    BridgeError,
    Buffer,
    Conv2DOptions,
    ExternalBuffer,
    ExternalBufferGroup,
    Model,
    ModelBuilder,
    Op,
    Padding,
    SubGraph,
    Tensor,
    read_model,
    write_model,
)
from tflite_ort.verification import Random, Tolerance, html, verify
from tflite_ort.verification.html import to_html
from tflite_ort.verification.overlay import node_names, overlays, write_overlays


def read(report, nodes=()):
    result = report.runtimes[0]
    return {each.metric: json.loads(each.to_json()) for each in overlays(report, result, nodes)}


def values(record):
    return {key: each["value"] for key, each in record["results"].items()}


def test_a_metric_each():
    found = read(plentiful())
    assert values(found["isolated-quanta"]) == {"conv/out": 2.0}
    assert values(found["isolated-relative"]) == {"softmax/out": 0.25, "image": 1e300}
    assert values(found["accumulated-relative"]) == {"softmax/out": 0.25, "image": 1e300}
    assert values(found["time"]) == {"conv/out": 0.5, "softmax/out": 0.25, "image": 12.5}
    assert values(found["place"]) == {
        "conv/out": "ort",
        "softmax/out": "ort",
        "fused": "constant",
        "image": "numpy",
    }
    assert found["isolated-quanta"]["name"] == "interpreter: isolated error (quanta)"


def test_colours_tell_the_tolerance():
    report = dataclasses.replace(plentiful(), tolerance=Tolerance(relative=0.0, quanta=3))
    found = read(report)
    limits = [each["value"] for each in found["isolated-quanta"]["thresholds"]]
    assert limits == [0, 3, 30, 1e300]
    assert [each["value"] for each in found["isolated-relative"]["thresholds"]] == [0, 1e300]
    colours = {each["bgColor"] for each in found["place"]["results"].values()}
    assert len(colours) == 3


def test_nodes_of_an_export_are_keys():
    nodes = ["CONV_2D_0/Transpose", "CONV_2D_0/Conv", "boundary/Cast", "CONV_2D_00/Conv", "loose"]
    found = read(plentiful(), nodes)
    assert values(found["isolated-quanta"]) == {"conv/out": 2.0, "CONV_2D_0/Conv": 2.0}
    assert "CONV_2D_0/Transpose" not in values(found["time"])


def test_a_name_twice_has_the_worse_value():
    report = plentiful()
    result = report.runtimes[0]
    tensors = tuple(dataclasses.replace(each, name="same") for each in result.tensors)
    report = dataclasses.replace(report, runtimes=(dataclasses.replace(result, tensors=tensors),))
    assert values(read(report)["time"]) == {"same": 12.5}


def test_files_of_all_runtimes(tmp_path):
    report = plentiful()
    runtime = report.runtimes[0]
    names = ["../up/é.onnx", "é.onnx", "..", "interpreter"]
    runtimes = tuple(dataclasses.replace(runtime, runtime=name) for name in names)
    written = write_overlays(dataclasses.replace(report, runtimes=runtimes), tmp_path / "new")
    assert sorted(written) == sorted((tmp_path / "new").iterdir())
    assert len(set(written)) == 6 * len(names)
    assert all(json.loads(path.read_text())["results"] for path in written)
    assert tmp_path / "new" / "interpreter-time.json" in written


def test_hostile_names(tmp_path):
    written = write_overlays(hostile(), tmp_path)
    assert {path.parent for path in written} == {tmp_path}
    records = [json.loads(path.read_text()) for path in written]
    keys = {key for record in records for key in record["results"]}
    # An empty name fits no node, and Model Explorer reads the other as its own word.
    assert keys == set(HARM) - {"", "results"}


def network() -> bytes:
    """A convolution, a TANH and a sum of both; tensors have such names as converters make."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder()
    main = builder.subgraph("main")
    for name in ("in:0", "net/conv/Relu;net/conv/bias", "net/gate", "out"):
        main = main.tensor(name, (1, 8, 8, 3))
    main = main.constant("kernel", rng.standard_normal((3, 3, 3, 3)).astype(np.float32))
    main = main.constant("bias", rng.standard_normal(3).astype(np.float32))
    conv = Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    main.operator(Op.CONV_2D, ["in:0", "kernel", "bias"], ["net/conv/Relu;net/conv/bias"], conv)
    main.operator(Op.TANH, ["net/conv/Relu;net/conv/bias"], ["net/gate"])
    both = ["net/conv/Relu;net/conv/bias", "net/gate"]
    main.operator(Op.ADD, both, ["out"], AddOptions())
    main.inputs("in:0").outputs("out")
    return builder.write()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The model in both formats, and its overlays as a verification makes them."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "model.tflite").write_bytes(network())
    exported = export_onnx(network(), folder / "model.onnx")
    report = verify(network(), reference="kernels", profiled_runs=2)
    return folder, report, write_overlays(report, folder / "data", node_names(exported))


def test_overlays_of_a_verification(written):
    _, report, paths = written
    names = {"net/conv/Relu;net/conv/bias", "net/gate", "out"}
    assert {each.runtime for each in report.runtimes} == {"interpreter", "export"}
    for path in paths:
        keys = json.loads(path.read_text())["results"].keys()
        assert keys <= names | {"CONV_2D_0/Conv", "TANH_1/Tanh", "ADD_2/Add"}
        if "isolated" in path.name:
            assert keys >= names
    metrics = {path.name for path in paths if path.name.startswith("interpreter")}
    for metric in ("time", "place", "isolated-relative", "accumulated-relative"):
        assert f"interpreter-{metric}.json" in metrics


def test_report_of_a_verification(written):
    said = to_html(written[1])
    for text in ("CONV_2D", "TANH", "ADD", "net/conv/Relu;net/conv/bias", "ONNX Runtime"):
        assert text in said


def graph_keys(answer):
    """By name of an output tensor, its node; and all nodes: as Model Explorer's page reads them."""
    graphs = answer.get("graphs") or answer["graphCollections"][0].graphs
    (graph,) = (each if isinstance(each, dict) else dataclasses.asdict(each) for each in graphs)
    tensors = {
        attribute["value"]: node["id"]
        for node in graph["nodes"]
        for output in node["outputsMetadata"]
        for attribute in output["attrs"]
        if attribute["key"] == "tensor_name"
    }
    return tensors, {node["id"]: node["label"] for node in graph["nodes"]}


@pytest.mark.explorer
@pytest.mark.parametrize(
    ("suffix", "module", "adapter", "labels"),
    [
        (
            "tflite",
            "model_explorer.builtin_tflite_flatbuffer_adapter",
            "BuiltinTfliteFlatbufferAdapter",
            {"conv_2d", "tanh", "add"},
        ),
        ("onnx", "model_explorer_onnx.main", "ONNXAdapter", {"Conv", "Tanh", "Add"}),
    ],
)
def test_model_explorer_finds_every_operator(written, suffix, module, adapter, labels):
    folder, _, paths = written
    model = str(folder / f"model.{suffix}")
    adapters = vars(optional_module(module))
    tensors, nodes = graph_keys(adapters[adapter]().convert(model, {}))
    config = optional_module("model_explorer").config().add_model_from_path(model)
    for path in paths:
        config.add_node_data_from_path(str(path))
        keys = json.loads(path.read_text())["results"]
        found = {tensors.get(key, key) for key in keys} & nodes.keys()
        shown = {nodes[each] for each in found}
        # An operator that ONNX Runtime joined to another has no time of its own.
        assert shown and (shown <= labels if "time" in path.name else shown == labels)
    assert config.node_data_sources == [str(path) for path in paths]


@pytest.mark.explorer
def test_model_explorer_calls_graphs_as_overlays_do():
    path = model_path("tf__gru_f32.tflite")
    adapter = vars(optional_module("model_explorer.builtin_tflite_flatbuffer_adapter"))
    answer = adapter["BuiltinTfliteFlatbufferAdapter"]().convert(str(path), {})
    graphs = answer.get("graphs") or answer["graphCollections"][0].graphs
    found = {each["id"] if isinstance(each, dict) else each.id for each in graphs}
    report = verify(path, runtimes=["interpreter"], inputs=Random(1))
    place = next(each for each in overlays(report, report.runtimes[0]) if each.metric == "place")
    assert json.loads(place.to_json()).keys() == found


def test_places_in_the_subgraphs_that_others_call(tmp_path):
    """Each under the identifier that Model Explorer gives its graph."""
    name = "tf__gru_f32.tflite"
    report = verify(model_path(name), runtimes=["interpreter"], inputs=Random(1))
    found = {path.name: json.loads(path.read_text()) for path in write_overlays(report, tmp_path)}
    places = found["interpreter-place.json"]
    assert list(places) == ["while_cond", "while_body", "main"]
    model = read_model(model_path(name))
    for graph in model.subgraphs:
        made = {graph.tensors[index].name for op in graph.operators for index in op.outputs}
        assert places[graph.name]["results"].keys() == made
    assert list(found["interpreter-isolated-relative.json"]) == ["main"]


def test_times_have_three_digits():
    report = plentiful()
    (first, *others), *more = report.runtimes[0].operators, *report.runtimes[1:]
    timed = dataclasses.replace(first, milliseconds=0.123456)
    result = dataclasses.replace(report.runtimes[0], operators=(timed, *others))
    found = read(dataclasses.replace(report, runtimes=(result, *more)))
    assert values(found["time"])["conv/out"] == 0.123


@pytest.mark.parametrize("path", ["missing.json", "empty"])
def test_view_names_data_that_is_missing(tmp_path, path):
    (tmp_path / "empty").mkdir()
    with pytest.raises((FileNotFoundError, BridgeError), match=path):
        view_module.node_data_files([tmp_path / path])


class Explorer:
    """Stands for the package: notes what it is asked for."""

    def __init__(self):
        self.asked = []

    def config(self):
        return self

    def add_model_from_path(self, path):
        self.asked.append(("model", path))
        return self

    def add_node_data_from_path(self, path):
        self.asked.append(("data", path))
        return self

    def visualize_from_config(self, config, **options):
        assert config is self
        self.asked.append(("open", options))


def test_view_opens_model_and_data(tmp_path, monkeypatch):
    explorer = Explorer()
    modules = {"model_explorer": explorer}
    monkeypatch.setattr(view_module, "optional_module", modules.get)
    model = tmp_path / "model.tflite"
    model.write_bytes(network())
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("b.json", "a.json", "notes.txt"):
        (folder / name).write_text("{}")
    arguments = ["view", str(model), "--data", str(folder), "--port", "9000", "--no-browser"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert explorer.asked[:3] == [
        ("model", str(model)),
        ("data", str(folder / "a.json")),
        ("data", str(folder / "b.json")),
    ]
    options = SimpleNamespace(**explorer.asked[3][1])
    assert (options.host, options.port, options.no_open_in_browser) == ("localhost", 9000, True)
    assert options.extensions == []


def test_view_shows_constants_outside_the_file(tmp_path, monkeypatch):
    (tmp_path / "weights.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    x = Tensor((4,), name="x")
    graph = SubGraph((x, Tensor((4,), name="y", external_buffer=7)), inputs=(0,), outputs=(1,))
    model = Model(
        version=3,
        subgraphs=(graph,),
        buffers=(Buffer(),),
        external_buffer_groups=(ExternalBufferGroup("weights.bin"),),
        external_buffers=(ExternalBuffer(7, 0, 0, 16),),
    )
    (tmp_path / "model.tflite").write_bytes(write_model(model))
    shown = []

    class Looking(Explorer):
        def visualize_from_config(self, config, **options):
            shown.append(read_model(self.asked[0][1]))

    explorer = Looking()
    modules = {"model_explorer": explorer}
    monkeypatch.setattr(view_module, "optional_module", modules.get)
    assert CliRunner().invoke(app, ["view", str(tmp_path / "model.tflite")]).exit_code == 0
    (found,) = shown
    assert not found.external_buffers
    assert found.buffers[found.subgraphs[0].tensors[1].buffer].data.size == 16
    assert not Path(explorer.asked[0][1]).exists()


def test_view_refuses_a_file_that_is_no_model(tmp_path, monkeypatch):
    modules = {"model_explorer": Explorer()}
    monkeypatch.setattr(view_module, "optional_module", modules.get)
    (tmp_path / "text.tflite").write_text("no flatbuffer, however long it may be")
    refused = CliRunner().invoke(app, ["view", str(tmp_path / "text.tflite")])
    assert refused.exit_code == 1 and len(refused.output.splitlines()) == 1


def test_view_says_what_to_install(tmp_path, monkeypatch):
    modules = {}
    monkeypatch.setattr(view_module, "optional_module", modules.get)
    model = tmp_path / "model.onnx"
    model.write_bytes(b"")
    missing = CliRunner().invoke(app, ["view", str(model)])
    assert missing.exit_code == 1 and "pip install 'tflite-ort[view]'" in missing.output
    modules["model_explorer"] = Explorer()
    missing = CliRunner().invoke(app, ["view", str(model)])
    assert missing.exit_code == 1 and "model-explorer-onnx" in missing.output
    absent = CliRunner().invoke(app, ["view", str(tmp_path / "absent.tflite")])
    assert absent.exit_code == 1 and "absent.tflite" in absent.output


def test_verify_writes_report_and_overlays(tmp_path):
    model, page, folder = tmp_path / "model.tflite", tmp_path / "out.html", tmp_path / "data"
    model.write_bytes(network())
    options = ["--reference", "kernels", "--report", str(page), "--overlay", str(folder)]
    answer = CliRunner().invoke(app, ["verify", str(model), *options])
    assert answer.exit_code == 0, answer.output
    assert "model.tflite" in page.read_text(encoding="utf-8")
    times = json.loads((folder / "interpreter-time.json").read_text())
    assert "CONV_2D_0/Conv" in times["results"]


def test_verify_says_at_once_that_a_report_needs_jinja(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "optional_module", lambda name: None)
    answer = CliRunner().invoke(app, ["verify", "absent.tflite", "--report", str(tmp_path / "a")])
    assert answer.exit_code == 1 and "tflite-ort[report]" in answer.output

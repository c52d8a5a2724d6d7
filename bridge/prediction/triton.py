"""A model repository for Triton Inference Server: an exported model and its configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from tflite_ort.base.files import made_folder, portable_names, write_bytes, write_text
from tflite_ort.export.exporting import export_onnx
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.metadata import Metadata
from tflite_ort.prediction.accelerators import ACCELERATORS
from tflite_ort.prediction.array_files import Array, Details, InputError
from tflite_ort.prediction.tensors import unique_names
from tflite_ort.providers.exported_state import PAIRS, first_state
from tflite_ort.schema import ExportError, Unbatchable

# Messages in protobuf's text format, from dictionaries.


class Name(str):
    """A value of an enumeration, which is written without quotes."""


def message_text(fields: Mapping[str, Any]) -> str:
    """The text of a message.

    Args:
        fields: by name, in order: text, numbers, truth values, a `Name`, a dictionary for a
            message; a list for a field that is repeated. None is left out.
    """
    return "".join(f"{line}\n" for line in _lines(fields))


def _lines(fields: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for name, value in fields.items():
        several = isinstance(value, Sequence) and not isinstance(value, str)
        if several and value and not isinstance(value[0], Mapping):
            yield f"{indent}{name}: [ {', '.join(map(_scalar, value))} ]"
            continue
        for each in value if several else (value,):
            if isinstance(each, Mapping):
                yield f"{indent}{name} {{"
                yield from _lines(each, f"{indent}  ")
                yield f"{indent}}}"
            elif each is not None:
                yield f"{indent}{name}: {_scalar(each)}"


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Name) or not isinstance(value, str):
        return str(value)
    return '"' + "".join(map(_escaped, value.encode())) + '"'


def _escaped(byte: int) -> str:
    """A byte of a text: printable ASCII as it is, all others as octal numbers."""
    character = chr(byte)
    plain = 32 <= byte < 127 and character not in '"\\'
    return character if plain else f"\\{byte:03o}"


_TYPES: Mapping[int, str] = {
    onnx.TensorProto.BOOL: "TYPE_BOOL",
    onnx.TensorProto.UINT8: "TYPE_UINT8",
    onnx.TensorProto.UINT16: "TYPE_UINT16",
    onnx.TensorProto.UINT32: "TYPE_UINT32",
    onnx.TensorProto.UINT64: "TYPE_UINT64",
    onnx.TensorProto.INT8: "TYPE_INT8",
    onnx.TensorProto.INT16: "TYPE_INT16",
    onnx.TensorProto.INT32: "TYPE_INT32",
    onnx.TensorProto.INT64: "TYPE_INT64",
    onnx.TensorProto.FLOAT16: "TYPE_FP16",
    onnx.TensorProto.BFLOAT16: "TYPE_BF16",
    onnx.TensorProto.FLOAT: "TYPE_FP32",
    onnx.TensorProto.DOUBLE: "TYPE_FP64",
    onnx.TensorProto.STRING: "TYPE_STRING",
}
_MODEL = "model.onnx"
_IDLE_SECONDS = 60

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Serving:
    """How a server runs a model.

    Args:
        max_batch: the most samples at once, where a batch is proved.
        delay: microseconds for which a request waits for others.
        accelerator: a name in `ACCELERATORS`; empty for none.
        instances: copies of the model on each device; 0 leaves it to the server.
        version: the number of the version that is written.
    """

    max_batch: int = 32
    delay: int = 100
    accelerator: str = ""
    instances: int = 0
    version: int = 1


@dataclass(frozen=True, slots=True)
class Written:
    """What was written.

    Args:
        folder: of the model in the repository.
        max_batch: the most samples at once; 0 where the model runs one sample at a time.
        refused: why there is no batch; empty where there is one.
        states: the names of the inputs that hold the state of a sequence.
    """

    folder: Path
    max_batch: int
    refused: str = ""
    states: tuple[str, ...] = ()


def write_repository(
    model: str | os.PathLike[str],
    repository: str | os.PathLike[str],
    name: str = "",
    serving: Serving | None = None,
    arguments: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
) -> Written:
    """Write ``config.pbtxt``, ``1/model.onnx``, labels and the first values of states.

    Args:
        model: a ``.tflite`` file.
        repository: the folder of all models of a server; made where it is missing.
        name: of the model there; default: the name of the file without its suffix.
        arguments: more of `export_onnx`, such as `resolver` and ``stateful``: False makes each
            request start from the first values of all variables.
        labels: names of the classes of each output with as many numbers, in the place of the
            model's.

    Raises:
        InputError: no output has as many numbers as there are labels.
        ModelError, VersionError, ExportError: as of `export_onnx`.
        ValueError: there is no such accelerator, or no folder can have the name.
    """
    serving, name = serving or Serving(), name or Path(model).stem
    if not name or name in (".", "..") or set(name) & set("/\\"):
        raise ValueError(f"{name!r} is no name of a model")
    if serving.accelerator and serving.accelerator not in ACCELERATORS:
        raise ValueError(f"no accelerator {serving.accelerator!r}, there are {[*ACCELERATORS]}")
    folder = Path(repository) / name
    proto, refused = _exported(model, serving, {"stateful": True, **(arguments or {})})
    batched = not refused
    states = _states(proto, batched=batched)
    described = _Described.of(model, arguments or {}, labels)
    config = _config(name, proto, serving, states, described, batched=batched)
    version = made_folder(repository, name, str(serving.version))
    write_bytes(version / _MODEL, proto.SerializeToString())
    for each in states:
        each.write(folder)
    for file, labels in described.labels.values():
        write_text(folder / file, "".join(f"{label}\n" for label in labels))
    write_text(folder / "config.pbtxt", message_text(config))
    largest = config["max_batch_size"]
    return Written(folder, largest, refused, tuple(each.given for each in states))


def _exported(
    model: str | os.PathLike[str], serving: Serving, arguments: dict[str, Any]
) -> tuple[onnx.ModelProto, str]:
    """The model with an open batch where that is proved, or as it is and why."""
    if serving.accelerator:
        arguments.setdefault("weights", ACCELERATORS[serving.accelerator].weights)
    if serving.max_batch < 1:
        return export_onnx(model, **arguments), "no batch is asked for"
    try:
        return export_onnx(model, batch="batch", **arguments), ""
    except Unbatchable as error:
        return export_onnx(model, **arguments), str(error)


# State -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _State:
    """A value that lasts from one request of a sequence to the next.

    Args:
        given, made: the input and the output.
        first: its value before the first request; None where the model has none.
        name: of a file for it.
    """

    given: str
    made: str
    first: Array | None
    name: str

    @property
    def file(self) -> str:
        """Where `first` is, below the folder ``initial_state``; empty where it is all zeros."""
        if self.first is None or not self.first.any():
            return ""
        return self.name

    def write(self, folder: Path) -> None:
        """Write `first`, if it is not all zeros."""
        if self.file and self.first is not None:
            write_bytes(made_folder(folder, "initial_state") / self.file, self.first.tobytes())

    def fields(self, values: Mapping[str, onnx.ValueInfoProto], *, batched: bool) -> Fields:
        """An element of ``sequence_batching.state``."""
        shape = _sizes(values[self.given])
        kind = Name(_TYPES[values[self.given].type.tensor_type.elem_type])
        dims = shape[1:] if batched else shape
        first: Fields = {"name": f"{self.given} at first", "data_type": kind, "dims": dims or [1]}
        first |= {"data_file": self.file} if self.file else {"zero_data": True}
        return {
            "input_name": self.given,
            "output_name": self.made,
            "data_type": kind,
            "dims": dims or [1],
            "initial_state": first,
        }


def _states(proto: onnx.ModelProto, *, batched: bool) -> list[_State]:
    """The states of an export, which the server feeds; all samples of a batch begin with the
    same."""
    pairs = {each.key: each.value for each in proto.metadata_props}.get(PAIRS, "[]")
    first, found, read = first_state(proto), [], json.loads(pairs)
    files = portable_names([given or "" for given, _ in read])
    for (given, made), file in zip(read, files, strict=True):
        if given is not None and made is not None:
            value = first.get(given)
            value = value[0] if batched and value is not None else value
            found.append(_State(given, made, value, file))
        elif given in first:
            raise ExportError(
                f"another signature sets variable {given!r}, which a server keeps for one alone; "
                "stateful=False (--stateless) starts each request from its first value"
            )
        elif given is not None:
            raise ExportError(f"variable {given!r} is read, and nothing gives it a value")
    return found


# Configuration -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Described:
    """What a model says of its outputs.

    Args:
        labels: by output, the name of a file for them, and the labels.
        shapes: by input, the shape of one sample.
    """

    labels: dict[str, tuple[str, Sequence[str]]] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: str | os.PathLike[str],
        arguments: Mapping[str, Any],
        labels: Sequence[str] = (),
    ) -> _Described:
        """What a file says, or `labels` of its classes."""
        names = ("resolver", "budgets", "external_roots")
        known = {name: arguments[name] for name in names if name in arguments}
        interpreter = Interpreter(os.fspath(model), **known)
        given, made = interpreter.get_input_details(), interpreter.get_output_details()
        shapes = {str(each["name"]): [int(size) for size in each["shape"]] for each in given}
        return cls(_labels(made, interpreter.metadata, labels), shapes)


def _labels(
    outputs: Sequence[Details], metadata: Metadata, given: Sequence[str]
) -> dict[str, tuple[str, Sequence[str]]]:
    names = unique_names(outputs)
    if given:
        sizes = {name: int(each["shape"][-1]) for name, each in zip(names, outputs, strict=True)}
        labels = [(name, given) for name, size in sizes.items() if size == len(given)]
        if not labels:
            raise InputError(f"there are {len(given)} labels, and the outputs have {sizes} numbers")
    elif len(metadata.outputs) != len(outputs):
        return {}
    else:
        named = zip(names, metadata.outputs, strict=True)
        labels = [(name, each.labels) for name, each in named if each.labels]
    return {name: (f"labels_{place}.txt", each) for place, (name, each) in enumerate(labels)}


def _config(
    name: str,
    proto: onnx.ModelProto,
    serving: Serving,
    states: Sequence[_State],
    described: _Described,
    *,
    batched: bool,
) -> Fields:
    graph, hidden = proto.graph, {each.given for each in states} | {each.made for each in states}
    constants = {each.name for each in graph.initializer}
    inputs = [each for each in graph.input if each.name not in hidden | constants]
    outputs = [each for each in graph.output if each.name not in hidden]
    config: Fields = {
        "name": name,
        "backend": "onnxruntime",
        "default_model_filename": _MODEL,
        "max_batch_size": serving.max_batch if batched else 0,
        "input": [_tensor(each, batched=batched) for each in inputs],
        "output": [_output(each, described, batched=batched) for each in outputs],
        "version_policy": {"latest": {"num_versions": 1}},
    }
    if serving.instances:
        config["instance_group"] = [{"count": serving.instances, "kind": Name("KIND_AUTO")}]
    if states:
        values = {each.name: each for each in graph.input}
        config["sequence_batching"] = {
            "max_sequence_idle_microseconds": _IDLE_SECONDS * 1_000_000,
            "direct": {},
            "state": [each.fields(values, batched=batched) for each in states],
        }
    else:
        if batched:
            config["dynamic_batching"] = {"max_queue_delay_microseconds": serving.delay}
        config["model_warmup"] = [_warm_up(inputs, described, batched=batched)]
    if serving.accelerator:
        config["optimization"] = {"execution_accelerators": _accelerator(serving.accelerator)}
    return config


def _tensor(value: onnx.ValueInfoProto, *, batched: bool) -> Fields:
    """An input or output: its name, type and the sizes of one sample."""
    kind = value.type.tensor_type.elem_type
    if kind not in _TYPES:
        told = onnx.TensorProto.DataType.Name(kind)
        raise ExportError(f"Triton has no tensors of {told}, the type of {value.name!r}")
    dims = _sizes(value)[1:] if batched else _sizes(value)
    fields: Fields = {"name": value.name, "data_type": Name(_TYPES[kind]), "dims": dims or [1]}
    return fields if dims else {**fields, "reshape": {"shape": []}}


def _output(value: onnx.ValueInfoProto, described: _Described, *, batched: bool) -> Fields:
    file, _ = described.labels.get(value.name, (None, ()))
    return {**_tensor(value, batched=batched), "label_filename": file}


def _sizes(value: onnx.ValueInfoProto) -> list[int]:
    """The sizes of a tensor; -1 where they are open."""
    return [
        each.dim_value if each.HasField("dim_value") else -1
        for each in value.type.tensor_type.shape.dim
    ]


def _warm_up(
    inputs: Sequence[onnx.ValueInfoProto], described: _Described, *, batched: bool
) -> Fields:
    """A request of zeros, so that the first one of a user does not wait."""
    entries = []
    for value in inputs:
        fields = _tensor(value, batched=batched)
        declared = described.shapes.get(value.name, [])[-len(fields["dims"]) :]
        sizes = declared if len(declared) == len(fields["dims"]) else [1] * len(fields["dims"])
        dims = [size if size > 0 else own for size, own in zip(fields["dims"], sizes, strict=True)]
        zeros: Fields = {"data_type": fields["data_type"], "dims": dims, "zero_data": True}
        entries.append({"key": value.name, "value": zeros})
    return {"name": "zeros", "batch_size": 1, "inputs": entries}  # the server skips one of 0


def _accelerator(name: str) -> Fields:
    found = ACCELERATORS[name]
    parameters = [{"key": key, "value": value} for key, value in found.parameters.items()]
    return {found.group: [{"name": name, "parameters": parameters}]}

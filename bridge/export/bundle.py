"""A bundle as a folder: one ONNX file a model, the other files, and a JSON file that says how they
fit together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx

from tflite_ort.base.files import (
    distinct_names,
    made_folder,
    portable_names,
    shortened,
    write_bytes,
    write_text,
)
from tflite_ort.base.json_text import written
from tflite_ort.bundles import Bundle, Entry
from tflite_ort.bundles.entries import BUNDLE, MODEL
from tflite_ort.decode.regions import REGIONS
from tflite_ort.export.decoded import IMAGE, known_kind
from tflite_ort.export.exporting import export_onnx
from tflite_ort.export.shared_weights import WEIGHTS, export_sharing_weights
from tflite_ort.schema import BridgeError, ExportError, Model, read_model

INDEX = "bundle.json"
FILES = "files"


def export_bundle(bundle: Bundle, folder: str | os.PathLike[str], **options: Any) -> Path:
    """Write the models and other files of a bundle into a folder.

    Args:
        folder: created if it does not exist. Models become ``<name>.onnx`` in it, those with
            several signatures ``<name>.<signature>.onnx`` with weights in ``<name>.weights``. Other
            files and sections become ``files/<name>``. ``bundle.json`` lists them with their
            inputs, outputs and signatures.
        options: those of `export_onnx`, for every model; ``decode`` has no effect on models that it
            does not know, nor ``"image"`` on those that take no picture.

    Returns:
        The path of ``bundle.json``.

    Raises:
        ExportError: lists the models that cannot be exported. Everything else is written.
        MalformedBundle: an entry is damaged.
        OSError: a file cannot be written.
    """
    target = made_folder(folder)
    names = _file_names(bundle.models)
    taken = {file.casefold() for file in names.values()}
    models = [
        _model(bundle, entry, target, names[entry.name], taken, options) for entry in bundle.models
    ]
    files = [_file(bundle, entry, target) for entry in bundle.entries if entry.kind != MODEL]
    index = {
        "format": "tflite-ort bundle 1",
        "kind": bundle.kind,
        "properties": dict(bundle.properties),
        "models": models,
        "regions": _regions(models),
        "files": [each for each in files if each],
    }
    path = target / INDEX
    write_text(path, written(index, indent=2) + "\n")
    if failed := [f"  {each['name']}: {each['error']}" for each in models if "error" in each]:
        count = f"{len(failed)} of {len(models)} models cannot be exported"
        raise ExportError("\n".join([f"{count}; all else is in {target}:", *failed]))
    return path


def _file_names(entries: Sequence[Entry]) -> Mapping[str, str]:
    """The file of each model by its name; names of nested bundles become part of the file's."""
    plain = [each.name.replace("/", ".").removesuffix(".tflite") for each in entries]
    stems = distinct_names([shortened(name) for name in plain], "{name}_{number}")
    return {each.name: f"{stem}.onnx" for each, stem in zip(entries, stems, strict=True)}


def _model(
    bundle: Bundle,
    entry: Entry,
    folder: Path,
    file: str,
    taken: set[str],
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Write one model; what the index says of it.

    Args:
        file: for a model without several signatures.
        taken: names of files that others have, in small letters; what is written is added.
    """
    said: dict[str, Any] = {"name": entry.name, **_properties(entry)}
    content = bundle.model_content(entry.name)
    try:
        model = read_model(content, budgets=options.get("budgets"))
        kind = known_kind(model, content)
        said |= {} if kind is None else {"kind": kind.name, **kind.facts}
        if len(model.signature_defs) > 1:
            return said | _several(model, folder, Path(file).stem, taken, options)
        decode = options.get("decode", False) if kind is not None else False
        if decode == IMAGE and kind is not None and kind.preparation is None:
            decode = True  # it begins at what another network gives
        # One network tells the next one which part of the picture it looks at.
        told = {**options, "decode": decode, "decode_inputs": bool(decode)}
        exported = export_onnx(content, folder / file, **told)
    except BridgeError as error:
        return {**said, "error": str(error)}
    return {**said, "file": file, **_interface(exported), "signatures": _signatures(model)}


def _several(
    model: Model, folder: Path, stem: str, taken: set[str], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the signatures of one model; what the index says of them."""
    keys = [each.signature_key for each in model.signature_defs]
    files = _signature_files(stem, keys)
    while taken.intersection(map(str.casefold, files.values())):
        stem += "_"
        files = _signature_files(stem, keys)
    taken.update(map(str.casefold, files.values()))
    exported = export_sharing_weights(model, folder, files, **{**options, "decode": False})
    signatures = {key: {"file": files[key], **_interface(exported[key])} for key in keys}
    return {"weights": files[WEIGHTS], "signatures": signatures}


def _signature_files(stem: str, keys: Sequence[str]) -> dict[str, str]:
    """The file of each signature by its key, and the file of their weights."""
    names = portable_names(keys)
    files = {key: f"{stem}.{name}.onnx" for key, name in zip(keys, names, strict=True)}
    return {**files, WEIGHTS: f"{stem}.weights"}


def _regions(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Which landmark network looks at what a detector finds, and where: see `Region`."""
    names = {model["kind"]: model["name"] for model in models if "kind" in model}
    return [
        {**asdict(region), "detector": names[region.detector], "landmarks": names[kind]}
        for kind, region in REGIONS.items()
        if kind in names and region.detector in names
    ]


def _interface(model: onnx.ModelProto) -> dict[str, Any]:
    return {
        "inputs": [_tensor(value) for value in model.graph.input],
        "outputs": [_tensor(value) for value in model.graph.output],
    }


def _tensor(value: onnx.ValueInfoProto) -> dict[str, Any]:
    kind = value.type.tensor_type
    sizes = [dim.dim_param or dim.dim_value for dim in kind.shape.dim]
    dtype = onnx.TensorProto.DataType.Name(kind.elem_type).lower()
    return {"name": value.name, "type": dtype, "shape": sizes}


def _signatures(model: Model) -> dict[str, dict[str, list[str]]]:
    return {
        each.signature_key: {
            "inputs": sorted(entry.name for entry in each.inputs),
            "outputs": sorted(entry.name for entry in each.outputs),
        }
        for each in model.signature_defs
    }


def _file(bundle: Bundle, entry: Entry, folder: Path) -> dict[str, Any] | None:
    """Write anything else; nothing of a bundle, whose files stand for it."""
    if entry.kind == BUNDLE:
        return None
    name = f"{FILES}/{entry.name}"
    path = made_folder(folder, *name.split("/")[:-1]) / name.rpartition("/")[2]
    write_bytes(path, bundle.content(entry.name))
    return {"name": entry.name, "kind": entry.kind, "file": name, **_properties(entry)}


def _properties(entry: Entry) -> dict[str, Any]:
    return {"properties": dict(entry.properties)} if entry.properties else {}

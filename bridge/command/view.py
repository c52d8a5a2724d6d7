"""The verb ``view``: a model in Model Explorer, with numbers over its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from tflite_ort.base.files import write_bytes
from tflite_ort.base.optional import optional_module
from tflite_ort.command.activity import activity
from tflite_ort.command.arguments import BudgetNumbers, ExternalRoots, budgets
from tflite_ort.schema import BridgeError, Budgets, read_model, with_own_data, write_model

# By a file's suffix: the package that teaches Model Explorer its format, and its name to pip.
_ADAPTERS = {".onnx": ("model_explorer_onnx", "model-explorer-onnx")}


def view(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A .tflite or .onnx file.")],
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Node data, or a folder of it as verify --overlay writes; repeatable."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="NAME", help="Where the page is served.")
    ] = "localhost",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the page.")] = 8080,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Show a model as a graph in Model Explorer, until Ctrl-C."""
    explorer = optional_module("model_explorer")
    if explorer is None:
        raise BridgeError("view needs Model Explorer: pip install 'tflite-ort[view]'")
    extensions = _extensions(_existing(model))
    with TemporaryDirectory() as folder:
        whole = _with_constants(model, Path(folder), external_root or (), budgets(budget))
        config = explorer.config().add_model_from_path(str(whole))
        for path in node_data_files(data or []):
            config.add_node_data_from_path(str(path))
        activity.end()  # from now on it serves
        explorer.visualize_from_config(
            config, host=host, port=port, extensions=extensions, no_open_in_browser=not browser
        )


def _with_constants(model: Path, folder: Path, roots: Sequence[Path], budgets: Budgets) -> Path:
    """The model, or a copy in `folder` with its external constants, which Model Explorer does not
    look for.

    Raises:
        ModelError: a ``.tflite`` file is malformed, or its constants cannot be read.
    """
    if model.suffix in _ADAPTERS:
        return model
    source = read_model(model, external_roots=roots, budgets=budgets)
    if not source.external_buffers:
        return model
    copy = folder / model.name
    write_bytes(copy, write_model(with_own_data(source)))
    return copy


def node_data_files(data: Sequence[Path]) -> list[Path]:
    """The files, and those of the folders, by name.

    Raises:
        FileNotFoundError: one is missing.
        BridgeError: a folder has none.
    """
    found: list[Path] = []
    for path in data:
        inside = sorted(_existing(path).glob("*.json")) if path.is_dir() else [_existing(path)]
        if not inside:
            raise BridgeError(f"{path} has no node data: no file ends in .json")
        found += inside
    return found


def _existing(path: Path) -> Path:
    path.stat()
    return path


def _extensions(model: Path) -> list[str]:
    if model.suffix not in _ADAPTERS:
        return []
    module, package = _ADAPTERS[model.suffix]
    if optional_module(module) is None:
        raise BridgeError(f"{model.suffix} files need one more package: pip install {package}")
    return [module]

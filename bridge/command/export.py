"""The verb ``export``: a model as ONNX."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
import typer
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from tflite_ort.base.files import made_folder
from tflite_ort.bundles import open_bundle
from tflite_ort.command.arguments import (
    AsJson,
    BudgetNumbers,
    ExternalRoots,
    ModelOrBundle,
    ResolverName,
    SignatureKey,
    budgets,
    check_written,
    one_each,
    refuse_unused,
    resolver_of,
)
from tflite_ort.command.export_options import (
    AllSignatures,
    Batch,
    Check,
    CustomOpsOption,
    Decode,
    DecodeInputs,
    Dequantize,
    Exact,
    ExportHybrid,
    ExternalData,
    Float16,
    FloatIo,
    For,
    ImageInput,
    Labels,
    LstmClip,
    LstmClipOption,
    Nchw,
    Opset,
    Out,
    Rename,
    Shapes,
    StateDefaults,
    Stateful,
    WeightsOption,
)
from tflite_ort.command.export_summary import Verbose, print_summary
from tflite_ort.command.outputs import STDOUT, file_at
from tflite_ort.command.terminal import (
    complain,
    new_console,
    new_table,
    say,
    say_json,
)
from tflite_ort.export.bundle import export_bundle
from tflite_ort.export.check import ExportMismatch, check_export
from tflite_ort.export.decoded import IMAGE
from tflite_ort.export.exporting import export_onnx
from tflite_ort.export.form import Form, Written
from tflite_ort.export.shapes import as_exported
from tflite_ort.export.signatures import signature_files, write_each
from tflite_ort.generation.export import export_language_model, is_language_model
from tflite_ort.model.batch import checked_batch
from tflite_ort.model.opening import holds_bundle
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.model.signature_model import signature_model
from tflite_ort.prediction.answers import read_labels
from tflite_ort.providers.exported_state import first_state
from tflite_ort.schema import ExportError, Model, read_model
from tflite_ort.verification.report import OFF

# What is compared of a model that is decoded.
_DECODED = "the network before its decoding"


def export(
    context: typer.Context,
    model: ModelOrBundle,
    out: Out = None,
    signature: SignatureKey = None,
    all_signatures: AllSignatures = False,
    as_json: AsJson = False,
    for_: For = None,
    weights: WeightsOption = None,
    opset: Opset = None,
    float16: Float16 = False,
    dequantize: Dequantize = False,
    float_io: FloatIo = False,
    shape: Shapes = None,
    batch: Batch = None,
    nchw: Nchw = None,
    rename: Rename = None,
    external_data: ExternalData = False,
    exact: Exact = False,
    lstm_clip: LstmClipOption = LstmClip.KEEP,
    stateful: Stateful = None,
    state_defaults: StateDefaults = False,
    custom_ops: CustomOpsOption = None,
    decode: Decode = False,
    image_input: ImageInput = False,
    decode_inputs: DecodeInputs = False,
    labels: Labels = None,
    check: Check = False,
    verbose: Verbose = False,
    resolver: ResolverName = None,
    hybrid: ExportHybrid = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Write a model as ONNX; of a bundle every model, with a list of them, into a folder."""
    _refuse_unused(context, stateful=stateful, to_file=out != STDOUT)
    options: dict[str, Any] = {
        "weights": weights and weights.value,
        "hybrid": hybrid and hybrid.value,
        "input_shapes": one_each(map(_named_shape, shape or ()), "--shape"),
        "batch": _batch(batch),
        "resolver": resolver_of(resolver),
        "custom_ops": custom_ops and custom_ops.value,
        "stateful": stateful,
        "external_roots": external_root or (),
        "budgets": budgets(budget),
        "decode": IMAGE if image_input else decode,
    }
    form: Written = {"for_": for_, "float16": float16, "nchw": nchw or (), "exact": exact}
    form |= {"opset": opset} if opset else {}
    form["rename"] = one_each(map(_named_new, rename or ()), "--rename")
    form |= {"dequantize": dequantize, "float_io": float_io, "external_data": external_data}
    form |= {"state_defaults": state_defaults, "lstm_clip": lstm_clip.value}
    form |= {"labels": read_labels(labels), "decode_inputs": decode_inputs}
    if not (decode or image_input):
        refuse_unused(context, "needs --decode or --image-input", "decode_inputs")
    _check_choices(options, form, signature, all_signatures)
    said = {"as_json": as_json, "verbose": verbose}
    _write(model, out, options, form | {"signature": signature}, check, said, all_signatures)


def _write(
    model: Path,
    out: str | None,
    options: dict[str, Any],
    form: Written,
    check: bool,
    said: Mapping[str, bool],
    all_signatures: bool,
) -> None:
    """Write what `model` is: a bundle, signatures, or one file."""
    if holds_bundle(model):
        _check_of_bundle(form, all_signatures)
        _export_bundle(model, _folder(model, out), check, options, as_json=said["as_json"])
    elif all_signatures:
        _export_signatures(model, _folder(model, out), options, form, check, said)
    else:
        _export(model, _target(model, out), options, form, check, **said)


def _target(model: Path, out: str | None) -> str:
    """The file to write, or standard output."""
    beside = _beside(model, ".onnx")
    return str(beside) if out is None else file_at(out, beside.name)


def _export_signatures(
    model: Path,
    folder: Path,
    options: dict[str, Any],
    form: Written,
    check: bool,
    said: Mapping[str, bool],
) -> None:
    """Write a file for each signature."""
    read = read_model(model, external_roots=options["external_roots"], budgets=options["budgets"])

    def write(key: str, path: Path) -> None:
        _export(model, str(path), options, {**form, "signature": key}, check, **said)

    write_signatures(read, folder, write)


def _batch(text: str | None) -> int | str | None:
    """What is said of a batch: how many samples, or what any number of them is called."""
    batch = None if text is None else _size_of(text.strip())
    try:
        checked_batch(batch)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--batch") from error
    return batch


def _export(
    model: Path,
    target: str,
    options: dict[str, Any],
    form: Written,
    check: bool,
    *,
    as_json: bool,
    verbose: bool,
) -> None:
    """Write one file, or to standard output, and say what it is.

    Raises:
        Exit: with code 4 where it is checked and an output is too far off.
    """
    quiet = target == STDOUT
    path = None if quiet else Path(target)
    check_written(path, "OUT")
    of_decoded = check and bool(options["decode"])
    differences = {}
    try:
        exported = export_onnx(model, path, **options, **form, check=of_decoded)
        if quiet:
            sys.stdout.flush()
            sys.stdout.buffer.write(exported.SerializeToString())
        if of_decoded:
            differences = {_DECODED: "as the interpreter's, within the tolerance"}
        elif check:
            differences = _checked(exported, path, model, options, form)
    except ExportMismatch as error:
        complain(error)
        raise typer.Exit(OFF) from error
    if as_json:
        record = _record(exported, target, differences)
        print(json.dumps(record), file=sys.stderr if quiet else sys.stdout)
    elif not quiet:
        size = _written_bytes(exported, Path(target))
        print_summary(exported, Path(target), size, differences, verbose=verbose)


def _refuse_unused(context: typer.Context, *, stateful: bool | None, to_file: bool) -> None:
    if stateful is False:
        refuse_unused(context, "not with --stateless", "state_defaults")
    if not to_file:
        refuse_unused(context, "needs a file", "external_data")


def _check_choices(
    options: Mapping[str, Any], form: Written, signature: str | None, all_signatures: bool
) -> None:
    if options["decode"] and not (Form.of(form).plain and options["batch"] is None):
        raise typer.BadParameter(
            "takes no --batch, --opset, --float16, --nchw, --rename or --external-data, and no "
            "--for, --dequantize, --float-io or --lstm-clip",
            param_hint="--decode",
        )
    if signature is not None and all_signatures:
        raise typer.BadParameter("is one of --all-signatures", param_hint="--signature")


def _check_of_bundle(form: Written, all_signatures: bool) -> None:
    made, plain = Form.of(form), Form()
    given = [name for name in form if getattr(made, name) != getattr(plain, name)]
    given += ["all_signatures"] if all_signatures else []
    if given:
        names = ", ".join(f"--{name.rstrip('_').replace('_', '-')}" for name in given)
        raise typer.BadParameter("of a bundle all is written as it is", param_hint=names)


def _folder(model: Path, out: str | None) -> Path:
    if out == STDOUT:
        raise typer.BadParameter("several files do not fit standard output", param_hint="OUT")
    return _beside(model, "") if out is None else Path(out)


def _beside(model: Path, suffix: str) -> Path:
    """Where a result goes if it is not said.

    Raises:
        IsADirectoryError: the path has no name, as of ``.`` and ``/``.
    """
    if not model.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(model))
    return model.with_suffix(suffix)


def _record(
    exported: onnx.ModelProto, target: str, differences: Mapping[str, str]
) -> dict[str, Any]:
    """What was written, for JSON."""
    nodes = Counter(node.op_type for node in exported.graph.node)
    sides = {
        side: [each.name for each in values]
        for side, values in (("inputs", exported.graph.input), ("outputs", exported.graph.output))
    }
    size = _written_bytes(exported, Path(target)) or exported.ByteSize()
    return {
        "file": target,
        "bytes": size,
        "opset": exported.opset_import[0].version,
        **sides,
        "state": list(first_state(exported)),
        "nodes": dict(nodes.most_common()),
        **({"checked": dict(differences)} if differences else {}),
    }


def _written_bytes(exported: onnx.ModelProto, target: Path) -> int:
    """The size of an export's files."""
    external = filter(uses_external_data, exported.graph.initializer)
    names = {ExternalDataInfo(tensor).location for tensor in external}
    files = [target, *(target.with_name(name) for name in names)]
    return sum(file.stat().st_size for file in files if file.is_file())


_SIDES = ("inputs", "outputs")


def _export_bundle(
    model: Path, folder: Path, check: bool, options: dict[str, Any], *, as_json: bool
) -> None:
    """Write every model of a bundle, and list what was written."""
    bundle = open_bundle(model, budgets=options["budgets"])
    write = export_language_model if is_language_model(bundle) else export_bundle
    index = write(bundle, folder, **options, check=check)
    written = json.loads(index.read_text())
    if as_json:
        say_json(written)
        return
    table = new_table("file", "from", "inputs", "outputs")
    for each in written["models"]:
        several = each["signatures"].values() if "weights" in each else [each]
        for one in several:
            sides = (", ".join(value["name"] for value in one[side]) for side in _SIDES)
            table.add_row(one["file"], each["name"], *sides)
    for each in written["files"]:
        table.add_row(each["file"], each["name"], "", "")
    new_console().print(table)
    say(f"wrote {index}")


def _checked(
    exported: onnx.ModelProto,
    target: Path | None,
    model: Path,
    options: dict[str, Any],
    written: Written,
) -> dict[str, str]:
    """The difference of each output from the interpreter's, as text.

    Raises:
        ExportMismatch: one is too far.
    """
    form, resolver = Form.of(written), options["resolver"] or BuiltinOpResolver()
    roots, limits = options["external_roots"], options["budgets"]
    read = read_model(model, external_roots=roots, budgets=limits)
    if form.signature is not None:
        read = signature_model(read, form.signature)
    form = form.laid_out(read)
    read = form.prepared(read)
    source = as_exported(read, options["input_shapes"], options["batch"], resolver)
    found = check_export(
        exported, target, source, hybrid=options["hybrid"], resolver=resolver, form=form
    )
    return {
        name: "the same as the interpreter's" if each.exact else f"within {each.words}"
        for name, each in found.items()
    }


def _named_new(text: str) -> tuple[str, str]:
    """The names that ``OLD=NEW`` stands for."""
    old, equals, new = text.rpartition("=")
    if not equals or not new:
        raise typer.BadParameter(f"{text!r} is not OLD=NEW", param_hint="--rename")
    return old, new


def _named_shape(text: str) -> tuple[str, list[int | str | None]]:
    """The input and its sizes that ``NAME=SIZES`` stands for."""
    name, equals, listed = text.rpartition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not NAME=SIZES", param_hint="--shape")
    sizes = [size.strip() for size in listed.split(",")] if listed.strip() else []
    if "" in sizes:
        raise typer.BadParameter(f"{text!r} leaves a size out", param_hint="--shape")
    return name, [None if size == "?" else _size_of(size) for size in sizes]


def _size_of(text: str) -> int | str:
    """A number, or a name."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def write_signatures(model: Model, folder: Path, write: Callable[[str, Path], None]) -> None:
    """Write a file for each signature that can be exported.

    Raises:
        Exit: with code 1 where one cannot be; which, and why, is said.
        BridgeError: as of `write_each`.
    """
    files = signature_files(model, folder)
    made_folder(folder)
    refused = write_each(files, write)
    for key, error in refused.items():
        complain(ExportError(f"signature {key!r} is not written: {error}"))
    if refused:
        raise typer.Exit(1)

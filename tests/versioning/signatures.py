"""Signatures for the reference's cases. Its flags become shapes and scales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tests.versioning.reference import reference
from tflite_ort.schema import Op, TensorType
from tflite_ort.versioning.operator_signature import Signature, TensorSignature

# Options that the schema names otherwise than TFLite's C structs.
_SCHEMA_NAMES = {
    "dilation_width_factor": "dilation_w_factor",
    "dilation_height_factor": "dilation_h_factor",
    "activation": "fused_activation_function",
}
_UNIFORM = (4, 4, 4, 4)
_CHANNELS = 3
# Operator -> (is it an output, its position, the axis) of the tensor that may be per channel.
_PER_CHANNEL = {
    "CONV_2D": (False, 1, 0),
    "DEPTHWISE_CONV_2D": (False, 1, 3),
    "FULLY_CONNECTED": (False, 1, 0),
    "EMBEDDING_LOOKUP": (False, 1, 0),
    "DEQUANTIZE": (False, 0, 2),
    "QUANTIZE": (True, 0, 2),
}


def cases() -> Iterator[tuple[str, Signature, int]]:
    """(label, signature, expected version) of every case of the reference."""
    tests = reference("version_tests.json")
    for part in ("upstream", "generated"):
        for name, rows in tests[part].items():
            for i, row in enumerate(rows):
                yield (
                    f"{part}/{name}/{i}",
                    _signature(name, row["signature"]),
                    row["expected_version"],
                )
    for name, versions in tests["uniform_type_sweep"].items():
        for type_name, version in versions.items():
            yield f"sweep/{name}/{type_name}", _uniform(name, type_name), version


def _uniform(name: str, type_name: str) -> Signature:
    tensor = TensorSignature(TensorType[type_name], _UNIFORM)
    return Signature(Op[name], (tensor,) * 5, (tensor,) * 2, {})


def _signature(name: str, given: Mapping[str, Any]) -> Signature:
    flags = given.get("flags", {})
    inputs = [_tensor(tensor) for tensor in given["inputs"]]
    outputs = [_tensor(tensor) for tensor in given["outputs"]]
    if name in _PER_CHANNEL:
        is_output, position, axis = _PER_CHANNEL[name]
        scales = _CHANNELS if flags.get("is_per_channel_quantized") else 0
        _change(outputs if is_output else inputs, position, scales=scales, axis=axis)
        _change(outputs if is_output else inputs, position, shape=(_CHANNELS,) * 4)
    if name == "CONV_2D":
        grouped = flags.get("is_grouped_convolution", 0)
        _change(inputs, 0, shape=(1, 1, 1, 2 * _CHANNELS if grouped else _CHANNELS))
    if name == "STRIDED_SLICE":
        _change(inputs, 0, shape=(1,) * flags.get("num_dims", 0))
    _change(inputs, 0, quantized=bool(flags.get("input_quantized")))
    _change(inputs, 1, sparse=bool(flags.get("sparse_weight")))
    _change(inputs, 0, scale=flags.get("input1_scale", 0.0))
    _change(inputs, 1, scale=flags.get("input2_scale", 0.0))
    _change(outputs, 0, scale=flags.get("output_scale", 0.0))
    return Signature(Op[name], tuple(inputs), tuple(outputs), _options(given.get("options")))


def _tensor(given: Mapping[str, Any]) -> TensorSignature:
    type_name = given["type"]
    return TensorSignature(
        None if type_name == "NONE" else TensorType[type_name], tuple(given.get("dims", ()))
    )


def _change(tensors: list[TensorSignature], position: int, **changes: Any) -> None:
    if position < len(tensors):
        tensors[position] = replace(tensors[position], **changes)


def _options(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if given is None:
        return None
    options = {_SCHEMA_NAMES.get(name, name): value for name, value in given.items()}
    # The C struct says NONE where the schema has no such type: a file says it by having no table.
    if options.get("quantized_bias_type") in (0, "NONE"):
        del options["quantized_bias_type"]
    return options

"""The order in which ONNX Runtime itself would take the devices of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnxruntime

from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.providers.session import ORT_ERRORS
from tflite_ort.providers.trials import identity


def device_order() -> list[tuple[str, str]]:
    """Provider and kind of each device, the first choice of ONNX Runtime's selection first; empty
    where this release selects none. Nothing is made ready on a device by that."""
    options = onnxruntime.SessionOptions()
    if not hasattr(options, "set_provider_selection_policy_delegate"):
        return []
    found: list[tuple[str, str]] = []

    def select(devices: Sequence[Any], *_: Any) -> list[Any]:
        found.extend((each.ep_name, each.device.type.name) for each in devices)
        return list(devices[-1:])  # the last one is ONNX Runtime's own

    options.set_provider_selection_policy_delegate(select)
    try:
        onnxruntime.InferenceSession(serialized(identity()), options)
    except ORT_ERRORS:
        return found
    return found

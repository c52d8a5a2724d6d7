"""ONNX Runtime sessions: the one module that names onnxruntime."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as _ort_errors

from tflite_ort.opmap.pairs import paired
from tflite_ort.schema import DelegateError

Array = npt.NDArray[Any]
Provider = str | tuple[str, Mapping[str, Any]]

ORT_VERSION: str = onnxruntime.__version__

# What ONNX Runtime raises; it has no common base below Exception.
ORT_ERRORS: tuple[type[Exception], ...] = (
    _ort_errors.EPFail,
    _ort_errors.EngineError,
    _ort_errors.Fail,
    _ort_errors.InvalidArgument,
    _ort_errors.InvalidGraph,
    _ort_errors.InvalidProtobuf,
    _ort_errors.ModelLoaded,
    _ort_errors.NoModel,
    _ort_errors.NoSuchFile,
    _ort_errors.NotImplemented,
    _ort_errors.RuntimeException,
    RuntimeError,  # of a bound run
)

# Products with 4-bit weights are computed in float32, not with activations rounded to 8 bits.
_CONFIG = {"session.qdq_matmulnbits_accuracy_level": "1"}

_KERNEL_TIME = "_kernel_time"  # how the profile marks the run of a node

# Below this size an initializer stays in the protobuf, where graph optimisations look at it.
_INLINE_BYTES = 1024


def available_providers() -> list[str]:
    """Names of the execution providers of the installed onnxruntime."""
    return list(onnxruntime.get_available_providers())


@cache
def exact_weight_type() -> str:
    """The fastest type of quantised weights that this CPU multiplies exactly, found by trying.

    Without VNNI, ONNX Runtime's x86 kernels add pairs of uint8 x int8 products in 16 bits, which
    saturates; uint8 x uint8 is exact but takes twice the time where VNNI is there.
    """
    depth, codes = 64, np.full((64, 32), 127, np.int8)
    activations = ir.Value(
        name="a", shape=ir.Shape([4, depth]), type=ir.TensorType(ir.DataType.UINT8)
    )
    weights = ir.Value(name="b", const_value=ir.Tensor(codes, name="b"))
    node = ir.Node("", "MatMulInteger", [activations, weights])
    result = node.outputs[0]
    result.name, result.type = "y", ir.TensorType(ir.DataType.INT32)
    graph = ir.Graph(
        [activations], [result], nodes=[node], initializers=[weights], opset_imports={"": 21}
    )
    session = Session(ir.Model(graph, ir_version=10), num_threads=1)
    products = np.zeros((4, 32), np.int32)
    session.run(session.bind([np.full((4, depth), 255, np.uint8)], [products]))
    return "int8" if (products == depth * 255 * 127).all() else "uint8"


@dataclass(frozen=True, slots=True)
class NodeTime:
    """One run of a node of the optimised graph: its name, operator, provider and seconds."""

    name: str
    op_type: str
    provider: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Binding:
    """The arrays that a run of a session reads from and writes to; they must outlive it."""

    arrays: list[Array]
    bound: Any


class Session:
    """An ONNX Runtime session, run over arrays that were bound to it before.

    Args:
        model: its initializers are handed over as views, not serialised.
        providers: execution providers in order of preference.
        num_threads: threads within an operator; 0 is ONNX Runtime's default.
        config: entries of ONNX Runtime's session configuration.
        profile: where `node_times` are noted, as the beginning of a file name.

    Raises:
        DelegateError: ONNX Runtime could not make or run the session.
    """

    def __init__(
        self,
        model: ir.Model,
        providers: Sequence[Provider] = ("CPUExecutionProvider",),
        *,
        num_threads: int = 0,
        config: Mapping[str, str] | None = None,
        profile: str | None = None,
    ) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what it would log as an error is raised
        options.intra_op_num_threads = num_threads
        if profile is not None:
            options.enable_profiling, options.profile_file_prefix = True, profile
        for key, value in {**_CONFIG, **(config or {})}.items():
            options.add_session_config_entry(key, value)
        # They must outlive the session, which reads them in place.
        self._weights = _externalized(model)
        if self._weights:
            options.add_external_initializers(
                list(self._weights), [weights.value for weights in self._weights.values()]
            )
        try:
            self._session = onnxruntime.InferenceSession(
                ir.to_proto(model).SerializeToString(), options, providers=list(providers)
            )
        except ORT_ERRORS as error:
            raise DelegateError(f"ONNX Runtime could not load the graph: {error}") from error
        self._inputs = [value.name for value in self._session.get_inputs()]

    @property
    def providers(self) -> list[str]:
        """The execution providers ONNX Runtime really uses, CPU last."""
        return list(self._session.get_providers())

    def bind(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Binding:
        """What `run` needs to read from and write to these arrays, given in graph order."""
        bound = self._session.io_binding()
        binding = Binding([*map(paired, inputs), *map(paired, outputs)], bound)
        for position, array in enumerate(inputs):
            self.bind_input(binding, position, array)
        for value, array in zip(
            self._session.get_outputs(), binding.arrays[len(inputs) :], strict=True
        ):
            bound.bind_output(
                value.name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data
            )
        return binding

    def bind_input(self, binding: Binding, position: int, array: Array) -> None:
        """Read one of the inputs from another array."""
        array = binding.arrays[position] = paired(array)
        binding.bound.bind_input(
            self._inputs[position], "cpu", 0, array.dtype.type, array.shape, array.ctypes.data
        )

    def run(self, binding: Binding) -> None:
        """One inference over the bound arrays."""
        try:
            self._session.run_with_iobinding(binding.bound)
        except ORT_ERRORS as error:
            raise DelegateError(f"ONNX Runtime failed: {error}") from error

    def call(self, inputs: Sequence[Array]) -> list[Array]:
        """One inference over arrays in graph order; returns what it made, in arrays of its own."""
        try:
            results = self._session.run(None, dict(zip(self._inputs, inputs, strict=True)))
        except ORT_ERRORS as error:
            raise DelegateError(f"ONNX Runtime failed: {error}") from error
        return [np.asarray(result) for result in results]

    def node_times(self) -> list[NodeTime]:
        """What each run of each node took, of all runs so far; ends the profiling."""
        events = json.loads(Path(self._session.end_profiling()).read_text(encoding="utf-8"))
        return [
            NodeTime(
                event["name"].removesuffix(_KERNEL_TIME),
                event["args"]["op_name"],
                event["args"]["provider"],
                event["dur"] / 1e6,
            )
            for event in events
            if event["cat"] == "Node" and event["name"].endswith(_KERNEL_TIME)
        ]


@dataclass(frozen=True, slots=True)
class _Weights:
    """An initializer as ONNX Runtime takes it, over the array that it is a view of."""

    array: Array
    value: onnxruntime.OrtValue


def _externalized(model: ir.Model) -> dict[str, _Weights]:
    """Replace the large initializers of `model` by external ones; returns what they were."""
    weights: dict[str, _Weights] = {}
    for name, value in model.graph.initializers.items():
        tensor = value.const_value
        if tensor is None or tensor.nbytes < _INLINE_BYTES:
            continue
        weights[name] = _weights(tensor)
        value.const_value = ir.ExternalTensor(
            "bound", 0, tensor.nbytes, tensor.dtype, shape=ir.Shape(tensor.shape.numpy()), name=name
        )
    return weights


def _weights(tensor: ir.TensorProtocol) -> _Weights:
    if tensor.dtype is not ir.DataType.INT4:
        array = np.asarray(tensor.numpy(), order="C")
        return _Weights(array, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    # ONNX Runtime wants an array of the tensor's shape, of which it reads half the bytes.
    packed, shape = np.frombuffer(tensor.tobytes(), np.int8), tensor.shape.numpy()
    codes = np.lib.stride_tricks.as_strided(packed, shape, np.empty(shape, np.int8).strides)
    from_numpy = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
    return _Weights(packed, from_numpy(codes, int(tensor.dtype)))

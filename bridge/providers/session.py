"""ONNX Runtime sessions: the one module that names onnxruntime."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as _ort_errors

from tflite_ort.base.forks import renew_in_children
from tflite_ort.base.optional import late
from tflite_ort.base.records import record, replace
from tflite_ort.providers.binding import Binding, DeviceTensor, Tensor, in_graph, place_of
from tflite_ort.providers.names import canonical
from tflite_ort.providers.plain_session import PlainSession, value_over
from tflite_ort.providers.provider import ON_CPU, Device, DeviceMemory, Provider
from tflite_ort.providers.settings import Settings, chosen, read_settings, save_to, settings_of
from tflite_ort.providers.stored_graph import COMPILED, SavedGraph, StoredGraph
from tflite_ort.providers.traits import MEMORY_OF_VENDOR, traits_of
from tflite_ort.schema import DelegateError
from tflite_ort.schema.values.complex_pairs import paired

with late:
    from tflite_ort.providers import (
        left_sessions,
        messages,
        native_libraries,
        optimizers,
        small_numbers,
    )

if TYPE_CHECKING:
    import pathlib

Array = npt.NDArray[Any]

ORT_VERSION: str = onnxruntime.__version__
ORT_BUILD: str = f"{ORT_VERSION} {onnxruntime.get_build_info()}"
ORT_RELEASE = tuple(int(number) for number in ORT_VERSION.split(".")[:2])

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
    UnicodeDecodeError,  # its message has a name out of a damaged file
)

# One for all runs: without it ONNX Runtime makes one for each run, which takes 0.4 microseconds.
# Its Python classes look at it at each run, which takes 20: only plain sessions are given it.
_RUN_OPTIONS = onnxruntime.RunOptions()
# A first run takes memory tensor by tensor, and the later ones take it in one piece. With these
# options it gives back what it took, which nothing would use again.
_FIRST_RUN_OPTIONS = onnxruntime.RunOptions()
_FIRST_RUN_OPTIONS.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
_RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"
_NAME = attrgetter("name")

# Plug-ins are listed with them once they are loaded.
_COMPILED_IN = onnxruntime.get_available_providers()

_LIBRARY_AFFIXES = r"^(lib)?(onnxruntime_)?(providers_)?|\.(so|dll|dylib)\b.*$"

_HOST = "Cpu"  # how ONNX Runtime names the memory of the host


def available_providers() -> list[str]:
    """Names of the execution providers that are compiled into the installed onnxruntime."""
    return list(_COMPILED_IN)


def devices() -> list[Device]:
    """What the providers offer on this machine that use ONNX Runtime's device interface."""
    return [
        Device(
            each.ep_name,
            each.device.type.name,
            each.device.vendor,
            each.ep_metadata.get("version", ""),
            each.ep_metadata.get("library_path", ""),
        )
        for each in onnxruntime.get_ep_devices()
    ]


@cache
def register_library(path: str) -> None:
    """Load a library of plug-in providers, once.

    Raises:
        DelegateError: it is not there, or not such a library.
    """
    # Some libraries name their provider as they are registered.
    name = canonical(re.sub(_LIBRARY_AFFIXES, "", os.path.basename(path)))
    try:
        onnxruntime.register_execution_provider_library(name, path)
    except ORT_ERRORS as error:
        raise messages.failure(f"could not load {path}", error) from error


@record
class Weights:
    """An initializer as ONNX Runtime takes it, over the array that it is a view of."""

    array: Array
    value: onnxruntime.OrtValue

    @classmethod
    def of(cls, array: Array) -> Weights:
        """Weights that are an array of their own type."""
        return cls(array, onnxruntime.OrtValue.ortvalue_from_numpy(array))

    @classmethod
    def packed(cls, array: Array, shape: Sequence[int], onnx_type: int) -> Weights:
        """Weights of a type of 4 bits, two in a byte."""
        # ONNX Runtime wants an array of the tensor's shape, of which it reads half the bytes.
        strides = np.empty(shape, np.int8).strides
        codes = np.lib.stride_tricks.as_strided(array.view(np.int8), shape, strides)
        from_numpy = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
        return cls(array, from_numpy(codes, onnx_type))


_NO_WEIGHTS: Mapping[str, Weights] = {}
_NO_NAMES: frozenset[str] = frozenset()


@record
class SessionGraph:
    """What a session is made of.

    Args:
        content: a ModelProto.
        weights: by name, the initializers that are handed over beside it.
        in_place: by name, the inputs of the graph that are always these weights.
        operators: of the graph and of its bodies.
        alone: there is one node, which reads what the graph is given.
        masked: a mask may take scores away from an attention.
    """

    content: bytes
    weights: Mapping[str, Weights]
    in_place: Mapping[str, Array]
    operators: frozenset[str]
    alone: bool = False
    masked: bool = False


class Session:
    """An ONNX Runtime session, run over arrays that were bound to it before.

    Args:
        graph: what it runs.
        provider: what it does not take is left to the CPU's.
        num_threads: threads within an operator; 0 is ONNX Runtime's default.
        config: entries of ONNX Runtime's session configuration.
        optimized: False: the graph as it is, which is not to be run but to be looked at.
        profile: where the times of nodes are noted, as the beginning of a file name.
        save: the path of a file to write what the session can be made of again; nothing is written
            where that is not possible.

    Attributes:
        inputs, outputs: names, of inputs without those in place.
        saved: what was written; None for nothing.
        weights: by name, the initializers that were handed over.
        masked: numbers that are almost zero are zero in it, see `small_numbers`.

    Raises:
        DelegateError: ONNX Runtime could not make or run the session.
    """

    def __init__(
        self,
        graph: SessionGraph | StoredGraph,
        provider: Provider = ON_CPU,
        *,
        num_threads: int = 0,
        config: Mapping[str, str] | None = None,
        optimized: bool = True,
        profile: str | None = None,
        save: pathlib.Path | None = None,
    ) -> None:
        self._plain = traits_of(provider.name).takes_all_nodes and not provider.plugin
        self._run_options = _RUN_OPTIONS if self._plain else None
        self._first_options = _FIRST_RUN_OPTIONS if self._plain else self._run_options
        self._records, self.masked = False, graph.masked and self._plain
        told = small_numbers.CONFIG if self.masked else {}
        if isinstance(graph, StoredGraph):
            settings = read_settings(graph.kind, num_threads, tuple(told.items()))
            weights = _NO_WEIGHTS
        else:
            self._records, weights = not self._plain, graph.weights
            records = {_RECORD_ASSIGNMENT: "1"} if self._records else {}
            entries = {**(config or {}), **records, **told}
            plain = optimized and self._plain
            kept = plain and graph.alone and optimizers.keep_alone(graph.operators)
            settings = settings_of(
                *(num_threads, tuple(entries.items()), profile),
                finished=kept or not optimized,
                packed=optimized,
                basic=plain and not optimizers.needs_more(graph.operators),
            )
        self.in_place = graph.in_place
        self.weights = weights  # they must outlive the session, which may read them in place
        self.saved: SavedGraph | None = None
        make = partial(self._made, graph, provider, settings, save)
        self._session = small_numbers.unchanged(make) if self.masked else make()
        self._run, self._call = self._session.run_with_iobinding, self._session.run
        if self.masked:
            self._run, self._call = map(small_numbers.small_as_zero, (self._run, self._call))
        if num_threads != 1 or not self._plain:  # another provider may have threads of its own
            renew_in_children(self)
        if not self._plain and provider.name not in self._session.get_providers():
            missing = native_libraries.missing_library(provider.name)
            why = f": {missing}" if missing else ", its log says why"
            raise DelegateError(f"ONNX Runtime could not load {provider}{why}")
        if isinstance(graph, StoredGraph):
            self.inputs, self.outputs = graph.inputs, graph.outputs
        else:
            names = map(_NAME, self._session.get_inputs())
            self.inputs = [name for name in names if name not in self.in_place]
            self.outputs = list(map(_NAME, self._session.get_outputs()))
        self.on_device = not self._plain and any(
            x.name != _HOST for x in self._session.get_input_memory_infos()
        )

    def _made(
        self,
        graph: SessionGraph | StoredGraph,
        provider: Provider,
        settings: Settings,
        save: pathlib.Path | None,
    ) -> Any:
        """ONNX Runtime's session; one that cannot be saved is made without that."""
        tells = traits_of(provider.name).tells_fit
        if tells and isinstance(graph, StoredGraph) and graph.kind == COMPILED:
            native_libraries.check_compatible(graph.path, provider, ORT_ERRORS)
        alone = save is None and not self.weights
        options = settings.shared_options() if alone and self._plain else settings.options()
        saved = None
        if save is not None:
            sizes = len(graph.content), sum(x.array.nbytes for x in self.weights.values())
            saved = save_to(save, options, provider, *sizes)
        if self.weights:
            options.add_external_initializers(
                list(self.weights), [weights.value for weights in self.weights.values()]
            )
        try:
            session = self._native(graph, options, provider, settings)
        except ORT_ERRORS as error:
            if saved is not None:
                return self._made(graph, provider, settings, None)
            raise messages.failure("could not load the graph", error) from error
        if saved is not None and saved.files[0].exists():
            self.saved = replace(saved, files=[path for path in saved.files if path.exists()])
        return session

    def _native(
        self,
        graph: SessionGraph | StoredGraph,
        options: onnxruntime.SessionOptions,
        provider: Provider,
        settings: Settings,
    ) -> Any:
        if isinstance(graph, StoredGraph):
            content, idle = graph.content or graph.path, _NO_NAMES
        else:
            content = graph.content
            idle = _NO_NAMES if settings.finished else optimizers.left_out(graph.operators)
        if self._plain:
            texts = provider.options
            if texts:
                texts = {str(key): str(value) for key, value in texts.items()}
            return PlainSession(content, options, (provider.name, texts), idle)
        return onnxruntime.InferenceSession(
            content,
            options,
            providers=chosen(provider, options, settings.num_threads),
            enable_fallback=0,  # it would print a message and run on the CPU
        )

    def renew(self) -> None:
        """In the child of a fork it runs on the thread that calls it, and is never freed."""
        left_sessions.abandon(self._session)

    def options(self) -> Mapping[str, str]:
        """The options of the first provider, defaults too where it tells them."""
        options: dict[str, dict[str, str]] = self._session.get_provider_options()
        return options[self._session.get_providers()[0]]

    def assigned(self) -> dict[str, str]:
        """By name of a node, the provider that ONNX Runtime gave it to; nodes that it had removed
        or made anew by then are not among them. Empty in a session on the CPU alone."""
        if not self._records:
            return {}
        return {
            node.name: subgraph.ep_name
            for subgraph in self._session.get_provider_graph_assignment_info()
            for node in subgraph.get_nodes()
        }

    def output_place(self) -> DeviceMemory | None:
        """The memory of the device that makes the first output; None for the host's."""
        place = self._session.get_output_memory_infos()[0]
        if place.name == _HOST:
            return None
        return DeviceMemory(MEMORY_OF_VENDOR.get(place.device_vendor_id, "gpu"), place.device_id)

    def bind(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Binding:
        """What `run` needs to read from and write to these tensors, given in graph order."""
        bound = self._session.io_binding()
        for name, weights in self.in_place.items():
            self._bind_array(bound, name, weights)
        if self._plain:
            return self._bound_to_arrays(bound, inputs, outputs)
        copied = self.on_device or DeviceTensor in map(type, inputs)
        unmade = any(isinstance(x, DeviceTensor) and x.value is None for x in outputs)
        tensors = in_graph(inputs), in_graph(outputs)
        binding = Binding(self, bound, *tensors, copied=copied, unmade=unmade)
        if not copied:
            self._bind_inputs(binding)
        for name, target in zip(self.outputs, binding.targets, strict=True):
            if not isinstance(target, DeviceTensor):
                bound.bind_output(name, *place_of(target))
            elif target.value is not None:
                bound.bind_ortvalue_output(name, target.value)
            else:
                bound.bind_output(name, target.memory.kind, target.memory.number)
        return binding

    def _bound_to_arrays(
        self, bound: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Binding:
        """As `bind`, of a session that has no tensors on a device."""
        sources, targets = list(map(paired, inputs)), list(map(paired, outputs))
        for name, source in zip(self.inputs, sources, strict=True):
            self._bind_array(bound, name, source)
        for name, target in zip(self.outputs, targets, strict=True):
            bound.bind_ortvalue_output(name, value_over(target))
        return Binding(self, bound, sources, targets)

    def bind_input(self, binding: Binding, position: int, array: Array) -> None:
        """Read one of the inputs from another array."""
        binding.sources[position] = array = paired(array)
        if not binding.copied:
            self._bind_array(binding.bound, self.inputs[position], array)

    def run(self, binding: Binding) -> None:
        """One inference over the bound tensors."""
        try:
            if binding.copied:
                self._bind_inputs(binding)
            self._run(binding.bound, self._run_options)
        except ORT_ERRORS as error:
            raise messages.failure("failed", error) from _cause(error)
        if binding.unmade:
            self._keep(binding)

    def runner(self, binding: Binding) -> Callable[[], None]:
        """`run` over the same bound tensors each time, with less to ask."""
        if binding.copied or binding.unmade:
            return partial(self.run, binding)
        run_bound, options, later = self._run, self._first_options, self._run_options
        self._first_options = later

        def run() -> None:
            nonlocal options
            try:
                run_bound(binding.bound, options)
            except ORT_ERRORS as error:
                raise messages.failure("failed", error) from _cause(error)
            options = later

        return run

    def _bind_inputs(self, binding: Binding) -> None:
        for name, source in zip(self.inputs, binding.sources, strict=True):
            if isinstance(source, DeviceTensor):
                binding.bound.bind_ortvalue_input(name, source.value)
            else:
                self._bind_array(binding.bound, name, source)

    def _bind_array(self, bound: Any, name: str, array: Array) -> None:
        try:
            if self._plain:
                bound.bind_input(name, array)
            else:
                bound.bind_input(name, *place_of(array))
        except RuntimeError as error:  # of a type that it does not know
            raise DelegateError(messages.error_text(error)) from error

    def _keep(self, binding: Binding) -> None:
        """From now on use again the device memory that the first run has taken."""
        made = binding.bound.get_outputs()
        for name, target, value in zip(self.outputs, binding.targets, made, strict=True):
            if isinstance(target, DeviceTensor) and target.value is None:
                target.value, target.maker = value, self
                binding.bound.bind_ortvalue_output(name, value)
        binding.unmade = False

    def call(self, inputs: Sequence[Array]) -> list[Array]:
        """One inference over arrays in graph order; returns what it made, in arrays of its own."""
        try:
            feeds = dict(zip(self.inputs, map(paired, inputs), strict=True))
            everything = {**feeds, **self.in_place}
            results = self._call(self.outputs, everything, _RUN_OPTIONS)
        except ORT_ERRORS as error:
            raise messages.failure("failed", error) from _cause(error)
        if any(result is None for result in results):
            raise DelegateError("ONNX Runtime failed: an output was given no value")
        return [_named(np.asarray(result)) for result in results]

    def end_profiling(self) -> str:
        """The path of a JSON file with the times of the nodes, of all runs so far."""
        return str(self._session.end_profiling())


def _cause(error: Exception) -> Exception:
    """`error` without the frames that hold a binding, which has to go before its session."""
    return error.with_traceback(None)


def _named(array: Array) -> Array:
    """`array` with integers of numpy's named types: ONNX Runtime gives longlong for int64."""
    return array.view(array.dtype.str) if array.dtype.kind in "iu" else array

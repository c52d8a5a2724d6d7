"""The interpreter: the class of ``tf.lite``, with ONNX Runtime below."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy.typing as npt

from tflite_ort.base.closing import Closing
from tflite_ort.base.optional import late
from tflite_ort.base.overlaps import overlap
from tflite_ort.cache.choice import CacheChoice
from tflite_ort.interpreter.checked_subgraph import CheckedSubgraph
from tflite_ort.interpreter.loading import LoadedModel
from tflite_ort.interpreter.own_methods import OwnMethods
from tflite_ort.interpreter.tensor_values import LiveViews
from tflite_ort.model.opening import (
    check_batch,
    check_hybrid,
    check_resolver,
    check_threads,
)
from tflite_ort.providers.delegates import (
    AUTO,
    Delegate,
    OpResolverType,
    ProviderChoices,
    chosen_delegates,
)
from tflite_ort.providers.traits import FULL_PRECISION
from tflite_ort.schema import StateError, TensorError

with late:
    from tflite_ort.interpreter import device_choice, signatures
    from tflite_ort.model import signature_model

if TYPE_CHECKING:
    from tflite_ort.interpreter.signatures import SignatureRunner
    from tflite_ort.model.opened_model import OpenedModel, Signature
    from tflite_ort.schema import Budgets, Model
    from tflite_ort.tuning.tuner import TuneChoice
    from tflite_ort.versioning.resolver import OpResolver


class Interpreter(OwnMethods, Closing):
    """Runs a TFLite model on ONNX Runtime, with the methods of ``tf.lite.Interpreter``.

    Args:
        model_path: a ``.tflite`` file, or a bundle, which is read whole; one of more than 256 MiB
            is mapped, and must not be changed in place while it is in use.
        model_content: the bytes of such a file, instead of its path; not copied.
        experimental_delegates: what `load_delegate` returned; asked before the providers.
        num_threads: how many threads compute an operator; None is one, as in LiteRT.
        experimental_op_resolver_type: BUILTIN_REF runs everything in the numpy kernels, which
            give what TFLite's reference kernels give; the other types are the same here.
        experimental_preserve_all_tensors: `get_tensor` reads every tensor after `invoke`.
        experimental_compress_quantization_zero_points: details show equal zero points once.
        providers: ONNX Runtime execution providers, the first choice first, as names or
            (name, options) pairs; default the CPU. Operators that none takes run in
            numpy; an empty list runs all of them there. A `Delegate` may stand in the list too.
            ``"auto"`` is the device on which this model runs fastest, found by trying, see
            docs/delegates.md.
        precision: how providers compute floats: ``"full"`` is float32; ``"bf16"`` and ``"fp16"``
            are faster on some and less exact. Options of a provider that say another come first.
        hybrid: how float activations are multiplied by integer weights. ``"float"`` dequantizes
            the weights, which is more accurate than TFLite. ``"dynamic"`` rounds the activations
            to 8 bits at each invoke, as TFLite's reference kernels do; ``"xnnpack"`` rounds as
            LiteRT does by default. ``"auto"`` rounds if that is faster, by no more than TFLite's
            kernels.
        strict: raise an error if a delegate fails, or if ONNX Runtime runs some of its nodes
            elsewhere. Otherwise the next delegate takes over with a DelegateWarning, and
            `delegation` has the reason.
        resolver: where translators and kernels are looked up; default `BuiltinOpResolver`.
        batch: how many samples an invoke computes; inputs and outputs get the batch as their first
            dimension, see `batched_model`. None runs the model as it is.
        external_roots: folders in which constants outside the model's file may be, besides its own
            folder; links do not lead out of them.
        budgets: limits of what the model may ask for; default `Budgets`, which no real model comes
            near.
        cache: True stores the loaded model in the user's cache folder, for later interpreters of
            the same model with the same arguments; a path names another folder. None reads
            ``TFLITE_ORT_CACHE``; without it there is no cache. Results are the same.
        tune: True times the different ways to compute each layer (lowerings), once, and takes the
            fastest. The times are stored in the user's cache folder, for the same processor and
            number of threads. A path names another file; a `Tuning` has more options. Quantized
            results are the same, and floats are within the bounds of docs/numbers.md.
        model: the name of the model to run in a bundle (``.task``, ``.litertlm``), with or without
            folders and suffix; None for the only one.

    The other arguments have no effect: they tune TFLite's delegates.

    Raises:
        ModelError: the file is not a valid TFLite model, or cannot be opened.
        BudgetExceeded: it asks for more than a limit of `budgets`, here or in later calls.
        VersionError: operators or versions that TFLite does not have; lists all of them.
        DelegateError: the installed onnxruntime has no such provider, or it has not this precision.
        Unbatchable: an operator cannot run over a batch of samples.
        ValueError: neither or both of `model_path` and `model_content` are given; `cache` or `tune`
            is an empty text.

    Several interpreters may run at a time, each in its own thread; use one interpreter in one
    thread at a time: a call while another runs raises a StateError. Pickling and `copy` open the
    model anew, without tensor values.

    Examples:
        >>> from tflite_ort.command.demo import digits_model
        >>> interpreter = Interpreter(digits_model("float32"))
        >>> interpreter.allocate_tensors()
        >>> import numpy as np
        >>> image = np.zeros(interpreter.get_input_details()[0]["shape"], np.float32)
        >>> interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        >>> interpreter.invoke()
        >>> interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape
        (1, 10)
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | bytearray | memoryview | None = None,
        experimental_delegates: Sequence[Delegate] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        *,
        providers: ProviderChoices | None = None,
        resolver: OpResolver | None = None,
        hybrid: str = "auto",
        strict: bool = False,
        batch: int | None = None,
        external_roots: Sequence[str | os.PathLike[str]] = (),
        budgets: Budgets | None = None,
        model: str | None = None,
        cache: CacheChoice | None = None,
        tune: TuneChoice = False,
        precision: str = FULL_PRECISION,
    ) -> None:
        # As given, for `copy` and for pickling.
        self._arguments = dict(locals())
        del self._arguments["self"]
        check_hybrid(hybrid)
        check_threads(num_threads)
        check_batch(batch)
        check_resolver(resolver)
        choice = None
        if providers == AUTO:
            choice = device_choice.device_choice(self._arguments)
            providers, precision = choice.delegates(precision), FULL_PRECISION
        self._delegates = chosen_delegates(
            experimental_op_resolver_type, experimental_delegates or (), providers, precision
        )
        why = "" if choice is None else choice.why
        self._loaded = LoadedModel(self._arguments, self._delegates, why)
        self._shared = self._loaded.share()
        self._calls = calls = self._shared.state.calls
        self._running, self._copying = calls.running, calls.copying  # asked in each call
        self._compress_zero_points = experimental_compress_quantization_zero_points
        self._subgraphs: dict[int, CheckedSubgraph] = {}
        self._views = LiveViews()
        self._closed = False

    # Life cycle ------------------------------------------------------------------------------

    def allocate_tensors(self) -> None:
        """Make the model ready for its present input shapes; does nothing if it is ready.

        For open dimensions a file has some size, often 1. If an operator cannot take that, and no
        input was resized, `invoke` raises the AllocationError.

        Raises:
            UnresolvedOperator: operators that nothing here runs; the message lists all of them.
            AllocationError: an operator cannot take the shapes that reach it; names the operator.
            Untranslatable: operators that neither translate nor have a kernel; lists all.
            DelegateError: a delegate failed, and the interpreter is strict.
            StateError: an array of `tensor` is still held.
        """
        self._ensure_safe()
        self._subgraph(0).allocate_or_wait()

    def invoke(self) -> None:
        """Run the model once.

        Raises:
            StateError: `allocate_tensors` was not called, or not since an input was resized, or
                an array of `tensor` is still held, or another call has not ended.
            DelegateError, KernelError: an operator failed.
        """
        running = self._running
        try:
            running.append(None)
            if len(running) > 1 or self._copying:
                raise overlap()
            if self._views.alive:
                self._ensure_safe()
            (self._subgraphs.get(0) or self._subgraph(0)).invoke()
        finally:
            running.pop()

    def resize_tensor_input(
        self, input_index: SupportsIndex, tensor_size: npt.ArrayLike, strict: bool = False
    ) -> None:
        """Give an input a new shape; call `allocate_tensors` afterwards.

        Args:
            strict: only dimensions that are -1 in the input's ``shape_signature`` may change.

        Raises:
            ResizeError: it is a constant or no tensor, a size is negative, or `strict` forbids it.
            StateError: an array of `tensor` is still held.
        """
        self._ensure_safe()
        self._calls.alone(self._subgraph(0).resize, input_index, tensor_size, strict)

    def reset_all_variables(self) -> None:
        """Set the state of recurrent operators to its first value, and the inputs that signatures
        keep to zero.

        Raises:
            StateError: there are such tensors, and `allocate_tensors` was not called.
        """
        subgraph = self._subgraph(0)
        for index, tensor in enumerate(subgraph.declared.tensors):
            if tensor.is_variable and subgraph.executor.array(index) is None:
                raise StateError(f"Variable tensor {index} is unallocated: call allocate_tensors()")
        self._calls.alone(subgraph.executor.reset_variables)

    def copy(self) -> Self:
        """Another interpreter of the same model, opened with the same arguments."""
        return type(self)(**self._arguments)

    def close(self) -> None:
        """Release sessions and memory; every later call except `copy` raises a StateError."""
        self._calls.alone(self._close)

    def _close(self) -> None:
        self._closed = True
        self._subgraphs.clear()
        self._loaded.close()

    def _shown_subgraph(self) -> CheckedSubgraph | None:
        return None if self._closed else self._subgraph(0)

    def __reduce__(self) -> Any:
        given = self._arguments.items()  # a memoryview cannot be pickled
        arguments = {name: bytes(v) if isinstance(v, memoryview) else v for name, v in given}
        return _reopened, (type(self), arguments)

    # Tensors -----------------------------------------------------------------------------------

    def get_input_details(self) -> list[dict[str, Any]]:
        """One dictionary per input: name, index, shape, shape_signature, dtype, quantization,
        quantization_parameters, sparsity_parameters."""
        subgraph = self._subgraph(0)
        return [subgraph.details(index) for index in subgraph.declared.inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """As `get_input_details`, per output."""
        subgraph = self._subgraph(0)
        return [subgraph.details(index) for index in subgraph.declared.outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """As `get_input_details`, per tensor of a subgraph."""
        count = self.num_subgraphs()
        if not 0 <= subgraph_index < count:
            raise TensorError(
                f"subgraph_index is out of range: {subgraph_index} for the model, which has "
                f"{count} subgraphs."
            )
        subgraph = self._subgraph(subgraph_index)
        return [subgraph.details(index) for index in range(len(subgraph.declared.tensors))]

    def set_tensor(self, tensor_index: SupportsIndex, value: npt.ArrayLike) -> None:
        """Copy `value` into an input; strings as a numpy array of bytes or text.

        Raises:
            TensorError: `allocate_tensors` was not called, there is no such tensor, or dtype or
                shape are not the tensor's.
            StateError: an invoke has not ended.
        """
        copying = self._copying
        try:
            copying.append(None)
            if self._running:
                raise overlap()
            self._subgraph(0).set(tensor_index, value)
        finally:
            copying.pop()

    def get_tensor(self, tensor_index: SupportsIndex, subgraph_index: int = 0) -> Any:
        """A copy of a tensor; a numpy scalar if it has no dimensions.

        The first time that an intermediate result is read, it is computed once more, and from the
        next invoke on it is kept as an output is; see docs/interpreter.md.

        Raises:
            TensorError: `allocate_tensors` was not called, or there is no such tensor, or no value
                of it: before an invoke, or after the inputs or the state it depends on were set.
            StateError: an invoke has not ended.
        """
        copying = self._copying
        try:
            copying.append(None)
            if self._running:
                raise overlap()
            return self._subgraph(subgraph_index).get(tensor_index)
        finally:
            copying.pop()

    def tensor(self, tensor_index: SupportsIndex) -> Callable[[], Any]:
        """A function that returns an array over the tensor's own memory, to read and write.

        While such an array or a slice of it is held, `invoke`, `allocate_tensors` and
        `resize_tensor_input` refuse to run. Hold the function instead.
        """

        def view() -> Any:
            if self._running:
                raise overlap()
            array = self._subgraph(0).view(tensor_index)
            return self._views.of(array) if array.ndim else array[()]

        return view

    # Subgraphs and signatures ------------------------------------------------------------------

    def num_subgraphs(self) -> int:
        """How many subgraphs the model has."""
        return self._opened.subgraph_count

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of the ``inputs`` and ``outputs`` of each signature, by its key."""
        return {
            key: {"inputs": list(each.inputs), "outputs": list(each.outputs)}
            for key, each in self._signatures.items()
        }

    def get_signature_runner(
        self,
        signature_key: str | None = None,
        *,
        keep: Collection[str] | Mapping[str, str] = (),
    ) -> SignatureRunner:
        """A function that runs a signature: takes arrays by name, returns a dictionary.

        Args:
            signature_key: None for the only signature of the model.
            keep: inputs that the runner keeps, such as ``{"kv_cache_k_0", "kv_cache_v_0"}``. They
                are zeros at first, then the output of the same name at the last call. A mapping
                names another output. Runners that keep an input of the same name share it. See
                `SignatureRunner.kept`.

        Raises:
            TensorError: there is no such signature, or it has to be named, or it has no such input
                or output to keep.
        """
        if signature_key is None:
            if len(self._signatures) != 1:
                raise TensorError(
                    f"SignatureDef signature_key is None and model has {len(self._signatures)} "
                    "Signatures. None is only allowed when the model has 1 SignatureDef"
                )
            (signature_key,) = self._signatures
        if signature_key not in self._signatures:
            said = signature_model.absent(str(signature_key), list(self._signatures))
            raise TensorError(f'Invalid signature_key provided: "{signature_key}": {said}')
        signature = self._signatures[signature_key]
        subgraph = partial(self._subgraph, signature.subgraph)
        return signatures.SignatureRunner(signature, subgraph, keep, self._loaded.seconds)

    # Checks ------------------------------------------------------------------------------------

    def _safe_to_run(self) -> bool:
        """Whether nobody holds an array of `tensor`."""
        return not self._views

    def _ensure_safe(self) -> None:
        if self._views.alive:
            raise StateError(
                "There is at least 1 reference to internal data in the interpreter in the form of "
                "a numpy array or slice: hold the function that tensor() returns, not its arrays."
            )

    @property
    def _opened(self) -> OpenedModel:
        if self._closed:
            raise StateError("The interpreter is closed.")
        return self._loaded.opened

    @property
    def _model(self) -> Model:
        return self._opened.model

    @property
    def _signatures(self) -> Mapping[str, Signature]:
        return self._opened.signatures

    def _subgraph(self, index: int) -> CheckedSubgraph:
        made = self._subgraphs.get(index)
        if made is not None:  # none is when the interpreter is closed
            return made
        opened = self._opened
        count = opened.subgraph_count
        if not 0 <= index < count:
            raise TensorError(f"Invalid subgraph index {index} exceeds max subgraph index {count}")
        made = self._subgraphs[index] = CheckedSubgraph(
            opened,
            index,
            self._shared,
            compress_zero_points=self._compress_zero_points,
            batch=self._arguments.get("batch"),
        )
        return made


def _reopened(kind: type[Interpreter], arguments: dict[str, Any]) -> Interpreter:
    return kind(**arguments)

"""Signatures: subgraphs as functions whose inputs and outputs have names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.overlaps import overlap
from tflite_ort.interpreter.checked_subgraph import CheckedSubgraph
from tflite_ort.model.opened_model import Signature
from tflite_ort.schema import BridgeError, TensorError

with late:
    import asyncio

    from tflite_ort.base import foreign_arrays
    from tflite_ort.interpreter import shown

if TYPE_CHECKING:
    from tflite_ort.plan.placements import LoadTimes, Placement
    from tflite_ort.plan.profiling import OperatorTime

Array = npt.NDArray[Any]


class SignatureRunner:
    """Calls one signature: takes arrays by input name, returns a dictionary by output name.

    Made by `Interpreter.get_signature_runner`. It works with the interpreter's own tensors: the
    call leaves inputs resized and their values set.

    A kept input is neither passed nor returned. Its value is in one array, which ONNX Runtime
    writes in place if it can; otherwise the output is copied over it after each call. After a call
    that fails, a part of it may be written. If a call passes a kept input, its value is replaced.
    """

    def __init__(
        self,
        signature: Signature,
        subgraph: Callable[[], CheckedSubgraph],
        keep: Collection[str] | Mapping[str, str] = (),
        read_seconds: float = 0.0,
    ) -> None:
        self._signature, self._subgraph = signature, subgraph
        self._read_seconds = read_seconds
        # Tools of LiteRT read these of its own class.
        self._subgraph_index = signature.subgraph
        self._inputs, self._outputs = signature.inputs, signature.outputs.items()
        self._kept = _kept(signature, keep)
        outputs = {target for _, target in self._kept.values()}
        self._returned = {
            name: index for name, index in signature.outputs.items() if index not in outputs
        }
        self._passed = len(signature.inputs) - len(self._kept)
        self._last: _Call | None = None

    def __call__(self, **inputs: npt.ArrayLike) -> dict[str, Any]:
        """Run the subgraph once.

        Raises:
            TensorError: the names, a dtype or a shape are not those of the signature.
            StateError: another signature keeps an input of the same name with another shape, or
                another call of the interpreter has not ended.
            BridgeError: as `Interpreter.allocate_tensors` and `Interpreter.invoke`.
        """
        subgraph, last = self._subgraph(), self._last
        calls = subgraph.calls
        running = calls.running
        try:
            running.append(None)
            if len(running) > 1 or calls.copying:
                raise overlap()
            repeated = None if last is None else last.repeated(subgraph, inputs)
            return self._first(subgraph, inputs) if repeated is None else repeated
        finally:
            running.pop()

    async def call_async(self, **inputs: npt.ArrayLike) -> dict[str, Any]:
        """As a call, in a thread of its own: other coroutines run meanwhile.

        Raises: as a call.
        """
        found: dict[str, Any] = await asyncio.to_thread(self, **inputs)
        return found

    def __repr__(self) -> str:
        sides = {
            side: [{**each, "name": name} for name, each in details.items()]
            for side, details in (
                ("input", self.get_input_details()),
                ("output", self.get_output_details()),
            )
        }
        ready = self._subgraph().executor.plan is not None
        placements = self._subgraph().placements() if ready else None
        of = f"subgraph {self._signature.subgraph}"
        return shown.summary(type(self).__name__, of, sides, placements)

    def _first(
        self, subgraph: CheckedSubgraph, inputs: Mapping[str, npt.ArrayLike]
    ) -> dict[str, Any]:
        """The results of a call that is not as the last one."""
        if self._kept:  # from then on, as long as the plan is the same
            subgraph.keep(self._kept)
        self._set(subgraph, inputs)
        subgraph.invoke()
        results = {name: subgraph.get(index) for name, index in self._returned.items()}
        self._last = _Call.of(subgraph, self._signature.inputs, inputs, self._returned)
        return results

    def _set(self, subgraph: CheckedSubgraph, inputs: Mapping[str, npt.ArrayLike]) -> None:
        """Make `subgraph` ready for `inputs`, and set them."""
        expected = self._signature.inputs
        if len(inputs) - sum(name in self._kept for name in inputs) != self._passed:
            raise TensorError(
                "Invalid number of inputs provided for running a SignatureDef, expected "
                f"{self._passed} vs provided {len(inputs)}{self._wrong_names(inputs)}"
            )
        try:
            values = [
                (expected[name], foreign_arrays.host_array(value)) for name, value in inputs.items()
            ]
        except ValueError as error:
            raise TensorError(str(error)) from error
        except KeyError as error:
            raise TensorError(
                f"Invalid Input name ({error.args[0]}) for SignatureDef{self._wrong_names(inputs)}"
            ) from None
        # What is kept belongs to sizes with which the subgraph can be made ready.
        before = [(i, subgraph.executor.shape(i)) for i, _ in values] if self._kept else []
        try:
            for index, value in values:
                subgraph.resize(index, np.shape(value))
            subgraph.allocate()
            for index, value in values:
                subgraph.set(index, value)
        except BridgeError:
            for index, shape in before:
                subgraph.resize(index, shape)
            raise

    def _wrong_names(self, inputs: Collection[str]) -> str:
        """Which names are missing, and which are no inputs."""
        expected = self._signature.inputs
        missing = [name for name in expected if name not in inputs and name not in self._kept]
        unknown = [name for name in inputs if name not in expected]
        said = [("missing", missing), ("no inputs", unknown)]
        return "".join(f"; {what}: {', '.join(names)}" for what, names in said if names)

    @property
    def kept(self) -> dict[str, Array]:
        """The arrays of the kept inputs by name, to read and write between calls: no copies.

        `Interpreter.reset_all_variables` sets them to zero.
        """
        subgraph = self._subgraph()
        subgraph.calls.alone(self._keep, subgraph)
        return {name: subgraph.kept[name] for name in self._kept}

    def _keep(self, subgraph: CheckedSubgraph) -> None:
        subgraph.keep(self._kept)
        subgraph.allocate()

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """The details of each input by name, as `Interpreter.get_input_details`."""
        return self._details(self._signature.inputs)

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """The details of each output by name, as `Interpreter.get_output_details`."""
        return self._details(self._signature.outputs)

    def delegation(self) -> tuple[Placement, ...]:
        """As `Interpreter.delegation`, for the signature's subgraph, which is made ready if it is
        not."""
        return self._ready().placements()

    def profile(self, runs: int = 50) -> Sequence[OperatorTime]:
        """As `Interpreter.profile`, for the signature's subgraph."""
        subgraph = self._ready()
        return subgraph.calls.alone(subgraph.executor.profiled, runs)

    @property
    def load_times(self) -> LoadTimes:
        """As `Interpreter.load_times`, for the signature's subgraph."""
        return self._ready().executor.load_times(self._read_seconds)

    def _ready(self) -> CheckedSubgraph:
        return self._subgraph().ready()

    def _details(self, tensors: dict[str, int]) -> dict[str, dict[str, Any]]:
        subgraph = self._subgraph()
        return {name: subgraph.details(index) for name, index in tensors.items()}


class _Call:
    """A call whose inputs and results are plain arrays: what a like one needs to know.

    Args:
        subgraph: it was made ready.
        inputs: by name, the array that a value is copied to.
        outputs: by name, the tensor.
    """

    __slots__ = ("_arrays", "_inputs", "_outputs", "_plan")

    def __init__(
        self, subgraph: CheckedSubgraph, inputs: Mapping[str, Array], outputs: Mapping[str, int]
    ) -> None:
        self._plan = plan = subgraph.executor.plan
        assert plan is not None
        self._arrays = plan.arrays
        self._inputs = [(name, each, each.shape, each.dtype) for name, each in inputs.items()]
        self._outputs = tuple(outputs.items())

    @classmethod
    def of(
        cls,
        subgraph: CheckedSubgraph,
        tensors: Mapping[str, int],
        inputs: Collection[str],
        outputs: Mapping[str, int],
    ) -> _Call | None:
        """The call that was made last; None where a value is more than an array."""
        arrays = {name: subgraph.plain_array(tensors[name]) for name in inputs}
        plain = {name: each for name, each in arrays.items() if each is not None}
        results = [subgraph.plain_array(index) for index in outputs.values()]
        if len(plain) < len(arrays) or any(each is None or not each.ndim for each in results):
            return None
        return cls(subgraph, plain, outputs)

    def repeated(
        self, subgraph: CheckedSubgraph, inputs: Mapping[str, npt.ArrayLike]
    ) -> dict[str, Array] | None:
        """The results for `inputs`; None where these are no arrays as before, or the subgraph is
        not ready for them. One function, since a call of a small network takes microseconds."""
        if subgraph.executor.plan is not self._plan or len(inputs) != len(self._inputs):
            return None
        for name, array, shape, dtype in self._inputs:
            value = inputs.get(name)
            if type(value) is not np.ndarray or value.shape != shape or value.dtype != dtype:
                return None  # who asks sets all of them anew
            array[...] = value
        subgraph.invoke()
        arrays = self._arrays
        return {name: arrays[index].copy() for name, index in self._outputs}


def _kept(
    signature: Signature, keep: Collection[str] | Mapping[str, str]
) -> dict[str, tuple[int, int]]:
    """The subgraph input and output of each kept input, by its name."""
    if isinstance(keep, str):
        raise TensorError(f"keep is {keep!r}, expected a collection of names")
    pairs = keep if isinstance(keep, Mapping) else {name: name for name in sorted(keep)}
    for given, found in ((pairs, signature.inputs), (pairs.values(), signature.outputs)):
        if missing := sorted(set(given) - set(found)):
            kind = "input" if found is signature.inputs else "output"
            there = ", ".join(found)
            raise TensorError(
                f"The signature has no {kind} {', '.join(missing)} to keep; there are {there}"
            )
    if len(set(pairs.values())) < len(pairs):
        raise TensorError("Two inputs are kept as one output")
    return {name: (signature.inputs[name], signature.outputs[to]) for name, to in pairs.items()}

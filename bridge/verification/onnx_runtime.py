"""An ONNX file, made by this library or by any other, run as the model that it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from tflite_ort.base.json_text import parsed
from tflite_ort.comparison.differences import badness, difference
from tflite_ort.opmap.onnx_graph.ir import PRODUCER
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import BridgeError, Model, TensorView
from tflite_ort.schema.values.resolve import tensor_views
from tflite_ort.verification.extraction import tensor_index
from tflite_ort.verification.onnx_forms import (
    TensorNames,
    ValueForm,
    best_form,
    declared_form,
    misfit_form,
)
from tflite_ort.verification.onnx_graph import OnnxGraph
from tflite_ort.verification.results import Part
from tflite_ort.verification.runtimes import (
    AT_A_TIME,
    Isolated,
    NotIsolated,
    Sample,
    Tensors,
    grouped,
    results,
)

Array = npt.NDArray[Any]

# Other tools make up to so many nodes of one operator.
_AFTER = 4


class MismatchedFile(BridgeError, ValueError):
    """An ONNX file that cannot have been made from the model."""


@dataclass
class OnnxRuntime:
    """An ONNX file in ONNX Runtime.

    Args:
        model: the TFLite model, composites inlined.
        proto: the ONNX model; what lies outside of it is in `folder`.
        mapping: by name of a value, the name or index of the tensor that it stands for.
    """

    model: Model
    proto: onnx.ModelProto
    name: str = "export"
    folder: Path | None = None
    mapping: Mapping[str, str | int] = field(default_factory=dict)
    threads: int = 1

    def __post_init__(self) -> None:
        self.graph = OnnxGraph(self.proto)
        self._views = tensor_views(self.model, 0)
        operators = enumerate(self.model.subgraphs[0].operators)
        self._producer = {index: at for at, op in operators for index in op.outputs}
        self._names = TensorNames(self._views)
        self._inputs, self._outputs = self._by_place()
        self._ours = self.proto.producer_name == PRODUCER
        # The first value that stands for each tensor, and in which form.
        self._value: dict[int, str] = {}
        self._form: dict[str, ValueForm] = {}
        self._last: dict[int, str] = {}
        self._shape: dict[int, tuple[int, ...]] = {}
        self._known: tuple[Sequence[Tensors], Mapping[str, int]] | None = None

    # As a whole --------------------------------------------------------------------------------

    def outputs(self, sample: Sample) -> Iterator[Tensors]:
        session = OnnxSession(self.proto, self.folder, self.threads)
        state: dict[str, Array] = {}
        pairs = self._state()
        for inputs in sample:
            found = dict(
                zip(session.outputs, session.run({**self._feeds(inputs), **state}), strict=True)
            )
            state = {before: found[after] for before, after in pairs if after in found}
            tensors = {}
            for name, index in self._outputs.items():
                if found.get(name) is not None:
                    tensors[index] = self._plain(np.asarray(found[name]), self._views[index])
            yield tensors

    def tensors(
        self, sample: Sample, reference: Tensors | None = None
    ) -> Iterator[tuple[int, Array]]:
        right = sample[0] if reference is None else reference
        matched = self._matched(right)
        for name, index in self._outputs.items():
            if index in right:
                matched[name] = [index]
        feeds = self._feeds(sample[0])
        near: dict[int, tuple[bool, float]] = {}
        for names in self._groups(matched):
            values = self._values(names, feeds)
            for name in names:
                if isinstance(values.get(name), np.ndarray):
                    yield from self._fit(name, values[name], matched[name], right, near)
        for name, index in self._outputs.items():
            if name in self._form:
                self._last[index], self._shape[index] = name, right[index].shape

    def _values(self, names: Sequence[str], feeds: Mapping[str, Array]) -> dict[str, Any]:
        """The values among these that the file has."""
        made = [name for name in names if name in self.graph.producer]
        if not made:
            return dict(feeds)
        session = OnnxSession(self.graph.showing(made), self.folder, self.threads)
        return {**dict(zip(session.outputs, session.run(feeds), strict=True)), **feeds}

    def _groups(self, matched: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
        """Values in groups; the file shows one group at a time."""
        names: dict[int, list[str]] = {}
        for name, candidates in matched.items():
            names.setdefault(candidates[0], []).append(name)
        most = max(map(len, names.values()), default=1)
        for group in grouped(self.model, names, AT_A_TIME // most):
            yield [name for index in group for name in names[index]]

    def _fit(
        self,
        name: str,
        value: Array,
        candidates: Sequence[int],
        right: Tensors,
        near: dict[int, tuple[bool, float]],
    ) -> Iterator[tuple[int, Array]]:
        """Note which of the tensors `value` stands for, and how; the tensor if it is the best so
        far.

        In files of other tools that is the nearest one, since what has the name may be the tensor
        before its bias or activation.
        """
        for index in candidates:
            want, view = right[index], self._views[index]
            form = best_form(value, name, view, want)
            if form is None and len(candidates) == 1 and self._ours:
                form = misfit_form(value, name, view, want)
            if form is None:
                continue
            self._form[name] = form
            array = form.to_tensor(value, want.shape)
            codes = view.quantization if view.is_quantized else None
            apart = (False, 0.0) if self._ours else badness(difference(array, want, codes))
            if index not in near or apart < near[index]:
                self._value[index], near[index] = name, apart
                yield index, array
            return

    def unreadable(self, tensor: int) -> str:
        return (
            f"no value of the file stands for {self._views[tensor].name!r}: fused away or renamed"
        )

    @property
    def outputs_only(self) -> str:
        """Why only outputs can be compared; empty if other values can be compared too."""
        inside = set(self._value) - {
            *self.model.subgraphs[0].inputs,
            *self.model.subgraphs[0].outputs,
        }
        if inside or len(results(self.model)) <= len(set(self.model.subgraphs[0].outputs)):
            return ""
        return "no value inside the file has the name of a tensor; --map says which is which"

    # One operator ------------------------------------------------------------------------------

    def isolated(self, operator: int, given: Sequence[Tensors]) -> Isolated:
        nodes, read, targets = self._segment(operator, given)
        runs = self._runs(nodes, read, targets, given)
        return Isolated(runs, self._spanned(list(targets), set(read.values())))

    def part(self, operator: int, sample: Tensors) -> Part:
        """The nodes that `isolated` runs, as a file.

        Raises:
            NotIsolated: there are none.
        """
        nodes, read, targets = self._segment(operator, [sample])
        feeds = {name: self._form[name].to_value(sample[index]) for name, index in read.items()}
        cut = self.graph.cut(nodes, feeds, list(targets.values()))
        return Part(tuple(read.values()), tuple(targets), cut.SerializeToString())

    def _segment(
        self, operator: int, given: Sequence[Tensors]
    ) -> tuple[list[int], dict[str, int], dict[int, str]]:
        """Nodes, the values that they read with the tensors that these stand for, and by tensor the
        values that they make.

        Raises:
            NotIsolated: there are none.
        """
        graph = self.model.subgraphs[0]
        outputs = [index for index in graph.operators[operator].outputs if index in self._value]
        if not outputs:
            raise NotIsolated("no value of the file stands for what it makes")
        stops, own = self._stops(given), {self._value[index] for index in outputs}
        targets = [self._last.get(index, self._value[index]) for index in outputs]
        nodes, borders = self.graph.between(stops, targets, passed=own)
        if not nodes:
            raise NotIsolated("it is no node of the file")
        if unknown := [name for name in borders if name not in stops]:
            raise NotIsolated(f"the reference has no value of {unknown[0]!r}")
        read = {name: stops[name] for name in borders}
        return nodes, read, dict(zip(outputs, targets, strict=True))

    def _stops(self, given: Sequence[Tensors]) -> Mapping[str, int]:
        """The values that stand for tensors of every sample; found once for the same samples."""
        if self._known is None or self._known[0] is not given:
            every = set(given[0]).intersection(*given[1:])
            self._known = given, {name: i for i, name in self._value.items() if i in every}
        return self._known[1]

    def _runs(
        self,
        nodes: Sequence[int],
        borders: Mapping[str, int],
        targets: Mapping[int, str],
        given: Sequence[Tensors],
    ) -> Iterator[Tensors]:
        """The results of `nodes` for the values `borders` of each sample."""
        names, session = list(targets.values()), None
        for sample in given:
            feeds = {n: self._form[n].to_value(sample[index]) for n, index in borders.items()}
            if session is None:
                part = self.graph.cut(nodes, feeds, names)
                session = OnnxSession(part, self.folder, self.threads)
            values = zip(targets, names, session.run(feeds, names), strict=True)
            yield self._as_tensors(values, sample)

    def _as_tensors(self, values: Iterable[tuple[int, str, Any]], sample: Tensors) -> Tensors:
        """Values of the file, each after its tensor and its name, as the tensors of `sample`."""
        return {
            index: self._form[name].to_tensor(np.asarray(value), sample[index].shape)
            for index, name, value in values
            if index in sample
        }

    def _spanned(self, outputs: Sequence[int], borders: set[int]) -> tuple[int, ...]:
        """The operators that lead from the tensors `borders` to `outputs`."""
        graph = self.model.subgraphs[0]
        found: set[int] = set()
        waiting = list(outputs)
        while waiting:
            at = self._producer.get(waiting.pop())
            if at is None or at in found:
                continue
            found.add(at)
            inputs = (index for index in graph.operators[at].inputs if index is not None)
            waiting += [index for index in inputs if index not in borders]
        return tuple(sorted(found))

    def close(self) -> None:
        pass

    # What stands for what ----------------------------------------------------------------------

    def _matched(self, known: Tensors) -> dict[str, list[int]]:
        """The tensors that each value may stand for, where the right result is known."""
        graph = self.model.subgraphs[0]
        by_map = {name: tensor_index(graph, each) for name, each in self.mapping.items()}
        right = {*known, *graph.inputs}
        matched: dict[str, list[int]] = {}
        for name in self.graph.values():
            if name in by_map:
                candidates = [by_map[name]]
            elif name in self._inputs:
                candidates = [self._inputs[name]]
            elif name in self._outputs:
                candidates = [self._outputs[name]]
            else:
                candidates = self._names.of(name)
            if kept := [index for index in candidates if index in right]:
                matched[name] = kept
        if self._ours:
            return _first_of_each(matched)
        for name, candidates in list(matched.items()):
            for after in self.graph.following(name, matched, _AFTER):
                matched[after] = candidates
        return matched

    def _by_place(self) -> tuple[dict[str, int], dict[str, int]]:
        """The tensors that the file's inputs and outputs are, by name or else in order."""
        graph, state = self.model.subgraphs[0], self._state()
        inputs = [name for name in self.graph.inputs if name not in self.graph.initializers]
        inputs = [name for name in inputs if name not in {before for before, _ in state}]
        outputs = [name for name in self.graph.outputs if name not in {after for _, after in state}]
        variables = [index for index in graph.inputs if self._views[index].is_variable]
        given = [index for index in graph.inputs if index not in variables]
        return self._paired("input", inputs, given), self._paired("output", outputs, graph.outputs)

    def _paired(self, role: str, names: Sequence[str], tensors: Sequence[int]) -> dict[str, int]:
        graph = self.model.subgraphs[0]
        mapped = {n: tensor_index(graph, self.mapping[n]) for n in names if n in self.mapping}
        left = [index for index in tensors if index not in mapped.values()]
        for name in names:
            same = [index for index in left if index in self._names.of(name)]
            if name not in mapped and len(same) == 1:
                mapped[name] = same[0]
                left.remove(same[0])
        rest = [name for name in names if name not in mapped]
        if role == "output" and len(rest) != len(left):
            return mapped
        if len(rest) != len(left):
            raise MismatchedFile(f"the file has {len(names)} {role}s, the model {len(tensors)}")
        return mapped | dict(zip(rest, left, strict=True))

    def _state(self) -> list[tuple[str, str]]:
        """The inputs and outputs between which state goes, in this library's exports."""
        for entry in self.proto.metadata_props:
            if entry.key == "tflite.state":
                return _pairs(parsed(entry.value, MismatchedFile, "the metadata tflite.state"))
        return []

    def _feeds(self, inputs: Tensors) -> dict[str, Array]:
        return {name: self._fed(name, inputs[index], index) for name, index in self._inputs.items()}

    def _fed(self, name: str, array: Array, index: int) -> Array:
        """An input as the file declares it."""
        declared = self.graph.inputs[name].type.tensor_type
        sizes = [
            each.dim_value if each.HasField("dim_value") else -1 for each in declared.shape.dim
        ]
        if not declared.HasField("shape"):
            sizes = list(array.shape)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.elem_type)
        return declared_form(array, sizes, dtype, self._views[index]).to_value(array)

    def _plain(self, value: Array, view: TensorView) -> Array:
        """An output in the tensor's layout, where that is certain."""
        form = self._form.get(self._last.get(view.index, ""))
        return value if form is None else form.to_tensor(value, self._shape[view.index])


def _first_of_each(matched: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Of several values that stand for a tensor the first one: if all were shown, ONNX Runtime
    would compute the real numbers between codes besides the codes."""
    known: set[int] = set()
    found: dict[str, list[int]] = {}
    for name, candidates in matched.items():
        if len(candidates) > 1 or candidates[0] not in known:
            found[name] = candidates
            known.update(candidates if len(candidates) == 1 else ())
    return found


def _pairs(stored: Any) -> list[tuple[str, str]]:
    """Names of inputs and of outputs, empty where other signatures alone set the state; without
    those of outputs alone."""
    if not isinstance(stored, list) or not all(isinstance(p, list) and len(p) == 2 for p in stored):
        raise MismatchedFile(f"the metadata tflite.state are no pairs: {stored!r:.80}")
    return [(str(given), str(made or "")) for given, made in stored if given is not None]

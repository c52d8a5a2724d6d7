"""Every (operator, version) of a model is known, or all that are not are refused at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.fallback_kernels import custom_kernel
from tflite_ort.schema import (
    Model,
    Op,
    OperatorCode,
    SubGraph,
    UnknownOperator,
    UnresolvedOperator,
    UnsupportedVersion,
    VersionError,
)
from tflite_ort.schema.file.flow import INLINED, reached_subgraphs
from tflite_ort.schema.values.operators import FLEX, Key, is_flex
from tflite_ort.versioning.known import KNOWN, is_known, known_versions, span
from tflite_ort.versioning.resolver import OpResolver, operator_key

with late:
    from tflite_ort.schema.file import flex_table
    from tflite_ort.versioning import runtime

_ADVICE = (
    "Use a newer tflite-ort, give the interpreter a resolver that has these operators, "
    "or convert the model for an older runtime."
)
_REGISTER = (
    "Register it: resolver = BuiltinOpResolver(); resolver.add_custom({!r}, Registration(...)); "
    "Interpreter(..., resolver=resolver); see docs/custom_operators.md. "
    'export_onnx(..., custom_ops="domain") writes it as it is.'
)
_WELL_KNOWN = (
    "Change one line: Interpreter(..., resolver=tflite_ort.WellKnownOpResolver()), "
    "and the same in export_onnx."
)
# What compilers for one device put into the place of all that the device runs, and the device.
_COMPILED = {
    "DISPATCH_OP": "an accelerator",
    "edgetpu-custom-op": "Coral's Edge TPU",
    "ethos-u": "Arm's Ethos-U",
}
_BEFORE = "Use the file from before it was compiled for that device."


@record
class MissingOperator:
    """An operator code of a model that a resolver has nothing for.

    Args:
        name: the operator's, or a custom operator's own.
        count: how many operators of the model have this code.
        here: the versions that the resolver has.
        similar: a name that the resolver has and that differs in upper and lower case alone.
    """

    op: Op
    name: str
    version: int
    count: int
    here: Sequence[int]
    similar: str = ""

    def __str__(self) -> str:
        kind = "custom op" if self.op is Op.CUSTOM else "builtin opcode"
        return f"{kind} '{self.name}' version '{self.version}' ({self.count}x): {self.reason()}"

    @property
    def loads(self) -> bool:
        """Whether TFLite loads it: it looks for custom operators when tensors are allocated."""
        return self.op is Op.CUSTOM or is_known(self.op, self.version)

    def reason(self) -> str:
        """Who knows what of the operator."""
        if self.op is Op.CUSTOM:
            return self._custom()
        known = known_versions(self.op)
        if self.version in known:
            row = KNOWN[self.op, self.version]
            brings = f" ({row.brings})" if row.brings else ""
            return f"TFLite has it since {row.runtime}{brings}, {self._library()}"
        if not known:
            release = runtime.runtime_version(self.op, self.version)
            named = f", though {release} lists it" if release else ""
            return f"TFLite has no kernel for it{named}"
        if self.version < known[0]:
            return f"below the first version; {self._has()}"
        return f"what it brings and its first runtime are not known here; {self._has()}"

    @property
    def well_known(self) -> bool:
        """Whether it is missing only because the resolver that has it was not named."""
        return not self.here and self.version in custom_kernel.versions(self.name)

    def _custom(self) -> str:
        if self.here:
            return f"registered are {span(self.here)}"
        if self.well_known:
            return "not registered; WellKnownOpResolver has it"
        if self.name in _COMPILED:
            return f"machine code for {_COMPILED[self.name]}, which nothing else runs"
        if is_flex(self.name):
            return self._flex()
        if self.similar:
            return f"not registered; {self.similar!r} is, and names are case-sensitive"
        return "not registered"

    def _flex(self) -> str:
        """Why one of TensorFlow's operators is not here."""
        name = self.name.removeprefix(FLEX)
        if name not in flex_table.names():
            return f"TensorFlow's {name} is none of the operators that TFLite's Flex delegate runs"
        if self.version != 1:
            return f"TensorFlow's {name}, of which a model has version 1"
        if name.startswith("Sentencepiece") and not flex_table.family_of(name):
            return (
                f"{name} of tf_sentencepiece, a package that ended with TensorFlow 1; use tf.text's"
            )
        if not flex_table.family_of(name):
            return f"TensorFlow's {name}, which no runtime runs in a model; docs/flex.md says why"
        return f"TensorFlow's {name}, which is not here yet; docs/flex.md lists those that are"

    def _has(self) -> str:
        known = known_versions(self.op)
        if list(self.here) == list(known):
            return f"TFLite and this library have {span(known)}"
        return f"TFLite has {span(known)}, {self._library()}"

    def _library(self) -> str:
        if self.here:
            return f"this library has {span(self.here)}"
        return "this library has no translator or kernel yet"


def missing_operators(
    model: Model, resolver: OpResolver, subgraph: int | None = None
) -> list[MissingOperator]:
    """The operator codes of `model` that `resolver` has nothing for, used or not.

    Args:
        subgraph: leave out what others use, and neither it nor what it calls.
    """
    missing = [
        (index, code, key)
        for index, code in enumerate(model.operator_codes)
        if not _is_inlined(code, key := operator_key(code)) and not resolver.has(key, code.version)
    ]
    if not missing:
        return []
    everywhere = uses = _uses(model.subgraphs)
    if subgraph is not None:
        uses = _uses([model.subgraphs[index] for index in reached_subgraphs(model, subgraph)])
    return [
        _missing(code, key, uses[index], resolver)
        for index, code, key in missing
        if uses[index] or not everywhere[index]
    ]


def _uses(subgraphs: Sequence[SubGraph]) -> Counter[int]:
    return Counter(op.opcode_index for graph in subgraphs for op in graph.operators)


def lacking_signatures(model: Model, resolver: OpResolver) -> dict[str, list[MissingOperator]]:
    """By key of a signature, the operators that it needs and `resolver` has nothing for; without
    the signatures that need none."""
    found = {
        each.signature_key: missing_operators(model, resolver, each.subgraph_index)
        for each in model.signature_defs
    }
    return {
        key: used for key, rows in found.items() if (used := [row for row in rows if row.count])
    }


def _is_inlined(code: OperatorCode, key: Key) -> bool:
    """Whether a composite or a call stands for what it calls."""
    return key in INLINED and (key is Op.CALL or is_known(code.builtin_code, code.version))


def _missing(code: OperatorCode, key: Key, count: int, resolver: OpResolver) -> MissingOperator:
    name, here = key.name if isinstance(key, Op) else key, resolver.versions(key)
    similar = "" if isinstance(key, Op) else _similar(key, resolver)
    return MissingOperator(code.builtin_code, name, code.version, count, here, similar)


def _similar(name: str, resolver: OpResolver) -> str:
    known = (key for key in resolver.operators() if isinstance(key, str) and key != name)
    return next((key for key in known if key.casefold() == name.casefold()), "")


def check_versions(model: Model, resolver: OpResolver) -> None:
    """Raise one error that lists every operator that neither TFLite nor `resolver` has, of the
    primary subgraph and what it calls.

    As in TFLite, an entry of the model's operator codes counts even if no operator uses it. Those
    that other subgraphs use count when such a subgraph is allocated.

    Raises:
        UnsupportedVersion: of known operators, some in a version that is not known.
        UnknownOperator: some of the operators are not known in any version.
    """
    _refuse([item for item in missing_operators(model, resolver, 0) if not item.loads])


def check_operators(model: Model, resolver: OpResolver, subgraph: int = 0) -> None:
    """Raise one error that lists every operator of a subgraph, and of what it calls, for which
    `resolver` has nothing; as in TFLite, a custom one counts only if it is used.

    Raises:
        UnresolvedOperator: TFLite would load the model, and nothing here runs it.
        UnsupportedVersion, UnknownOperator: as `check_versions`.
    """
    missing = missing_operators(model, resolver, subgraph)
    _refuse([item for item in missing if item.count or item.op is not Op.CUSTOM])


def _refuse(missing: Sequence[MissingOperator]) -> None:
    if not missing:
        return
    kind: type[VersionError] = UnknownOperator
    if all(item.loads for item in missing):
        kind = UnresolvedOperator
    elif all(item.here for item in missing):
        kind = UnsupportedVersion
    if len(missing) == 1 and missing[0].op is Op.CUSTOM:
        name = missing[0].name
        advice = _BEFORE if name in _COMPILED else _REGISTER.format(name)
        advice = _WELL_KNOWN if missing[0].well_known else advice
        raise kind(f"Encountered unresolved custom op: {name}.\n{missing[0]}.\n{advice}")
    if len(missing) == 1:
        raise kind(f"Didn't find op for {missing[0]}.\n{_ADVICE}")
    lines = "\n".join(f"  {item}" for item in missing)
    advice = _WELL_KNOWN if all(item.well_known for item in missing) else _ADVICE
    raise kind(f"Didn't find op for {len(missing)} of the model's operators:\n{lines}\n{advice}")

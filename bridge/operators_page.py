"""Makes docs/operators.md: ``python -m tflite_ort.operators_page > docs/operators.md``."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.fallback_kernels import custom_kernel, kernel
from tflite_ort.opmap import custom_translator, translator
from tflite_ort.schema import Op
from tflite_ort.schema.inlining import INLINED
from tflite_ort.versioning.disagreements import DISAGREEMENTS
from tflite_ort.versioning.known import KNOWN, known_versions

_HEAD = """# Operators

Made by `python -m tflite_ort.operators_page`; a test holds it against the tables.

The operators that TFLite has kernels for, each version with the first TFLite release that has it
and what it brought. A version is *run by ONNX Runtime* when the library has a translator for it:
every execution provider is offered it. It *runs in numpy* when there is a kernel. An operator that
is *inlined* is replaced by the subgraph that it names. A model with a version in neither column is
refused. Custom operators are last; [custom_operators.md](custom_operators.md) says more of them.

| operator | ONNX Runtime | numpy | versions |
|---|---|---|---|
"""

_DISAGREEMENTS = """
## Where TFLite's tables disagree

| operator | version | registered | required by a rule | first runtime | here |
|---|---|---|---|---|---|
"""


def operators_page() -> str:
    """The whole page, in Markdown."""
    rows = [
        f"| {op.name} | {_where(op, translator.versions(op))} | {_where(op, kernel.versions(op))} "
        f"| {_history(op)} |\n"
        for op in Op
        if known_versions(op)
    ]
    rows += [
        f"| `{name}` | {_range(custom_translator.versions(name))} "
        f"| {_range(custom_kernel.versions(name))} | custom |\n"
        for name in sorted(_custom_names())
    ]
    exceptions = [
        f"| {row.op.name} | {row.version} | {_yes(row.registered)} | {_yes(row.required)} "
        f"| {row.runtime or '-'} | {row.here} |\n"
        for row in DISAGREEMENTS
    ]
    return "".join([_HEAD, *rows, _DISAGREEMENTS, *exceptions])


def _custom_names() -> set[str]:
    pairs = (*custom_translator.pairs(), *custom_kernel.pairs())
    return {key for key, _ in pairs if not isinstance(key, Op)}


def _history(op: Op) -> str:
    """Such as ``1 (1.5.0), 2 (1.14.0): int8``."""
    known = [KNOWN[op, version] for version in known_versions(op)]
    return "<br>".join(
        f"{row.number} ({row.runtime})" + (f": {row.brings}" if row.brings else "") for row in known
    )


def _where(op: Op, versions: Sequence[int]) -> str:
    return "inlined" if op in INLINED else _range(versions)


def _range(versions: Sequence[int]) -> str:
    if not versions:
        return "-"
    if list(versions) != list(range(versions[0], versions[-1] + 1)):
        return ", ".join(map(str, versions))
    return f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else str(versions[0])


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


if __name__ == "__main__":
    print(operators_page(), end="")

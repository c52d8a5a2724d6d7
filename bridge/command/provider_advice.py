"""What a provider leaves of a model, why, and what to change: for the verb ``inspect``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tflite_ort.command.placements import Row
from tflite_ort.providers.delegates import what_to_change
from tflite_ort.providers.traits import TRAITS

# Of a reason, so many operators are named.
_SHOWN = 4
# What takes the nodes that others leave.
_OF_ALL = [name for name, row in TRAITS.items() if row.takes_all_nodes]


def provider_advice(rows: Counter[Row]) -> Iterator[str]:
    """Sentences on each provider besides the CPU's own that was asked.

    Args:
        rows: where the operators of a model run, and why not elsewhere.
    """
    told = [f"{place} {reason}" for _, _, place, reason in rows]
    for name, row in TRAITS.items():
        if not row.takes_all_nodes and any(name in each for each in told):
            yield from _on(name, rows)


def _on(name: str, rows: Counter[Row]) -> Iterator[str]:
    ran = {row: count for row, count in rows.items() if row[2] != "constant"}
    left: dict[str, Counter[str]] = {}
    for (operator, _, place, reason), count in ran.items():
        if place.partition(" (")[0] != name or any(each in place for each in _OF_ALL):
            left.setdefault(reason, Counter())[operator] += count
    total, others = sum(ran.values()), sum(map(Counter.total, left.values()))
    yield f"{name} runs {total - others} of {total} operators."
    for reason, operators in sorted(left.items(), key=lambda each: -each[1].total()):
        some = ", ".join(f"{count} {each}" for each, count in operators.most_common(_SHOWN))
        more = ", ..." if len(operators) > _SHOWN else ""
        change = what_to_change(name, reason)
        yield f"It leaves {some}{more}: {reason or 'no reason is known'}. {change}".rstrip()

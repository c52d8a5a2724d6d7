"""Makes docs/rules.md: ``python -m benchmarks.rules_page > docs/rules.md``.

The rows come from the table of rules, and the networks from the record that
`python -m benchmarks.rules --json benchmarks/results/rules.json` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from tflite_ort.opmap import rules
from tflite_ort.opmap.rules.rule import (
    Rule,
    Stage,
    any_target,
    blocks,
    cpu,
    keeps_axes,
    paired,
    parts_layers,
    rounding,
    tiles,
)
from tflite_ort.opmap.rules.table import RULES

RECORD = Path(__file__).parent / "results" / "rules.json"
_HEAD = """# Rules: what makes graphs faster

Made by `python -m benchmarks.rules_page` from the table of rules and the record of
`python -m benchmarks.rules`. [Architecture](architecture.md) says how to add a rule.

A translator says what a TFLite operator means. All that makes a graph faster is a rule of one
table, `opmap/rules/table.py`. The rules are asked in this order. Each one can be switched off, to
measure what it gains:

```python
from tflite_ort.opmap.rules.rule import without

with without("norms"):
    ...  # load the model here, with cache=False
```

A gain is the time of an invoke without the rule over that with it, on one thread. "Fires" counts
the networks beside the repository whose session graphs are others without it. "Measured last" is
the network of the record with the largest gain; the same graph twice gave 0.99 to 1.01 on a quiet
machine."""
_GONE = (
    """A rule goes if it gains less than 3 % on every network, twice. These were rules before:"""
)
_COLUMNS = ("rule", "what it does", "for", "bound", "gain", "fires", "measured last")
# The modules of several rules, whose functions say what each one does.
_SEVERAL = ("operators.groups", "targets")
_STAGES = {
    Stage.TARGET: "## On what translators are told of the target",
    Stage.OPERATORS: "## On the operators of a graph, before it is translated",
    Stage.GROUPS: "## On groups of operators that are translated together",
    Stage.REWRITE: "## On single operators, in place of their translators",
    Stage.NODES: "## On the nodes of a graph, when all operators are translated",
    Stage.SESSION: "## On the nodes of a graph that ONNX Runtime is to run on the CPU",
}
_SAME = {Stage.TREES: Stage.GROUPS, Stage.LOWERING: Stage.REWRITE}
_TARGETS = {
    any_target: "all graphs",
    cpu: "ONNX Runtime's CPU",
    blocks: "CPUs with blocked floats",
    paired: "NPUs",
    keeps_axes: "OpenVINO",
    parts_layers: "OpenVINO",
    rounding: "devices that round floats",
    tiles: "CPUs with AMX",
}


def rules_page() -> str:
    """The text of the page."""
    record = json.loads(RECORD.read_text()) if RECORD.exists() else []
    found = {row["rule"]: row for row in record}
    lines = [_HEAD]
    for stage, title in _STAGES.items():
        lines += ["", title, ""]
        lines += [
            f"| {' | '.join(_COLUMNS)} |",
            f"|{'---|' * len(_COLUMNS)}",
        ]
        own = [rule for rule in RULES if _SAME.get(rule.stage, rule.stage) is stage]
        lines += [_row(rule, found) for rule in own]
    gone = [row for row in record if row["rule"] not in {rule.name for rule in RULES}]
    return "\n".join([*lines, *_gone(gone)]) + "\n"


def _gone(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was a rule when the record was made, and gained too little."""
    texts = [
        f"- {row['rule']}: "
        + (", ".join(_said_of(each) for each in row["timed"]) or "in none of the networks")
        for row in rows
    ]
    return ["", "## Taken out", "", _GONE, "", *texts] if texts else []


def _said_of(timed: Mapping[str, Any]) -> str:
    return f"{_median(timed):.2f} {Path(timed['network']).stem}"


def _median(timed: Mapping[str, Any]) -> float:
    return float(timed["off_on"][0])


def _row(rule: Rule, found: Mapping[str, Mapping[str, Any]]) -> str:
    row = found.get(rule.name)
    fires = "" if row is None else f"{row['fires']} of {row['of']}"
    timed = [] if row is None else [each for each in row["timed"] if "off_on" in each]
    most = max(timed, key=_median, default=None)
    cells: Sequence[str] = [
        rule.name,
        _first_sentence(rule),
        _TARGETS[rule.target],
        rule.bound,
        rule.gain,
        fires,
        "" if most is None else f"{_median(most):.2f} {Path(most['network']).stem}",
    ]
    return f"| {' | '.join(cells)} |"


def _first_sentence(rule: Rule) -> str:
    """What the module of a rule says first."""
    place, _, name = rule.function.partition(":")
    module = import_module(f"{rules.__name__}.{place}")
    text = (vars(module)[name] if place in _SEVERAL else module).__doc__ or ""
    return " ".join(text.split("\n\n")[0].split()).partition(". ")[0].rstrip(".:") + "."


if __name__ == "__main__":
    print(rules_page(), end="")

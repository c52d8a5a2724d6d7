"""What ``tflite-ort bench`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from tflite_ort.command.benchmark import Difference, Result
from tflite_ort.command.terminal import count_text, new_console, new_table
from tflite_ort.plan.profiling import OperatorTime

# Invokes of which a profile is made.
PROFILED_RUNS = 50


_OURS = ("threads", "ms", "load", "MiB")
_BOTH = ("threads", "ms", "LiteRT ms", "LiteRT / ours", "load", "LiteRT load", "MiB", "LiteRT MiB")


def print_results(results: Sequence[Result], check: bool) -> None:
    """Print of each model a row for each number of threads: times in milliseconds, memory in MiB.

    Args:
        check: say so where there is no LiteRT to compare the outputs with.
    """
    with_litert = any(result.litert for result in results)
    console = new_console()
    for model, of_model in groupby(results, lambda result: result.model):
        console.print(model)
        table, rows = new_table(*(_BOTH if with_litert else _OURS)), list(of_model)
        for result in rows:
            table.add_row(*_cells(result, with_litert))
        console.print(table)
        for result in rows:
            console.print(f"load, {_where(result)}: {_parts(result)}")
            if result.litert_error:
                console.print(f"{_where(result)}: LiteRT does not run it: {result.litert_error}")
            for difference in result.differences:
                console.print(f"{_where(result)}: {_difference(difference)}")
    if check and not with_litert:
        console.print("nothing to check against: LiteRT (ai-edge-litert) ran none of these")


def _where(result: Result) -> str:
    return count_text(result.threads, "thread")


def _parts(result: Result) -> str:
    parts = (("read", result.read_ms), ("translate", result.translate_ms))
    named = (*parts, ("sessions", result.session_ms))
    return ", ".join(f"{name} {ms:.1f} ms" for name, ms in named)


def _cells(result: Result, with_litert: bool) -> list[str]:
    ours, litert = result.ours, result.litert
    first, load = [str(result.threads), _milliseconds(ours.invoke_ms)], f"{ours.load_ms:.1f}"
    if not with_litert:
        return [*first, load, _mebibytes(ours.peak_mib)]
    if litert is None or result.ratio is None:
        return [*first, "-", "-", load, "-", _mebibytes(ours.peak_mib), "-"]
    return [
        *(*first, _milliseconds(litert.invoke_ms), f"{result.ratio:.2f}"),
        *(load, f"{litert.load_ms:.1f}"),
        *(_mebibytes(ours.peak_mib), _mebibytes(litert.peak_mib)),
    ]


def _difference(of: Difference) -> str:
    if of.relative is not None:
        return f"{of.name}: {of.relative:.2e} of the largest magnitude at most"
    if of.max_steps is not None:
        return f"{of.name}: {of.max_steps} quanta at most, {of.mean_steps:.4f} on average"
    return f"{of.name}: {of.exact:.1%} the same"


def _milliseconds(value: float) -> str:
    return f"{value:.4f}" if value < 1 else f"{value:.2f}"


def _mebibytes(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def print_profile(model: str, operators: Sequence[OperatorTime]) -> None:
    """A table of operators by the time they take in one invoke of `model`."""
    record = profile_record(operators)
    table = new_table("operator", "ms", "%", "nodes", "provider")
    for row in record["operators"]:
        nodes = ", ".join(f"{name} {_milliseconds(ms)}" for name, ms in row["nodes"].items())
        share = f"{100 * row['ms'] / (record['ms'] or 1.0):.1f}"
        table.add_row(row["operator"], _milliseconds(row["ms"]), share, nodes, row["provider"])
    console = new_console()
    console.print(f"{model}: {_milliseconds(record['ms'])} ms in operators")
    console.print(table)


def profile_record(operators: Sequence[OperatorTime]) -> dict[str, Any]:
    """What ``--json`` prints of a profile: milliseconds of one invoke, the slowest nodes first."""
    each = 1e3 / PROFILED_RUNS
    rows = [
        {
            "operator": operator.operator,
            "ms": operator.seconds * each,
            "nodes": {
                name: seconds * each
                for name, seconds in sorted(operator.nodes.items(), key=lambda node: -node[1])
            },
            "provider": operator.provider,
        }
        for operator in operators
    ]
    return {"ms": sum(operator.seconds for operator in operators) * each, "operators": rows}

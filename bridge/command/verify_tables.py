"""What the verb ``verify`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.command.terminal import coloured, new_console, new_table
from tflite_ort.verification.litert import litert_installed
from tflite_ort.verification.report import Report
from tflite_ort.verification.results import OperatorResult, RuntimeResult, Verdict

_WITHOUT_LITERT = (
    "LiteRT is not installed. After pip install ai-edge-litert, verify compares with LiteRT "
    "itself, and knows how far LiteRT's own kernels differ from each other."
)
_WORST = 5


def print_report(report: Report) -> None:
    """Print a report; lines end between words on a terminal."""
    for name, reason in report.skipped.items():
        _tell(f"{name} left out: {reason}")
    _tell(f"{report.model}: {report.inputs}, compared with {report.reference}")
    for result in report.runtimes:
        _print_runtime(result)
    if report.exit_code and not litert_installed():
        _tell(f"\n{_WITHOUT_LITERT}")
    if not report.complete:
        done = "this is what was done so far" if report.runtimes else "nothing was compared yet"
        _tell(f"interrupted: {done}")


def _print_runtime(result: RuntimeResult) -> None:
    _tell("")
    first, *others = f"{result.runtime}: {result.verdict}. {result.reason}".split("\n")
    new_console().print(coloured(first, result.verdict, _style(result.verdict)))
    _tell(*(f"  {each}" for each in others))
    if result.outputs_only:
        _tell(f"only outputs were compared: {result.outputs_only}")
    if result.error:
        return
    _print_outputs(result)
    _print_operators(result)
    _print_times(result)
    unread = sum(bool(tensor.unreadable) for tensor in result.tensors)
    if unread:
        _tell(f"{unread} of {len(result.tensors)} tensors cannot be read; --json says why")


def _print_outputs(result: RuntimeResult) -> None:
    if not result.outputs:
        return
    table = new_table("output", "verdict", "difference", "LiteRT's kernels", "top 1", "top 5")
    for each in result.outputs:
        scores = each.scores
        tops = ("", "") if scores is None else (str(scores.top1), str(scores.top5))
        spread = "" if each.spread is None else each.spread.words
        apart = each.difference.words
        verdict = coloured(each.verdict, each.verdict, _style(each.verdict))
        table.add_row(each.name, verdict, apart, spread, *tops)
    new_console().print(table)


def _style(verdict: Verdict) -> str:
    """The colour of a verdict."""
    if verdict.is_alarm:
        return "bold red"
    unsure = verdict in (Verdict.ADDED, Verdict.KNOWN, Verdict.INCONCLUSIVE)
    return "yellow" if unsure else "green"


def _print_times(result: RuntimeResult) -> None:
    """Print the times of the slowest operators."""
    timed = [(op.milliseconds, op) for op in result.operators if op.milliseconds is not None]
    if not timed:
        return
    whole = sum(time for time, _ in timed)
    table = new_table("slowest operators", "ms", "share", "ran in")
    for time, op in sorted(timed, key=lambda pair: -pair[0])[:_WORST]:
        table.add_row(op.label, f"{time:.3f}", f"{time / (whole or 1.0):.0%}", op.runs_on)
    new_console().print(table)


def _print_operators(result: RuntimeResult) -> None:
    """Print the first operators that are off by themselves, or those that round otherwise."""
    off = [each for each in result.operators if each.within is False]
    what = "operator off by itself" if off else "operator that rounds otherwise"
    off = off or [each for each in result.operators if each.rounds_otherwise]
    if not off:
        return
    table = new_table(what, "version", "alone", "in the network")
    for each in off[:_WORST]:
        alone, network = (
            "" if found is None else found.words for found in (each.isolated, each.accumulated)
        )
        table.add_row(each.label, str(each.version), alone or each.not_isolated, network)
    new_console().print(table)
    if len(off) > _WORST:
        _tell(f"and {len(off) - _WORST} more")
    _print_known(off[:_WORST])
    named = off[0]
    _tell(f"{named.label}: {', '.join(f'{k}={v}' for k, v in named.options.items())}")
    for tensor in result.tensors:
        if tensor.index in (*named.inputs, *named.outputs) and tensor.scales:
            role = "output" if tensor.index in named.outputs else "input"
            scale = f"{tensor.scales[0]:.6g}" if len(tensor.scales) == 1 else "per channel"
            _tell(f"  {role} {tensor.name}: {tensor.type} {list(tensor.shape)}, scale {scale}")


def _print_known(operators: Sequence[OperatorResult]) -> None:
    """What is known to differ in these operators: each sentence once."""
    labels: dict[str, list[str]] = {}
    for each in operators:
        labels.setdefault(each.known, []).append(each.label)
    for known, named in labels.items():
        if known:
            _tell(f"known of {', '.join(named)}: {known}")


def _tell(*lines: str) -> None:
    for line in lines:
        new_console().print(line)

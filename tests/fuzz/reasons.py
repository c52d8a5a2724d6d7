"""Why a file's outputs differ from LiteRT's: a cause is taken out, and both have to agree.

A reason names a repair (`repairs.py`). It holds where the repair changes the file or what it is
fed, both run, and no difference is left. So it can be wrong: where the file differs after the
repair as before, the reason is none. A file may have several causes: then all repairs are made at
once, and those are left away again, one after another, without which both agree as well. The
operators of a reason are those whose arithmetic was looked at: see docs/fuzzing.md. What is left
is "unexplained".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_

from tests.fuzz import repair_scales, repair_types, repairs
from tests.fuzz.case import ASKED_SECONDS, Case, answers_of_others, is_close
from tests.fuzz.describe import makers
from tests.fuzz.feeds import Tame
from tests.fuzz.litert import Question
from tests.fuzz.repair_types import Shape
from tests.fuzz.repairs import Repair, each_operator
from tests.fuzz.signs import SIGNS, unstable, written
from tests.fuzz.tree import data_of, with_graph
from tflite_ort.schema import BridgeError, Model, read_model

# How long several causes are looked for.
_PATIENCE = 30.0


@dataclass(frozen=True)
class Reason:
    """A cause that can be taken out.

    Args:
        repair: of the file.
        tame: of what it is fed.
        of_shapes: a repair that needs the shapes that tensors have here.
        of: the operators of which the file must have one; "": any.
        kept: whether LiteRT keeps all tensors, so that none has the memory of another.
    """

    name: str
    repair: Repair | None = None
    tame: Tame = Tame.NONE
    of_shapes: Callable[[Model, Mapping[int, Shape]], Model] | None = None
    of: str = ""
    kept: bool = False

    def repaired(self, case: Case, model: Model) -> Model:
        if self.of_shapes is not None:
            return self.of_shapes(model, _shapes(case))
        return model if self.repair is None else self.repair(model)

    def applies(self, case: Case, model: Model) -> bool:
        names = [name for _, _, _, name in each_operator(model)]
        if not any(self.of in name for name in names):
            return False
        return bool(self.tame) or self.kept or self.repaired(case, model) is not model


def _shapes(case: Case) -> dict[int, Shape]:
    """Of each result of the main graph's operators."""
    made = [index for _, outputs in makers(case.content) for index in outputs]
    outcome = case.ours(case.content, tensors=made)
    return {i: each.shape for i, each in zip(made, outcome.outputs, strict=False)}


REASONS = (
    Reason("compressed constants", repairs.dense),
    Reason("constants longer than their shapes", repairs.fitting),
    Reason("constants that are given another value", repairs.free_inputs),
    Reason("bytes that are neither true nor false", repair_types.booleans),
    Reason("handles as results", repair_types.no_handles),
    Reason("strings without dimensions", repairs.strings_in_rows),
    Reason("seeds of 0", repairs.seeded),
    Reason("random numbers of a body that loops share", repairs.own_generators),
    Reason("a declared shape of a variable", repairs.undeclared),
    Reason("a result that is a variable", repairs.no_variable_results),
    Reason("a declared shape of a result", of_shapes=repair_types.declared),
    Reason("merged outputs of several rows", repair_types.single_rows),
    Reason("a variable that an operator has twice", repair_types.own_states),
    Reason("projections to more outputs than cells", repair_types.without_peepholes),
    Reason("operators whose results nobody reads", repairs.without_unread),
    Reason("values that a loop exchanges", repairs.exchanged),
    Reason("inputs without elements", tame=Tame.FULL),
    Reason("transforms of one number", repairs.longer_transforms),
    Reason("sizes of images that are fed", of_shapes=repair_types.told_sizes),
    Reason("products over no axis", repairs.products_over_axes),
    Reason("ellipsis, new axes and offset of a slice", repairs.plain_slices),
    Reason("indices that are not INT32", repair_types.usual_indices),
    Reason("versions that LiteRT's reference kernels lack", repair_types.first_versions),
    Reason("NaN and infinities", repairs.finite, Tame.FINITE),
    Reason("roots of numbers below 0", repairs.finite, Tame.POSITIVE, of="SQRT"),
    Reason("a resized image in other units", repair_scales.units_of_images),
    Reason("two ways to quantise one tensor", repair_types.one_quantisation),
    Reason("weights of 2, 4 and 16 bits with activations of 16", repair_types.usual_weights),
    Reason("codes of less than 8 bits", repair_types.whole_bytes),
    Reason("results of another type than the codes", repair_types.usual_results),
    Reason("several scales of a tensor", repair_scales.one_scale),
    Reason("codes without a scale", repair_scales.own_scale),
    Reason("scales below 0", repair_scales.positive_scales),
    Reason("zero points", repair_scales.plain_zero_points),
    Reason("division of or by next to nothing", repair_types.away_from_zero, Tame.AWAY, of="DIV"),
    Reason("the unit of a cell state", repair_scales.usual_cell_state),
    Reason("biases of another type than an option says", repair_types.told_biases),
    Reason("biases that overflow", repairs.small_sums),
    Reason("scales far apart", repair_scales.near_scales),
    Reason("slopes and exponents far from 1", repairs.usual_options),
    Reason("floats that overflow or vanish", repairs.bounded, Tame.BOUNDED),
    Reason("activations that XNNPACK has not", repairs.usual_activations),
    Reason("weights of -128", repairs.no_lowest, Tame.NO_LOWEST),
    Reason("rounded activations", repair_scales.float_weights),
    Reason("counts of a shift", repairs.small_counts, Tame.SMALL, of="SHIFT"),
    Reason("memory that LiteRT uses twice", kept=True),
)


def reason(case: Case) -> str:
    """Why this file differs, several causes with " + " between; "" where nobody knows."""
    if unstable(case):
        return "memory that nobody set"
    if is_close(case.least()):
        return "the last bits, up to 1e-4"
    try:
        model = read_model(case.content)
    except BridgeError:
        return ""
    rows = [each for each in REASONS if each.applies(case, model)]
    single = next((each.name for each in rows if _agree(case, model, [each])), "")
    return single or _sign(case, model) or _several(case, model, rows) or _of_each_part(case, model)


def _sign(case: Case, model: Model) -> str:
    return next((name for name, holds in SIGNS.items() if holds(case, model)), "")


def _agree(case: Case, model: Model, rows: Sequence[Reason]) -> bool:
    """Whether both agree once all these causes are taken out."""
    repaired = reduce(lambda made, row: row.repaired(case, made), rows, model)
    tame = reduce(or_, (row.tame for row in rows), Tame.NONE)
    content = case.content if repaired is model else written(repaired)
    kept = any(row.kept for row in rows)
    return content is not None and case.agrees(content, int(tame), kept)


def _runs(case: Case, model: Model, row: Reason) -> bool:
    """Whether the file still has a result once this cause is taken out."""
    repaired = row.repaired(case, model)
    content = case.content if repaired is model else written(repaired)
    return content is not None and case.ours(content, int(row.tame)).stage == "done"


def _several(case: Case, model: Model, rows: list[Reason]) -> str:
    """The causes that together explain a file: each of them is needed."""
    until = time.monotonic() + _PATIENCE
    # A repair may make a file that is refused, and two of them may where one alone does not.
    rows = [row for row in rows if _runs(case, model, row)]
    tried = [rows, *([each for each in rows if each is not row] for row in rows)]
    for some in tried:
        if time.monotonic() > until:
            return ""
        if len(some) > 1 and _agree(case, model, some):
            return " + ".join(row.name for row in _needed(case, model, some, until))
    return ""


def _of_each_part(case: Case, model: Model) -> str:
    """The reasons of the parts of the main graph that share nothing, or of its outputs where all
    share something; "" where one of those that differ has none."""
    parts, found = _parts(model), list[str]()
    if len(parts) == 1:
        parts = [(output,) for output in dict.fromkeys(parts[0])]
    for outputs in parts if len(parts) > 1 else ():
        alone = with_graph(replace(model, signature_defs=()), 0, outputs=outputs)
        content = written(repairs.without_unread(alone))
        part = None if content is None else _asked(case, content)
        if part is None:
            return ""
        if part.least() and not _is_dynamic(part):
            found.append(reason(part))
    return " + ".join(dict.fromkeys(found)) if all(found) else ""


def _parts(model: Model) -> list[tuple[int, ...]]:
    """The outputs of each part of the main graph: no operator of one reads what another reads or
    makes."""
    graph, parts = model.subgraphs[0], list[set[int]]()
    for op in graph.operators:
        variable = (i for i in op.inputs if i is not None and i >= 0)
        touched = {i for i in variable if data_of(model, graph.tensors[i]) is None} | {*op.outputs}
        joined = [part for part in parts if part & touched]
        parts = [part for part in parts if part not in joined] + [touched.union(*joined)]
    outputs = (tuple(i for i in graph.outputs if i in part) for part in parts)
    return [each for each in outputs if each]


def _asked(case: Case, content: bytes) -> Case | None:
    """The case of another file that is fed alike; None where it has no result."""
    outcome = case.ours(content)
    answer = case.litert.ask(Question(content, case.seed, seconds=ASKED_SECONDS))
    if not outcome.stage == answer.stage == "done":
        return None
    answers = {"default": answer, **answers_of_others(content, case.seed, case.litert)}
    return replace(case, content=content, outcome=outcome, answers=answers)


def _is_dynamic(case: Case) -> bool:
    """Whether the results are LiteRT's with activations that are rounded as there."""
    dynamic = case.ours(case.content, hybrid="dynamic")
    return dynamic.stage == "done" and not replace(case, outcome=dynamic).least()


def _needed(case: Case, model: Model, rows: list[Reason], until: float) -> list[Reason]:
    """Those of the causes without which both differ. The last ones, which change most, go first."""
    for row in reversed(rows):
        left = [each for each in rows if each is not row]
        if len(left) > 1 and time.monotonic() < until and _agree(case, model, left):
            rows = left
    return rows

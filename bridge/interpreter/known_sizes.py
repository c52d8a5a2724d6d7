"""The plans of sizes that a subgraph had before, so that a change back makes no session anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.plan.stored import StoredPlan
from tflite_ort.schema.values import sizes

with late:
    from tflite_ort.plan import partition

if TYPE_CHECKING:
    from tflite_ort.custom.kernels import BoundResolver
    from tflite_ort.fallback_kernels import Kernel
    from tflite_ort.plan.build import Plan
    from tflite_ort.schema import OperatorView, Specialized
    from tflite_ort.versioning.registry import Registry

Shape = tuple[int, ...]
Shapes = Mapping[int, Shape]

# How many plans are kept besides the present one, and what they take at most in all, as `_bytes`
# estimates it. A larger model is made anew at each change.
PLANS_KEPT, BYTES_KEPT = 7, 128 << 20


@record(eq=False)
class KnownSize:
    """A plan for some shapes.

    Args:
        graph: what it was made of; None where that is not known.
        lasting: the tensors that have one array for good.
        bytes: what it takes beside the constants, about.
    """

    plan: Plan | StoredPlan
    graph: Specialized | None
    lasting: frozenset[int]
    bytes: int

    @classmethod
    def of(
        cls,
        plan: Plan | StoredPlan,
        graph: Specialized | None,
        lasting: frozenset[int],
        resolver: Callable[[], BoundResolver],
    ) -> KnownSize | None:
        """What is kept of a plan; None where a new one would not be the same.

        Args:
            resolver: of a plan that was made here.
        """
        if not _starts_anew(plan, resolver):
            return None
        return cls(plan, graph, lasting, _bytes(plan))

    def begin(self, boundary: Iterable[int]) -> None:
        """Make its tensors what those of a new plan are: zeros, and none that an invoke made.

        Args:
            boundary: the inputs and outputs of the subgraph.
        """
        arrays, kept = self.plan.arrays, self.plan.memory.kept
        for index in arrays.keys() - self.lasting:
            del arrays[index]
        for index in set(boundary) & arrays.keys() - {*kept, *kept.values()}:
            arrays[index].fill(b"" if arrays[index].dtype.hasobject else 0)


class KnownSizes:
    """The plans that were used last.

    Args:
        constants: bytes of the model's constants, which each session may hold in a form of its own.
    """

    def __init__(self, constants: int) -> None:
        self._constants = constants
        self._known: dict[tuple[tuple[int, Shape], ...], KnownSize] = {}

    def keep(self, shapes: Shapes, known: KnownSize) -> None:
        """Keep a plan whose shapes are about to change."""
        self._known[_key(shapes)] = known

    def take(self, shapes: Shapes) -> KnownSize | None:
        """The plan for these shapes, which is the caller's from now on. The limits hold for the
        others."""
        found = self._known.pop(_key(shapes), None)
        while len(self._known) > PLANS_KEPT or self._taken() > BYTES_KEPT:
            del self._known[next(iter(self._known))]
        return found

    def clear(self) -> None:
        """Forget all: they are made of something that has changed."""
        self._known.clear()

    def _taken(self) -> int:
        return sum(self._constants + each.bytes for each in self._known.values())


def _key(shapes: Shapes) -> tuple[tuple[int, Shape], ...]:
    return tuple(sorted(shapes.items()))


def _bytes(plan: Plan | StoredPlan) -> int:
    """What the arrays of a plan and the results in its sessions take, each in memory of its own."""
    if isinstance(plan, StoredPlan):
        return sum(each.nbytes for each in plan.arrays.values())
    made = [out for op in plan.graph.operators for out in op.outputs]
    given = [plan.graph.tensors[index] for index in plan.graph.inputs]
    return sum(sizes.known_product(t.shape) * t.dtype.itemsize for t in (*given, *made))


def _starts_anew(plan: Plan | StoredPlan, resolver: Callable[[], BoundResolver]) -> bool:
    """Whether a plan has no state beside that of the interpreter: kernels may have one that they
    begin with, and functions of users prepare for each size."""
    if isinstance(plan, StoredPlan):
        return not plan.has_kernels
    bound = resolver()
    if bound.preparers():
        return False
    parts = [part for part in plan.report.parts if part.backend == partition.NUMPY]
    return not any(_keeps(op, bound.kernels) for part in parts for op in part.operators)


def _keeps(op: OperatorView[Any], kernels: Registry[Kernel]) -> bool:
    """Whether the kernel of an operator, or of one that it calls, keeps something."""
    entry = kernels.of(op)
    if entry is not None and entry.state is not None:
        return True
    return any(_keeps(inner, kernels) for body in op.bodies for inner in body.operators)

"""How much a small file may ask for: what it can unfold into, with a limit for each.

A few hundred bytes can describe gigabytes: calls that double from level to level, constants tiled
again and again, archives of zeros. Each such quantity has a budget here. What exceeds it is refused
with an error that says how to raise it. ``python benchmarks/budgets.py`` shows how far from
these limits real models are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.schema.file.errors import BudgetExceeded

# Results that are no more times larger than what they are made of count for nothing.
ENLARGED = 64
LEAST_BYTES = 4  # that an element of a result counts: kernels compute narrow types in 32 bits
# Of an array in numpy, which no budget can raise.
MOST_DIMENSIONS = 32 if np.__version__.startswith("1.") else 64


@record
class Budgets:
    """Limits of what a model may ask for.

    Args:
        tables: tables in the file, such as tensors and operators.
        called_operators: operators of called subgraphs and composites, counted anew at each call;
            those of a loop count at each look at its body, not at each iteration.
        folded_bytes: bytes of constants that are computed or made dense when tensors are
            allocated, beyond four times the constants of the file.
        tensor_bytes: bytes of a single tensor, beyond four times the constants of the file; and of
            all inputs together, where random ones are drawn.
        result_bytes: bytes of a result, or of the padded input of windows and of STABLEHLO_PAD, at
            least 4 for each element, beyond 64 times the inputs of its operator and four times the
            inputs of the model and the constants of the file. If values decide the size, it is
            looked at when the model runs, before the result is made.
        outputs: tensors that one ONNX Runtime session gives back. Making a session takes time
            quadratic in their number.
        option_values: values and bytes of text in the options of custom operators, beyond 16 for
            each of their bytes.
        metadata_bytes: bytes of the unpacked files that come with a model, and 4,096 for each; and
            of the labels in them, four times their bytes and 64 for each line.
        bundle_bytes: bytes of the compressed entries of a bundle, unpacked.
        used: filled with the largest amount of each that was asked for so far, if it is given.

    Raises:
        ValueError: a limit is negative, or no whole number.
    """

    tables: int = 1_000_000
    called_operators: int = 20_000
    folded_bytes: int = 1 << 28
    tensor_bytes: int = 2_000_000_000
    result_bytes: int = 1 << 27
    outputs: int = 8192
    option_values: int = 1 << 14
    metadata_bytes: int = 1 << 28
    bundle_bytes: int = 1 << 30
    used: dict[str, int] | None = None

    def __post_init__(self) -> None:
        for name in self.names():
            limit = getattr(self, name)
            if not isinstance(limit, int) or limit < 0:
                raise ValueError(f"budget {name} has to be a whole number from 0 on, got {limit!r}")

    @classmethod
    @cache
    def names(cls) -> tuple[str, ...]:
        """The limits there are."""
        return tuple(name for name in cls.__match_args__ if name != "used")

    def _limits(self) -> tuple[int, ...]:
        return tuple([getattr(self, name) for name in self.names()])

    def __eq__(self, other: object) -> bool:
        """Whether all limits are the same."""
        return isinstance(other, Budgets) and self._limits() == other._limits()

    def __hash__(self) -> int:
        return hash(self._limits())

    def __repr__(self) -> str:
        limits = zip(self.names(), self._limits(), strict=True)
        return f"Budgets({', '.join(f'{name}={limit}' for name, limit in limits)})"

    def check(self, name: str, needed: int, what: object = "the model") -> None:
        """Refuse `needed` of the quantity `name`.

        Args:
            what: what asks for it, whose text an error has.

        Raises:
            BudgetExceeded: it is more than the limit.
        """
        if self.used is not None:
            self.used[name] = max(needed, self.used.get(name, 0))
        if needed > (limit := getattr(self, name)):
            raise BudgetExceeded(name, needed, limit, what)


DEFAULT = Budgets()


def chosen_budgets(budgets: Budgets | None) -> Budgets:
    """The limits that a caller gave, or the default ones.

    Raises:
        TypeError: `budgets` has another type.
    """
    if budgets is None:
        return DEFAULT
    if not isinstance(budgets, Budgets):
        raise TypeError(f"budgets must be Budgets, got {type(budgets).__name__}")
    return budgets


class Meter:
    """What one reading of a model, or one allocation, has used of its budgets so far.

    Args:
        free: tells by name what does not count; it is asked when there is something to count.

    Attributes:
        small: as many bytes of a tensor need not be counted.
    """

    def __init__(
        self, budgets: Budgets | None = None, free: Callable[[], Mapping[str, int]] = dict
    ) -> None:
        self.budgets = limits = chosen_budgets(budgets)
        self.small = min(limits.tensor_bytes, limits.result_bytes) if limits.used is None else 0
        self._tell = free
        self._free: Mapping[str, int] | None = None
        self._spent: dict[str, int] = {}

    def _not_counted(self, name: str) -> int:
        if self._free is None:
            self._free = self._tell()
        return self._free.get(name, 0)

    def allowed(self, name: str) -> int:
        """How much of the quantity `name` may be asked for at once."""
        return int(getattr(self.budgets, name)) + self._not_counted(name)

    def check(self, name: str, needed: int, what: object = "the model") -> None:
        """Refuse `needed` of the quantity `name` at once, whatever else was spent.

        Raises:
            BudgetExceeded: it is more than the limit and what is free.
        """
        self.budgets.check(name, max(needed - self._not_counted(name), 0), what)

    def spend(self, name: str, amount: int, what: object = "the model") -> None:
        """Count `amount` more of the quantity `name`.

        Raises:
            BudgetExceeded: it is more than the limit, all together.
        """
        spent = self._spent[name] = self._spent.get(name, 0) + amount
        self.budgets.check(name, max(spent - self._not_counted(name), 0), what)

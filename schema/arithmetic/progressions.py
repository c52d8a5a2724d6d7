"""Where an arithmetic progression stands beside the multiples of a number, in as many steps as
Euclid's algorithm takes."""

from __future__ import annotations

from typing import NamedTuple


class Progression(NamedTuple):
    """The integers ``start + k * step`` of k from 0 up to `terms`, which is left out."""

    start: int
    step: int
    terms: int

    def is_near(self, modulus: int, low: int, high: int) -> bool:
        """Whether one of them is `low` to `high` above a multiple of `modulus`; none where `low` is
        above `high`."""
        if low > high:
            return False
        if high - low + 1 >= modulus:
            return self.terms > 0
        first, last = (low - self.start) % modulus, (high - self.start) % modulus
        if first > last:  # 0 is between
            return self.terms > 0
        found = _first(self.step % modulus, modulus, first, last)
        return found is not None and found < self.terms


def _first(step: int, modulus: int, low: int, high: int) -> int | None:
    """The first k from 0 up of which ``k * step % modulus`` is from `low` to `high`; None for none.

    Args:
        step: from 0 to below `modulus`, as `low` and `high`, which is not below `low`.
    """
    if low == 0:
        return 0
    if step == 0:
        return None
    k = -(-low // step)
    if k * step <= high:
        return k
    # No multiple of the step is from `low` to `high`. After m rounds one is from there, less
    # m * modulus, so that m * modulus is as far below a multiple of the step.
    rounds = _first(modulus % step, step, -high % step, -low % step)
    return None if rounds is None else -(-(low + rounds * modulus) // step)

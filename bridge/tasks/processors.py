"""What a classifier within a task gives, as ``mediapipe.tasks.components.processors`` has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class ClassifierOptions:
    """Which classes are given.

    Args:
        display_names_locale: not used.
        max_results: None or below 0: all. 0 is refused.
        score_threshold: None: all.
        category_allowlist: labels that are kept; not together with `category_denylist`.
        category_denylist: labels that are left out.
    """

    display_names_locale: str | None = None
    max_results: int | None = None
    score_threshold: float | None = None
    category_allowlist: Sequence[str] | None = None
    category_denylist: Sequence[str] | None = None

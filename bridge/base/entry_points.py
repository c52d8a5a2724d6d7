"""What other packages add to this one: entry points, which their metadata name."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tflite_ort.base.warned import warn_caller

# The groups: functions that add operators to a resolver, functions that know kinds of networks, and
# the traits of execution providers.
OPERATORS, DECODERS, PROVIDERS = (
    f"tflite_ort.{group}" for group in ("operators", "decoders", "providers")
)


def installed(group: str) -> dict[str, EntryPoint]:
    """The installed entry points of a group by name. If two have one name, the first counts."""
    return {point.name: point for point in reversed(list(entry_points(group=group)))}


@cache
def loaded(group: str, name: str) -> Any:
    """What an entry point stands for; None, with a warning, where its package is broken."""
    point = installed(group).get(name)
    if point is None:
        return None
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        package = point.dist.name if point.dist is not None else point.value
        warn_caller(f"{package} cannot be used as {name!r} of {group}: {error}", UserWarning)
        return None

"""Sessions that the interpreters of a process share while one of them lives."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import WeakValueDictionary

from tflite_ort.providers.provider import ON_CPU, Provider
from tflite_ort.providers.session import Session
from tflite_ort.providers.threads import shares_threads

# By what stands for their graph: its bytes, or the files of an entry of the cache.
_SHARED: WeakValueDictionary[Hashable, Session] = WeakValueDictionary()


def may_share(provider: Provider, num_threads: int) -> bool:
    """Whether a session is of use to other interpreters: it has no threads of its own."""
    return (num_threads == 1 or shares_threads()) and provider == ON_CPU


def shared_session(
    key: Hashable, make: Callable[[], Session], fits: Callable[[Session], bool] | None = None
) -> Session:
    """The session of a key.

    Args:
        fits: whether one that is there is the same; None where the key says so.
    """
    session = _SHARED.get(key)
    if session is None or not (fits is None or fits(session)):
        session = _SHARED[key] = make()
    return session


def offer(key: Hashable, session: Session) -> None:
    """Let others have a session that was made for an entry of this key."""
    _SHARED.setdefault(key, session)

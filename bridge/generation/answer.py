"""An answer, whole and as it is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass

from tflite_ort.generation.errors import GenerationError

STOP, LENGTH, FULL, INTERRUPT = "stop", "length", "full", "interrupt"


@dataclass(frozen=True, slots=True)
class Generated:
    """An answer.

    Args:
        text: of `tokens`.
        tokens: without those that stopped it.
        prompt_tokens: how many tokens the prompt has, those that were read before included.
        finish: why it ended: ``"stop"``, a stop token; ``"length"``, `max_tokens`; ``"full"``, the
            caches hold no more; ``"interrupt"``, `Stream.stop`: `text` is what came until then.
        prefill_tokens, prefill_seconds: of the prompt, what had to be read but for the last token.
        decode_steps, decode_seconds: one token each.
    """

    text: str
    tokens: tuple[int, ...]
    prompt_tokens: int
    finish: str
    prefill_tokens: int
    prefill_seconds: float
    decode_steps: int
    decode_seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second, without the time of the prompt."""
        return self.decode_steps / self.decode_seconds if self.decode_seconds else 0.0


class Answer:
    """What is known of an answer so far.

    Args:
        prompt_tokens: of the prompt.

    Attributes:
        finish: why it ended; None before it has.
        steps: how many tokens were made, stop tokens too.
    """

    def __init__(self, prompt_tokens: int) -> None:
        self.finish: str | None = None
        self.steps = 0
        self._prompt_tokens = prompt_tokens
        self._tokens, self._pieces = list[int](), list[str]()
        self._prefill, self._decode_seconds = (0, 0.0), 0.0

    def prefilled(self, tokens: int, seconds: float) -> None:
        """Note what reading the prompt took."""
        self._prefill = (max(tokens, 0), seconds)

    def stepped(self, seconds: float) -> None:
        """Note what a token took."""
        self.steps += 1
        self._decode_seconds += seconds

    def add(self, tokens: Sequence[int], piece: str) -> str:
        """Note tokens and the text that they add, which is returned."""
        self._tokens += tokens
        self._pieces.append(piece)
        return piece

    def generated(self) -> Generated:
        """All of it.

        Raises:
            GenerationError: it is not finished.
        """
        if self.finish is None:
            raise GenerationError("the answer is not finished: take all of its pieces first")
        return Generated(
            *("".join(self._pieces), tuple(self._tokens), self._prompt_tokens, self.finish),
            *(*self._prefill, self.steps, self._decode_seconds),
        )


class Stream:
    """The pieces of an answer as they are made, each some whole characters."""

    def __init__(self, pieces: Iterator[str], answer: Answer) -> None:
        self._pieces = pieces
        self._answer = answer

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._answer.finish is not None:
            raise StopIteration
        return next(self._pieces)

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        """The next piece, which is made in a thread: other coroutines run meanwhile."""
        piece = await asyncio.to_thread(next, self, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def stop(self) -> None:
        """End the answer here; `result` is what was made so far. A finished one stays as it is."""
        if self._answer.finish is None:
            self._answer.finish = INTERRUPT

    @property
    def result(self) -> Generated:
        """The whole answer.

        Raises:
            GenerationError: pieces are left.
        """
        return self._answer.generated()

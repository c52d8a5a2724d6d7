"""What a bundle says of its language model: tokens, template, sampler and caches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tflite_ort.bundles import Bundle
from tflite_ort.generation.sampling import Sampling
from tflite_ort.schema import MalformedBundle
from tflite_ort.schema.file.wire import Message

LLM, EXECUTOR = "LlmMetadataProto", "ExecutorMetadataProto"
EMBEDDING = "EmbeddingMetadataProto"

# The models that LlmModelType tells apart.
MODEL_TYPES = {
    1: "generic",
    2: "gemma3n",
    3: "function_gemma",
    4: "gemma3",
    5: "qwen3",
    7: "qwen2p5",
    8: "gemma4",
    9: "fast_vlm",
    11: "lfm2",
    12: "minicpm5",
    13: "gemma3_270m",
}
_TOP_K, _TOP_P, _GREEDY = 1, 2, 3
# Bytes of a message. Real ones have some thousand; each of a million tokens takes a microsecond or
# more, and a hundred bytes of memory.
_MOST_BYTES = 1 << 20
# A state that has a fixed size, as a recurrent one has.
_LINEAR_ATTENTION = 5


@dataclass(frozen=True, slots=True)
class Token:
    """A token as metadata writes it: a text, or numbers.

    Args:
        ids: empty where it is a text.
    """

    ids: tuple[int, ...] = ()
    text: str = ""

    @classmethod
    def of(cls, message: Message) -> Token:
        """The token of a TokenUnion."""
        return cls(message.message(1).integers(1), message.text(2))


@dataclass(frozen=True, slots=True)
class StateBuffer:
    """A cache that goes in and comes out.

    Args:
        names: its input and output in prefill signatures, and in decode ones.
        axis: the dimension of tokens; None for a state without one.
    """

    names: tuple[str, str, str, str]
    axis: int | None

    @classmethod
    def of(cls, message: Message) -> StateBuffer:
        """The cache that a StateBuffer describes."""
        first, second, third, fourth = (message.text(number) for number in range(1, 5))
        axis = message.integer(7) if 7 in message else None
        return cls(
            (first, second, third, fourth),
            None if message.integer(6) == _LINEAR_ATTENTION else axis,
        )


@dataclass(frozen=True, slots=True)
class LanguageMetadata:
    """What a bundle says.

    Args:
        start: stands before every prompt; None for nothing.
        stops: end the answer.
        affixes: by role, what stands before and behind a message, where there is no template.
        sampling: how tokens are chosen; None where it does not say.
        most_tokens: that the caches hold; 0 where it does not say.
        model_type: one of `MODEL_TYPES`, or empty.
        template: in Jinja; empty for none.
        suppressed: tokens that are never chosen.
        states: the caches, as far as it names them.
        window: of local attention, in tokens; 0 where it does not say.
    """

    start: Token | None = None
    stops: tuple[Token, ...] = ()
    affixes: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    sampling: Sampling | None = None
    most_tokens: int = 0
    model_type: str = ""
    template: str = ""
    suppressed: tuple[int, ...] = ()
    states: tuple[StateBuffer, ...] = ()
    window: int = 0


def language_metadata(bundle: Bundle) -> LanguageMetadata:
    """What `bundle` says; a bundle may say nothing.

    Raises:
        MalformedBundle: a message is damaged, or larger than 1 MiB.
    """
    llm, executor = (_section(bundle, kind) for kind in (LLM, EXECUTOR))
    kinds = [number for number in llm.message(6).numbers if number in MODEL_TYPES]
    affixes, states = llm.message(3), executor.message(1)
    return LanguageMetadata(
        start=Token.of(llm.message(1)) if 1 in llm else None,
        stops=llm.messages(2, Token.of),
        affixes={
            role: (affixes.message(number).text(1), affixes.message(number).text(2))
            for number, role in ((1, "user"), (2, "model"), (3, "system"))
            if number in affixes
        },
        sampling=_sampling(llm.message(4)) if 4 in llm else None,
        most_tokens=llm.integer(5),
        model_type=MODEL_TYPES[kinds[0]] if kinds else "",
        template=llm.text(7),
        suppressed=llm.message(9).integers(1),
        states=states.messages(2, StateBuffer.of),
        window=states.message(3).integer(3),
    )


def embedding_ends(
    bundle: Bundle, tokens: Callable[[str], Sequence[int]]
) -> tuple[Sequence[int] | None, Sequence[int]]:
    """The tokens before and behind a text that is embedded; None before it if nothing is said.

    Args:
        tokens: of a text.

    Raises:
        MalformedBundle: the message is damaged, or larger than 1 MiB.
    """
    if not any(entry.kind == EMBEDDING for entry in bundle.entries):
        return None, ()
    said = _section(bundle, EMBEDDING)
    ends = [Token.of(said.message(number)) if number in said else None for number in (2, 3)]
    start, end = ((e.ids or tuple(tokens(e.text)) if e is not None else ()) for e in ends)
    return start, end


def _section(bundle: Bundle, kind: str) -> Message:
    entries = [entry for entry in bundle.entries if entry.kind == kind]
    if not entries:
        return Message(b"")
    if entries[0].size > _MOST_BYTES:
        text = f"the {kind} has {entries[0].size} bytes, more than {_MOST_BYTES}"
        raise MalformedBundle(text)
    return Message(bytes(bundle.content(entries[0].name)))


def _sampling(message: Message) -> Sampling | None:
    """The sampler of SamplerParameters; None where it does not say which."""
    kind, seed = message.integer(1), message.integer(5) if 5 in message else None
    if kind not in (_TOP_K, _TOP_P, _GREEDY):
        return None
    if kind == _GREEDY:
        return Sampling(temperature=0.0, seed=seed)
    return Sampling(
        temperature=message.float(4),
        top_k=max(message.integer(2), 0),
        top_p=message.float(3) if kind == _TOP_P else 1.0,
        seed=seed,
    ).valid()

"""`generate`: a prompt in, text out, token by token."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tflite_ort.base.library_process import LibraryProcess
from tflite_ort.bundles import open_bundle
from tflite_ort.cache.choice import CacheChoice
from tflite_ort.generation.answer import FULL, LENGTH, STOP, Answer, Generated, Stream
from tflite_ort.generation.errors import GenerationError, needed
from tflite_ort.generation.metadata import LanguageMetadata, Token, language_metadata
from tflite_ort.generation.network import Network
from tflite_ort.generation.sampling import Sampler, Sampling
from tflite_ort.generation.vocabulary import TextStream, Vocabulary, vocabulary_of
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.providers.processor import physical_cores
from tflite_ort.providers.traits import FULL_PRECISION
from tflite_ort.schema import Budgets

# The prompt of messages: a bundle's template, or what stands before and behind each message.

Message = Mapping[str, Any]

_MODEL_ROLES = {"assistant": "model"}


def prompt_of(messages: Sequence[Message], metadata: LanguageMetadata, start: str) -> str:
    """The text that a model is given for `messages`.

    Args:
        messages: dictionaries with ``role`` and ``content``, as templates expect them.
        start: the text of the start token, which templates may write.

    Raises:
        GenerationError: the template fails, or `minijinja` is not installed.
    """
    if isinstance(messages, Mapping):
        raise GenerationError("a prompt is a text, or a list of messages; this is one message")
    for message in messages:
        if not {"role", "content"} <= message.keys():
            raise GenerationError(f"a message has role and content, got {sorted(message)}")
    if metadata.template:
        return _rendered(metadata.template, messages, start)
    parts = []
    for message in messages:
        role = str(message["role"])
        before, behind = metadata.affixes.get(_MODEL_ROLES.get(role, role), ("", ""))
        parts.append(f"{before}{message['content']}{behind}")
    return "".join((*parts, metadata.affixes.get("model", ("", ""))[0]))


def _rendered(template: str, messages: Sequence[Message], start: str) -> str:
    """The text of a template, made by another process: see `text_process`."""
    request = {"template": template, "messages": [dict(each) for each in messages], "start": start}
    what = "the template"
    needed("minijinja", f"{what} of this bundle")
    library = LibraryProcess("minijinja", what, error=GenerationError)
    try:
        text: str = library.ask(b"r", request)
    finally:
        library.close()
    return text


# Stop tokens: those of several numbers are known only once the last one has come.

Stop = tuple[int, ...]


class Waiting:
    """Tokens of an answer that may turn out to be the beginning of a stop token.

    Args:
        stops: each of at least one number.

    >>> waiting = Waiting([(2,), (7, 8)])
    >>> waiting.add(5), waiting.add(7), waiting.add(9), waiting.add(7), waiting.add(8)
    (([5], False), ([], False), ([7, 9], False), ([], False), ([], True))
    """

    def __init__(self, stops: Sequence[Stop]) -> None:
        self._stops = stops
        self._tokens: list[int] = []

    def add(self, token: int) -> tuple[list[int], bool]:
        """The tokens that are part of the answer now, and whether this one ends it."""
        self._tokens.append(token)
        for stop in self._stops:
            if tuple(self._tokens[-len(stop) :]) == stop:
                return self._tokens[: -len(stop)], True
        count = len(self._tokens) - self._held_back()
        ready, self._tokens = self._tokens[:count], self._tokens[count:]
        return ready, False

    def rest(self) -> list[int]:
        """The tokens that still wait, where the answer ends without a stop token."""
        return self._tokens

    def _held_back(self) -> int:
        """How many of the last tokens are the beginning of a stop token."""
        tokens = tuple(self._tokens)
        most = max((len(stop) for stop in self._stops), default=1) - 1
        for count in range(min(most, len(tokens)), 0, -1):
            if any(len(stop) > count and tokens[-count:] == stop[:count] for stop in self._stops):
                return count
        return 0


Source = str | os.PathLike[str] | bytes | bytearray | memoryview
Prompt = str | Sequence[Message]


class LanguageModel:
    """A bundle that generates text; it is ready for one prompt after another.

    Args:
        bundle: a ``.litertlm``, or a bundle of its kind: a path or the bytes.
        providers, precision, cache, budgets: as `Interpreter` takes them.
        num_threads: within an operator; None is one for each core.
        hybrid: as `Interpreter` takes it. The default rounds activations as LiteRT does by
            default, so that the most likely tokens are those of LiteRT.
        cache_length: of the signatures to use, where there are several sizes of caches; None for
            the longest.

    Raises:
        GenerationError: the bundle has no model that generates, or no tokenizer, or a package of
            ``pip install 'tflite-ort[llm]'`` is missing.
        BridgeError: as `open_bundle` and `Interpreter`.

    A prompt that begins with what was read before, such as a conversation that goes on, is read
    from where it differs. All answers share the caches: a new answer ends one that is not finished,
    whose next piece raises a GenerationError. Use a model in one thread at a time.

    Example:
        >>> model = LanguageModel("gemma3-1b-it-int4.litertlm")           # doctest: +SKIP
        >>> for piece in model.stream("Name three rivers.", max_tokens=60):  # doctest: +SKIP
        ...     print(piece, end="")
    """

    def __init__(
        self,
        bundle: Source,
        *,
        providers: ProviderChoices | None = None,
        precision: str = FULL_PRECISION,
        num_threads: int | None = None,
        hybrid: str = "xnnpack",
        cache: CacheChoice | None = None,
        budgets: Budgets | None = None,
        cache_length: int | None = None,
    ) -> None:
        opened = open_bundle(bundle, budgets=budgets)
        self.metadata: LanguageMetadata = language_metadata(opened)
        self.vocabulary: Vocabulary = vocabulary_of(opened, budgets)
        self._network = Network(
            *(bundle, opened, self.metadata, cache_length),
            providers=providers,
            precision=precision,
            num_threads=num_threads or physical_cores(),
            hybrid=hybrid,
            cache=cache,
            budgets=budgets,
        )
        self.vocabulary.ready()
        self._start = self._ids(self.metadata.start)
        stops = (self._ids(token) for token in self.metadata.stops)
        self._stops = [ids for ids in stops if ids]
        self._read: list[int] = []
        self._latest: Answer | None = None

    @property
    def capacity(self) -> int:
        """How many tokens a prompt and its answer have at most."""
        return self._network.capacity

    def prompt_tokens(self, prompt: Prompt, *, template: bool = True) -> tuple[int, ...]:
        """The tokens that the model reads of a prompt.

        Args:
            prompt: a text, which is a message of the user, or messages with ``role`` and
                ``content``.
            template: False: the text is read as it is.

        Raises:
            GenerationError: the template or the tokenizer fails.
        """
        if template:
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
            start = self.vocabulary.text(self._start) if self._start else ""
            prompt = prompt_of(messages, self.metadata, start)
        elif not isinstance(prompt, str):
            raise GenerationError("messages need the template")
        tokens = self.vocabulary.tokens(prompt)
        begun = tokens[: len(self._start)] == self._start  # a template may write the start token
        return tokens if begun else (*self._start, *tokens)

    def stream(
        self,
        prompt: Prompt,
        *,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        template: bool = True,
    ) -> Stream:
        """Answer a prompt piece by piece.

        Args:
            prompt, template: as of `prompt_tokens`.
            max_tokens: None for as many as the caches hold.
            temperature, top_k, top_p, seed: as of `Sampling`; None as the bundle says, and without
                that the most likely token.

        Raises:
            GenerationError: the prompt has no token or does not fit, or a number is out of range.
            DelegateError, KernelError: an operator failed.
        """
        tokens = self.prompt_tokens(prompt, template=template)
        if not tokens:
            raise GenerationError("the prompt has no token")
        if len(tokens) > self.capacity:
            text = f"the prompt has {len(tokens)} tokens, the model reads {self.capacity}"
            raise GenerationError(text)
        if max_tokens is not None and max_tokens < 1:
            raise GenerationError(f"max_tokens is {max_tokens}, at least 1 is expected")
        given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        sampling = replace(self.metadata.sampling or Sampling(), **chosen)
        sampler = Sampler(sampling, self.metadata.suppressed)
        answer = Answer(len(tokens))
        return Stream(self._pieces(tokens, max_tokens, sampler, answer), answer)

    def generate(self, prompt: Prompt, **choices: Any) -> Generated:
        """The whole answer to a prompt; arguments and errors are those of `stream`."""
        stream = self.stream(prompt, **choices)
        for _ in stream:
            pass
        return stream.result

    def _pieces(
        self, prompt: tuple[int, ...], max_tokens: int | None, sampler: Sampler, answer: Answer
    ) -> Iterator[str]:
        """The pieces of an answer, which is noted in `answer`."""
        self._latest = answer
        known = self._known(prompt)
        self._network.prepare(len(prompt) - 1 - known)
        started = time.perf_counter()
        self._prefill(prompt[known:-1])
        answer.prefilled(len(prompt) - 1 - known, time.perf_counter() - started)
        stream, waiting = TextStream(self.vocabulary), Waiting(self._stops)
        token, finish = prompt[-1], FULL
        while finish == FULL and self._network.read < self.capacity:
            self._check_latest(answer)
            started = time.perf_counter()
            token = sampler.choose(self._step(token))
            answer.stepped(time.perf_counter() - started)
            ready, stopped = waiting.add(token)
            if piece := answer.add(ready, stream.add(ready)):
                yield piece
            finish = STOP if stopped else LENGTH if answer.steps == max_tokens else FULL
        left = [] if finish == STOP else waiting.rest()
        if rest := answer.add(left, stream.add(left) + stream.rest()):
            yield rest
        answer.finish = finish

    def _check_latest(self, answer: Answer) -> None:
        if self._latest is not answer:
            raise GenerationError(
                "another prompt took the caches before this answer ended: read an answer to its "
                "end or stop() it first, or open the bundle once more"
            )

    def _known(self, prompt: tuple[int, ...]) -> int:
        """How many tokens of the prompt the caches hold; what they hold beyond is dropped."""
        count = 0
        for token, read in zip(prompt[:-1], self._read, strict=False):
            if token != read:
                break
            count += 1
        if not self._network.rewind(count):
            count = 0
            self._network.reset()
        del self._read[count:]
        return count

    def _prefill(self, tokens: Sequence[int]) -> None:
        self._network.prefill(tokens)
        self._read += tokens

    def _step(self, token: int) -> Any:
        logits = self._network.logits(token)
        self._read.append(token)
        return logits

    def _ids(self, token: Token | None) -> tuple[int, ...]:
        """The numbers of a token."""
        if token is None:
            return ()
        return token.ids or (self.vocabulary.tokens(token.text) if token.text else ())


def generate(bundle: Source, prompt: Prompt, **choices: Any) -> Generated:
    """The answer of a bundle's language model to a prompt.

    Args:
        bundle: as `LanguageModel` takes it.
        prompt: as `LanguageModel.stream` takes it.
        choices: of `LanguageModel` and of `LanguageModel.stream`.

    Raises:
        GenerationError, BridgeError: as `LanguageModel` and `LanguageModel.stream`.

    Example:
        >>> generate("gemma3-1b-it-int4.litertlm", "Name three rivers.").text  # doctest: +SKIP
    """
    of_model = {name: choices.pop(name) for name in _MODEL_CHOICES if name in choices}
    return LanguageModel(bundle, **of_model).generate(prompt, **choices)


_MODEL_CHOICES = (
    *("providers", "precision", "num_threads", "hybrid"),
    *("cache", "budgets", "cache_length"),
)

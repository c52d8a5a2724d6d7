"""Templates and tokenizers of bundles, in a process of its own: a few bytes of theirs can ask for
more memory than there is, and an allocation that fails ends the process.

``python text_process.py LIBRARY SECONDS BYTES`` reads messages and answers each: a verb of one byte
and a length of eight, then the content. What goes wrong is told as an error, and ends the process.
It imports nothing of the package, so that it starts in a moment.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from types import TracebackType
from typing import Any, BinaryIO

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

library: Any = import_module(sys.argv[1])

HEAD = struct.Struct("<cQ")
ANSWER, ERROR = b"a", b"e"
# Steps that a template may take; those of real ones take a few thousand.
_FUEL = 10_000_000
# Characters of an answer.
_MOST = 1 << 24

Answers = Mapping[bytes, Callable[[bytes], Any]]


class Templates:
    """`minijinja`."""

    def __init__(self) -> None:
        self.answers: Answers = {b"r": self._rendered}

    def _rendered(self, content: bytes) -> str:
        """The text of a request's template."""
        request = json.loads(content)
        environment = library.Environment(trim_blocks=True, lstrip_blocks=True)
        environment.keep_trailing_newline = True
        environment.fuel = _FUEL
        environment.add_function("raise_exception", _refused)
        environment.add_function("strftime_now", lambda form: datetime.now(UTC).strftime(form))
        text: str = environment.render_str(
            request["template"],
            messages=request["messages"],
            add_generation_prompt=True,
            bos_token=request["start"],
            tools=None,
        )
        return text


class Tokenizers:
    """`tokenizers` and `sentencepiece`: the file comes first."""

    def __init__(self) -> None:
        self._made: Any = None
        self.answers: Answers = {b"f": self._read, b"t": self._tokens, b"w": self._whole}
        self.answers = {**self.answers, b"s": self._texts, b"i": self._facts}
        self.answers = {
            **self.answers,
            b"p": self._pieces,
            b"d": self._joined,
            b"l": self._looked_up,
        }

    def _read(self, content: bytes) -> None:
        """The file of a tokenizer."""
        if library.__name__ == "tokenizers":
            self._made = library.Tokenizer.from_str(content.decode())
        else:
            self._made = library.SentencePieceProcessor(model_proto=content)

    def _tokens(self, content: bytes) -> list[int]:
        """The tokens of a text."""
        text = json.loads(content)
        if library.__name__ != "tokenizers":
            found: list[int] = self._made.encode(text)
        else:
            found = self._made.encode(text, add_special_tokens=False).ids
        return found

    def _whole(self, content: bytes) -> list[int]:
        """The tokens of a text, and those that the tokenizer puts around it."""
        text = json.loads(content)
        if library.__name__ == "tokenizers":
            found: list[int] = self._made.encode(text).ids
        else:
            around = {"add_bos": self._made.bos_id() >= 0, "add_eos": self._made.eos_id() >= 0}
            found = self._made.encode(text, **around)
        return found

    def _texts(self, content: bytes) -> list[str]:
        """The text of each list of tokens."""
        whole = {} if library.__name__ != "tokenizers" else {"skip_special_tokens": False}
        return [str(self._made.decode(each, **whole)) for each in json.loads(content)]

    # SentencePiece alone. Texts are bytes of any kind: each is a character of JSON's. Answers are
    # messages of SentencePiece's own.

    def _facts(self, content: bytes) -> list[Any]:
        """How many pieces there are, and the numbers and texts of those that begin and end one."""
        numbers = (self._made.bos_id(), self._made.eos_id())
        names = [self._made.id_to_piece(each) if each >= 0 else "" for each in numbers]
        return [self._made.get_piece_size(), *numbers, *names]

    def _pieces(self, content: bytes) -> list[str]:
        """The pieces of texts; of each the best few ways, or one that is drawn."""
        texts, best, drawn = json.loads(content)
        found = []
        for at, text in enumerate(texts):
            source, form = text.encode("latin-1"), "serialized_proto"
            if best:
                made = self._made.nbest_encode(source, nbest_size=best, out_type=form)
            elif drawn[at] is not None:
                size, alpha = drawn[at]
                made = self._made.encode(
                    source, out_type=form, enable_sampling=True, nbest_size=size, alpha=alpha
                )
            else:
                made = self._made.encode(source, out_type=form)
            found.append(made.decode("latin-1"))
        return found

    def _joined(self, content: bytes) -> list[str]:
        """The texts of rows of pieces, or of their numbers."""
        found = []
        for row in json.loads(content):
            given = [_text(each) if isinstance(each, str) else each for each in row]
            made = self._made.decode(given, out_type="serialized_proto") if given else b""
            found.append(made.decode("latin-1"))
        return found

    def _looked_up(self, content: bytes) -> list[Any]:
        """The numbers of pieces, or the pieces of numbers."""
        return [
            self._made.piece_to_id(each.encode("latin-1"))
            if isinstance(each, str)
            else _octets(self._made.id_to_piece(each)).decode("latin-1")
            for each in json.loads(content)
        ]


def _text(shown: str) -> str | bytes:
    """A text, or bytes that are none: early versions of SentencePiece do not join those."""
    content = shown.encode("latin-1")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _octets(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def _refused(reason: str) -> None:
    raise RuntimeError(reason)


def _bound(space: int) -> None:
    """Keeps the process within so many bytes of memory; an interrupt is for the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if resource is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = space if hard == resource.RLIM_INFINITY else min(space, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _time(seconds: float) -> None:
    """Ends the process after so many seconds of the processor, whatever it does; never with 0."""
    if os.name == "posix":
        signal.setitimer(signal.ITIMER_PROF, seconds)
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def _told(answers: BinaryIO) -> Callable[..., None]:
    """What writes an uncaught error as an answer. A panic of a library in Rust is no Exception and
    has no class that could be caught."""

    def write(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        said = str(error).partition("\n")[0] or kind.__name__
        answers.write(_message(ERROR, json.dumps(said).encode()))
        answers.flush()

    return write


def _message(verb: bytes, content: bytes) -> bytes:
    return HEAD.pack(verb, len(content)) + content


def main() -> None:
    """Answers one message after the other."""
    seconds, space = float(sys.argv[2]), int(sys.argv[3])
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    sys.excepthook = _told(answers)
    _bound(space)
    verbs = (Templates() if library.__name__ == "minijinja" else Tokenizers()).answers
    while head := questions.read(HEAD.size):
        verb, size = HEAD.unpack(head)
        content = questions.read(size)
        _time(seconds)
        found = verbs[verb](content)
        if isinstance(found, str) and len(found) > _MOST:
            raise ValueError(f"{len(found)} characters, more than {_MOST}")
        answer = json.dumps(found).encode()
        if len(answer) > 8 * _MOST:
            raise ValueError(f"an answer of {len(answer)} bytes")
        _time(0)
        answers.write(_message(ANSWER, answer))
        answers.flush()


if __name__ == "__main__":
    main()

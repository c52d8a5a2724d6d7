"""A library that reads what a file brings, in a process of its own: see `text_process`."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any

from tflite_ort.base.own_process import own_process

_MODULE = "tflite_ort.base.text_process"
_PROGRAM = os.path.join(os.path.dirname(__file__), "text_process.py")
_HEAD = struct.Struct("<cQ")
_ERROR, _FILE = b"e", b"f"
# Seconds of the processor for an answer; bytes of memory without a file, and at most.
_SECONDS, _SPACE, _MOST = 20, 1 << 30, 4 << 30
_TIME_IS_UP = "SIGPROF"


class LibraryProcess:
    """A library in a process of its own, which a question starts.

    If the process ends, the next question starts another one.

    Args:
        library: its name.
        what: what it reads, for messages.
        file: what it reads before any question.
        growth: bytes of memory that it may take for each byte of the file.
        error: what is raised where the library refuses something, or needs more memory or time than
            it may have.
    """

    def __init__(
        self,
        library: str,
        what: str,
        file: bytes = b"",
        growth: int = 0,
        *,
        error: Callable[[str], Exception],
    ) -> None:
        space = min(_SPACE + growth * len(file), _MOST)
        limits = (str(_SECONDS), str(space))
        self._arguments = [library, *limits]
        self._what, self._file, self._error = what, file, error
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = False
        self._owner, self._lock = 0, Lock()

    def ask(self, verb: bytes, question: Any) -> Any:
        """The answer to a question.

        Args:
            question: what JSON can say.
        """
        try:
            content = json.dumps(question).encode()
        except (TypeError, ValueError) as error:
            raise self._error(f"{self._what} failed: {error}") from error
        with self._running() as process:
            self._await_file(process)
            self._send(process, verb, content)
            return self._answer(process, "failed")

    def start(self) -> None:
        """Start the process. It reads the file while the caller does something else."""
        with self._running():
            pass

    def ready(self) -> None:
        """Wait until the file is read."""
        with self._running() as process:
            self._await_file(process)

    @contextmanager
    def _running(self) -> Iterator[subprocess.Popen[bytes]]:
        """The process, for one question at a time. After an error, also an interrupt, it is ended:
        an answer that nobody has read may be on its way."""
        with self._lock:
            if self._owner != os.getpid():  # that of a process that forked is not ours
                self._process = None
            if self._process is None:
                self._process = self._started()
            done = False
            try:
                yield self._process
                done = True
            finally:
                if not done:
                    self._close()

    def _started(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            command = [*own_process(_MODULE, _PROGRAM), *self._arguments]
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        except OSError as error:
            raise self._error(f"{self._what} failed: {error}") from error
        self._owner = os.getpid()
        self._end = weakref.finalize(self, _ended, process, self._owner)
        if self._file:
            self._send(process, _FILE, self._file)
            self._unread = True
        return process

    def _await_file(self, process: subprocess.Popen[bytes]) -> None:
        """Take the answer to the file, the first one of a process."""
        if self._unread:
            self._answer(process, "cannot be read")
            self._unread = False

    def _send(self, process: subprocess.Popen[bytes], verb: bytes, content: bytes) -> None:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # how it ended, its answer tells
            process.stdin.write(_HEAD.pack(verb, len(content)))
            process.stdin.write(content)
            process.stdin.flush()

    def _answer(self, process: subprocess.Popen[bytes], failed: str) -> Any:
        assert process.stdout is not None
        head = process.stdout.read(_HEAD.size)
        verb, size = _HEAD.unpack(head) if len(head) == _HEAD.size else (_ERROR, 0)
        content = process.stdout.read(size)
        if len(content) != size or not size:
            raise self._error(f"{self._what} {failed}: {_why(process.wait())}")
        answer = json.loads(content)
        if verb == _ERROR:
            raise self._error(f"{self._what} {failed}: {answer}")
        return answer

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._process is not None:
            self._process = None
            self._end()


def _why(code: int) -> str:
    """What the end of the process says."""
    name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    if name == _TIME_IS_UP or (os.name != "posix" and code == 1):
        return f"it takes more than {_SECONDS} s"
    return f"it takes more memory than it may ({name})"


def _ended(process: subprocess.Popen[bytes], owner: int) -> None:
    """Ends the process, where it is ours: one that forked ends it itself."""
    if os.getpid() != owner:
        process.returncode = 0
        return
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # what was not sent any more
                stream.close()

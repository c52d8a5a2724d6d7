"""``providers="auto"``: the device on which a model runs fastest, found by trying each.

A candidate is tried in a process of its own beside the CPU, so one that ends its process, hangs or
gives wrong results is passed over. What was found is kept in the cache folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from tempfile import TemporaryDirectory
from typing import Any

from tflite_ort.base.files import write_bytes
from tflite_ort.base.own_process import own_process
from tflite_ort.base.records import record
from tflite_ort.cache.choice import chosen_folder, default_folder
from tflite_ort.cache.folder import UNREADABLE, CacheFolder
from tflite_ort.cache.keys import digest, key_of
from tflite_ort.cache.plans import file_digest
from tflite_ort.model.opening import ModelFile, opened_file
from tflite_ort.model.resolvers import library_name
from tflite_ort.providers.candidates import Candidate, candidates
from tflite_ort.providers.delegates import (
    AUTO,
    Delegate,
    OpResolverType,
    ProviderChoices,
    chosen_delegates,
    of_candidate,
)
from tflite_ort.providers.precision import check_precision
from tflite_ort.providers.traits import CPU, FULL_PRECISION
from tflite_ort.schema import Budgets

# For all candidates of a model together.
SECONDS = 30.0
SECONDS_VARIABLE = "TFLITE_ORT_AUTO_SECONDS"
# A device that is faster by less than this share is not worth its while.
_LEAST_GAIN = 0.05

# What a trial gets of the arguments of an interpreter.
_SOURCE = ("model_path", "model_content", "budgets", "model")
_HANDED = ("num_threads", "hybrid", "strict", "batch", "model", "precision")


@record
class DeviceChoice:
    """What runs a model.

    Args:
        candidate: a device; None for the CPU alone.
        why: what every device took, or why it was passed over.
    """

    candidate: Candidate | None
    why: str

    def delegates(self, precision: str) -> list[Delegate]:
        """For `Interpreter`, the CPU last, which computes in full precision whatever is asked."""
        first = [] if self.candidate is None else [of_candidate(self.candidate, precision)]
        return chosen_delegates(OpResolverType.AUTO, (), [*first, CPU])


# By key, what this process has found.
_FOUND: dict[str, DeviceChoice] = {}


def device_choice(arguments: Mapping[str, Any]) -> DeviceChoice:
    """The device for a model.

    Args:
        arguments: those of `Interpreter`; absent ones have their defaults.

    Raises:
        ModelError: there is no such model.
    """
    check_precision(arguments.get("precision", FULL_PRECISION))
    found = candidates()
    if not found:
        return DeviceChoice(None, f"{CPU}; there is no other device here")
    resolver = arguments.get("resolver")
    name = "BuiltinOpResolver" if resolver is None else library_name(resolver)
    if name is None:
        return DeviceChoice(None, f"{CPU}; a resolver of one's own cannot be tried on devices")
    file = opened_file(*(arguments.get(each) for each in _SOURCE))
    folder, request = _folder(arguments.get("cache")), _request(arguments, name)
    model = digest(file.content) if folder is None else file_digest(folder, file)
    rows = [astuple(each) for each in found]
    key = key_of(model, {**request, "candidates": rows, "seconds": seconds_to_try()})
    choice = _FOUND.get(key) or _stored_choice(folder, key)
    if choice is None:
        choice = _tried_choice(found, request, arguments, file)
        _keep(folder, key, choice, arguments)
    _FOUND[key] = choice
    return choice


def resolved(
    providers: ProviderChoices | None, arguments: Mapping[str, Any]
) -> ProviderChoices | None:
    """`providers`; in the place of AUTO the device for the model that `arguments` of `Interpreter`
    name, so that what makes several interpreters of a model chooses once. What is chosen computes
    in their ``precision``, which is not to be given again."""
    if providers != AUTO:
        return providers
    return device_choice(arguments).delegates(arguments.get("precision", FULL_PRECISION))


def seconds_to_try() -> float:
    """How long all trials of a model may take, as the environment says, or 30 s."""
    with suppress(ValueError):
        return float(os.environ.get(SECONDS_VARIABLE, ""))
    return SECONDS


# Trials ------------------------------------------------------------------------------------------


def _request(arguments: Mapping[str, Any], resolver: str) -> dict[str, Any]:
    """What a trial is asked, but for the candidate and the model."""
    budgets = arguments.get("budgets") or Budgets()
    handed = {each: arguments[each] for each in _HANDED if arguments.get(each) is not None}
    return {
        "resolver": resolver,
        "arguments": {
            **handed,
            "budgets": {each: getattr(budgets, each) for each in Budgets.names()},
            "external_roots": [os.path.abspath(p) for p in arguments.get("external_roots") or ()],
        },
    }


def _tried_choice(
    found: Sequence[Candidate],
    request: Mapping[str, Any],
    arguments: Mapping[str, Any],
    file: ModelFile,
) -> DeviceChoice:
    """The choice by trying."""
    end = time.monotonic() + seconds_to_try()
    with TemporaryDirectory() as folder:
        path = arguments.get("model_path")
        if not path:
            path = os.path.join(folder, "model.tflite")
            write_bytes(path, file.content.data)
        asked = {**request["arguments"], "model_path": os.path.abspath(os.fsdecode(path))}
        answers = [
            _tried({**request, "arguments": asked, "candidate": astuple(each)}, end)
            for each in found
        ]
    return _judged(found, answers)


def _tried(request: Mapping[str, Any], end: float) -> dict[str, Any]:
    """What became of one candidate, see `device_trial.tried`."""
    left = end - time.monotonic()
    if left <= 0:
        return {"problem": "not tried, for the time was over"}
    try:
        done = subprocess.run(
            own_process("tflite_ort.interpreter.device_trial"),
            input=json.dumps(request).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=left,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        problem, said = f"not ready within {left:.0f} s", late.stdout or b""
    except OSError as error:
        problem, said = f"cannot be tried: {error}", b""
    else:
        problem, said = f"it ended its process with {_ending(done.returncode)}", done.stdout
    # The last answer that is whole: what comes after the first one is of other precisions.
    answers = said.splitlines(keepends=True)
    whole = [each for each in answers if each.endswith(b"\n")]
    answer: dict[str, Any] = json.loads(whole[-1]) if whole else {"problem": problem}
    return answer


def _ending(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _judged(found: Sequence[Candidate], answers: Sequence[Mapping[str, Any]]) -> DeviceChoice:
    """The fastest of the candidates, if one is faster than the CPU."""
    texts, best, least = [], None, 1.0 - _LEAST_GAIN
    for candidate, answer in zip(found, answers, strict=True):
        texts.append(f"{candidate}: {_told(answer)}")
        if "problem" not in answer and answer["seconds"] < least * answer["cpu_seconds"]:
            best, least = candidate, answer["seconds"] / answer["cpu_seconds"]
    return DeviceChoice(best, f"{best or CPU}; tried {'; '.join(texts)}")


def _told(answer: Mapping[str, Any]) -> str:
    if "problem" in answer:
        return " ".join(str(answer["problem"]).split())
    taken, whole = answer["operators"]
    times = (f"{1000 * answer[each]:.3g} ms" for each in ("seconds", "cpu_seconds"))
    others = "".join(f", {each}" for each in answer["others"])
    return "{} an invoke, the CPU {}, with {} of {} operators{}".format(
        *times, taken, whole, others
    )


# What is kept ------------------------------------------------------------------------------------


def _folder(choice: Any) -> CacheFolder | None:
    """Where choices are kept; None for nowhere. As what is tuned, they are kept in the default
    folder where an interpreter is given none."""
    if choice is False:
        return None
    return chosen_folder(choice) or chosen_folder(default_folder())


def _stored_choice(folder: CacheFolder | None, key: str) -> DeviceChoice | None:
    document = None if folder is None else folder.read(key)
    if document is None:
        return None
    with suppress(*UNREADABLE):
        row, why = document.hot["device"]
        return DeviceChoice(None if row is None else Candidate(*row), str(why))
    return None


def _keep(
    folder: CacheFolder | None, key: str, choice: DeviceChoice, arguments: Mapping[str, Any]
) -> None:
    if folder is not None:
        name = os.path.basename(os.fsdecode(arguments.get("model_path") or "(bytes)"))
        row = None if choice.candidate is None else astuple(choice.candidate)
        about = {"model": f"{name} (choice of a device)"}
        folder.write(key, {"about": about, "device": [row, choice.why]}, {}, ())

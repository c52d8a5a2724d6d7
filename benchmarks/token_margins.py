"""How far logits are from LiteRT's and from floats, and whether that decides a token.

    python -m benchmarks.token_margins [--models FOLDER] [BUNDLE...]

Bundles: those of $TFLITE_ORT_MODELS2, else ../shared/models2. LiteRT answers the prompts of
`benchmarks.same_tokens`. The others read the same tokens: LiteRT's kernels without delegates, and
ours. "From floats" and "from LiteRT" are roots of the mean square of the differences, as a part of
that of the logits, from `hybrid="float"` and from LiteRT's default. "Other" counts the steps at
which the most likely token is not that of LiteRT's default, "margin" is how far apart its two most
likely tokens are at most there, as a part of the largest logit, and "off" is by how much its logits
differ there at most.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from benchmarks.kept_caches import FOLDER
from benchmarks.same_tokens import PROMPTS
from tflite_ort import Interpreter, LanguageModel, open_bundle
from tflite_ort.generation.network import Embedder
from tflite_ort.generation.signature_roles import EMBEDDINGS, LOGITS, TOKENS, Step, caches_of

Array = npt.NDArray[Any]
Make = Callable[[str], Any]

LITERT, FLOAT = "LiteRT", "float"
_KERNELS = {
    LITERT: OpResolverType.AUTO,
    "LiteRT's own kernels": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
}
_HYBRIDS = ("xnnpack", "dynamic", "auto", FLOAT)


class Reader:
    """The `decode` signature of a bundle in one runtime."""

    def __init__(self, path: Path, make: Make) -> None:
        bundle, language = open_bundle(path), LanguageModel(path)
        names = {entry.stem: entry.name for entry in bundle.models}
        embedder = names.pop("embedder", None)
        (main,) = names.values()
        self._model = make(main)
        runner = self._model.get_signature_runner("decode")
        signatures = self._model.get_signature_list()
        self._caches = caches_of(signatures, language.metadata)["decode"]
        self._step = Step.of("decode", runner, self._caches)
        self._embedder = embedder and Embedder(Interpreter(path, model=embedder))

    def forget(self) -> None:
        """Empty the caches."""
        details = self._step.runner.get_input_details()
        self._kept = {
            name: np.zeros(details[name]["shape"], details[name]["dtype"]) for name in self._caches
        }

    def logits(self, token: int, place: int) -> Array:
        """Of the token that follows this one."""
        arrays = self._step.arrays(place, 1, 0)
        role = EMBEDDINGS if self._embedder else TOKENS
        detail = self._step.details[role]
        rows = self._embedder.rows([token], 1) if self._embedder else np.array([token])
        arrays[self._step.inputs[role]] = rows.reshape(detail["shape"]).astype(detail["dtype"])
        given = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        made = self._step.runner(**given, **self._kept)
        self._kept = {name: made[after] for name, after in self._caches.items()}
        return np.array(made[LOGITS]).reshape(-1)


def readers(path: Path) -> dict[str, Reader]:
    """By name, what reads."""
    bundle = open_bundle(path)

    def litert(kernels: OpResolverType, name: str) -> Any:
        content = bytes(bundle.content(name))
        return LiteRT(model_content=content, experimental_op_resolver_type=kernels)

    def ours(hybrid: str, name: str) -> Any:
        return Interpreter(path, model=name, hybrid=hybrid)

    makes: dict[str, Make] = {name: partial(litert, each) for name, each in _KERNELS.items()}
    makes |= {hybrid: partial(ours, hybrid) for hybrid in _HYBRIDS}
    return {name: Reader(path, make) for name, make in makes.items()}


def answered(found: Mapping[str, Reader], prompt: Sequence[int], count: int) -> dict[str, Array]:
    """By reader, the logits of each step of LiteRT's answer to a prompt."""
    tokens, logits = list(prompt), {name: list[Array]() for name in found}
    for each in found.values():
        each.forget()
    for place in range(count):
        for name, each in found.items():
            logits[name].append(each.logits(tokens[place], place))
        if place >= len(prompt) - 1:
            tokens.append(int(logits[LITERT][-1].argmax()))
    return {name: np.array(rows[len(prompt) - 1 :]) for name, rows in logits.items()}


def told(logits: Mapping[str, Array], name: str) -> str:
    """The figures of a reader."""
    got, default, true = (logits[each].astype(np.float64) for each in (name, LITERT, FLOAT))
    whole, largest = np.sqrt(np.mean(true**2)), np.abs(default).max(axis=1)
    apart = [np.sqrt(np.mean((got - other) ** 2)) / whole for other in (true, default)]
    other = got.argmax(axis=1) != default.argmax(axis=1)
    ranked = np.sort(default, axis=1)
    margins, off = ranked[:, -1] - ranked[:, -2], np.abs(got - default).max(axis=1)
    most = [max((each / largest)[other], default=0.0) for each in (margins, off)]
    return f"{apart[0]:11.1e} {apart[1]:11.1e} {other.sum():6} of {len(other):4}" + (
        f" {most[0]:9.1e} {most[1]:9.1e}" if other.any() else ""
    )


def main() -> None:
    """Print a line for each reader of each bundle."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("bundles", nargs="*", type=Path)
    parser.add_argument("--models", type=Path, default=FOLDER)
    given = parser.parse_args()
    print(f"{'bundle':24} {'reader':22} from floats from LiteRT       other    margin       off")
    for path in given.bundles or sorted(given.models.glob("*.litertlm")):
        found, language = readers(path), LanguageModel(path)
        prompts = [language.prompt_tokens(prompt, template=False) for prompt in PROMPTS]
        answers = [answered(found, prompt, language.capacity - 1) for prompt in prompts]
        logits = {name: np.concatenate([each[name] for each in answers]) for name in found}
        for name in found:
            print(f"{path.stem:24} {name:22} {told(logits, name)}", flush=True)


if __name__ == "__main__":
    main()

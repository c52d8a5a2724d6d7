"""A model that an interpreter was given: what is known of it, and what its plans are made with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tflite_ort.base.collecting import seldom
from tflite_ort.base.optional import late
from tflite_ort.cache.choice import chosen_folder, tuning_file
from tflite_ort.interpreter.executor import Shared
from tflite_ort.model.opened_model import OpenedModel
from tflite_ort.model.opening import ModelFile, opened_file
from tflite_ort.providers.delegates import Delegate, named
from tflite_ort.schema.file.budgets import Meter, chosen_budgets
from tflite_ort.state import State

with late:
    import pathlib

    from tflite_ort import schema
    from tflite_ort.cache import plans
    from tflite_ort.custom import kernels
    from tflite_ort.model import batch as batches
    from tflite_ort.model import missing_operators, resolvers
    from tflite_ort.plan import context as contexts
    from tflite_ort.schema.file import read
    from tflite_ort.tuning import tuner

if TYPE_CHECKING:
    from tflite_ort.cache.plans import PlanCache
    from tflite_ort.fallback_kernels import Kernel
    from tflite_ort.plan.context import PlanContext
    from tflite_ort.schema import Model
    from tflite_ort.versioning.registry import Registry
    from tflite_ort.versioning.resolver import OpResolver

# The resolver of an interpreter that is given none.
_DEFAULT_RESOLVER = "BuiltinOpResolver"


class LoadedModel:
    """A model that was opened; it is read at once unless the cache has a plan of it.

    Args:
        arguments: those of `Interpreter`.
        delegates: what they stand for.
        choice: why these, where they were found by trying.

    Attributes:
        opened: the model.
        seconds: spent on reading.
    """

    def __init__(
        self, arguments: Mapping[str, Any], delegates: Sequence[Delegate], choice: str = ""
    ) -> None:
        self._arguments, self._delegates, self._choice = arguments, delegates, choice
        self._choices: dict[str, Any] = {
            "num_threads": arguments["num_threads"] or 1,
            "keep_all": arguments["experimental_preserve_all_tensors"],
            "hybrid": arguments["hybrid"],
            "strict": arguments["strict"],
        }
        self._resolver = partial(_resolver, arguments["resolver"])
        self._tuner = self._chosen_tuner(arguments["tune"])
        self._context: PlanContext | None = None
        started = time.perf_counter()
        file = opened_file(
            *(arguments["model_path"], arguments["model_content"]),
            *(arguments["budgets"], arguments["model"]),
        )
        self._size = file.content.nbytes
        cache = self._cache(file)
        face = None if cache is None else cache.face()
        # Nothing that is kept here leads back here, so what is dropped is freed at once.
        self.opened = OpenedModel(partial(_read, arguments, self._resolver, file), face)
        self._state, self._stored = State(), cache
        if face is None:  # else the model was valid when the plan was made
            self.context()
        self.seconds = time.perf_counter() - started

    def share(self) -> Shared:
        """What the subgraphs of the model share."""
        providers = {name: each.provider for name, each in named(self._delegates).items()}
        threads = self._choices["num_threads"]
        return Shared(
            *(providers, threads, partial(_kernels, self._resolver), self._state),
            *(self._arguments["budgets"], self.context, self._stored, self._choice),
            size=self._size,
        )

    def context(self) -> PlanContext:
        """What plans are made with; made when the first one is."""
        if self._context is None:
            with seldom:
                model, resolver = self.opened.model, self._resolver()
                self._context = contexts.PlanContext(
                    self._delegates,
                    kernels.BoundResolver(resolver, model, self._choices["num_threads"]),
                    state=self._state,
                    meter=Meter(model.budgets),
                    tuner=self._tuner,
                    **self._choices,
                )
        return self._context

    def close(self) -> None:
        """Give back the memory of the model, and free the nodes of custom operators."""
        self.opened = OpenedModel(lambda: schema.Model())
        if self._context is not None:
            self._context.resolver.close()

    def _chosen_tuner(self, choice: tuner.TuneChoice) -> tuner.Tuner | None:
        """What chooses lowerings, if they are tuned."""
        if choice is False:
            return None
        if not isinstance(choice, tuner.Tuning):
            choice = tuner.Tuning(None if choice is True else choice)
        if choice.file == "":
            raise ValueError("tune='' names no file; tune=True keeps one in the user's folder")
        path = tuning_file() if choice.file is None else pathlib.Path(choice.file).absolute()
        threads = self._choices["num_threads"]
        return tuner.Tuner(choice, path, threads, self._resolver().translators)

    def _cache(self, file: ModelFile) -> PlanCache | None:
        """The stored plans of this model; None where nothing is to be stored."""
        given = self._arguments
        folder = chosen_folder(given["cache"])
        resolver: str | None = _DEFAULT_RESOLVER
        if given["resolver"] is not None:
            resolver = resolvers.library_name(given["resolver"])
        if folder is None or resolver is None:
            return None
        budgets, batch = chosen_budgets(given["budgets"]), given["batch"] or 0
        choices = self._choices | ({} if self._tuner is None else {"tuned": self._tuner.digest()})
        path = given["model_path"] or "(bytes)"
        return plans.plan_cache(
            *(folder, file, path, self._delegates, resolver, budgets), batch=batch, **choices
        )


def _resolver(given: OpResolver | None) -> OpResolver:
    return resolvers.default_resolver() if given is None else given


def _kernels(resolver: Callable[[], OpResolver]) -> Registry[Kernel]:
    return resolver().kernels


def _read(
    arguments: Mapping[str, Any], default: Callable[[], OpResolver], file: ModelFile
) -> Model:
    """The model in a file, whose operators are known."""
    roots, budgets = arguments["external_roots"], arguments["budgets"]
    batch, resolver = arguments["batch"], default()
    model = read.read_content(file.content, file.folder, external_roots=roots, budgets=budgets)
    missing_operators.check_versions(model, resolver)
    if batch is not None:
        model = batches.batched_model(model, batch, resolver=resolver)
    if not model.subgraphs:
        raise schema.TensorError("No subgraph in the model.")
    return model

"""A network of a task: its decoded form, which begins at a picture, in ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from tflite_ort.base.optional import late
from tflite_ort.base.warned import warn_caller
from tflite_ort.bundles import Bundle, open_bundle
from tflite_ort.decode.decoding import decoded
from tflite_ort.decode.networks import Kind
from tflite_ort.decode.warp import places
from tflite_ort.export.exporting import made_for
from tflite_ort.metadata import model_metadata
from tflite_ort.model import class_names
from tflite_ort.model.resolvers import WellKnownOpResolver
from tflite_ort.opmap import Target
from tflite_ort.providers.delegates import AUTO, OpResolverType, chosen_delegates
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.providers.provider import ON_CPU, Provider
from tflite_ort.providers.traits import FULL_PRECISION, traits_of
from tflite_ort.schema import DelegateError, DelegateWarning, ModelError, read_model
from tflite_ort.tasks.options import BaseOptions
from tflite_ort.tasks.rects import Rect
from tflite_ort.tuning.session_target import session_target

with late:
    from tflite_ort.interpreter import device_choice
    from tflite_ort.prediction import answers

Array = npt.NDArray[Any]

# Some providers name each node that they cannot read.
_LONGEST = 500


class Network:
    """One model of a task.

    Args:
        content: of the model, with the files behind it.
        base: providers and threads.
        expected: its kind.

    Raises:
        ModelError: it is of another kind.
        InputError: it has not as many classes as there are labels.
        BridgeError: it cannot be read, exported or loaded.
    """

    def __init__(self, content: memoryview, base: BaseOptions, expected: str) -> None:
        model, resolver = read_model(content), WellKnownOpResolver()
        labels = answers.labels_of(base.labels)
        metadata = model_metadata(model, content)
        kind = class_names.known_kind(model, metadata, labels, wanted=expected)
        if kind is None or kind.name != expected:
            found = "of no kind that is known" if kind is None else f"a network for {kind.name}"
            raise ModelError(f"the model is {found}, a network for {expected} is needed")
        if labels and kind.classes:
            answers.check_count(labels, kind.classes)
        self.kind: Kind = kind
        self.labels: tuple[str, ...] = kind.facts.get("labels", ())
        self.metadata, self.output_count = metadata, len(model.subgraphs[0].outputs)
        of = {"model_content": content, "num_threads": base.num_threads, "resolver": resolver}
        providers, precision = base.runs_on, base.precision
        if providers == AUTO:
            providers = device_choice.resolved(AUTO, of | {"precision": precision})
            precision = FULL_PRECISION
        delegates = chosen_delegates(OpResolverType.AUTO, (), providers, precision)
        provider = delegates[0].provider if delegates else ON_CPU
        threads = base.num_threads or os.cpu_count() or 1
        # Of the inputs that need not be given.
        self.defaults: dict[str, Array] = {}

        def session(provider: Provider) -> OnnxSession:
            exported = made_for(_target(provider.name), content, resolver)
            whole = decoded(
                exported, model, _prepared(kind, provider), image_input=kind.preparation is not None
            )
            self.defaults = _without_defaults(whole)
            return OnnxSession(whole, num_threads=threads, provider=provider, reused=True)

        self._session = _session_or_cpu(session, provider, kind)
        self.input = self._session.inputs[0]
        first = model.subgraphs[0]
        self.input_shape = tuple(first.tensors[first.inputs[0]].shape)

    def __call__(self, array: Array, **named: Any) -> dict[str, Array]:
        """The decoded outputs by name.

        Args:
            array: a picture uint8 [height, width, 3], or what the network takes.
            named: further inputs, such as ``roi`` or ``min_score``: numbers, a `Rect`, or arrays of
                the type that the input has.
        """
        given = {name: _fed(value) for name, value in named.items()}
        feeds = {**self.defaults, self.input: array, **given}
        how = self.kind.preparation
        if how is not None:
            size, tensor = (array.shape[1], array.shape[0]), (how.width, how.height)
            feeds["places"] = places(feeds["roi"], size, tensor, how.letterbox)
        return dict(zip(self._session.outputs, self._session.run(feeds), strict=True))


def _session_or_cpu(
    session: Callable[[Provider], OnnxSession], provider: Provider, kind: Kind
) -> OnnxSession:
    """The session of a network; on the CPU, with a warning, where the provider cannot load it."""
    try:
        return session(provider)
    except DelegateError as error:
        if provider == ON_CPU:
            raise
        text = f"{provider.name} cannot load the {kind.name}, which the CPU runs: {error}"
        warn_caller(text[:_LONGEST], DelegateWarning)
    return session(ON_CPU)


def _without_defaults(model: onnx.ModelProto) -> dict[str, Array]:
    """Make every input of a graph one that has to be given; the values that those had which need
    not be. OpenVINO's provider takes such values for constants, and passes over what is given."""
    graph = model.graph
    names = {value.name for value in graph.input}
    defaults = [each for each in graph.initializer if each.name in names]
    for each in defaults:
        graph.initializer.remove(each)
    return {each.name: onnx.numpy_helper.to_array(each) for each in defaults}


def _prepared(kind: Kind, provider: Provider) -> Kind:
    """A kind whose picture is read at places that are given, as suits the provider."""
    if kind.preparation is None:
        return kind
    gather = traits_of(provider.name).gather
    return replace(kind, preparation=replace(kind.preparation, placed=True, gather=gather))


def _target(provider: str) -> Target:
    """What suits a provider, with inputs and outputs as the file has them."""
    return replace(session_target(provider), carried_boundary=False, fallback=False)


def _fed(value: Any) -> Array:
    if isinstance(value, Rect):
        return value.array
    if isinstance(value, np.ndarray):
        return value
    return np.array(value, np.float32 if isinstance(value, float) else np.int64)


def networks(base: BaseOptions, names: Mapping[str, str]) -> list[Network]:
    """The networks of a task, out of its bundle.

    Args:
        names: of the models in the bundle, each with its kind. The only model of a bundle
            may have any name.

    Raises:
        ModelError: one is not there.
    """
    bundle = open_bundle(base.source)
    return [_network(bundle, base, name, kind) for name, kind in names.items()]


def _network(bundle: Bundle, base: BaseOptions, name: str, kind: str) -> Network:
    if len(bundle.models) == 1:
        return Network(bundle.model_content(), base, kind)
    return Network(bundle.model_content(name), base, kind)

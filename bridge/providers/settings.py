"""How ONNX Runtime's sessions are made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import onnxruntime

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.providers import packages
from tflite_ort.providers.provider import Provider
from tflite_ort.providers.stored_graph import (
    COMPILED,
    MAPPED,
    MAPPED_BYTES,
    PACKED,
    READ_AS,
    SMALL,
    SMALL_BYTES,
    SavedGraph,
)
from tflite_ort.providers.threads import session_options, shares_threads
from tflite_ort.providers.traits import traits_of
from tflite_ort.schema import DelegateError

with late:
    from tflite_ort.providers import native_libraries
    from tflite_ort.providers import precision as precisions

if TYPE_CHECKING:
    import pathlib

# Products with 4-bit weights are in float32, not with activations rounded to 8 bits: see
# docs/numbers.md.
CONFIG = {"session.qdq_matmulnbits_accuracy_level": "1"}

# Smaller initializers of a graph that is saved stay in it.
_INLINE_BYTES = 1024


@record(eq=False)
class Settings:
    """How a session is made; `settings_of` and `read_settings` give the same one each time.

    Args:
        config: entries of ONNX Runtime's session configuration.
        profile: the beginning of the name of a file in which times are noted.
        finished: the graph is optimised already, or is not to be.
        basic: only the basic optimisers find something in the graph.
        packed: weights are packed for the products of this processor.
    """

    num_threads: int
    config: Mapping[str, str]
    profile: str | None
    finished: bool = False
    packed: bool = True
    basic: bool = False

    def options(self) -> onnxruntime.SessionOptions:
        """These settings as ONNX Runtime takes them, for one session."""
        options = session_options(self.num_threads)
        if self.profile is not None:
            options.enable_profiling, options.profile_file_prefix = True, self.profile
        configure(options, "", **self.config)
        if self.finished:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        elif self.basic:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        if not self.packed:
            options.add_session_config_entry("session.disable_prepacking", "1")
        return options

    def shared_options(self) -> onnxruntime.SessionOptions:
        """As `options`, for all sessions with these settings, which must not change them. To make
        them takes as long as the session of a small network."""
        return _shared(self, shares_threads())


@lru_cache(maxsize=32)
def _shared(settings: Settings, pool: bool) -> onnxruntime.SessionOptions:
    """
    Args:
        pool: whether all sessions of the process use one pool, which `session_options` looks up.
    """
    return settings.options()


@lru_cache(maxsize=32)
def settings_of(
    num_threads: int,
    config: tuple[tuple[str, str], ...],
    profile: str | None,
    *,
    finished: bool,
    packed: bool,
    basic: bool,
) -> Settings:
    """How a session of a graph is made that ONNX Runtime has not seen.

    Args:
        config: besides `CONFIG`.
        others: see `Session` and `Settings`.
    """
    entries = {**CONFIG, **dict(config)}
    return Settings(num_threads, entries, profile, finished, packed, basic)


@lru_cache(maxsize=32)
def read_settings(kind: str, num_threads: int, config: tuple[tuple[str, str], ...]) -> Settings:
    """How a session of a stored graph is made.

    Args: see `Session` and `settings_of`.
    """
    entries = {**CONFIG, **READ_AS[kind], **dict(config)}
    return Settings(num_threads, entries, None, kind != COMPILED)


def configure(options: onnxruntime.SessionOptions, prefix: str, **entries: str) -> None:
    """Add entries to the configuration of a session."""
    for key, value in entries.items():
        options.add_session_config_entry(f"{prefix}{key}", value)


def chosen(
    provider: Provider, options: onnxruntime.SessionOptions, num_threads: int
) -> list[tuple[str, dict[str, str]]] | None:
    """The provider as a session takes it; a plug-in is put in `options` instead."""
    name = provider.name
    precisions.set_environment(name, provider.precision)
    traits = traits_of(name)
    if not provider.plugin:
        if traits.nvidia_libraries:
            native_libraries.load_nvidia_libraries()
        return [(name, _options(provider, num_threads))]
    found = [
        each
        for each in onnxruntime.get_ep_devices()
        if each.ep_name == name and provider.device in ("", each.device.type.name)
    ]
    if not found:
        raise DelegateError(f"{name} has no device {provider.device}".rstrip())
    kind = found[0].device.type.name
    texts = _options(provider, num_threads, kind)
    if traits.told:
        texts = packages.told_options(name, texts) | texts
    texts = {**traits.defaults, **traits.emulates.get(kind, {}), **texts}
    options.add_provider_for_devices(found[:1], texts)
    return None


def _options(provider: Provider, num_threads: int, kind: str = "") -> dict[str, str]:
    """All options of a provider but those of its package.

    Args:
        kind: of hardware, where it is known.
    """
    name, traits = provider.name, traits_of(provider.name)
    texts = precisions.options_in(name, provider.precision, provider.options, kind)
    if traits.threads is None or not num_threads or traits.threads_option in texts:
        return texts
    return precisions.joined(texts, traits.threads(num_threads))


def save_to(
    path: pathlib.Path,
    options: onnxruntime.SessionOptions,
    provider: Provider,
    graph: int,
    weights: int,
) -> SavedGraph:
    """Have a session write what it can be made of again; what that will be.

    Args:
        graph: its bytes.
        weights: bytes of those that are handed over beside the graph.
    """
    beside = path.with_name(f"{path.name}.weights")
    if not traits_of(provider.name).takes_all_nodes:
        configure(options, "ep.context_", enable="1", file_path=str(path), embed_mode="1")
        return SavedGraph(COMPILED, [path])
    options.optimized_model_filepath = str(path)
    if graph <= SMALL_BYTES and not weights:
        configure(options, "session.", save_model_format="ONNX")
        return SavedGraph(SMALL, [path])
    if weights <= MAPPED_BYTES:
        configure(options, "session.", save_model_format="ORT")
        return SavedGraph(PACKED, [path])
    configure(options, "session.", save_model_format="ONNX")
    external = "session.optimized_model_external_initializers_"
    configure(options, external, file_name=beside.name, min_size_in_bytes=str(_INLINE_BYTES))
    return SavedGraph(MAPPED, [path, beside])

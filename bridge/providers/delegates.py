"""Delegates: what runs operators in place of the numpy kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, unique
from functools import cache
from typing import TYPE_CHECKING, Any

from tflite_ort.base.optional import late
from tflite_ort.base.records import field, record
from tflite_ort.providers.names import KINDS
from tflite_ort.providers.plugins import find_provider
from tflite_ort.providers.provider import Provider
from tflite_ort.providers.provider_traits import WrongResult
from tflite_ort.providers.session import ORT_RELEASE, ORT_VERSION
from tflite_ort.providers.traits import CPU, FULL_PRECISION, WRONG_BEFORE, traits_of
from tflite_ort.schema import DelegateError, MissingDelegate, OperatorView

with late:
    import dataclasses

    from tflite_ort.providers import candidates, trials
    from tflite_ort.providers import precision as precisions

if TYPE_CHECKING:
    from tflite_ort.providers.candidates import Candidate
    from tflite_ort.schema import Op

# What stands for a delegate in `providers`: a name, or a name and options.
ProviderChoice = str | tuple[str, Mapping[str, Any]]
# What the best device for a model is called, in place of a list.
AUTO = "auto"


@record
class Delegate:
    """Something that can run operators.

    Args:
        name: how `Interpreter.delegation` names it.
        options: passed on to the delegate.
        max_versions: the highest version accepted, by operator; others are not limited.
        min_partition_size: fewer connected operators than this are left to the next delegate.
        precision: of floats; full: what the interpreter is given.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    max_versions: Mapping[Op, int] = field(default_factory=dict)
    min_partition_size: int = 1
    precision: str = FULL_PRECISION

    @property
    def provider(self) -> Provider:
        """What the sessions of its partitions are made with."""
        return Provider(self.name, self.options, precision=self.precision)

    @property
    def computes_in(self) -> str:
        """The precision of floats, as `Placement` has it."""
        provider = self.provider
        return precisions.precision_of(
            provider.name, provider.precision, provider.options, provider.device
        )

    def refusal(self, op: OperatorView[Any]) -> str | None:
        """Why the delegate does not take `op`; None when it does."""
        limit = self.max_versions.get(op.op)
        if limit is not None and op.version > limit:
            return f"{self.name} takes {op.name} up to version {limit}, this is {op.version}"
        return self._wrong_result(op)

    def _wrong_result(self, op: OperatorView[Any]) -> str | None:
        """Why the provider must not run `op`; None where it may."""
        for release, wrong in WRONG_BEFORE.items():
            if release > ORT_RELEASE and (found := _first(wrong, op)):
                return f"wrong in ONNX Runtime {ORT_VERSION}: {found}"
        wrong = self._wrong
        found = _first(wrong, op) if wrong else ""
        return f"wrong in {self.name}: {found}" if found else None

    @property
    def _wrong(self) -> Sequence[WrongResult]:
        """What the provider computes wrongly in this precision."""
        wrong = traits_of(self.name).wrong
        if any(each.full for each in wrong) and self.computes_in != FULL_PRECISION:
            return [each for each in wrong if not each.full]
        return wrong

    @property
    def no_floats(self) -> str:
        """Why it has no floats in this precision; empty where it has."""
        return next((each.why for each in self._wrong if each.full), "")


@record
class ExecutionProviderDelegate(Delegate):
    """An ONNX Runtime execution provider, such as ``CPUExecutionProvider``.

    Args:
        library: the path of the plug-in that it comes from; empty where it is compiled in.
        device: of a plug-in that has several: ``"CPU"``, ``"GPU"`` or ``"NPU"``.
    """

    library: str = ""
    device: str = ""

    @property
    def provider(self) -> Provider:
        """As of `Delegate`, with the plug-in's library and device."""
        return Provider(self.name, self.options, bool(self.library), self.device, self.precision)


# What an interpreter takes: a list of choices or delegates, one name, or AUTO.
ProviderChoices = Sequence[ProviderChoice | Delegate] | str


@unique
class OpResolverType(Enum):
    """Which kernels run what no delegate takes, under the names of ``tf.lite``.

    AUTO, BUILTIN and BUILTIN_WITHOUT_DEFAULT_DELEGATES: those of ONNX Runtime's CPU provider, and
    numpy where it has none. BUILTIN_REF: numpy alone, bit for bit TFLite's reference kernels
    where these compute in integers.
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """An ONNX Runtime execution provider, for `experimental_delegates`.

    Args:
        library: the provider's name, or of a plug-in the package (``onnxruntime-ep-webgpu``) or
            the path of its library.
        options: as the provider documents them.

    Raises:
        MissingDelegate: there is no such provider, or it does not take the options; the message
            says what there is.

    Examples:
        >>> load_delegate("CPUExecutionProvider").name
        'CPUExecutionProvider'
    """
    delegate = _loaded(ExecutionProviderDelegate(library, dict(options or {})))
    try:
        trials.check_provider(delegate.provider)
    except DelegateError as error:
        known = ", ".join(trials.known_options(delegate.name)) if options else ""
        hint = f"; its options are {known}" if known else ""
        raise MissingDelegate(f"Failed to load delegate from {library}: {error}{hint}") from error
    return delegate


def chosen_delegates(
    kind: OpResolverType,
    first: Sequence[Delegate],
    providers: ProviderChoices | None,
    precision: str = FULL_PRECISION,
) -> list[Delegate]:
    """The delegates of an interpreter, the first choice first.

    Args:
        providers: names, (name, options) pairs or delegates, or one name; None: what `kind` stands
            for. ``"npu"`` and ``"gpu"`` are the first device of that kind; the CPU takes what they
            leave, where nothing else is named.
        precision: of floats, where a delegate has none of its own.

    Raises:
        ValueError: `kind` or `precision` is none.
        MissingDelegate: there is no such provider, or it has not this precision.
    """
    if not isinstance(kind, OpResolverType):
        raise ValueError(f"Unrecognized passed in op resolver type: {kind}")
    if providers is None:
        own = [] if kind is OpResolverType.BUILTIN_REF else [on_cpu()]
    else:
        choices = (providers,) if isinstance(providers, str) else providers
        own = list(map(_delegate, choices))
        if own and all(map(_kind_of, choices)):
            own.append(on_cpu())
    found = [*map(_delegate, first), *own]
    if precision == FULL_PRECISION and all(each.precision == FULL_PRECISION for each in found):
        return found
    return _in_precision(found, precision)


def _in_precision(delegates: Sequence[Delegate], precision: str) -> list[Delegate]:
    """The delegates in a precision of floats. Those that take what others leave may lack it.

    Raises:
        ValueError: it is no precision.
        MissingDelegate: another lacks it, or all of them do.
    """
    precisions.check_precision(precision)
    found = list[Delegate]()
    for each in delegates:
        chosen = precision if each.precision == FULL_PRECISION else each.precision
        precisions.check_precision(chosen)
        if precisions.has_precision(each.name, chosen):
            each = dataclasses.replace(each, precision=chosen)
        elif not traits_of(each.name).takes_all_nodes or each.precision != FULL_PRECISION:
            raise precisions.refused_precision(each.name, chosen)
        found.append(each)
    if precision != FULL_PRECISION and all(each.precision == FULL_PRECISION for each in found):
        raise precisions.refused_precision(found[0].name if found else CPU, precision)
    return found


def of_candidate(
    candidate: Candidate,
    precision: str = FULL_PRECISION,
    options: Mapping[str, Any] | None = None,
) -> ExecutionProviderDelegate:
    """What an interpreter is given to use a device of this machine."""
    return ExecutionProviderDelegate(
        candidate.provider,
        dict(options or {}),
        library=candidate.library,
        device=candidate.device,
        precision=precision,
    )


def named(delegates: Sequence[Delegate]) -> dict[str, Delegate]:
    """The delegates by name, in order; the second of one name is ``"NAME #2"``."""
    backends: dict[str, Delegate] = {}
    for delegate in delegates:
        name = delegate.name
        if name in backends:
            name += f" #{1 + sum(name == each.name for each in backends.values())}"
        backends[name] = delegate
    return backends


@cache
def on_cpu() -> Delegate:
    """ONNX Runtime's own kernels, without options: what most interpreters have."""
    return _delegate(CPU)


def _delegate(provider: ProviderChoice | Delegate) -> Delegate:
    if isinstance(provider, Delegate):
        return _loaded(provider)
    name, options = (provider, {}) if isinstance(provider, str) else provider
    if kind := _kind_of(provider):
        return _loaded(of_candidate(candidates.first_on(kind), options=options))
    return _loaded(ExecutionProviderDelegate(name, dict(options)))


def _kind_of(provider: ProviderChoice | Delegate) -> str:
    """The kind of device that a choice names in place of a provider; empty where it does not."""
    if isinstance(provider, Delegate):
        return ""
    name = provider if isinstance(provider, str) else provider[0]
    return name.upper() if name.upper() in KINDS else ""


def _loaded(delegate: Delegate) -> Delegate:
    """`delegate` with its plug-in loaded and the names of its options looked at."""
    if isinstance(delegate, ExecutionProviderDelegate):
        source = find_provider(delegate.name, delegate.library)
        if (source.provider, source.library) != (delegate.name, delegate.library):
            delegate = dataclasses.replace(delegate, name=source.provider, library=source.library)
    else:
        find_provider(delegate.name)
    _check_options(delegate)
    return delegate


def _check_options(delegate: Delegate) -> None:
    """Refuse options that the provider does not have, where it is known which it has."""
    known = traits_of(delegate.name).options
    if not delegate.options or known is None or delegate.provider.plugin:
        return
    if unknown := [name for name in delegate.options if name not in known]:
        raise MissingDelegate(
            f"{delegate.name} has no option {', '.join(unknown)}; "
            f"it has {', '.join(known) or 'none'}"
        )


def what_to_change(provider: str, why: str) -> str:
    """What helps against a reason of `Placement`, as a sentence; empty where nothing is known."""
    rows = (each for each in traits_of(provider).wrong if each.why in why)
    return next((each.instead for each in rows if each.instead), "")


def _first(wrong: Sequence[WrongResult], op: OperatorView[Any]) -> str:
    """What is wrong with `op`; empty where nothing is."""
    return next((each.why for each in wrong if each.concerns(op)), "")

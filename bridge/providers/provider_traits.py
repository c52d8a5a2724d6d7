"""What is known of an execution provider: the fields of a row of `traits`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tflite_ort.base.optional import late
from tflite_ort.base.records import field, record
from tflite_ort.providers import conditions
from tflite_ort.schema import TensorType

with late:
    from tflite_ort import opmap  # a session of a stored graph needs nothing of it

if TYPE_CHECKING:
    from tflite_ort.opmap import Target


def _plain() -> Target:
    """Unsigned weights, and nothing that is fast on one provider alone."""
    return opmap.Target(fallback=True)


@cache
def _call(graphs: Callable[[], Target]) -> Target:
    return graphs()


@record
class WrongResult:
    """Operators that a provider computes differently from TFLite, or that end the process.

    Args:
        why: what the provider does, as the end of a sentence.
        ops: the names of the operators; none stands for all.
        where: whether it is so for an operator at hand; None: always.
        instead: what to change so that the provider takes it, as a sentence; empty: nothing helps.
        full: it is wrong where floats are to be computed in full precision, and not elsewhere.
    """

    why: str
    ops: frozenset[str] = frozenset()
    where: Callable[[conditions.View], bool] | None = None
    instead: str = ""
    full: bool = False

    def concerns(self, op: conditions.View) -> bool:
        """Whether the provider must not run `op`."""
        return (not self.ops or op.op.name in self.ops) and (self.where is None or self.where(op))


def wrong(
    why: str,
    *ops: str,
    where: Callable[[conditions.View], bool] | None = None,
    instead: str = "",
    full: bool = False,
) -> WrongResult:
    """A `WrongResult` of the operators `ops`, or of all."""
    return WrongResult(why, frozenset(ops), where, instead, full)


@record
class Rounding:
    """How far a provider's results may be from TFLite's on the same inputs, where it computes
    otherwise and no worse.

    Args:
        why: what the provider does, as the end of a sentence.
        ops: the names of the operators; none stands for all.
        where: whether it is so for an operator at hand; None: always.
        quanta: in steps of the result's scale, or what counts them for an operator.
        share: of floats, as a part of the largest value.
        clips: of inputs at an end of their codes the results are TFLite's too; else the provider
            may have the numbers from before they were clipped.
    """

    why: str
    ops: frozenset[str] = frozenset()
    where: Callable[[conditions.View], bool] | None = None
    quanta: float | Callable[[conditions.View], float] = 1.0
    share: float = 0.0
    clips: bool = True

    def concerns(self, op: conditions.View) -> bool:
        """Whether it is so for `op`."""
        return (not self.ops or op.op.name in self.ops) and (self.where is None or self.where(op))

    def most(self, op: conditions.View) -> float:
        """The quanta for `op`."""
        return self.quanta(op) if callable(self.quanta) else self.quanta


# Of a provider of which nothing else is known: halves are rounded the other way.
_HALVES = Rounding("it rounds halves in its own way", share=1e-5)


@record
class ProviderTraits:
    """What one execution provider needs and does. The defaults hold for an unknown provider.

    Args:
        graphs: makes `target`.
        exact_weights: quantized weights have the type that this CPU multiplies fastest and exactly,
            found by trying, in place of the type that `target` says.
        takes_all_nodes: ONNX Runtime gives it every node that other providers leave.
        elsewhere: it computes on another machine.
        host_memory: its tensors are in the host's memory. For other providers this is found by
            trying.
        weights_in_place: it reads an input of a graph where it is, so that large weights can be
            inputs, which spares the copies that ONNX Runtime makes of an initializer.
        whole_graphs_only: it is fast only where it takes all nodes of a graph; an operator of which
            it leaves a node goes to the next delegate.
        gather: the ONNX node that reads single elements of a vector fastest.
        threads: the options by which it has so many threads, as of `precisions`; None where it has
            none.
        threads_option: another one for the same, which comes before; empty where it has none.
        nvidia_libraries: it needs those of CUDA and cuDNN.
        precisions: by precision of floats, the options that it gets where none is given that says
            another; the value of one that is JSON as a mapping. Empty where nothing is known.
        precisions_on: by kind of device, the precisions of one that has not all.
        device_option: its option for the kind of device; empty where it has none.
        environment: variables without which it does not compute in full precision, where no option
            says so.
        options: all its options; None where they are not known, or a session tells them.
        install: the line that installs it; empty where that is not known.
        also: another short name of it, see `names`.
        tells_fit: it can be asked whether what it has compiled fits this machine.
        package: the plug-in's package, where it is not called ``onnxruntime_ep_*``.
        told: by option, the function of the package that tells its value where none is given.
        told_unless: with one of these options nothing is told.
        kinds: of devices that it is for, ``"GPU"`` and ``"NPU"``, whether it tells them or not.
        emulates: by kind of device on which it computes as another device would, and slower, the
            options that say which device that is, unless one of them is given.
        defaults: the options that it gets unless they are given.
        wrong: the operators that are kept from it.
        rounds: how far from TFLite's its results may be; the first row that concerns an operator
            counts.
    """

    graphs: Callable[[], Target] = _plain
    exact_weights: bool = False
    takes_all_nodes: bool = False
    elsewhere: bool = False
    host_memory: bool = False
    weights_in_place: bool = False
    whole_graphs_only: bool = False
    gather: str = "GatherElements"
    threads: Callable[[int], Mapping[str, Any]] | None = None
    threads_option: str = ""
    nvidia_libraries: bool = False
    precisions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    precisions_on: Mapping[str, Sequence[str]] = field(default_factory=dict)
    device_option: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] | None = None
    install: str = ""
    also: str = ""
    tells_fit: bool = True
    package: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    told_unless: Sequence[str] = ()
    kinds: Sequence[str] = ()
    emulates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    wrong: Sequence[WrongResult] = ()
    rounds: Sequence[Rounding] = ()

    @property
    def target(self) -> Target:
        """What graphs for it are made of."""
        return _call(self.graphs)

    def rounding(self, op: conditions.View) -> Rounding:
        """How far from TFLite's its results of `op` may be."""
        return next((row for row in self.rounds if row.concerns(op)), _HALVES)


# How far from TFLite's the results of providers may be. A row is a step of the provider's
# arithmetic; ``python -m benchmarks.followed`` and graphs of one node show it. The networks of
# ``tests/providers/test_qnn.py`` keep to them.
_WIDE = conditions.on(TensorType.INT16)
# Providers that compute in floats.
UNROUNDED = (
    Rounding(
        "it does not round activations of floats that meet weights of codes, as TFLite does",
        frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}),
        conditions.hybrid,
        share=0.02,
    ),
    Rounding("it adds floats in another order", frozenset({"MEAN", "SUM"}), share=1e-4),
)
# Qualcomm's NPU, in its emulator.
HTP = (
    Rounding("the last bit of its floats is its own", frozenset({"DEQUANTIZE"}), share=2.0**-20),
    Rounding(
        "halves of an 8-bit state fall otherwise, and the next steps read it",
        frozenset({"LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"}),
        quanta=2,
    ),
    Rounding(
        "logarithms of floats are 16-bit codes of all that codes can give, some steps off",
        frozenset({"LOG_SOFTMAX"}),
        conditions.on(TensorType.FLOAT32),
        share=2.0**-12,
    ),
    Rounding(
        "it drops the lowest 8 bits of sums of 16-bit codes",
        frozenset({"MEAN", "SUM"}),
        _WIDE,
        conditions.summed(1 << 8),
    ),
    Rounding(
        "it drops the lowest 8 bits of sums of 16-bit codes times 8-bit weights, and of the bias",
        frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}),
        _WIDE,
        conditions.counted(1 << 8, 1),
    ),
    Rounding(
        "it drops the lowest 16 bits of sums of 16-bit codes times 16-bit codes, and scales the "
        "sums by a number of 11 bits",
        frozenset({"BATCH_MATMUL"}),
        _WIDE,
        conditions.counted(1 << 16, 1 << 5),
    ),
    Rounding(
        "exponentials for 16-bit codes have 8 bits",
        frozenset({"SOFTMAX"}),
        _WIDE,
        conditions.part_of_one(8),
    ),
    Rounding(
        "it has a table of its own, and TFLite's own is up to 3 codes off",
        frozenset({"TANH"}),
        _WIDE,
        6,
    ),
    Rounding("its quotients of 16-bit codes have 10 bits", frozenset({"DIV"}), _WIDE, 1 << 6),
    Rounding("the scale from 16-bit codes to others has 11 bits", where=_WIDE, quanta=1 << 4),
    Rounding(
        "of 8-bit weights less their zero point it scales the channels that need more bits",
        frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}),
        quanta=conditions.narrowed_weights,
    ),
    Rounding(
        "of an operator and of a sum or concatenation behind it it makes one step, which does not "
        "clip what is between them",
        frozenset({"ADD", "CONCATENATION", "SUB"}),
        clips=False,
    ),
)

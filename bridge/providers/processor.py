"""What tells the processor of this machine from others."""

from __future__ import annotations

import os
from functools import cache

from tflite_ort.base.optional import late

with late:
    from tflite_ort.providers import trials

# As many bytes of Linux's list of processors describe the first one.
_PROCESSOR_BYTES = 4096
_PROCESSOR_FACTS = frozenset(
    {
        *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
        *("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part"),
        *("isa", "cpu", "machine"),
    }
)


@cache
def processor() -> list[str]:
    """What tells this processor from others, as far as kernels are concerned."""
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            text = file.read(_PROCESSOR_BYTES).decode(errors="replace")
    except OSError:
        return [os.environ.get("PROCESSOR_IDENTIFIER", ""), trials.exact_weight_type()]
    first = text.partition("\n\n")[0].splitlines()
    return [line for line in first if line.partition("\t")[0].strip() in _PROCESSOR_FACTS]


def physical_cores() -> int:
    """How many cores this process may use; two threads of one core count once."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    allowed, cores = os.sched_getaffinity(0), set[str]()
    for number in allowed:
        place = f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"
        try:
            with open(place, encoding="ascii") as file:
                cores.add(file.read(_PROCESSOR_BYTES))
        except (OSError, ValueError):
            return len(allowed)
    return len(cores) or 1


@cache
def blocked_channels() -> int:
    """The channels in a block of ONNX Runtime's convolutions of floats; 0 where it is not known."""
    return 16 if "avx512f" in _flags() else 8 if "avx2" in _flags() else 0


@cache
def multiplies_in_tiles() -> bool:
    """Whether ONNX Runtime's products of 8-bit codes use AMX."""
    return "amx_int8" in _flags()


@cache
def _flags() -> frozenset[str]:
    """What an x86 processor has."""
    line = next((line for line in processor() if line.startswith("flags")), "")
    return frozenset(line.split())

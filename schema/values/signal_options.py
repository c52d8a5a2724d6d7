"""The options of TFLite Micro's signal operators, read by `map_options`."""

from __future__ import annotations

from tflite_ort.base.records import record


@record
class WindowOptions:
    """SignalWindow."""

    shift: int = 0


@record
class FourierOptions:
    """SignalRfft, SignalIrfft."""

    fft_length: int = 0


@record
class EnergyOptions:
    """SignalEnergy."""

    start_index: int = 0
    end_index: int = 0


@record
class FilterBankOptions:
    """SignalFilterBank."""

    num_channels: int = 0


@record
class SpectralSubtractionOptions:
    """Those named `alternate` are of channels 1, 3, ..."""

    smoothing: int = 0
    one_minus_smoothing: int = 0
    alternate_smoothing: int = 0
    alternate_one_minus_smoothing: int = 0
    smoothing_bits: int = 0
    spectral_subtraction_bits: int = 0
    min_signal_remaining: int = 0
    num_channels: int = 0
    clamping: bool = False


@record
class PcanOptions:
    """SignalPCAN."""

    snr_shift: int = 0


@record
class LogOptions:
    """SignalFilterBankLog."""

    input_correction_bits: int = 0
    output_scale: int = 0


@record
class FramerOptions:
    """SignalFramer."""

    frame_size: int = 0
    frame_step: int = 0
    prefill: bool = False


@record
class StackerOptions:
    """SignalStacker."""

    num_channels: int = 0
    stacker_left_context: int = 0
    stacker_right_context: int = 0
    stacker_step: int = 0

    @property
    def frames(self) -> int:
        """How many make a stack."""
        return self.stacker_left_context + 1 + self.stacker_right_context


@record
class DelayOptions:
    """SignalDelay."""

    delay_length: int = 0


@record
class OverlapAddOptions:
    """SignalOverlapAdd."""

    frame_step: int = 0

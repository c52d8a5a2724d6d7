"""What the kernels and the nodes of random numbers share: the counter-based generators Philox 4x32
and Threefry 2x32 (Salmon et al., SC 2011), and how TFLite's operators use them."""

from __future__ import annotations

from tflite_ort.schema.file.options import RandomOptions

PHILOX_LANES = 4  # 32-bit numbers of a block, which one value of the counter gives
PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)  # what each round adds to the two halves of the key
PHILOX_ROUNDS = 10
THREEFRY_LANES = 2
THREEFRY_PARITY = 0x1BD11BDA
THREEFRY_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
THREEFRY_ROUNDS = 5  # of four turns

MANTISSA = 23  # bits of a number that are those of a float32 in [0, 1)
HIGH_MANTISSA = 20  # and of the first of two numbers that are those of a float64
LEAST = 1e-7  # of what a standard normal number takes the logarithm
# Of TensorFlow's operators.
PHILOX = 1  # its number of this algorithm
ALGORITHMS = (PHILOX, 3)  # and the one that leaves the choice to the device
SCRAMBLED = 0x02461E293EC8F720  # the key with which stateless operators scramble their seeds
SPARE = 256  # numbers that are kept for each one that may have to be drawn again
TRUNCATED = 2.0  # a truncated normal number is smaller than this
# Bits of the mantissa of a number in [0, 1), by type.
MANTISSAS = {"FLOAT32": MANTISSA, "FLOAT16": 10, "BFLOAT16": 7}
SKIPPED = 2 * 256  # blocks that MULTINOMIAL leaves behind for each number it draws


def random_seeds(options: RandomOptions) -> tuple[int, int] | None:
    """The key and the upper half of the counter (64 bits each) with which the stream of a random
    operator begins; None for two zeros: it is another one each time. TFLite keeps 32 bits of a
    seed."""
    seeds = [(seed + 2**31) % 2**32 - 2**31 for seed in (options.seed, options.seed2)]
    return (seeds[0] % 2**64, seeds[1] % 2**64) if any(seeds) else None

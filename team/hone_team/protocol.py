"""What coordinator and members agree on."""

import math
from dataclasses import dataclass

import numpy as np

from hone_team.core import STEP_BITS

MAX_WEIGHT = 1.0

# A value is clipped at this at least, however small the norm of contributions is.
CLIPPING_MIN = 2.0**-10

# Sums are taken modulo one of these. Its numbers take two bytes each, or four.
MODULUS_NARROW = 1 << 16
MODULUS_WIDE = 1 << 32

# All members share keys with all others.
SHARES = 1.0
# More than this share of the members must be there at the end.
_THRESHOLD = (2, 3)

# A shared part has at most this many numbers.
NUMBERS_MAX = 1 << 24

# Records of messages.
ASK = "hone_ask"
VERSION = "hone_version"
STATE = "hone_state"


@dataclass(frozen=True)
class Ranges:
    """How values become numbers that can be masked: a value x in [-clipping, clipping] becomes
    the integer (x + clipping) * 2^15, which is below or equal to `quantization`, and sums are taken
    modulo `modulus`. A contribution's values are whole multiples of 2^-15, so that nothing is
    rounded."""

    clipping: float
    quantization: int
    modulus: int


def ranges(max_norm: float, members: int) -> Ranges:
    """The ranges for contributions of a norm of at most `max_norm`; 0 is for those with noise,
    whose values may be as large as 1. The numbers take two bytes each if the sum of all members
    fits into them, and otherwise four."""
    clipping = 1.0
    if 0 < max_norm < 1:
        clipping = max(CLIPPING_MIN, 2.0 ** math.ceil(math.log2(max_norm)))
    quantization = int(clipping * (1 << (STEP_BITS + 1)))
    fits = members * quantization < MODULUS_NARROW
    return Ranges(clipping, quantization, MODULUS_NARROW if fits else MODULUS_WIDE)


def revealed_max(members: int, threshold: int) -> int:
    """How many members' keys a coordinator can learn that tells each member something else.

    A member reveals its shares of the keys of at most `members - threshold` others, and a key takes
    `threshold` shares."""
    return members * (members - threshold) // threshold


def smallest_sum(members: int, threshold: int) -> int:
    """How many contributions are in every sum that such a coordinator can learn, at least."""
    return members - revealed_max(members, threshold)


def is_enough(members: int, threshold: int, minimum: int) -> bool:
    """Whether a threshold keeps every sum of this many members at the minimum or above."""
    share, of = _THRESHOLD
    if not share * members < of * threshold <= of * members:
        return False
    return smallest_sum(members, threshold) >= minimum


def threshold(members: int, minimum: int) -> int:
    """The smallest threshold that is enough; all members if none is."""
    enough = (each for each in range(1, members) if is_enough(members, each, minimum))
    return next(enough, members)


def to_values(numbers: np.ndarray) -> np.ndarray:
    """The values of a contribution's numbers, for secure aggregation."""
    return numbers.astype(np.float64) / (1 << STEP_BITS)


def to_sum(mean: np.ndarray, members: int) -> np.ndarray:
    """The sum of the members' numbers, of the mean that secure aggregation gives."""
    return np.rint(mean * members * (1 << STEP_BITS)).astype(np.int64)

"""What coordinator and members agree on."""

import numpy as np

from hone_team.core import STEP_BITS

# Secure aggregation turns a value x in [-1, 1] into the integer (x + 1) * 2^15. A contribution's
# values are whole multiples of 2^-15, so that nothing is rounded. Sums of 65,535 members fit into
# the modulus.
CLIPPING_RANGE = 1.0
QUANTIZATION_RANGE = 1 << (STEP_BITS + 1)
MODULUS_RANGE = 1 << 32
MAX_WEIGHT = 1.0

# All members share keys with all others, and two thirds of them must be there at the end.
SHARES = 1.0
THRESHOLD = 2 / 3

# Records of messages.
ASK = "hone_ask"
VERSION = "hone_version"
STATE = "hone_state"


def to_values(numbers: np.ndarray) -> np.ndarray:
    """The values of a contribution's numbers, for secure aggregation."""
    return numbers.astype(np.float64) / (1 << STEP_BITS)


def to_sum(mean: np.ndarray, members: int) -> np.ndarray:
    """The sum of the members' numbers, of the mean that secure aggregation gives."""
    return np.rint(mean * members * (1 << STEP_BITS)).astype(np.int64)

"""The shared part's numbers and their deltas, as Hone's crate `models` defines them.

The numbers are 32-bit integers, in steps of 2^-15. `models/src/team/core.rs` has the checksum, and
`models/src/team/delta.rs` the bytes of a delta.
"""

import hashlib
import math
import struct
import zlib

import numpy as np

STEP_BITS = 15
NUMBER_MAX = 1 << 22
# A contribution's numbers are 16-bit integers.
CONTRIBUTION_MAX = (1 << 15) - 1

_MAGIC = b"HONETMD\0"
_FORMAT = 1
_PLANES = 4


def checksum(frame: bytes, numbers: np.ndarray) -> bytes:
    """What a version is known by."""
    return hashlib.sha256(frame + numbers.astype("<i4").tobytes()).digest()


def encode(frame: bytes, before: np.ndarray, after: np.ndarray) -> bytes:
    """The delta that turns `before` into `after`."""
    difference = after.astype(np.int64) - before.astype(np.int64)
    zigzag = np.where(difference < 0, -2 * difference - 1, 2 * difference).astype(">u4")
    planes = zigzag.view(np.uint8).reshape(-1, _PLANES).T
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(planes.tobytes()) + deflate.flush()
    head = struct.pack("<I", _FORMAT) + checksum(frame, before) + checksum(frame, after)
    return _MAGIC + head + body


def norm(numbers: np.ndarray) -> float:
    """The L2 norm of the values that the numbers stand for."""
    return math.sqrt(float(np.square(numbers.astype(np.float64)).sum())) / (1 << STEP_BITS)


def rounded(mean: np.ndarray, left: np.ndarray, coarse: int) -> tuple[np.ndarray, np.ndarray]:
    """A mean in whole steps of 2^`coarse`, and what rounding leaves out of it (error feedback)."""
    whole = mean + left
    step = float(1 << coarse)
    numbers = np.rint(whole / step) * step
    return numbers.astype(np.int32), whole - numbers

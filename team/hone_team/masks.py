"""Stronger masks for Flower's SecAgg+.

Flower 1.42 folds a member's secret into 32 bits and seeds numpy's Mersenne Twister with them. Who
has the masked numbers, as the coordinator does, could try all seeds in hours. These masks are the
key stream of AES-256 in counter mode, with a key that depends on the whole secret. Each secret is
used in one round alone.

`install` replaces Flower's by them, in the client's half and in the server's. Members with
other masks would give a sum that no honest round gives, and the round would be left out.
"""

import hashlib
import importlib
import math

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

# The modules whose masks are replaced. Their packages export functions of the same names.
HALVES = [
    importlib.import_module("flwr.client.mod.secure_aggregation.secaggplus_mod"),
    importlib.import_module("flwr.server.workflow.secure_aggregation.secaggplus_workflow"),
]

_PURPOSE = b"hone team mask 1"
_NONCE = bytes(16)


def masks(
    seed: bytes, num_range: int, dimensions_list: list[tuple[int, ...]]
) -> list[np.ndarray]:
    """Uniform integers below `num_range`, which must be a power of two up to 2^32."""
    if num_range > 1 << 32 or num_range & (num_range - 1):
        raise ValueError(f"{num_range} is no power of two up to 2^32")
    key = hashlib.sha256(_PURPOSE + seed).digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(_NONCE)).encryptor()
    found = []
    for shape in dimensions_list:
        content = stream.update(bytes(4 * math.prod(shape)))
        numbers = np.frombuffer(content, dtype="<u4").astype(np.int64) & (num_range - 1)
        found.append(numbers.reshape(shape))
    return found


def install() -> None:
    """Replaces Flower's masks in this process."""
    for half in HALVES:
        if not hasattr(half, "pseudo_rand_gen"):
            raise RuntimeError("this version of Flower makes its masks elsewhere; install 1.42.0")
        half.pseudo_rand_gen = masks

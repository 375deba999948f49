"""All members of a round see the same round.

Members speak to each other through the coordinator alone. One that tells members different things
could have them reveal keys that no honest round reveals. So each member binds what it was told to
the key shares that it sends: it appends a code (HMAC-SHA256) to each, under a key that it has in
common with the member who gets it. That member checks the code against what it was told itself.
"""

import hashlib
import hmac

_PURPOSE = b"hone team view 1"
_KEY_PURPOSE = b"hone team view key 1"
_CODE_BYTES = 32


def digest(sample: int, threshold: int, keys: dict[int, tuple[bytes, bytes]]) -> bytes:
    """What a member was told: how many take part, how many are needed, and everybody's keys."""
    told = hashlib.sha256(_PURPOSE)
    told.update(b"%d %d %d\n" % (sample, threshold, len(keys)))
    for node in sorted(keys):
        first, second = keys[node]
        told.update(b"%d %d %d\n" % (node, len(first), len(second)) + first + second)
    return told.digest()


def bind(view: bytes, secret: bytes, source: int, destination: int, ciphertext: bytes) -> bytes:
    """A ciphertext with the code of what its sender was told."""
    return ciphertext + _code(view, secret, source, destination, ciphertext)


def unbind(view: bytes, secret: bytes, source: int, destination: int, bound: bytes) -> bytes | None:
    """The ciphertext, or None if its sender was told something else."""
    ciphertext, code = bound[:-_CODE_BYTES], bound[-_CODE_BYTES:]
    expected = _code(view, secret, source, destination, ciphertext)
    return ciphertext if hmac.compare_digest(code, expected) else None


def _code(view: bytes, secret: bytes, source: int, destination: int, ciphertext: bytes) -> bytes:
    key = hashlib.sha256(_KEY_PURPOSE + secret).digest()
    head = view + b"%d %d\n" % (source, destination)
    return hmac.digest(key, head + ciphertext, "sha256")

"""Each stage of secure aggregation is answered once for one pair of keys.

Flower's SuperNode may run two messages at the same time, each in a process of its own, and both
find the same state. A member that answers both could reveal more than one answer does. The first
process to create a file for the keys and the stage answers; the other one is refused.
"""

import hashlib
import time
from pathlib import Path

from flwr.supercore.utils import get_flwr_home

# A round is over by then.
_KEPT_SECONDS = 7 * 24 * 3600


def folder() -> Path:
    """Where the files lie that say what was answered."""
    return get_flwr_home() / "hone-team"


def claim(where: Path, public_key: bytes, stage: str) -> bool:
    """Notes that a stage is answered. False if it was answered before."""
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_old(where)
    name = hashlib.sha256(public_key + stage.encode()).hexdigest()
    try:
        (where / name).touch(mode=0o600, exist_ok=False)
    except FileExistsError:
        return False
    return True


def _remove_old(where: Path) -> None:
    until = time.time() - _KEPT_SECONDS
    for file in where.iterdir():
        try:
            if file.stat().st_mtime < until:
                file.unlink()
        except FileNotFoundError:
            # Another process has removed it.
            continue

"""The coordinator's versions, in a folder.

| file | content |
|---|---|
| `state.json` | frame, number of the newest version, and what each version was made of |
| `core-N.bin` | the numbers of version N, little-endian 32-bit integers |
| `delta-N.bin` | what turns version N-1 into version N |
| `left.bin` | what rounding left out, little-endian 64-bit floats |
| `begun` | the version for which members were asked for contributions last |

`state.json` is replaced last, so that a coordinator that is stopped at any point continues from a
whole version. Files of a version that it does not name are written anew.
"""

import json
import os
from pathlib import Path

import numpy as np

from hone_team import core

_FORMAT = 1
_BEGUN = "begun"


class WrongRound(Exception):
    """A round's sum cannot be right, or a version cannot be made."""


class Versions:
    """Versions 0 to N. Version 0 has only zeros and no file."""

    def __init__(self, folder: Path, frame: str, numbers: int) -> None:
        self.folder = folder
        self.frame = bytes.fromhex(frame)
        self.numbers = numbers
        self.rounds: list[dict] = []
        state = folder / "state.json"
        if state.exists():
            self._read(state)

    @staticmethod
    def known(folder: Path) -> "Versions | None":
        """The versions in a folder, if there are any."""
        state = folder / "state.json"
        if not state.exists():
            return None
        read = json.loads(state.read_text())
        return Versions(folder, read["frame"], read["numbers"])

    @property
    def version(self) -> int:
        return len(self.rounds)

    def core(self, version: int) -> np.ndarray:
        if version == 0:
            return np.zeros(self.numbers, dtype=np.int32)
        path = self.folder / f"core-{version}.bin"
        numbers = np.frombuffer(path.read_bytes(), dtype="<i4").astype(np.int32)
        if core.checksum(self.frame, numbers).hex() != self.rounds[version - 1]["core"]:
            raise WrongRound(f"{path}: damaged; restore it from a backup")
        return numbers

    def checksum(self, version: int) -> str:
        if version > 0:
            return self.rounds[version - 1]["core"]
        return core.checksum(self.frame, self.core(0)).hex()

    def add_round(self, total: np.ndarray, members: int, max_norm: float, coarse: int) -> None:
        """Makes the next version of the sum of a round's contributions."""
        limit = members * core.CONTRIBUTION_MAX
        # The smallest integer has no absolute value among the integers.
        size = np.abs(total.astype(np.float64)).max(initial=0)
        if total.shape != (self.numbers,) or size > limit:
            raise WrongRound("the sum has another size, or larger numbers than contributions have")
        # Each contribution's norm is at most max_norm, and so is that of their mean. Noise for
        # differential privacy adds to it, so the members' own setting is what counts then.
        if max_norm > 0 and core.norm(total) > members * max_norm * 1.01:
            raise WrongRound("the sum is larger than clipped contributions give; it is left out")
        mean = total.astype(np.float64) / members
        change, left = core.rounded(mean, self._left(), coarse)
        self._add(change, left, {"members": members})

    def begin_round(self) -> None:
        """Notes that members are asked for contributions to the newest version."""
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / _BEGUN, str(self.version).encode())

    def end_round(self) -> bool:
        """Makes a version like the newest one if a round for that has begun and made none.

        A member contributes to a version once at most. Without another version, those who have
        contributed to a round that failed could not take part again. Whether the coordinator was
        stopped in that round makes no difference. Returns whether it made one."""
        begun = self.folder / _BEGUN
        if not begun.exists() or begun.read_text() != str(self.version):
            return False
        self._add(np.zeros(self.numbers, dtype=np.int32), self._left(), {"members": 0})
        return True

    def drop(self, version: int) -> None:
        """Makes a new version without what one round added."""
        if not 1 <= version <= self.version:
            raise WrongRound(f"there is no version {version}")
        made = self.rounds[version - 1]
        if not made.get("members") or made.get("dropped"):
            raise WrongRound(f"version {version} has no sum of a round, or was dropped before")
        change = self.core(version - 1) - self.core(version)
        made["dropped"] = True
        self._add(change, self._left(), {"without": version})

    def chain(self, held: int) -> tuple[int, list[int], list[bytes]]:
        """What brings a member from a version to the newest: a chain of deltas, one for each
        version. A member without any gets the whole, and no other member takes it."""
        newest = self.version
        if 0 < held < newest:
            between = range(held + 1, newest + 1)
            deltas = [(self.folder / f"delta-{each}.bin").read_bytes() for each in between]
            return held, list(between), deltas
        return 0, [newest], [core.encode(self.frame, self.core(0), self.core(newest))]

    def _add(self, change: np.ndarray, left: np.ndarray, made: dict) -> None:
        before = self.core(self.version)
        after = before + change
        if np.abs(after).max(initial=0) > core.NUMBER_MAX:
            raise WrongRound("a number would be too large")
        version = self.version + 1
        made["core"] = core.checksum(self.frame, after).hex()
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / f"core-{version}.bin", after.astype("<i4").tobytes())
        _write(self.folder / f"delta-{version}.bin", core.encode(self.frame, before, after))
        _write(self.folder / "left.bin", left.astype("<f8").tobytes())
        self.rounds.append(made)
        state = {
            "format": _FORMAT,
            "frame": self.frame.hex(),
            "numbers": self.numbers,
            "rounds": self.rounds,
        }
        _write(self.folder / "state.json", json.dumps(state, indent=1).encode())

    def _left(self) -> np.ndarray:
        path = self.folder / "left.bin"
        if not path.exists():
            return np.zeros(self.numbers)
        left = np.frombuffer(path.read_bytes(), dtype="<f8")
        return left if left.shape == (self.numbers,) else np.zeros(self.numbers)

    def _read(self, path: Path) -> None:
        state = json.loads(path.read_text())
        if state["format"] != _FORMAT:
            raise WrongRound(f"{path}: format {state['format']}, {_FORMAT} is read")
        if (state["frame"], state["numbers"]) != (self.frame.hex(), self.numbers):
            raise WrongRound(f"{path}: of another base model; name another folder")
        self.rounds = state["rounds"]


def _write(path: Path, content: bytes) -> None:
    """Replaces a file as a whole."""
    new = path.with_name(path.name + ".tmp")
    with open(new, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)

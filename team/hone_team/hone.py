"""The member's Hone, which is known by its command line alone."""

import json
import os
import subprocess
from typing import Any

FORMAT = 1

# A contribution waits for an update that is under way, and then learns.
_CONTRIBUTE_SECONDS = 3600
_OTHER_SECONDS = 600


class HoneRefused(Exception):
    """Hone refuses. The message is Hone's own, which holds no code."""


class Hone:
    """Runs `hone team …`."""

    def __init__(self, program: str | None = None) -> None:
        self.program = program or os.environ.get("HONE_BIN") or "hone"

    def status(self) -> dict[str, Any]:
        return self._ask(["status", "--json"], seconds=_OTHER_SECONDS)

    def contribute(self, members: int, epsilon: float | None) -> dict[str, Any]:
        arguments = ["contribute", "--json", "--members", str(members)]
        if epsilon is not None:
            arguments += ["--epsilon", repr(epsilon)]
        return self._ask(arguments, seconds=_CONTRIBUTE_SECONDS)

    def receive(self, message: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps({"format": FORMAT, **message})
        return self._ask(["receive", "--json"], seconds=_OTHER_SECONDS, text=text)

    def _ask(self, arguments: list[str], seconds: int, text: str = "") -> dict[str, Any]:
        try:
            done = subprocess.run(
                [self.program, "team", *arguments],
                input=text,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HoneRefused(f"{self.program}: {type(error).__name__}") from None
        if done.returncode != 0:
            raise HoneRefused(done.stderr.strip().removeprefix("Error: ")[:500])
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            raise HoneRefused(f"{self.program}: printed no JSON") from None
        if answer.get("format", FORMAT) != FORMAT:
            raise HoneRefused(f"{self.program}: speaks another format; update both")
        return answer

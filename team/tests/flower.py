"""What the tests that run the real Flower have in common."""

import os
import shutil
import socket
import sys
import tempfile
import time
import unittest
from pathlib import Path


TEAM = Path(__file__).parents[1]
# A member's node, from this working tree.
NODE = [sys.executable, "-m", "hone_team.admin", "node"]


def with_team(environment: dict[str, str]) -> dict[str, str]:
    """An environment in which Flower's programs are found, and this working tree's package is the
    one that is installed."""
    found = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}",
        "PYTHONPATH": str(TEAM),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
    }
    return {**environment, **found}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class FlowerTest(unittest.TestCase):
    """A folder of its own, and the environment in which Flower's programs run."""

    PATIENCE = 120

    def setUp(self):
        # A socket's path has a limit of about 100 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="ht"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {
            **with_team(dict(os.environ)),
            "FLWR_HOME": str(self.folder / "flower"),
        }

    def wait_for(self, what: str, reached) -> None:
        until = time.monotonic() + self.PATIENCE
        while time.monotonic() < until:
            if reached():
                return
            time.sleep(0.5)
        logs = {
            log.name: log.read_text(errors="replace")[-3000:] for log in self.folder.glob("*.log")
        }
        self.fail(f"{what}: {logs}")

    @staticmethod
    def listens(port: int) -> bool:
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", port)) == 0

"""What the tests that run the real Flower have in common."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
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


# Systems give connections and listeners without a wish ports above these, so nothing takes one of
# them between the moment when it is found free and the moment when Flower listens on it.
PORTS = range(12_000, 32_000)


# The ports that `free_port` has not returned yet, in random order.
_unused = random.SystemRandom().sample(PORTS, len(PORTS))


def free_port() -> int:
    """Returns a port of this machine on which nothing listens, and no port twice."""
    while True:
        port = _unused.pop()
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class FlowerTest(unittest.TestCase):
    """A folder of its own, and Flower's programs, which end with the test."""

    # The seconds after which a wait is a failure. No test passes or fails by how long it took.
    PATIENCE = 600

    def setUp(self):
        # A socket's path has a limit of about 100 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="ht"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {
            **with_team(dict(os.environ)),
            "FLWR_HOME": str(self.folder / "flower"),
        }
        self.started: list[subprocess.Popen] = []
        self.addCleanup(self.stop_all)

    def start(
        self, name: str, *command: str, **environment: str
    ) -> tuple[subprocess.Popen, Path]:
        """Starts a program that runs until the test ends, and returns it with its log."""
        path = self.folder / f"{name}.log"
        with open(path, "wb") as log:
            process = subprocess.Popen(
                command, env={**self.environment, **environment}, stdout=log, stderr=log
            )
        self.started.append(process)
        return process, path

    def stop_all(self) -> None:
        """Kills what was started, and the programs that those have started."""
        for process in self.started:
            # Nothing happens to a program that has ended and was waited for.
            process.kill()
        # Flower starts programs in sessions of their own, which outlive it. They have its
        # environment. One may start another meanwhile, so they are looked for until none is left.
        while running := self.running():
            for pid in running:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)
        for process in self.started:
            process.wait()

    def running(self) -> list[int]:
        """Returns the processes whose environment has this test's folder."""
        own = f"FLWR_HOME={self.environment['FLWR_HOME']}".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if own in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
            except OSError:
                # It has ended, or is somebody else's.
                continue
        return found

    def flwr(self, *arguments: str) -> str:
        """Runs Flower's command and returns what it printed."""
        done = subprocess.run(
            ["flwr", *arguments], env=self.environment, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, f"flwr {arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def connect(self, port: int, *more: str) -> None:
        """Writes down for `flwr` where the SuperLink is, and waits for it."""
        flower = self.folder / "flower"
        flower.mkdir(exist_ok=True)
        lines = ["[superlink]", 'default = "test"', "[superlink.test]",
                 f'address = "127.0.0.1:{port}"', *more]
        (flower / "config.toml").write_text("\n".join(lines))
        self.wait_for("the SuperLink listens", lambda: self.listens(port))

    def states(self) -> list[str]:
        """Returns how each member that the coordinator knows stands with it."""
        told = json.loads(self.flwr("supernode", "list", "test", "--format", "json"))
        return sorted(node["status"] for node in told["nodes"])

    def is_there(self, node: tuple[subprocess.Popen, Path]) -> None:
        """Waits until the coordinator has given a member's node, as `start` returns it, its
        number."""
        _, log = node
        self.says(log, "SuperNode ID: ")

    def says(self, log: Path, words: str) -> None:
        """Waits until a log has these words."""
        self.wait_for(f"{log.name}: {words}", lambda: words in log.read_text(errors="replace"))

    def wait_for(self, what: str, reached) -> None:
        until = time.monotonic() + self.PATIENCE
        while time.monotonic() < until:
            if reached():
                return
            time.sleep(0.25)
        logs = {
            log.name: log.read_text(errors="replace")[-3000:] for log in self.folder.glob("*.log")
        }
        self.fail(f"{what}: {logs}")

    @staticmethod
    def listens(port: int) -> bool:
        with socket.socket() as attempt:
            return attempt.connect_ex(("127.0.0.1", port)) == 0

"""Two members, two rounds, with the real Flower, the real Hone and a real model, over loopback.

It needs HONE_BIN (the program `hone`) and HONE_TEST_MODELS (a folder with SmolLM2), as
`cargo xtask test` sets them, and is skipped without them.
"""

import base64
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

from hone_team import core
from tests.editor import Editor
from tests.flower import NODE, TEAM, FlowerTest, free_port
from tests.relay import Relay

HONE = os.environ.get("HONE_BIN")
MODELS = os.environ.get("HONE_TEST_MODELS")
MEMBERS = 2
ROUNDS = 2
# What a contribution may take besides two bytes for each number.
OTHER_BYTES_MAX = 8_000
# Requests with less than this are keys, states and Flower's questions for work, which it asks every
# few seconds. How many there are depends on how long the rounds take.
SMALL_BYTES = 50_000

CONFIG = """\
model.name = "smollm2-135m"
model.threads = 1
lab.max_tokens = 8
lab.budget_ms = 120000
lab.min_token_probability = 0
completion.context_chars = 0
gate.enabled = false
lab.batch_episodes = 500
learning.on_battery = true
team.minimum_members = 2
"""


@unittest.skipUnless(HONE and MODELS, "HONE_BIN and HONE_TEST_MODELS are not set")
class Team(FlowerTest):
    def setUp(self):
        super().setUp()
        self.environment["HONE_BIN"] = HONE

    def hone(self, home: Path, *arguments: str, text: str = "") -> str:
        done = subprocess.run(
            [HONE, *arguments],
            env={**os.environ, "HONE_HOME": str(home)},
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, f"hone {arguments}: {done.stderr}")
        return done.stdout

    def status(self, home: Path) -> dict:
        return json.loads(self.hone(home, "team", "--json"))

    def member(self, number: int, canary: str) -> tuple[Path, Editor]:
        """A home with a daemon that has recorded ten verdicts on code that holds the canary."""
        home = self.folder / f"m{number}"
        (home / "models").mkdir(parents=True)
        for file in Path(MODELS).iterdir():
            if "SmolLM2" in file.name and file.is_file():
                if file.name.endswith(".json"):
                    shutil.copy(file, home / "models")
                else:
                    os.symlink(file.resolve(), home / "models" / file.name)
        (home / "config.toml").write_text(CONFIG)
        self.hone(home, "team", "join", "127.0.0.1:9")
        editor = Editor(HONE, home)
        self.addCleanup(subprocess.run, [HONE, "stop"], env={**os.environ, "HONE_HOME": str(home)},
                        capture_output=True, check=False)
        self.judge(editor, canary, range(16))
        return home, editor

    def judge(self, editor: Editor, canary: str, cases: range) -> None:
        judged = 0
        for case in cases:
            text = f"# Monday, Tuesday, Wednesday, {canary}\nnames = ['Monday', 'Tuesday', {case}, "
            judged += editor.judge(f"file:///{canary}/{case}.py", text, case % 2 == 0)
            if judged == 10:
                break
        self.assertGreaterEqual(judged, 8)

    def test_a_team_sharpens_together_and_no_code_leaves(self):
        canaries = [f"canary{secrets.token_hex(8)}" for _ in range(MEMBERS)]
        members = [self.member(number, canary) for number, canary in enumerate(canaries)]
        port = free_port()
        self.start(
            "superlink", "flower-superlink", "--insecure", "--host", "127.0.0.1",
            "--port", str(port), "--disable-runtime-dependency-installation",
        )
        self.connect(port, "insecure = true")
        relays = [Relay(port) for _ in members]
        for number, ((home, _), relay) in enumerate(zip(members, relays, strict=True)):
            self.addCleanup(relay.close)
            self.start(
                f"supernode{number}", *NODE, "--insecure",
                "--superlink", f"127.0.0.1:{relay.port}",
                "--host", "127.0.0.1", "--port", str(free_port()),
                HONE_HOME=str(home),
            )
        versions = self.folder / "versions"
        state = versions / "state.json"
        for number in range(ROUNDS):
            # A contribution learns from labels that no earlier one has learned from.
            if number > 0:
                for (_, editor), canary in zip(members, canaries, strict=True):
                    self.judge(editor, canary, range(16 * number, 16 * number + 16))
            self.run_app(versions)
            self.wait_for(
                f"version {number + 1} is made",
                lambda: state.exists() and len(json.loads(state.read_text())["rounds"]) > number,
            )
        self.wait_for(
            "the members have the last one",
            lambda: all(self.status(home)["version"] == ROUNDS for home, _ in members),
        )
        self.check_members(members)
        self.check_bytes(members, relays)
        self.check_canaries(canaries, members, relays, versions)
        self.check_hostile(*members[1])
        self.check_forgetting(*members[0])

    def run_app(self, versions: Path) -> None:
        config = (
            f'folder="{versions}" rounds=1 minimum={MEMBERS} '
            f"patience={self.PATIENCE} pause=0 timeout={self.PATIENCE}"
        )
        self.flwr("run", str(TEAM), "test", "--run-config", config)

    def check_members(self, members) -> None:
        statuses = [self.status(home) for home, _ in members]
        self.assertEqual(len({status["core"] for status in statuses}), 1)
        for (home, editor), status in zip(members, statuses, strict=True):
            self.assertEqual(status["contributions"], ROUNDS)
            self.assertIn(status["received"]["outcome"], ["trial", "refused", "serves"])
            adapters = json.loads(self.hone(home, "adapter", "list", "--json"))["adapters"]
            self.assertTrue([each for each in adapters if each["report"]["job"].startswith("team")])
            # Completions continue.
            self.assertTrue(editor.judge("file:///after.py", "one = 1\ntwo = 2\nthree = ", True))

    def check_bytes(self, members, relays) -> None:
        numbers = self.status(members[0][0])["numbers"]
        for relay in relays:
            lengths = re.findall(rb"content-length: *(\d+)", bytes(relay.sent).lower())
            large = [int(length) for length in lengths if int(length) > SMALL_BYTES]
            # Not the error output of the test, which is thrown away if it passes.
            print(
                f"{numbers} numbers; contributions of {large} bytes; "
                f"{len(relay.sent)} bytes sent in all, {len(relay.returned)} received",
                file=sys.__stderr__,
            )
            self.assertEqual(len(large), ROUNDS)
            for length in large:
                self.assertGreater(length, 2 * numbers)
                self.assertLess(length, 2 * numbers + OTHER_BYTES_MAX)

    def check_canaries(self, canaries, members, relays, versions) -> None:
        frame = self.status(members[0][0])["frame"]
        # What is known to be sent is found, so a canary would be found too. An object that the
        # SuperLink has from one member already is not sent by another.
        sent = [relay for relay in relays if frame.encode() in relay.sent]
        self.assertTrue(sent, "a state is readable")
        for relay in relays:
            self.assertTrue(frame.encode() in relay.returned, "what comes back is readable")
            self.assertFalse(b"content-encoding" in bytes(relay.sent).lower(), "nothing is packed")
        kept = [path for path in versions.rglob("*") if path.is_file()]
        kept += list(self.folder.glob("*.log"))
        seen = [bytes(relay.sent + relay.returned) for relay in relays]
        seen += [path.read_bytes() for path in kept]
        for canary in canaries:
            for form in [
                canary.encode(),
                canary.encode("utf-16-le"),
                canary.encode().hex().encode(),
                base64.b64encode(canary.encode())[:-4],
            ]:
                self.assertFalse([part for part in seen if form in part])
        # Nor the ids of offers, which the events have.
        for home, _ in members:
            events = self.hone(home, "events", "--json", "--with-code")
            self.assertTrue(any(canary in events for canary in canaries))
            offers = {json.loads(line).get("id") for line in events.splitlines()} - {None}
            self.assertFalse([id for id in offers for part in seen if id.encode() in part])

    def check_hostile(self, home: Path, editor: Editor) -> None:
        """A coordinator that sends what would ruin the model."""
        status = self.status(home)
        frame, count = bytes.fromhex(status["frame"]), status["numbers"]
        zeros = np.zeros(count, dtype=np.int32)
        noise = np.random.default_rng(3).normal(size=count)
        numbers = np.rint(noise / np.linalg.norm(noise) * 60 * 32768).astype(np.int32)

        def message(version: int, numbers: np.ndarray) -> str:
            delta = core.encode(frame, zeros, numbers).hex()
            return json.dumps({
                "format": 1,
                "frame": status["frame"],
                "version": version,
                "core": core.checksum(frame, numbers).hex(),
                "from": 0,
                "chain": [{"version": version, "delta": delta}],
            })

        def refused(text: str) -> str:
            done = subprocess.run(
                [HONE, "team", "receive", "--json"],
                env={**os.environ, "HONE_HOME": str(home)},
                input=text,
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertNotEqual(done.returncode, 0, done.stdout)
            return done.stderr

        # A member with a version takes no whole one, however small its norm is.
        for version, far in [(ROUNDS + 1, numbers), (1000, numbers), (1000, numbers // 10_000)]:
            self.assertIn("only a machine without a version", refused(message(version, far)))
        self.assertIn("older than", refused(message(1, numbers // 100)))
        foreign = message(1000, numbers).replace(status["frame"], "00" * 32)
        self.assertIn("another base model", refused(foreign))
        self.assertEqual(self.status(home)["version"], ROUNDS)
        self.assertTrue(editor.judge("file:///still.py", "one = 1\ntwo = 2\nthree = ", True))

    def check_forgetting(self, home: Path, editor: Editor) -> None:
        told = self.hone(home, "forget", "--all", "--yes")
        self.assertRegex(told, "contributions? to the team's adapter")
        ledger = json.loads((home / "team" / "ledger.json").read_text())
        self.assertTrue(all(made["forgotten"] for made in ledger["contributions"]))
        self.assertEqual(self.status(home)["version"], ROUNDS, "the shared part stays")
        self.hone(home, "team", "leave")
        self.assertIsNone(self.status(home)["address"])


if __name__ == "__main__":
    unittest.main()

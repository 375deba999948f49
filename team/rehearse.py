"""Rehearses a team: real authors, the real Flower and the real Hone, all on this machine.

Each member is an author of one repository. Their commits are typed into a daemon of their own by
`hone rehearse`, which stops after every so many places. Then a round is run: a SuperLink, one
`hone-team node` for each member, and the package `team`. When all rounds are done, authors who had
no part in them type their commits with the team's adapter. Everybody's commits are typed into a
daemon with the base model before.

    python rehearse.py --hone ../target/release/hone --model MODEL.gguf --repo REPO \\
        --since 2025-06-01 --member 'Ada L' --member 'Grace H' --newcomer 'Alan T' --work FOLDER

At the end a table says how many characters were completed with the team's adapter and with the base
model. The reports of `hone rehearse` lie in the folder afterwards, and `rounds.json` with each
round's seconds and the bytes that each member sent and received.

With `--private` each member has a private part, too, and types the commits once more in a daemon
that is in no team and learns the private part alone. Two more tables compare the three.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rehearsed import commits, table
from tests.flower import NODE, free_port, with_team
from tests.relay import Relay

TEAM = Path(__file__).parent
# What is learned serves as soon as it has passed the checks, and every offer is shown.
LEARNS = "everything,gate.enabled=false,lab.trial=false"
# A member without a private part: no update of it comes before this many labels.
TEAM_ALONE = "lab.batch_episodes=4096"
TEAM_ARM = f"team={LEARNS},team.minimum_members=2"
PRIVATE_ARM = f"private={LEARNS}"
# The base model to the end. The other arms reuse the prompts that it has computed.
BASE_ARM = "frozen=frozen"
# Places of one commit.
PER_COMMIT = 8
ROUND_SECONDS = 3600
POLL_SECONDS = 0.5


def main() -> None:
    if sys.argv[1:2] == ["visit"]:
        visit(Path(sys.argv[2]), sys.argv[3])
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hone", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="the file")
    parser.add_argument("--name", help="what `hone model list` calls it, if not the default model")
    parser.add_argument("--template", help="the model's FIM template, if its file does not tell")
    parser.add_argument("--repo", type=Path, required=True)
    parser.add_argument("--since", required=True, help="YYYY-MM-DD")
    parser.add_argument("--newcomer-places", type=int, default=200)
    parser.add_argument("--member", action="append", required=True, help="an author's name")
    parser.add_argument("--newcomer", action="append", default=[], help="an author's name")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--every", type=int, default=16, help="places of a member in a round")
    parser.add_argument("--private", action="store_true",
                        help="members learn a private part, too; another arm learns it alone")
    parser.add_argument("--setting", action="append", default=[], metavar="KEY=VALUE",
                        help="a setting of every daemon, such as model.threads=1, without which "
                             "each of them takes all cores")
    parser.add_argument("--work", type=Path, required=True, help="an empty folder")
    arguments = parser.parse_args()
    if arguments.every < PER_COMMIT:
        parser.error(f"--every: a commit has up to {PER_COMMIT} places, and a round comes after it")
    arguments.work = arguments.work.resolve()
    arguments.work.mkdir(parents=True)
    team = Rehearsal(arguments)
    try:
        team.run()
    finally:
        team.end()


class Rehearsal:
    """The processes of a team, and the folder in which they wait for each other."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.work: Path = arguments.work
        self.port = free_port()
        self.started: dict[str, subprocess.Popen] = {}
        self.relays: dict[str, Relay] = {}
        self.rounds: list[dict] = []
        self.environment = {
            **with_team(dict(os.environ)),
            "HONE_BIN": str(arguments.hone.resolve()),
            "FLWR_HOME": str(self.work / "flower"),
        }

    def run(self) -> None:
        arguments = self.arguments
        self.start("superlink", [
            "flower-superlink", "--insecure", "--host", "127.0.0.1", "--port", str(self.port),
            "--disable-runtime-dependency-installation",
        ])
        (self.work / "model").write_text(str(arguments.model.resolve()))
        flower = self.work / "flower"
        flower.mkdir()
        (flower / "config.toml").write_text(
            '[superlink]\ndefault = "here"\n\n'
            f'[superlink.here]\naddress = "127.0.0.1:{self.port}"\ninsecure = true\n'
        )
        places = arguments.rounds * arguments.every
        members = [
            self.rehearse(f"member{number}", author, places, arguments.every)
            for number, author in enumerate(arguments.member)
        ]
        for number in range(1, arguments.rounds + 1):
            self.round(number)
        finish(members)
        self.end_nodes()
        self.newcomers()
        print(self.table())

    def newcomers(self) -> None:
        """Types the commits of those who joined no round. The newest version comes after the first
        file."""
        newcomers = {
            f"newcomer{number}": self.rehearse(
                f"newcomer{number}", author, self.arguments.newcomer_places, 1
            )
            for number, author in enumerate(self.arguments.newcomer)
        }
        while any(process.poll() is None for process in newcomers.values()):
            waiting = [name for name in newcomers if self.waits_for_version(name)]
            if waiting:
                self.flower(rounds=0)
            else:
                time.sleep(POLL_SECONDS)
        finish(list(newcomers.values()))
        self.end_nodes()

    def waits_for_version(self, name: str) -> bool:
        """Whether a newcomer has typed the first file, and has no version yet."""
        return (self.work / f"{name}.1").exists() and not (self.work / f"{name}.up").exists()

    def table(self) -> str:
        """Of a member, the last half of the commits counts, and of a newcomer all."""
        def of(kind: str, authors: list[str], arms: tuple[str, str], from_share: float) -> dict:
            reports = [self.work / f"{kind}{number}.json" for number in range(len(authors))]
            typed = [commits(report, arms, from_share) for report in reports]
            return dict(zip(authors, typed))

        def members(arms: tuple[str, str]) -> dict:
            return {"members": of("member", self.arguments.member, arms, 0.5)}

        arms = ("frozen", "team")
        groups = {} if self.arguments.private else members(arms)
        if self.arguments.newcomer:
            groups["newcomers"] = of("newcomer", self.arguments.newcomer, arms, 0.0)
        tables = [table(("base model", "team's adapter"), groups)] if groups else []
        if self.arguments.private:
            tables += [
                table(("base model", "private part"), members(("frozen", "private"))),
                table(("private part", "both parts"), members(("private", "team"))),
            ]
        return "\n\n".join(tables)

    def rehearse(self, name: str, author: str, places: int, every: int) -> subprocess.Popen:
        """Types an author's commits, and visits this file between them."""
        self.relays[name] = Relay(self.port)
        visit = self.work / f"{name}.sh"
        command = shlex.join([sys.executable, str(Path(__file__).resolve()), "visit"])
        visit.write_text(f"#!/bin/sh\nexec {command} {shlex.quote(str(self.work))} {name}\n")
        visit.chmod(0o755)
        (self.work / f"{name}.port").write_text(str(self.relays[name].port))
        arguments = self.arguments
        template = ["--template", arguments.template] if arguments.template else []
        settings = [*arguments.setting]
        if arguments.name:
            settings.append(f"model.name={arguments.name}")
        if arguments.private and name.startswith("member"):
            arms = [BASE_ARM, PRIVATE_ARM, TEAM_ARM]
        else:
            arms = [BASE_ARM, f"{TEAM_ARM},{TEAM_ALONE}"]
        arms = [part for arm in arms for part in ("--arm", ",".join([arm, *settings]))]
        typed = self.work / f"{name}.typed"
        return self.start(name, [
            str(arguments.hone), "rehearse", "--hone", str(arguments.hone.resolve()),
            "--model", str(arguments.model.resolve()), "--repo", str(arguments.repo),
            "--author", author, "--since", arguments.since, "--limit", str(places),
            "--per-commit", str(PER_COMMIT), *arms, *template,
            "--every", str(every), "--run", str(visit),
            "--work", str(typed), "--keep-prompts", "--save-every", str(places),
            "--report", str(self.work / f"{name}.json"),
        ])

    def round(self, number: int) -> None:
        """Waits until the members are there, and runs a round of the package `team`."""
        names = list(self.relays)
        wait(lambda: all(self.is_there(name, number) for name in names))
        begun = time.monotonic()
        before = {name: self.relays[name].counts() for name in names}
        self.flower(rounds=1)
        moved = {name: self.relays[name].counts() for name in names}
        of_member = {
            name: {"sent": moved[name][0] - before[name][0],
                   "received": moved[name][1] - before[name][1]}
            for name in names
        }
        seconds = round(time.monotonic() - begun, 1)
        self.rounds.append({"round": number, "seconds": seconds, "bytes": of_member})
        (self.work / "rounds.json").write_text(json.dumps(self.rounds, indent=1))
        print(f"round {number}: {seconds} s", flush=True)
        (self.work / f"go.{number}").touch()

    def is_there(self, name: str, number: int) -> bool:
        if self.started[name].poll() is not None:
            raise SystemExit(f"{name} has ended; {self.work / name}.log says why")
        return (self.work / f"{name}.{number}").exists()

    def flower(self, rounds: int) -> None:
        """Runs the package `team`. Without a round it only sends the newest version."""
        config = (
            f'folder="{self.work / "versions"}" rounds={rounds} '
            f"minimum={majority(len(self.arguments.member))} "
            f"patience=120 pause=0 timeout={ROUND_SECONDS}"
        )
        flwr = ["flwr", "run", str(TEAM), "here", "--run-config", config, "--stream"]
        with open(self.work / "flwr.log", "ab") as log:
            subprocess.run(flwr, env=self.environment, stdout=log, stderr=log, check=True)

    def start(self, name: str, command: list[str]) -> subprocess.Popen:
        log = open(self.work / f"{name}.log", "ab")
        process = subprocess.Popen(
            command, env=self.environment, stdout=log, stderr=log, start_new_session=True
        )
        self.started[name] = process
        return process

    def end(self) -> None:
        for process in self.started.values():
            end_group(process.pid)
        self.end_nodes()
        for relay in self.relays.values():
            relay.close()
        # The prompts take gigabytes.
        for prompts in self.work.glob("*.typed"):
            shutil.rmtree(prompts, ignore_errors=True)

    def end_nodes(self) -> None:
        for file in self.work.glob("*.pid"):
            end_group(int(file.read_text()))
            file.unlink()


def majority(members: int) -> int:
    """How many members a version needs. Not all of them have enough new labels in each round."""
    return members // 2 + 1


def end_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGTERM)
    except ProcessLookupError:
        return


def finish(processes: list[subprocess.Popen]) -> None:
    failed = [process.args for process in processes if process.wait() != 0]
    if failed:
        raise SystemExit(f"failed: {failed}")


def wait(reached) -> None:
    until = time.monotonic() + ROUND_SECONDS
    while not reached():
        if time.monotonic() > until:
            raise SystemExit("a member did not come to the end of its places")
        time.sleep(POLL_SECONDS)


def visit(work: Path, name: str) -> None:
    """What somebody does between two files: join the team at first, and take part in a round."""
    if os.environ["HONE_REHEARSAL_ARM"] != "team" or (work / f"{name}.up").exists():
        return
    number = 1
    while (work / f"{name}.{number}").exists():
        number += 1
    if number == 1:
        join(work, name)
    (work / f"{name}.{number}").touch()
    if name.startswith("member"):
        wait((work / f"go.{number}").exists)
    else:
        wait(has_received)
        (work / f"{name}.up").touch()


def join(work: Path, name: str) -> None:
    # `hone rehearse` names the model's file to the daemon. `hone team` looks for it in the home.
    model = Path((work / "model").read_text())
    models = Path(os.environ["HONE_HOME"]) / "models"
    models.mkdir(exist_ok=True)
    (models / model.name).symlink_to(model)
    subprocess.run([os.environ["HONE_BIN"], "team", "join", "127.0.0.1:9"], check=True)
    relay = (work / f"{name}.port").read_text()
    with open(work / f"{name}.node.log", "wb") as log:
        node = subprocess.Popen(
            [*NODE, "--insecure", "--superlink", f"127.0.0.1:{relay}",
             "--host", "127.0.0.1", "--port", str(free_port())],
            stdout=log, stderr=log, start_new_session=True,
        )
    (work / f"{name}.pid").write_text(str(node.pid))


def has_received() -> bool:
    """Whether a version has come and was checked, so that it serves or is refused."""
    status = [os.environ["HONE_BIN"], "team", "--json"]
    told = subprocess.run(status, check=True, capture_output=True).stdout
    return json.loads(told)["received"] is not None


if __name__ == "__main__":
    main()

"""The coordinator's side. It sees sums of contributions, never one of them."""

import re
import time
from collections import Counter
from dataclasses import dataclass
from logging import INFO, WARNING
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.common import FitIns, Parameters, parameters_to_ndarrays
from flwr.common.logger import log
from flwr.server import LegacyContext, ServerConfig
from flwr.server.workflow.constant import MAIN_CONFIGS_RECORD, MAIN_PARAMS_RECORD, Key
from flwr.serverapp import Grid, ServerApp

from hone_team import masks, protocol
from hone_team.versions import Versions, WrongRound
from hone_team.workflow import Workflow

masks.install()
app = ServerApp()

_POLL_SECONDS = 2
_SHA256_HEX = re.compile("[0-9a-f]{64}")


@dataclass
class Settings:
    """What `flwr run --run-config` can change; `pyproject.toml` explains each."""

    folder: Path
    rounds: int
    minimum: int
    patience: float
    pause: float
    timeout: float
    max_norm: float
    coarse: int

    @staticmethod
    def of(config: dict) -> "Settings":
        settings = Settings(
            folder=Path(str(config["folder"])),
            rounds=int(config["rounds"]),
            minimum=int(config["minimum"]),
            patience=float(config["patience"]),
            pause=float(config["pause"]),
            timeout=float(config["timeout"]),
            max_norm=float(config["max-norm"]),
            coarse=int(config["coarse"]),
        )
        if settings.minimum < 2:
            raise ValueError("minimum: a sum of one member is that member's contribution")
        if not 0 <= settings.coarse <= 12:
            raise ValueError("coarse: from 0 to 12")
        return settings


@dataclass
class Member:
    """Stands for a node where Flower's workflow asks for a proxy."""

    node_id: int


class _NoClients:
    """Flower's workflow asks how many clients there are, for its log."""

    def __init__(self, count: int) -> None:
        self.count = count

    def num_available(self) -> int:
        return self.count


class RoundStrategy:
    """What Flower's workflow asks of a strategy: who takes part, and what becomes of the sum."""

    def __init__(self, members: list[int], config: dict) -> None:
        self.members = members
        self.config = config
        self.total: np.ndarray | None = None
        self.count = 0

    def configure_fit(self, server_round, parameters, client_manager):
        fit = FitIns(Parameters([], "numpy.ndarray"), self.config)
        return [(Member(node), fit) for node in self.members]

    def aggregate_fit(self, server_round, results, failures):
        # The workflow puts the mean of all into every result. There is no other number in them.
        if results:
            mean = parameters_to_ndarrays(results[0][1].parameters)[0]
            self.count = len(results)
            self.total = protocol.to_sum(mean, self.count)
        return None, {}


@app.main()
def main(grid: Grid, context: Context) -> None:
    settings = Settings.of(dict(context.run_config))
    versions = Versions.known(settings.folder)
    log(INFO, "the newest version is %s", versions.version if versions else 0)
    for number in range(settings.rounds):
        if number > 0:
            time.sleep(settings.pause)
        try:
            versions = run_round(grid, context, versions, settings) or versions
        except Exception as error:
            # The next round may go well.
            log(WARNING, "no round: %s", type(error).__name__, exc_info=error)
            versions = versions or Versions.known(settings.folder)
    if versions is not None:
        bring_up_to_date(grid, ask(grid, settings), versions, settings)


def run_round(
    grid: Grid, context: Context, versions: Versions | None, settings: Settings
) -> Versions | None:
    """One round: who is there, the newest version to all, and the sum of what they learned."""
    states = wait_for_members(grid, settings)
    if len(states) < settings.minimum:
        log(WARNING, "%s members, %s are the minimum; no round", len(states), settings.minimum)
        return versions
    if versions is None:
        base = common_base(states, settings.minimum)
        if base is None:
            log(WARNING, "fewer than %s members have the same base model", settings.minimum)
            return None
        versions = Versions(settings.folder, *base)
    end_round(versions)
    ready = bring_up_to_date(grid, states, versions, settings)
    if len(ready) < settings.minimum:
        log(WARNING, "%s members are up to date; no round", len(ready))
        return versions
    # A member who gives up in the middle of a round may end it for all, and is not asked.
    learned = [node for node, state in ready.items() if state.get("contributes", True)]
    log(INFO, "%s of %s members have something to contribute", len(learned), len(ready))
    if len(learned) < settings.minimum:
        log(WARNING, "%s are the minimum; version %s stays", settings.minimum, versions.version)
        return versions
    try:
        add_contributions(grid, context, learned, versions, settings)
    finally:
        end_round(versions)
    return versions


def common_base(states: dict[int, dict], minimum: int) -> tuple[str, int] | None:
    """The base model that most members have, and how many numbers its shared part has. None if
    fewer than the minimum have the same."""
    bases = Counter((state["frame"], state["numbers"]) for state in states.values())
    base, members = bases.most_common(1)[0]
    return base if members >= minimum else None


def end_round(versions: Versions) -> None:
    """Takes care that a round that made no version does not stop the next ones."""
    if versions.end_round():
        log(WARNING, "a round made nothing; version %s is like the last one", versions.version)


def add_contributions(
    grid: Grid, context: Context, members: list[int], versions: Versions, settings: Settings
) -> None:
    """Makes the next version of what the members have learned."""
    strategy = secure_sum(grid, context, members, versions, settings)
    if strategy.total is None or strategy.count < settings.minimum:
        log(WARNING, "too few contributions")
        return
    try:
        versions.add_round(strategy.total, strategy.count, settings.max_norm, settings.coarse)
    except WrongRound as error:
        log(WARNING, "the round is left out: %s", error)
        return
    log(INFO, "version %s, of %s members", versions.version, strategy.count)


def secure_sum(
    grid: Grid, context: Context, members: list[int], versions: Versions, settings: Settings
) -> RoundStrategy:
    """Runs Flower's SecAgg+ on the members' contributions to the newest version."""
    version = versions.version
    config = {
        "frame": versions.frame.hex(),
        "version": version,
        "core": versions.checksum(version),
    }
    strategy = RoundStrategy(members, config)
    legacy = LegacyContext(context=context, config=ServerConfig(num_rounds=1), strategy=strategy)
    legacy.client_manager = _NoClients(len(members))
    legacy.state.config_records[MAIN_CONFIGS_RECORD] = ConfigRecord(
        {Key.CURRENT_ROUND: version + 1}
    )
    legacy.state.array_records[MAIN_PARAMS_RECORD] = ArrayRecord()
    workflow = Workflow(
        numbers=versions.numbers,
        before_contributions=versions.begin_round,
        threshold=protocol.threshold(len(members), settings.minimum),
        ranges=protocol.ranges(settings.max_norm, len(members)),
        timeout=settings.timeout,
    )
    workflow(grid, legacy)
    return strategy


def wait_for_members(grid: Grid, settings: Settings) -> dict[int, dict]:
    """The states of the members, once there are enough or nobody waits any longer."""
    until = time.monotonic() + settings.patience
    while True:
        states = ask(grid, settings) if len(list(grid.get_node_ids())) >= settings.minimum else {}
        if len(states) >= settings.minimum or time.monotonic() > until:
            return states
        time.sleep(_POLL_SECONDS)


def ask(grid: Grid, settings: Settings) -> dict[int, dict]:
    """Which version each member has."""
    nodes = list(grid.get_node_ids())
    content = RecordDict({protocol.ASK: ConfigRecord({"ask": "version"})})
    messages = [Message(content, dst_node_id=node, message_type="query") for node in nodes]
    states = {}
    for reply in grid.send_and_receive(messages, timeout=settings.timeout):
        if reply.has_error():
            log(WARNING, "a member gives no answer: %s", reply.error.reason)
            continue
        state = dict(reply.content.config_records.get(protocol.STATE, {}))
        if is_state(state):
            states[reply.metadata.src_node_id] = state
        else:
            log(WARNING, "a member's answer has another form and is left out")
    return states


def is_state(state: dict) -> bool:
    """Whether an answer says in the agreed form what a member has."""
    texts = [state.get("frame"), state.get("core")]
    counts = [state.get("version"), state.get("numbers")]
    return (
        all(isinstance(text, str) and _SHA256_HEX.fullmatch(text) for text in texts)
        and all(type(count) is int for count in counts)
        and state["version"] >= 0
        and 0 < state["numbers"] <= protocol.NUMBERS_MAX
        and type(state.get("contributes", True)) is bool
    )


def bring_up_to_date(
    grid: Grid, states: dict[int, dict], versions: Versions, settings: Settings
) -> dict[int, dict]:
    """Sends the newest version to those that lack it. Returns the states of who has it then."""
    newest = versions.version
    ready, messages = {}, []
    for node, state in states.items():
        if (state["frame"], state["numbers"]) != (versions.frame.hex(), versions.numbers):
            log(WARNING, "a member has another base model and is left out")
        elif (state["version"], state["core"]) == (newest, versions.checksum(newest)):
            ready[node] = state
        else:
            messages.append(version_message(node, state, versions))
    for reply in grid.send_and_receive(messages, timeout=settings.timeout) if messages else []:
        if reply.has_error():
            log(WARNING, "a member does not take version %s: %s", newest, reply.error.reason)
            continue
        # Whether a member contributes depends on the version that it has.
        told = dict(reply.content.config_records.get(protocol.STATE, {}))
        if (told.get("version"), type(told.get("contributes", True))) == (newest, bool):
            ready[reply.metadata.src_node_id] = told
    return ready


def version_message(node: int, state: dict, versions: Versions) -> Message:
    held = int(state["version"])
    if held > versions.version or state["core"] != versions.checksum(held):
        # It holds something that this coordinator has not made.
        held = 0
    start, numbers, deltas = versions.chain(held)
    record = ConfigRecord(
        {
            "frame": versions.frame.hex(),
            "version": versions.version,
            "core": versions.checksum(versions.version),
            "from": start,
            "versions": numbers,
            "deltas": deltas,
        }
    )
    content = RecordDict({protocol.VERSION: record})
    return Message(content, dst_node_id=node, message_type="evaluate")

"""The member's side: it asks the local Hone for contributions, and hands it the team's versions."""

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters
from flwr.compat.common import recorddict_compat as compat

from hone_team import masks, privacy, protocol
from hone_team.guard import Own, guard_mod, members_of, pack_mod
from hone_team.hone import Hone, HoneRefused
from hone_team.private import failures_mod

masks.install()
# This mod is around all functions and all their other mods.
app = ClientApp(mods=[failures_mod])
_hone = Hone()


def _own() -> Own:
    status = _hone.status()
    has_noise = float(status["noise"]) > 0
    return Own(int(status["minimum_members"]), 0.0 if has_noise else float(status["max_norm"]))


def _has_enough(status: dict) -> bool:
    """Whether a contribution finds enough labels, and this version has none of this member yet. An
    older Hone does not say, and is asked.

    Two sums for one version that differ by one member would show its contribution."""
    contributed_to = status.get("contributed_to")
    if contributed_to is not None and contributed_to >= status["version"]:
        return False
    return "labels" not in status or (status["labels"] or 0) >= status["labels_min"]


@app.query()
def query(message: Message, context: Context) -> Message:
    """Which version is here, and whether there is enough to contribute."""
    status = _hone.status()
    if status["address"] is None:
        raise HoneRefused("this machine is in no team")
    if status["frame"] is None:
        raise HoneRefused("the model's file is not here; `hone model pull` fetches it")
    state = ConfigRecord(
        {
            "frame": status["frame"],
            "numbers": status["numbers"],
            "version": status["version"],
            "core": status["core"],
            "contributes": _has_enough(status),
        }
    )
    return Message(RecordDict({protocol.STATE: state}), reply_to=message)


@app.evaluate()
def receive(message: Message, context: Context) -> Message:
    """Hands a version to Hone, which checks it and tries it before it serves."""
    version = message.content.config_records[protocol.VERSION]
    links = zip(version["versions"], version["deltas"], strict=True)
    received = _hone.receive(
        {
            "frame": version["frame"],
            "version": version["version"],
            "core": version["core"],
            "from": version["from"],
            "chain": [{"version": number, "delta": delta.hex()} for number, delta in links],
        }
    )
    # What became of it stays with the member.
    contributes = _has_enough(_hone.status())
    state = ConfigRecord({"version": received["version"], "contributes": contributes})
    return Message(RecordDict({protocol.STATE: state}), reply_to=message)


@app.train(mods=[pack_mod, guard_mod(_own), secaggplus_mod])
def contribute(message: Message, context: Context) -> Message:
    """Asks Hone for a contribution. The mods mask it before it leaves this process."""
    fit = compat.recorddict_to_fitins(message.content, keep_input=True)
    epsilon = privacy.after_one_more(_hone.status())
    made = _hone.contribute(members_of(context), epsilon)
    wanted = (fit.config["frame"], fit.config["version"], fit.config["core"])
    if (made["frame"], made["version"], made["core"]) != wanted:
        raise HoneRefused(f"version {made['version']} is here, the round is for {wanted[1]}")
    values = protocol.to_values(np.array(made["numbers"], dtype=np.int16))
    result = FitRes(
        status=Status(code=Code.OK, message=""),
        parameters=ndarrays_to_parameters([values]),
        num_examples=1,
        metrics={},
    )
    return Message(compat.fitres_to_recorddict(result, keep_input=False), reply_to=message)

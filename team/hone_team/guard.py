"""What a member checks of secure aggregation before it takes part, and how it packs what it sends.

Flower's SecAgg+ trusts the coordinator to ask the right questions. A coordinator that asks for
other ones could learn one member's contribution, so a member refuses these:

- to contribute outside of secure aggregation, by whatever type of message;
- a round with fewer members than `team.minimum_members`;
- other ranges than those agreed on, in which values would be cut or rounded;
- to reveal both secrets of one member, its mask and its key, which together unmask it;
- to answer a stage twice (`once.py`).

A coordinator can also tell members different things. It says to some that others have vanished,
and collects shares of those others' keys, although their contributions have come. With `n` members
of which `t` must be there at the end, a member reveals its shares of the keys of at most `n - t`
others. A key takes `t` shares, so the coordinator learns at most `n * (n - t) // t` keys
(`protocol.revealed_max`). Who has a member's key can take the masks away that it has in common
with each other member. What is left is a sum of the members whose keys stay secret. So a member
takes part only if these are at least the minimum. The count holds only if all members have the
same `n`, `t` and keys, which they assure each other of (`views.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from flwr.app import Context, Message
from flwr.app.message_type import MessageType
from flwr.client.mod.secure_aggregation.secaggplus_mod import SecAggPlusState, check_stage
from flwr.clientapp.typing import ClientAppCallable
from flwr.common import bytes_to_ndarray, ndarray_to_bytes
from flwr.common.secure_aggregation.secaggplus_constants import (
    RECORD_KEY_CONFIGS,
    RECORD_KEY_STATE,
    Key,
    Stage,
)

from hone_team import once, protocol, views


class Unsafe(Exception):
    """The coordinator asks for something that could show one member's contribution."""


@dataclass(frozen=True)
class Own:
    """What a member's own settings say: how many a sum is of at least, and how large the norm of
    its contributions is at most, or 0 with noise."""

    minimum: int
    max_norm: float

    @property
    def least(self) -> int:
        """A sum of one member is that member's contribution, whatever the settings say."""
        return max(self.minimum, 2)


def check_setup(configs: dict, own: Own, state: SecAggPlusState) -> None:
    members = configs[Key.SAMPLE_NUMBER]
    if members < own.least:
        raise Unsafe(f"the round has {members} members, {own.least} are the minimum")
    if configs[Key.SHARE_NUMBER] != members:
        raise Unsafe("not all members would share keys")
    _check_threshold(members, configs[Key.THRESHOLD], own)
    ranges = protocol.ranges(own.max_norm, members)
    agreed = {
        Key.CLIPPING_RANGE: ranges.clipping,
        Key.TARGET_RANGE: ranges.quantization,
        Key.MOD_RANGE: ranges.modulus,
        Key.MAX_WEIGHT: protocol.MAX_WEIGHT,
    }
    for key, value in agreed.items():
        if configs[key] != value:
            raise Unsafe(
                f"{key} is {configs[key]}, and {value} follows from the settings here: the "
                "coordinator's max-norm must be lab.team_max_norm, or 0 with team.noise"
            )


def check_keys(configs: dict, own: Own, state: SecAggPlusState) -> None:
    names = [key for key in configs if key != Key.STAGE]
    # Flower reads " 7" and "07" as 7, so one member could be counted twice.
    if any(not name.isdecimal() or str(int(name)) != name for name in names):
        raise Unsafe("the name of a member is no number in its shortest form")
    if len(names) > state.sample_num:
        raise Unsafe(f"{len(names)} members have sent keys, {state.sample_num} were asked")
    if len(names) < own.least:
        raise Unsafe(f"{len(names)} members have sent keys, {own.least} are the minimum")
    _check_threshold(len(names), state.threshold, own)


def check_vectors(configs: dict, own: Own, state: SecAggPlusState) -> None:
    sources = _nodes(configs, Key.SOURCE_LIST)
    # A member gets a message from each of the others.
    members = len(sources) + 1
    revealed = protocol.revealed_max(len(state.public_keys_dict), state.threshold)
    if members - revealed < own.least:
        raise Unsafe(
            f"{members} members are left, the keys of {revealed} could be revealed, and a sum of "
            f"{own.least} is the minimum"
        )


def check_unmask(configs: dict, own: Own, state: SecAggPlusState) -> None:
    active = _nodes(configs, Key.ACTIVE_NODE_ID_LIST)
    dead = _nodes(configs, Key.DEAD_NODE_ID_LIST)
    if set(active) & set(dead):
        raise Unsafe("both secrets of one member are asked for")
    if state.nid not in active:
        raise Unsafe("this member has contributed and is left out of the sum")
    if not set(active + dead) <= set(state.rd_seed_share_dict):
        raise Unsafe("a member is named that has sent no key shares")
    least = max(state.threshold, own.least)
    if len(active) < least:
        raise Unsafe(f"the sum is of {len(active)} members, {least} are the minimum")


_CHECKS = {
    Stage.SETUP: check_setup,
    Stage.SHARE_KEYS: check_keys,
    Stage.COLLECT_MASKED_VECTORS: check_vectors,
    Stage.UNMASK: check_unmask,
}


def _check_threshold(members: int, threshold: int, own: Own) -> None:
    if not protocol.is_enough(members, threshold, own.least):
        raise Unsafe(
            f"{threshold} of {members} members could unmask a sum of fewer than {own.least}"
        )


def _nodes(configs: dict, key: str) -> list[int]:
    """A list of members, each of them once."""
    nodes = configs[key]
    if not isinstance(nodes, list) or any(type(node) is not int for node in nodes):
        raise Unsafe(f"{key} is no list of members")
    if len(set(nodes)) != len(nodes):
        raise Unsafe(f"a member is named twice in {key}")
    return nodes


def guard_mod(own: Callable[[], Own], folder: Callable[[], Path] = once.folder):
    """A Flower mod that refuses what is unsafe by the member's own settings. What was answered is
    noted in the folder."""

    def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        # Flower takes other types to the same function, without secure aggregation.
        if message.metadata.message_type != MessageType.TRAIN:
            raise Unsafe(f"a message of the type {message.metadata.message_type}")
        records = message.content.config_records
        if RECORD_KEY_CONFIGS not in records:
            raise Unsafe("a contribution is asked for without secure aggregation")
        configs = records[RECORD_KEY_CONFIGS]
        stage = configs.get(Key.STAGE)
        if stage not in _CHECKS:
            raise Unsafe("an unknown stage of secure aggregation")
        state = _state(context)
        if stage != Stage.SETUP:
            check_stage(state.current_stage, configs)
        _CHECKS[stage](dict(configs), own(), state)
        if stage == Stage.COLLECT_MASKED_VECTORS:
            configs[Key.CIPHERTEXT_LIST] = _unbound(dict(configs), state)
        if stage != Stage.SETUP and not once.claim(folder(), state.pk1, stage):
            raise Unsafe(f"the stage {stage} was answered before")
        reply = call_next(message, context)
        if stage == Stage.SHARE_KEYS:
            answer = reply.content.config_records[RECORD_KEY_CONFIGS]
            answer[Key.CIPHERTEXT_LIST] = _bound(dict(answer), _state(context))
        return reply

    return mod


def _state(context: Context) -> SecAggPlusState:
    """What Flower's mod has kept of the round under way."""
    return SecAggPlusState(**context.state.config_records.get(RECORD_KEY_STATE, {}))


def _view(state: SecAggPlusState) -> bytes:
    return views.digest(state.sample_num, state.threshold, state.public_keys_dict)


def _bound(answer: dict, state: SecAggPlusState) -> list[bytes]:
    """The key shares for the others, with what this member was told."""
    view, own = _view(state), state.nid
    pairs = zip(answer[Key.DESTINATION_LIST], answer[Key.CIPHERTEXT_LIST], strict=True)
    return [views.bind(view, state.ss2_dict[to], own, to, text) for to, text in pairs]


def _unbound(configs: dict, state: SecAggPlusState) -> list[bytes]:
    """The key shares from the others, who were told the same."""
    view, found = _view(state), []
    for source, text in zip(configs[Key.SOURCE_LIST], configs[Key.CIPHERTEXT_LIST], strict=True):
        if source not in state.ss2_dict or not isinstance(text, bytes):
            raise Unsafe("a key share comes from nobody in this round")
        share = views.unbind(view, state.ss2_dict[source], source, state.nid, text)
        if share is None:
            raise Unsafe("the coordinator tells members different things")
        found.append(share)
    return found


def pack_mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Sends masked numbers in two or four bytes each, as the modulus asks, instead of eight."""
    reply = call_next(message, context)
    records = reply.content.config_records
    if RECORD_KEY_CONFIGS in records and Key.MASKED_PARAMETERS in records[RECORD_KEY_CONFIGS]:
        record = records[RECORD_KEY_CONFIGS]
        vectors = [bytes_to_ndarray(vector) for vector in record[Key.MASKED_PARAMETERS]]
        modulus = context.state.config_records[RECORD_KEY_STATE]["mod_range"]
        narrow = np.uint16 if modulus == protocol.MODULUS_NARROW else np.uint32
        packed = [ndarray_to_bytes(vector.astype(narrow)) for vector in vectors]
        record[Key.MASKED_PARAMETERS] = packed
    return reply


def members_of(context: Context) -> int:
    """How many members have sent keys in the round under way."""
    state = context.state.config_records[RECORD_KEY_STATE]
    return len(state["public_keys_dict:K"])

"""What a member checks of secure aggregation before it takes part, and how it packs what it sends.

Flower's SecAgg+ trusts the coordinator to ask the right questions. A coordinator that asks for
other ones could learn one member's contribution, so a member refuses these:

- a round with fewer members than `team.minimum_members`, or of which a minority could unmask;
- other ranges than those agreed on, in which values would be cut or rounded;
- to reveal both secrets of one member, its mask and its key, which together unmask it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flwr.app import Context, Message
from flwr.app.message_type import MessageType
from flwr.clientapp.typing import ClientAppCallable
from flwr.common import bytes_to_ndarray, ndarray_to_bytes
from flwr.common.secure_aggregation.secaggplus_constants import (
    RECORD_KEY_CONFIGS,
    RECORD_KEY_STATE,
    Key,
    Stage,
)

from hone_team import protocol


class Unsafe(Exception):
    """The coordinator asks for something that could show one member's contribution."""


@dataclass(frozen=True)
class Own:
    """What a member's own settings say: how many a sum is of at least, and how large the norm of
    its contributions is at most, or 0 with noise."""

    minimum: int
    max_norm: float


def check_setup(configs: dict, own: Own) -> None:
    members = configs[Key.SAMPLE_NUMBER]
    if members < max(own.minimum, 2):
        raise Unsafe(f"the round has {members} members, {own.minimum} are the minimum")
    if configs[Key.SHARE_NUMBER] != members:
        raise Unsafe("not all members would share keys")
    if 2 * configs[Key.THRESHOLD] <= members:
        raise Unsafe("half of the members could unmask another")
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
                "coordinator's max-norm must be team.max_norm, or 0 with team.noise"
            )


def check_keys(configs: dict, own: Own) -> None:
    members = sum(1 for key in configs if key != Key.STAGE)
    if members < max(own.minimum, 2):
        raise Unsafe(f"{members} members have sent keys, {own.minimum} are the minimum")


def check_vectors(configs: dict, own: Own) -> None:
    # A member gets a message from each of the others.
    members = len(set(configs[Key.SOURCE_LIST])) + 1
    if members < max(own.minimum, 2):
        raise Unsafe(f"{members} members are left, {own.minimum} are the minimum")


def check_unmask(configs: dict, own: Own) -> None:
    active = configs[Key.ACTIVE_NODE_ID_LIST]
    dead = configs[Key.DEAD_NODE_ID_LIST]
    if set(active) & set(dead):
        raise Unsafe("both secrets of one member are asked for")
    if len(set(active)) != len(active) or len(set(dead)) != len(dead):
        raise Unsafe("a member is named twice")
    if len(active) < max(own.minimum, 2):
        raise Unsafe(f"the sum is of {len(active)} members, {own.minimum} are the minimum")


_CHECKS = {
    Stage.SETUP: check_setup,
    Stage.SHARE_KEYS: check_keys,
    Stage.COLLECT_MASKED_VECTORS: check_vectors,
    Stage.UNMASK: check_unmask,
}


def guard_mod(own: Callable[[], Own]):
    """A Flower mod that refuses what is unsafe by the member's own settings."""

    def mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        if message.metadata.message_type == MessageType.TRAIN:
            records = message.content.config_records
            if RECORD_KEY_CONFIGS not in records:
                raise Unsafe("a contribution is asked for without secure aggregation")
            configs = dict(records[RECORD_KEY_CONFIGS])
            check = _CHECKS.get(configs.get(Key.STAGE))
            if check is None:
                raise Unsafe("an unknown stage of secure aggregation")
            check(configs, own())
        return call_next(message, context)

    return mod


def pack_mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """Sends masked numbers in two or four bytes each, as the modulus asks, in place of eight."""
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

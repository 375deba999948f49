"""Flower's SecAgg+ workflow, for members that vanish early or answer with something else."""

from collections.abc import Callable
from logging import WARNING

import numpy as np
from flwr.app import Message
from flwr.common import bytes_to_ndarray
from flwr.common.logger import log
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key
from flwr.compat.common import recorddict_compat as compat
from flwr.server import LegacyContext
from flwr.server.workflow import SecAggPlusWorkflow
from flwr.server.workflow.secure_aggregation.secaggplus_workflow import WorkflowState
from flwr.serverapp import Grid

from hone_team import protocol

# What a vector in numpy's format has besides its numbers.
_HEAD_BYTES_MAX = 1024


class Workflow(SecAggPlusWorkflow):
    """Sums the contributions of those who have sent keys and key shares.

    Flower's workflow asks at the end for the shares of everybody whom it has asked at the
    beginning. Nobody has shares of those who have sent none, so they are left out once a stage is
    over. `numbers` is how many numbers a contribution has. `before_contributions` is called when
    members are about to be asked for them."""

    def __init__(
        self, *, numbers: int, before_contributions: Callable[[], None], threshold: int,
        ranges: protocol.Ranges, timeout: float,
    ) -> None:
        super().__init__(
            num_shares=protocol.SHARES,
            reconstruction_threshold=threshold,
            max_weight=protocol.MAX_WEIGHT,
            clipping_range=ranges.clipping,
            quantization_range=ranges.quantization,
            modulus_range=ranges.modulus,
            timeout=timeout,
        )
        self.numbers = numbers
        self.before_contributions = before_contributions

    def setup_stage(self, grid: Grid, context: LegacyContext, state: WorkflowState) -> bool:
        continues = super().setup_stage(grid, context, state)
        _leave_out_absent(state)
        return continues

    def share_keys_stage(self, grid: Grid, context: LegacyContext, state: WorkflowState) -> bool:
        continues = super().share_keys_stage(grid, context, state)
        _leave_out_absent(state)
        return continues

    def collect_masked_vectors_stage(
        self, grid: Grid, context: LegacyContext, state: WorkflowState
    ) -> bool:
        self.before_contributions()

        def is_well_formed(reply: Message) -> bool:
            return is_contribution(reply, self.numbers, state.mod_range)

        return super().collect_masked_vectors_stage(_Checked(grid, is_well_formed), context, state)


def _leave_out_absent(state: WorkflowState) -> None:
    # A copy: the workflow uses one set under both names.
    state.sampled_node_ids = set(state.active_node_ids)
    state.nid_to_neighbours = {
        node: neighbours & state.sampled_node_ids
        for node, neighbours in state.nid_to_neighbours.items()
    }


class _Checked:
    """A grid that hands on only replies that are errors or well formed."""

    def __init__(self, grid: Grid, is_well_formed: Callable[[Message], bool]) -> None:
        self.grid = grid
        self.is_well_formed = is_well_formed

    def send_and_receive(self, messages: list[Message], *, timeout: float | None) -> list[Message]:
        replies = list(self.grid.send_and_receive(messages, timeout=timeout))
        kept = [reply for reply in replies if reply.has_error() or self.is_well_formed(reply)]
        if len(kept) < len(replies):
            count = len(replies) - len(kept)
            log(WARNING, "%s contributions have another form and are left out", count)
        return kept


def is_contribution(reply: Message, numbers: int, modulus: int) -> bool:
    """Whether a reply has a weight and this many numbers, masked and packed."""
    wanted = np.dtype(np.uint16 if modulus == protocol.MODULUS_NARROW else np.uint32)
    shapes = [(1,), (numbers,)]
    try:
        packed = reply.content.config_records[RECORD_KEY_CONFIGS][Key.MASKED_PARAMETERS]
        if sum(map(len, packed)) > (numbers + 1) * wanted.itemsize + 2 * _HEAD_BYTES_MAX:
            return False
        vectors = [bytes_to_ndarray(vector) for vector in packed]
        compat.recorddict_to_fitres(reply.content, keep_input=True)
    except Exception:  # Whatever a member sends, the others are summed.
        return False
    return [(each.shape, each.dtype) for each in vectors] == [(shape, wanted) for shape in shapes]

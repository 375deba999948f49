"""What a failure may say to the coordinator.

Flower sends the text of an exception. Hone's texts name paths and adapters, so a text stays in the
member's own log, and only one of a few fixed sentences leaves.
"""

from logging import ERROR

from flwr.app import Context, Message
from flwr.clientapp.typing import ClientAppCallable
from flwr.common.logger import log

from hone_team.guard import Unsafe
from hone_team.hone import HoneRefused

REFUSED = "refused by this member's settings"
NOT_READY = "Hone is not ready"
FAILED = "failed"


class Failure(Exception):
    """What a coordinator learns of a failure at a member."""


def failures_mod(message: Message, context: Context, call_next: ClientAppCallable) -> Message:
    """A Flower mod that keeps the reason of a failure at the member."""
    try:
        return call_next(message, context)
    except Exception as error:
        is_foreseen = isinstance(error, (Unsafe, HoneRefused))
        trace = None if is_foreseen else error
        log(ERROR, "%s: %s", type(error).__name__, error, exc_info=trace)
        raise Failure(_told(error)) from None


def _told(error: Exception) -> str:
    if isinstance(error, Unsafe):
        return REFUSED
    return NOT_READY if isinstance(error, HoneRefused) else FAILED

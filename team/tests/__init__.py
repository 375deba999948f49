"""The tests of the package."""

import logging
import sys

from flwr.common.logger import FLOWER_LOGGER


class _CurrentStderr(logging.StreamHandler):
    """Writes to what is the error output when something is logged.

    Flower's own handler keeps the one that was there when it was made. So `--buffer`, which shows
    only what failed tests have written, would show what Flower logged in all of them.
    """

    @property
    def stream(self):
        return sys.stderr

    @stream.setter
    def stream(self, _):
        pass


FLOWER_LOGGER.handlers = [_CurrentStderr()]

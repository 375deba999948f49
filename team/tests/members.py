"""Members without a network: each runs the real client app, on a Hone that a test makes up."""

import copy
import os
import shutil
import tempfile
import unittest.mock
import weakref
from collections.abc import Callable

import numpy as np
from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from hone_team import client_app, core
from hone_team.hone import HoneRefused

FRAME = "11" * 32
NUMBERS = 512


class FakeHone:
    """What `hone team` answers, for a member that learns `learned` in every round."""

    def __init__(
        self,
        learned: np.ndarray | None,
        minimum: int = 3,
        noise: float = 0.0,
        labels: int | None = 20,
        max_norm: float = 1.0,
    ) -> None:
        self.learned = learned
        self.max_norm = max_norm
        self.labels = labels
        self.minimum = minimum
        self.noise = noise
        self.frame = FRAME
        self.version = 0
        self.core = core.checksum(bytes.fromhex(FRAME), np.zeros(NUMBERS, np.int32)).hex()
        self.asked: list[tuple[int, float | None]] = []
        self.received: list[dict] = []
        self.contributed_to: int | None = None

    def status(self) -> dict:
        return {
            "address": "127.0.0.1:1",
            "frame": self.frame,
            "numbers": NUMBERS,
            "version": self.version,
            "core": self.core,
            "labels": self.labels,
            "labels_min": 8,
            "contributed_to": self.contributed_to,
            "minimum_members": self.minimum,
            "max_norm": self.max_norm,
            "noise": self.noise,
            "delta": 1e-5,
            "mechanisms": [{"noise": self.noise, "count": len(self.asked)}],
        }

    def contribute(self, members: int, epsilon: float | None) -> dict:
        if self.learned is None:
            raise HoneRefused("3 labels are too few to contribute")
        if self.contributed_to is not None and self.contributed_to >= self.version:
            raise HoneRefused(f"version {self.version} has a contribution already")
        self.asked.append((members, epsilon))
        self.contributed_to = self.version
        return {
            "frame": self.frame,
            "version": self.version,
            "core": self.core,
            "numbers": self.learned.tolist(),
        }

    def receive(self, message: dict) -> dict:
        self.received.append(message)
        self.version, self.core = message["version"], message["core"]
        return {"version": self.version, "outcome": "trial"}


class LocalGrid:
    """Carries messages between the real server app and real client apps in this process.

    It keeps every reply that reached the coordinator, which is all that the coordinator sees.
    """

    def __init__(self, hones: list[FakeHone]) -> None:
        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
        self.hones = dict(enumerate(hones, start=101))
        self.contexts = {
            node: Context(1, node, {}, RecordDict(), {}) for node in self.hones
        }
        self.replies: list[Message] = []
        self.home = tempfile.mkdtemp(prefix="ht")
        weakref.finalize(self, shutil.rmtree, self.home)
        # Changes a message on its way, as a hostile coordinator would.
        self.tamper: Callable[[Message], None] = lambda message: None

    def get_node_ids(self) -> list[int]:
        return list(self.hones)

    def send_and_receive(self, messages, *, timeout=None):
        replies = []
        for message in messages:
            # Messages to several members share their content, until a network copies it.
            message = copy.deepcopy(message)
            self.tamper(message)
            node = message.metadata.dst_node_id
            replies.append(self.answer(node, message))
        self.replies += replies
        return replies

    def answer(self, node: int, message: Message) -> Message:
        """What a member's process answers. Flower tells the coordinator the text of an error."""
        home = unittest.mock.patch.dict(os.environ, {"FLWR_HOME": self.home})
        with home, unittest.mock.patch.object(client_app, "_hone", self.hones[node]):
            try:
                return client_app.app(message, self.contexts[node])
            except Exception as error:
                reason = f"{type(error)}:<'{error}'>"
                return Message(Error(0, reason), reply_to=message)

    def errors(self) -> list[str]:
        """The reasons that reached the coordinator."""
        return [reply.error.reason for reply in self.replies if reply.has_error()]

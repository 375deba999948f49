"""What the tests of whole rounds have in common."""

import shutil
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.common import bytes_to_ndarray
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key

from hone_team import server_app
from hone_team.server_app import Settings
from hone_team.versions import Versions
from tests.members import NUMBERS, FakeHone, LocalGrid


class RoundTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.random = np.random.default_rng(7)

    def learned(self, size: int = 1200) -> np.ndarray:
        return self.random.integers(-size, size, NUMBERS).astype(np.int16)

    def settings(self, **changes) -> Settings:
        settings = {
            "folder": self.folder,
            "rounds": 1,
            "minimum": 3,
            "patience": 0.0,
            "pause": 0.0,
            "timeout": 10.0,
            "max_norm": 1.0,
            "coarse": 0,
        }
        return Settings(**{**settings, **changes})

    def round(self, grid: LocalGrid, versions=None, **changes):
        context = Context(1, 0, {}, RecordDict(), {})
        return server_app.run_round(grid, context, versions, self.settings(**changes))

    def masked(self, grid: LocalGrid) -> list[np.ndarray]:
        """The vectors that members have sent to the coordinator."""
        packed = self.answers(grid, Key.MASKED_PARAMETERS)
        return [bytes_to_ndarray(vectors[1]) for vectors in packed]

    def answers(self, grid: LocalGrid, key: str) -> list:
        """What members have answered under a key."""
        replies = [reply for reply in grid.replies if not reply.has_error()]
        records = [reply.content.config_records.get(RECORD_KEY_CONFIGS, {}) for reply in replies]
        return [record[key] for record in records if key in record]

    def assert_sum(self, versions: Versions, hones: list[FakeHone]) -> None:
        """The newest version is the mean of what these members have learned."""
        self.assertEqual(versions.rounds[-1]["members"], len(hones))
        mean = sum(hone.learned.astype(float) for hone in hones) / len(hones)
        self.assertLessEqual(np.abs(versions.core(versions.version) - mean).max(), 0.5)

    def assert_nothing_is_added(self, versions: Versions) -> None:
        self.assertFalse([made for made in versions.rounds if made["members"]])
        self.assertFalse(versions.core(versions.version).any())

    @staticmethod
    def at(stage: str, change: Callable[[dict, int], None]) -> Callable[[Message], None]:
        """What a hostile coordinator does: it changes what it asks each member at a stage."""

        def tamper(message: Message) -> None:
            records = message.content.config_records
            if RECORD_KEY_CONFIGS in records:
                configs = records[RECORD_KEY_CONFIGS]
                if configs[Key.STAGE] == stage:
                    change(configs, message.metadata.dst_node_id)

        return tamper

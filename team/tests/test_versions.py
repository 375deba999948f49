import contextlib
import io
import shutil
import tempfile
import unittest
from pathlib import Path

import numpy as np

from hone_team import admin, core
from hone_team.versions import Versions, WrongRound

FRAME = "22" * 32
NUMBERS = 256


class Rounds(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.versions = Versions(self.folder, FRAME, NUMBERS)
        self.random = np.random.default_rng(1)

    def total(self, size: int = 900) -> np.ndarray:
        return self.random.integers(-size, size, NUMBERS)

    def test_a_version_is_the_one_before_plus_the_mean(self):
        total = self.total()
        self.versions.add_round(total, 3, 0.0, 0)
        difference = np.abs(self.versions.core(1) - total / 3)
        self.assertLessEqual(difference.max(), 0.5)
        self.versions.add_round(np.zeros(NUMBERS, dtype=np.int64), 3, 0.0, 0)
        # What the first round's rounding left comes with the second.
        self.assertLessEqual(np.abs(self.versions.core(2) - total / 3).max(), 1.0)

    def test_a_coordinator_that_restarts_continues_from_a_whole_version(self):
        for _ in range(3):
            self.versions.add_round(self.total(), 3, 0.0, 0)
        # It was stopped while it wrote version 4: the files are there, and no state names them.
        (self.folder / "core-4.bin").write_bytes(b"half a ver")
        (self.folder / "delta-4.bin").write_bytes(b"")
        (self.folder / "state.json.tmp").write_text("{")
        again = Versions.known(self.folder)
        self.assertEqual(again.version, 3)
        self.assertTrue((again.core(3) == self.versions.core(3)).all())
        again.add_round(self.total(), 3, 0.0, 0)
        self.assertEqual(Versions.known(self.folder).version, 4)

    def test_a_damaged_version_is_named(self):
        self.versions.add_round(self.total(), 3, 0.0, 0)
        path = self.folder / "core-1.bin"
        content = bytearray(path.read_bytes())
        content[5] ^= 1
        path.write_bytes(content)
        with self.assertRaisesRegex(WrongRound, "core-1.bin: damaged"):
            self.versions.core(1)

    def test_another_base_model_needs_another_folder(self):
        self.versions.add_round(self.total(), 3, 0.0, 0)
        with self.assertRaisesRegex(WrongRound, "another base model"):
            Versions(self.folder, "33" * 32, NUMBERS)

    def test_a_member_gets_each_delta_and_only_one_without_a_version_gets_the_whole(self):
        self.versions.add_round(self.total(30_000), 3, 0.0, 0)
        for _ in range(2):
            self.versions.add_round(self.total(6), 3, 0.0, 0)
        start, numbers, deltas = self.versions.chain(1)
        self.assertEqual((start, numbers, len(deltas)), (1, [2, 3], 2))
        for _ in range(20):
            self.versions.add_round(self.total(6000), 3, 0.0, 0)
        start, numbers, deltas = self.versions.chain(1)
        self.assertEqual((start, numbers, len(deltas)), (1, list(range(2, 24)), 22))
        start, numbers, deltas = self.versions.chain(0)
        self.assertEqual((start, numbers, len(deltas)), (0, [23], 1))
        start, numbers, _ = self.versions.chain(22)
        self.assertEqual((start, numbers), (22, [23]))

    def test_a_sum_that_clipped_contributions_cannot_give_is_left_out(self):
        wrong = [
            np.full(NUMBERS, 3 * (core.CONTRIBUTION_MAX + 1)),
            np.full(NUMBERS, 30_000),
            np.zeros(NUMBERS - 1, dtype=np.int64),
        ]
        for total in wrong:
            with self.assertRaises(WrongRound):
                self.versions.add_round(total, 3, 1.0, 0)
        self.assertEqual(self.versions.version, 0)

    def test_a_round_can_be_taken_out_and_only_once(self):
        rounds = [self.total() for _ in range(3)]
        for total in rounds:
            self.versions.add_round(total, 3, 0.0, 0)
        second = self.versions.core(2) - self.versions.core(1)
        before = self.versions.core(3)
        self.versions.drop(2)
        self.assertTrue((self.versions.core(4) == before - second).all())
        for version in (2, 4, 9):
            with self.assertRaises(WrongRound):
                self.versions.drop(version)
        self.assertEqual(Versions.known(self.folder).version, 4)

    def test_a_round_that_made_nothing_makes_a_version_like_the_last_one(self):
        self.assertFalse(self.versions.end_round())
        self.versions.begin_round()
        self.versions.add_round(self.total(), 3, 0.0, 0)
        self.assertFalse(self.versions.end_round(), "it has made a version")
        self.versions.begin_round()
        again = Versions.known(self.folder)
        self.assertTrue(again.end_round())
        self.assertFalse(again.end_round(), "once")
        self.assertEqual(again.version, 2)
        self.assertEqual(again.checksum(2), again.checksum(1))
        with self.assertRaises(WrongRound):
            again.drop(2)
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            self.assertEqual(admin.main(["show", "--folder", str(self.folder)]), 0)
        lines = shown.getvalue().splitlines()
        self.assertIn("version 1: 3 members, norm", lines[0])
        self.assertIn("version 2: like the one before, as its round failed, norm", lines[1])
        # What rounding left comes with the next round.
        again.add_round(np.zeros(NUMBERS, dtype=np.int64), 3, 0.0, 0)
        self.assertEqual(again.version, 3)

    def test_no_number_is_too_large_to_be_noticed(self):
        total = np.zeros(NUMBERS, dtype=np.int64)
        total[3] = np.iinfo(np.int64).min
        with self.assertRaises(WrongRound):
            self.versions.add_round(total, 3, 0.0, 0)

    def test_rounding_more_makes_deltas_smaller(self):
        sizes = {}
        for coarse in (0, 4, 8):
            shutil.rmtree(self.folder)
            versions = Versions(self.folder, FRAME, NUMBERS)
            versions.add_round(np.rint(self.random.normal(0, 600, NUMBERS)), 3, 0.0, coarse)
            sizes[coarse] = (self.folder / "delta-1.bin").stat().st_size
        self.assertGreater(sizes[0], sizes[4])
        self.assertGreater(sizes[4], sizes[8])


if __name__ == "__main__":
    unittest.main()

import unittest

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key, Stage

from hone_team import private
from tests.members import FakeHone, LocalGrid
from tests.rounds import RoundTest


class SecureSums(RoundTest):
    def test_the_sum_is_exact_and_the_mean_becomes_the_next_version(self):
        hones = [FakeHone(self.learned()) for _ in range(4)]
        versions = self.round(LocalGrid(hones))
        mean = sum(hone.learned.astype(float) for hone in hones) / 4
        self.assertEqual(versions.version, 1)
        self.assertLessEqual(np.abs(versions.core(1) - mean).max(), 0.5)
        self.assertEqual([hone.asked for hone in hones], [[(4, None)]] * 4)

    def test_the_coordinator_sees_no_members_contribution(self):
        hones = [FakeHone(self.learned()) for _ in range(3)]
        grid = LocalGrid(hones)
        versions = self.round(grid)
        masked = self.masked(grid)
        self.assertEqual(len(masked), 3)
        for vector in masked:
            self.assertEqual(vector.dtype, np.uint32, "four bytes a number")
            # Uniform numbers below 2^32 have this mean and this deviation.
            self.assertAlmostEqual(vector.mean() / 2**32, 0.5, delta=0.1)
            self.assertAlmostEqual(vector.std() / 2**32, 12**-0.5, delta=0.05)
            for hone in hones:
                plain = (hone.learned.astype(np.int64) + 32768).astype(np.float64)
                self.assertLess(abs(np.corrcoef(plain, vector.astype(float))[0, 1]), 0.25)
        # Nothing else is in any reply: keys, shares of secrets, and which version is there.
        keys = {Key.PUBLIC_KEY_1, Key.PUBLIC_KEY_2, Key.DESTINATION_LIST, Key.CIPHERTEXT_LIST}
        shares = {Key.NODE_ID_LIST, Key.SHARE_LIST, Key.MASKED_PARAMETERS}
        state = {"frame", "numbers", "version", "core", "contributes", "code", "message"}
        for reply in grid.replies:
            self.assertFalse([each for each in reply.content.array_records.values() if each])
            for record in reply.content.config_records.values():
                self.assertLessEqual(set(record), keys | shares | state)
        # The same contributions give other vectors in another round.
        again = LocalGrid(hones)
        self.round(again, versions)
        for before, after in zip(masked, self.masked(again), strict=True):
            self.assertLess((before == after).mean(), 0.01)

    def test_small_contributions_of_a_small_team_take_two_bytes_a_number(self):
        hones = [FakeHone(self.learned(80), max_norm=0.1) for _ in range(7)]
        grid = LocalGrid(hones)
        versions = self.round(grid, max_norm=0.1)
        mean = sum(hone.learned.astype(float) for hone in hones) / 7
        self.assertLessEqual(np.abs(versions.core(1) - mean).max(), 0.5)
        self.assertEqual([vector.dtype for vector in self.masked(grid)], [np.uint16] * 7)
        # The sum of eight may be as large as 2^16.
        hones.append(FakeHone(self.learned(80), max_norm=0.1))
        hones[-1].version, hones[-1].core = hones[0].version, hones[0].core
        grid = LocalGrid(hones)
        self.assertEqual(self.round(grid, versions, max_norm=0.1).version, 2)
        self.assertEqual([vector.dtype for vector in self.masked(grid)], [np.uint32] * 8)

    def test_a_coordinator_with_another_norm_is_refused(self):
        hones = [FakeHone(self.learned(80), max_norm=0.1) for _ in range(3)]
        grid = LocalGrid(hones)
        with self.assertLogs("flwr") as logs:
            self.assertEqual(self.round(grid, max_norm=0.5).version, 0)
        self.assertIn("max-norm must be lab.team_max_norm", "".join(logs.output))
        self.assertTrue(all(private.REFUSED in reason for reason in grid.errors()))
        self.assertEqual([hone.asked for hone in hones], [[], [], []])

    def test_a_member_that_fails_is_left_out_and_the_rest_is_summed(self):
        hones = [FakeHone(self.learned()) for _ in range(4)] + [FakeHone(None)]
        versions = self.round(LocalGrid(hones))
        mean = sum(hone.learned.astype(float) for hone in hones[:4]) / 4
        self.assertEqual(versions.rounds[0]["members"], 4)
        self.assertLessEqual(np.abs(versions.core(1) - mean).max(), 0.5)

    def test_members_without_enough_labels_do_not_end_the_round_for_the_others(self):
        busy = [FakeHone(self.learned(), labels=8) for _ in range(3)]
        idle = [FakeHone(self.learned(), labels=labels) for labels in (7, 0, None, 3, 1)]
        versions = self.round(LocalGrid(busy + idle))
        mean = sum(hone.learned.astype(float) for hone in busy) / 3
        self.assertEqual(versions.rounds[0]["members"], 3)
        self.assertLessEqual(np.abs(versions.core(1) - mean).max(), 0.5)
        self.assertEqual([hone.asked for hone in idle], [[]] * 5)
        # They get the version all the same, and with too few others there is no round.
        grid = LocalGrid(busy[:2] + idle)
        self.assertEqual(self.round(grid, versions).version, 1)
        self.assertEqual([hone.version for hone in idle], [1] * 5)

    def test_fewer_than_the_minimum_are_refused_by_coordinator_and_members(self):
        few = [FakeHone(self.learned(), minimum=2) for _ in range(2)]
        self.assertIsNone(self.round(LocalGrid(few)))
        self.assertEqual([hone.asked for hone in few], [[], []])
        # A coordinator that wants two does not get what members give to three.
        strict = [FakeHone(self.learned(), minimum=3) for _ in range(2)]
        self.assertEqual(self.round(LocalGrid(strict), minimum=2).version, 0)
        self.assertEqual([hone.asked for hone in strict], [[], []])
        # Too many fail in the middle: nothing is decoded.
        hones = [FakeHone(self.learned()) for _ in range(2)] + [FakeHone(None)]
        self.assert_nothing_is_added(self.round(LocalGrid(hones)))

    def test_a_foreign_base_and_an_old_version_are_left_out_or_brought_up_to_date(self):
        hones = [FakeHone(self.learned()) for _ in range(4)]
        versions = self.round(LocalGrid(hones))
        foreign, late = FakeHone(self.learned()), FakeHone(self.learned())
        foreign.frame = "99" * 32
        grid = LocalGrid([*hones, late, foreign])
        versions = self.round(grid, versions)
        self.assertEqual(versions.version, 2)
        self.assertEqual(versions.rounds[1]["members"], 5)
        self.assertEqual(foreign.asked + foreign.received, [])
        self.assertEqual([message["version"] for message in late.received], [1])
        self.assertEqual([message["from"] for message in late.received], [0])

    def test_a_member_with_noise_says_what_it_will_have_spent(self):
        hones = [FakeHone(self.learned(), noise=8.0) for _ in range(3)]
        versions = self.round(LocalGrid(hones))
        self.round(LocalGrid(hones), versions)
        spent = [epsilon for _, epsilon in hones[0].asked]
        self.assertTrue(0 < spent[0] < spent[1] < 2, spent)

    def test_sums_that_are_too_large_are_left_out(self):
        hones = [FakeHone(self.learned(30_000)) for _ in range(3)]
        self.assert_nothing_is_added(self.round(LocalGrid(hones)))

    def hostile(self, stage: str, change) -> tuple[LocalGrid, list[FakeHone]]:
        """A round of a coordinator that changes what it asks at a stage."""
        hones = [FakeHone(self.learned()) for _ in range(3)]
        grid = LocalGrid(hones)
        grid.tamper = self.at(stage, lambda configs, _: change(configs))
        with self.assertLogs("flwr") as logs:
            self.assert_nothing_is_added(self.round(grid))
        self.assertIn("Unsafe", "".join(logs.output))
        return grid, hones

    def test_a_hostile_coordinator_is_refused(self):
        def ask_for_both(configs):
            configs[Key.DEAD_NODE_ID_LIST] = list(configs[Key.ACTIVE_NODE_ID_LIST])

        grid, _ = self.hostile(Stage.UNMASK, ask_for_both)
        self.assertEqual(len(self.masked(grid)), 3, "sent, and never unmasked")

        def one_alone(configs):
            configs[Key.ACTIVE_NODE_ID_LIST] = configs[Key.ACTIVE_NODE_ID_LIST][:1]

        self.hostile(Stage.UNMASK, one_alone)

        for key, value in [
            (Key.SAMPLE_NUMBER, 1),
            (Key.THRESHOLD, 1),
            (Key.SHARE_NUMBER, 2),
            (Key.CLIPPING_RANGE, 0.001),
            (Key.TARGET_RANGE, 4),
            (Key.MOD_RANGE, 1 << 20),
            (Key.MAX_WEIGHT, 1000.0),
        ]:
            with self.subTest(key=key):
                _, hones = self.hostile(
                    Stage.SETUP, lambda configs, key=key, value=value: configs.update({key: value})
                )
                self.assertEqual([hone.asked for hone in hones], [[], [], []])

    def test_no_other_type_of_message_gets_a_contribution(self):
        """Flower takes `train.default` to the same function, and its mod lets it pass unmasked."""
        hones = [FakeHone(self.learned()) for _ in range(3)]
        grid = LocalGrid(hones)

        def change_type(message):
            configs = message.content.config_records.get(RECORD_KEY_CONFIGS, {})
            if configs.get(Key.STAGE) == Stage.COLLECT_MASKED_VECTORS:
                message.metadata.message_type = "train.default"

        grid.tamper = change_type
        with self.assertLogs("flwr") as logs:
            self.assert_nothing_is_added(self.round(grid))
        self.assertIn("Unsafe: a message of the type train.default", "".join(logs.output))
        self.assertEqual(len(grid.errors()), 3)
        self.assertEqual([hone.asked for hone in hones], [[], [], []])

    def test_no_contribution_leaves_without_secure_aggregation(self):
        hone = FakeHone(self.learned())
        grid = LocalGrid([hone])
        config = {"frame": hone.frame, "version": 0, "core": hone.core}
        for kind in ("train.default", "train"):
            content = RecordDict({"fitins.config": ConfigRecord(config)})
            message = Message(content, dst_node_id=101, message_type=kind)
            with self.assertLogs("flwr") as logs:
                [reply] = grid.send_and_receive([message])
            self.assertTrue(reply.has_error(), kind)
            self.assertIn("Unsafe", "".join(logs.output))
        self.assertEqual(hone.asked, [])


if __name__ == "__main__":
    unittest.main()

"""A coordinator that tells members different things learns nothing of one of them."""

import os
import tempfile
import time
import unittest
from pathlib import Path

from flwr.app import ConfigRecord
from flwr.client.mod.secure_aggregation.secaggplus_mod import SecAggPlusState
from flwr.common.secure_aggregation.secaggplus_constants import (
    RECORD_KEY_CONFIGS,
    RECORD_KEY_STATE,
    Key,
    Stage,
)

from hone_team import guard, once, private, protocol, views
from tests.members import FakeHone, LocalGrid
from tests.rounds import RoundTest

DIFFERENT = "the coordinator tells members different things"


class Thresholds(unittest.TestCase):
    def test_every_threshold_leaves_sums_of_the_minimum(self):
        # Members, minimum, threshold, contributions in the smallest sum.
        table = [
            (2, 2, 2, 2),
            (3, 2, 3, 3),
            (3, 3, 3, 3),
            (4, 3, 3, 3),
            (4, 4, 4, 4),
            (5, 3, 4, 4),
            (5, 5, 5, 5),
            (6, 3, 5, 5),
            (7, 3, 5, 5),
            (7, 6, 6, 6),
            (10, 3, 7, 6),
            (15, 3, 11, 10),
        ]
        for members, minimum, threshold, smallest in table:
            with self.subTest(members=members, minimum=minimum):
                self.assertEqual(protocol.threshold(members, minimum), threshold)
                self.assertEqual(protocol.smallest_sum(members, threshold), smallest)

    def test_two_thirds_are_not_enough_and_all_are(self):
        for members in range(2, 40):
            threshold = protocol.threshold(members, 2)
            self.assertGreater(3 * threshold, 2 * members)
            self.assertLessEqual(threshold, members)
            self.assertTrue(protocol.is_enough(members, members, members))
            self.assertFalse(protocol.is_enough(members, 2 * members // 3, 1))
            self.assertFalse(protocol.is_enough(members, members + 1, 1))
            self.assertFalse(protocol.is_enough(members, 0, 1))


class Checks(unittest.TestCase):
    own = guard.Own(3, 1.0)

    def state(self, members: int = 5, threshold: int = 4) -> SecAggPlusState:
        nodes = range(101, 101 + members)
        return SecAggPlusState(
            nid=101, sample_num=members, threshold=threshold,
            public_keys_dict={node: (b"1", b"2") for node in nodes},
            rd_seed_share_dict={node: b"3" for node in nodes},
        )

    def refused(self, check, configs: dict, **state) -> None:
        with self.assertRaises(guard.Unsafe):
            check(configs, self.own, self.state(**state))

    def test_a_setup_with_a_low_threshold_is_refused(self):
        def setup(members: int, threshold: int) -> dict:
            ranges = protocol.ranges(1.0, members)
            return {
                Key.SAMPLE_NUMBER: members, Key.SHARE_NUMBER: members, Key.THRESHOLD: threshold,
                Key.CLIPPING_RANGE: ranges.clipping, Key.TARGET_RANGE: ranges.quantization,
                Key.MOD_RANGE: ranges.modulus, Key.MAX_WEIGHT: protocol.MAX_WEIGHT,
            }

        guard.check_setup(setup(5, 4), self.own, self.state())
        for members, threshold in [(5, 3), (5, 6), (6, 4), (3, 2), (2, 2), (5, 0), (5, -1)]:
            self.refused(guard.check_setup, setup(members, threshold))

    def test_keys_of_more_or_fewer_than_the_threshold_allows_are_refused(self):
        def keys(*names: str) -> dict:
            return {Key.STAGE: Stage.SHARE_KEYS, **{name: [b"1", b"2"] for name in names}}

        five = ["101", "102", "103", "104", "105"]
        guard.check_keys(keys(*five), self.own, self.state())
        guard.check_keys(keys(*five[:4]), self.own, self.state())
        self.refused(guard.check_keys, keys(*five, "106"))
        self.refused(guard.check_keys, keys(*five[:3]))
        self.refused(guard.check_keys, keys(*five), threshold=3)
        # Flower takes these for one member.
        for again in ("0101", " 101", "101 ", "+101", "1_01", "x", "\u0661"):
            self.refused(guard.check_keys, keys(*five[:4], again))

    def test_vectors_of_too_few_are_refused(self):
        def sources(*nodes) -> dict:
            return {Key.SOURCE_LIST: list(nodes)}

        guard.check_vectors(sources(102, 103, 104), self.own, self.state())
        self.refused(guard.check_vectors, sources(102, 103))
        self.refused(guard.check_vectors, sources(102, 103, 103))
        self.refused(guard.check_vectors, sources(102, 103, 104.0))

    def test_unmasking_needs_this_member_and_enough_others(self):
        def lists(active: list[int], dead: list[int]) -> dict:
            return {Key.ACTIVE_NODE_ID_LIST: active, Key.DEAD_NODE_ID_LIST: dead}

        guard.check_unmask(lists([101, 102, 103, 104], [105]), self.own, self.state())
        for active, dead in [
            ([102, 103, 104, 105], [101]),
            ([102, 103, 104, 105], []),
            ([101, 102, 103], [104, 105]),
            ([101, 102, 103, 104], [104]),
            ([101, 102, 103, 104, 104], []),
            ([101, 102, 103, 104], [105, 105]),
            ([101, 102, 103, 104, 106], []),
            ([101, 102, 103, 104], [106]),
        ]:
            self.refused(guard.check_unmask, lists(active, dead))


class Views(unittest.TestCase):
    keys = {101: (b"a", b"b"), 102: (b"c", b"d")}

    def test_the_digest_is_of_all_that_a_member_was_told(self):
        told = [
            (5, 4, self.keys),
            (6, 4, self.keys),
            (5, 5, self.keys),
            (5, 4, {101: (b"a", b"b")}),
            (5, 4, {**self.keys, 102: (b"c", b"e")}),
            (5, 4, {**self.keys, 102: (b"cd", b"")}),
            (5, 4, {101: (b"a", b"b"), 103: (b"c", b"d")}),
        ]
        self.assertEqual(len({views.digest(*each) for each in told}), len(told))
        turned = dict(reversed(self.keys.items()))
        self.assertEqual(views.digest(5, 4, turned), views.digest(5, 4, self.keys))

    def test_a_code_is_of_both_members_and_the_ciphertext(self):
        view, secret = views.digest(5, 4, self.keys), b"secret"
        bound = views.bind(view, secret, 101, 102, b"share")
        self.assertEqual(views.unbind(view, secret, 101, 102, bound), b"share")
        other = views.digest(5, 5, self.keys)
        self.assertIsNone(views.unbind(other, secret, 101, 102, bound))
        self.assertIsNone(views.unbind(view, b"other", 101, 102, bound))
        self.assertIsNone(views.unbind(view, secret, 102, 101, bound))
        self.assertIsNone(views.unbind(view, secret, 101, 102, b"x" + bound))
        self.assertIsNone(views.unbind(view, secret, 101, 102, b""))


class Once(unittest.TestCase):
    def test_a_stage_is_claimed_once_for_each_pair_of_keys(self):
        folder = Path(tempfile.mkdtemp()) / "inner"
        self.assertTrue(once.claim(folder, b"key", Stage.UNMASK))
        self.assertFalse(once.claim(folder, b"key", Stage.UNMASK))
        self.assertTrue(once.claim(folder, b"key", Stage.COLLECT_MASKED_VECTORS))
        self.assertTrue(once.claim(folder, b"other", Stage.UNMASK))
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)

    def test_old_files_are_removed(self):
        folder = Path(tempfile.mkdtemp())
        once.claim(folder, b"key", Stage.UNMASK)
        [old] = folder.iterdir()
        long_ago = time.time() - 30 * 24 * 3600
        os.utime(old, (long_ago, long_ago))
        once.claim(folder, b"other", Stage.UNMASK)
        self.assertFalse(old.exists())
        self.assertEqual(len(list(folder.iterdir())), 1)


class SplitViews(RoundTest):
    def attack(self, tamper) -> tuple[LocalGrid, str]:
        """A round of five whose coordinator changes messages; no sum comes of it."""
        grid = LocalGrid([FakeHone(self.learned()) for _ in range(5)])
        grid.tamper = tamper
        with self.assertLogs("flwr") as logs:
            self.assert_nothing_is_added(self.round(grid))
        self.assertTrue(any(private.REFUSED in reason for reason in grid.errors()))
        told = "".join(logs.output)
        self.assertIn("Unsafe", told)
        return grid, told

    def test_members_that_hear_of_fewer_others_contribute_nothing_to_take_apart(self):
        def fewer_sources(configs, node):
            if node == 101:
                configs[Key.SOURCE_LIST] = configs[Key.SOURCE_LIST][:2]
                configs[Key.CIPHERTEXT_LIST] = configs[Key.CIPHERTEXT_LIST][:2]

        def call_two_dead(configs, node):
            everybody = configs[Key.ACTIVE_NODE_ID_LIST] + configs[Key.DEAD_NODE_ID_LIST]
            dead = [each for each in everybody if each != node][:2]
            configs[Key.DEAD_NODE_ID_LIST] = dead
            configs[Key.ACTIVE_NODE_ID_LIST] = [each for each in everybody if each not in dead]

        first = self.at(Stage.COLLECT_MASKED_VECTORS, fewer_sources)
        second = self.at(Stage.UNMASK, call_two_dead)

        def both(message):
            first(message)
            second(message)

        grid, _ = self.attack(both)
        self.assertEqual(len(self.masked(grid)), 4, "the one with two sources sends nothing")
        self.assertEqual(self.answers(grid, Key.SHARE_LIST), [])

    def test_another_number_of_members_or_threshold_for_one_is_noticed(self):
        def another(configs, node):
            if node == 101:
                configs.update(changes)

        for changes in [
            {Key.SAMPLE_NUMBER: 6, Key.SHARE_NUMBER: 6, Key.THRESHOLD: 5},
            {Key.THRESHOLD: 5},
        ]:
            with self.subTest(changes=changes):
                grid, told = self.attack(self.at(Stage.SETUP, another))
                self.assertIn(DIFFERENT, told)
                self.assertEqual(len(self.masked(grid)), 0)

    def test_another_list_of_keys_for_one_is_noticed(self):
        def without_one(configs, node):
            if node == 101:
                del configs["105"]

        grid, told = self.attack(self.at(Stage.SHARE_KEYS, without_one))
        self.assertIn(DIFFERENT, told)
        # The one that hears nothing of 101 sends its vector, and nobody unmasks it.
        self.assertEqual(len(self.masked(grid)), 1)
        self.assertEqual(self.unmasked(grid), [])

    def test_a_key_of_the_coordinators_own_for_one_is_noticed(self):
        def another_key(configs, node):
            if node == 101:
                configs["105"] = [configs["104"][0][::-1], configs["105"][1]]

        grid, told = self.attack(self.at(Stage.SHARE_KEYS, another_key))
        self.assertIn(DIFFERENT, told)
        self.assertEqual(len(self.masked(grid)), 0)

    def test_other_lists_for_each_at_the_end_reveal_at_most_one_key(self):
        def call_next_dead(configs, node):
            dead = 101 + (node - 100) % 5
            configs[Key.DEAD_NODE_ID_LIST] = [dead]
            configs[Key.ACTIVE_NODE_ID_LIST] = [each for each in range(101, 106) if each != dead]

        grid = LocalGrid([FakeHone(self.learned()) for _ in range(5)])
        grid.tamper = self.at(Stage.UNMASK, call_next_dead)
        with self.assertRaisesRegex(ValueError, "combine shares"):
            self.round(grid)
        revealed = [
            node for answer in self.unmasked(grid) for node in answer[Key.NODE_ID_LIST][-1:]
        ]
        self.assertEqual(sorted(revealed), [101, 102, 103, 104, 105])
        # A key takes four shares, and of each there is one.

        def call_two_dead(configs, node):
            call_next_dead(configs, node)
            configs[Key.DEAD_NODE_ID_LIST].append(configs[Key.ACTIVE_NODE_ID_LIST].pop())

        grid, _ = self.attack(self.at(Stage.UNMASK, call_two_dead))
        self.assertEqual(self.unmasked(grid), [])

    def unmasked(self, grid: LocalGrid) -> list:
        replies = [reply for reply in grid.replies if not reply.has_error()]
        records = [reply.content.config_records.get(RECORD_KEY_CONFIGS, {}) for reply in replies]
        return [record for record in records if Key.SHARE_LIST in record]

    def test_a_member_answers_a_stage_once_even_from_two_processes(self):
        for stage in (Stage.SHARE_KEYS, Stage.COLLECT_MASKED_VECTORS, Stage.UNMASK):
            with self.subTest(stage=stage):
                self.assertEqual(self.repeated(stage), [True] * 4)

    def repeated(self, stage: str) -> list[bool]:
        """Whether each member refuses a stage that comes again with the state from before it."""
        refused: list[bool] = []
        grid = LocalGrid([FakeHone(self.learned()) for _ in range(4)])
        send = grid.send_and_receive

        def twice(messages, *, timeout=None):
            messages = list(messages)
            asked = messages[0].content.config_records.get(RECORD_KEY_CONFIGS, {})
            if asked.get(Key.STAGE) != stage:
                return send(messages, timeout=timeout)
            before = {
                node: dict(context.state.config_records[RECORD_KEY_STATE])
                for node, context in grid.contexts.items()
            }
            replies = send(messages, timeout=timeout)
            for node, state in before.items():
                grid.contexts[node].state.config_records[RECORD_KEY_STATE] = ConfigRecord(state)
            refused.extend(reply.has_error() for reply in send(messages, timeout=timeout))
            return replies

        grid.send_and_receive = twice
        self.round(grid)
        return refused


if __name__ == "__main__":
    unittest.main()

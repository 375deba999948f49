"""What the coordinator makes of members that vanish, lie or answer with something else."""

import unittest
import unittest.mock

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.common import ndarray_to_bytes
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key, Stage

from hone_team import protocol, server_app
from hone_team.client_app import _has_enough
from hone_team.hone import HoneRefused
from hone_team.server_app import common_base, is_state, version_message
from hone_team.versions import Versions
from tests.members import FRAME, NUMBERS, FakeHone, LocalGrid
from tests.rounds import RoundTest


class Dropouts(RoundTest):
    def test_one_that_fails_when_it_contributes_is_left_out(self):
        for members in (4, 5):
            with self.subTest(members=members):
                hones = [FakeHone(self.learned()) for _ in range(members - 1)]
                self.setUp()
                self.assert_sum(self.round(LocalGrid([*hones, FakeHone(None)])), hones)

    def test_one_that_refuses_the_setup_is_left_out(self):
        hones = [FakeHone(self.learned()) for _ in range(4)]
        grid = LocalGrid([*hones, FakeHone(self.learned(), minimum=9)])
        self.assert_sum(self.round(grid), hones)

    def test_one_that_fails_when_keys_are_shared_is_left_out(self):
        hones = [FakeHone(self.learned()) for _ in range(5)]
        grid = LocalGrid(hones)

        def without_keys(configs, node):
            if node == 105:
                for name in [name for name in configs if name != Key.STAGE]:
                    del configs[name]

        grid.tamper = self.at(Stage.SHARE_KEYS, without_keys)
        self.assert_sum(self.round(grid), hones[:4])

    def test_one_that_vanishes_early_and_one_that_vanishes_late_are_left_out(self):
        hones = [FakeHone(self.learned()) for _ in range(6)]
        grid = LocalGrid([*hones, FakeHone(None), FakeHone(self.learned(), minimum=9)])
        self.assert_sum(self.round(grid), hones)


class Vectors(RoundTest):
    """Masked vectors of another form."""

    def liar(self, change) -> tuple[LocalGrid, list[FakeHone]]:
        """Five members, the last of which changes its answer."""
        hones = [FakeHone(self.learned()) for _ in range(5)]
        grid = LocalGrid(hones)
        answer = grid.answer

        def lie(node: int, message: Message) -> Message:
            reply = answer(node, message)
            record = {} if reply.has_error() else reply.content.config_records
            if node == 105 and Key.MASKED_PARAMETERS in record.get(RECORD_KEY_CONFIGS, {}):
                change(record[RECORD_KEY_CONFIGS])
            return reply

        grid.answer = lie
        return grid, hones

    def test_they_are_left_out_and_the_rest_is_summed(self):
        numbers = np.zeros(NUMBERS, np.uint32)
        weight = np.zeros(1, np.uint32)
        for vectors in [
            [weight, numbers[1:]],
            [weight, numbers.reshape(2, -1)],
            [weight, numbers.astype(np.float64)],
            [weight, numbers.astype(np.int64)],
            [weight, numbers.astype(np.uint16)],
            [weight, numbers[:1]],
            [numbers],
            [],
            [weight, numbers, numbers],
            [weight, np.zeros(1 << 20, np.uint32)],
        ]:
            packed = [ndarray_to_bytes(vector) for vector in vectors]
            with self.subTest(shapes=[(each.shape, each.dtype) for each in vectors]):
                self.setUp()
                grid, hones = self.liar(lambda record: record.update({"masked_params": packed}))
                self.assert_sum(self.round(grid), hones[:4])

    def test_what_is_no_vector_is_left_out(self):
        for packed in ([b"x", b"y"], b"x", 7, ["x"]):
            with self.subTest(packed=packed):
                self.setUp()
                grid, hones = self.liar(lambda record: record.update({"masked_params": packed}))
                self.assert_sum(self.round(grid), hones[:4])


class Bases(RoundTest):
    def state(self, **changes) -> dict:
        state = {"frame": FRAME, "core": "22" * 32, "version": 0, "numbers": NUMBERS}
        return {**state, "contributes": True, **changes}

    def test_the_base_model_that_most_members_have_is_taken(self):
        other = "99" * 32
        states = [self.state(frame=other), *[self.state()] * 3, self.state(numbers=1)]
        self.assertEqual(common_base(dict(enumerate(states)), 3), (FRAME, NUMBERS))
        self.assertIsNone(common_base(dict(enumerate(states)), 4))

    def test_the_first_answer_does_not_decide(self):
        foreign, hones = FakeHone(self.learned()), [FakeHone(self.learned()) for _ in range(3)]
        foreign.frame = "99" * 32
        self.assert_sum(self.round(LocalGrid([foreign, *hones])), hones)
        self.assertEqual(foreign.asked, [])

    def test_without_a_common_base_there_is_no_version(self):
        hones = [FakeHone(self.learned()) for _ in range(4)]
        for hone in hones[:2]:
            hone.frame = "99" * 32
        self.assertIsNone(self.round(LocalGrid(hones)))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_form_of_an_answer_is_checked(self):
        self.assertTrue(is_state(self.state()))
        self.assertTrue(is_state(self.state(version=7, contributes=False)))
        for changes in [
            {"frame": "11" * 31}, {"frame": "GG" * 32}, {"frame": 7}, {"frame": FRAME + "\n"},
            {"core": "22" * 33}, {"core": b"22" * 32}, {"version": -1}, {"version": 1.0},
            {"version": True}, {"numbers": 0}, {"numbers": protocol.NUMBERS_MAX + 1},
            {"numbers": "5"}, {"contributes": 1}, {"contributes": "no"},
        ]:
            with self.subTest(changes=changes):
                self.assertFalse(is_state(self.state(**changes)))
        for name in ("frame", "core", "version", "numbers"):
            state = self.state()
            del state[name]
            self.assertFalse(is_state(state))

    def test_a_member_with_a_malformed_answer_is_left_out(self):
        class Liar(FakeHone):
            def status(self):
                return {**super().status(), **self.changes}

        for changes in ({"frame": "x"}, {"numbers": -5}, {"version": 1.5}, {"core": [1, 2]}):
            with self.subTest(changes=changes):
                self.setUp()
                liar, hones = Liar(self.learned()), [FakeHone(self.learned()) for _ in range(3)]
                liar.changes = changes
                self.assert_sum(self.round(LocalGrid([liar, *hones])), hones)

    def test_a_member_that_claims_a_newer_version_gets_the_whole(self):
        claiming, hones = FakeHone(self.learned()), [FakeHone(self.learned()) for _ in range(3)]
        claiming.version = 1 << 62
        grid = LocalGrid([claiming, *hones])
        versions = Versions(self.folder, FRAME, NUMBERS)
        for _ in range(2):
            versions.add_round(self.learned().astype(np.int64), 3, 0.0, 0)
        for held in (2, 3, 1 << 62):
            message = version_message(101, self.state(version=held), versions)
            record = message.content.config_records[protocol.VERSION]
            self.assertEqual((record["from"], record["versions"]), (0, [2]))
        self.assertEqual(self.round(grid, versions).rounds[-1]["members"], 4)


def lies_once(hones: list[FakeHone], key: str, change) -> LocalGrid:
    """A grid in which the first answer with this key is changed."""
    grid = LocalGrid(hones)
    answer, changed = grid.answer, []

    def lie(node: int, message: Message) -> Message:
        reply = answer(node, message)
        records = {} if reply.has_error() else reply.content.config_records
        if not changed and key in records.get(RECORD_KEY_CONFIGS, {}):
            changed.append(node)
            records[RECORD_KEY_CONFIGS] = change(dict(records[RECORD_KEY_CONFIGS]))
        return reply

    grid.answer = lie
    return grid


class Rounds(RoundTest):
    def run_main(self, grid, rounds: int) -> None:
        config = {
            "folder": str(self.folder), "rounds": rounds, "minimum": 3, "patience": 0, "pause": 0,
            "timeout": 10, "max-norm": 1.0, "coarse": 0,
        }
        server_app.main(grid, Context(1, 0, {}, RecordDict(), config))

    def test_a_round_that_fails_does_not_end_the_run(self):
        hones = [FakeHone(self.learned()) for _ in range(3)]
        grid = lies_once(hones, Key.PUBLIC_KEY_1, lambda _: ConfigRecord({"x": 1}))
        with self.assertLogs("flwr") as logs:
            self.run_main(grid, 2)
        self.assertIn("no round: KeyError", "".join(logs.output))
        self.assert_sum(Versions.known(self.folder), hones)

    def test_a_round_that_fails_at_the_end_makes_way_for_the_next_version(self):
        hones = [FakeHone(self.learned()) for _ in range(3)]
        wrong = {Key.SHARE_LIST: [b"x"] * 3}
        grid = lies_once(hones, Key.SHARE_LIST, lambda told: ConfigRecord({**told, **wrong}))
        self.run_main(grid, 2)
        versions = Versions.known(self.folder)
        self.assertEqual([made["members"] for made in versions.rounds], [0, 3])
        self.assertTrue((versions.core(1) == 0).all())
        self.assert_sum(versions, hones)
        self.assertEqual([len(hone.asked) for hone in hones], [2, 2, 2])

    def test_members_that_contributed_are_asked_for_the_next_version(self):
        hones = [FakeHone(self.learned(300)) for _ in range(3)]
        self.run_main(LocalGrid(hones), 4)
        made = [each["members"] for each in Versions.known(self.folder).rounds]
        self.assertEqual(made, [3, 3, 3, 3])

    def test_a_member_that_contributed_to_this_version_is_not_asked_again(self):
        hones = [FakeHone(self.learned()) for _ in range(4)]
        hones[0].contributed_to = 0
        self.assert_sum(self.round(LocalGrid(hones)), hones[1:])
        self.assertEqual(hones[0].asked, [])
        # An older Hone says nothing of it.
        status = FakeHone(None).status()
        del status["contributed_to"]
        self.assertTrue(_has_enough(status))
        self.assertTrue(_has_enough({**status, "contributed_to": 4, "version": 5}))
        self.assertFalse(_has_enough({**status, "contributed_to": 5, "version": 5}))
        self.assertFalse(_has_enough({**status, "contributed_to": 6, "version": 5}))

    def test_a_coordinator_that_is_stopped_in_a_round_continues_with_another_version(self):
        hones = [FakeHone(self.learned()) for _ in range(3)]
        grid = LocalGrid(hones)
        stopped = unittest.mock.patch.object(Versions, "end_round", lambda self: False)
        in_round = unittest.mock.patch.object(Versions, "add_round", side_effect=KeyboardInterrupt)
        with stopped, in_round, self.assertRaises(KeyboardInterrupt):
            self.round(grid)
        self.assertEqual([hone.contributed_to for hone in hones], [0, 0, 0])
        versions = self.round(grid)
        self.assertEqual([made["members"] for made in versions.rounds], [0, 3])
        self.assert_sum(versions, hones)


class Reasons(RoundTest):
    """Why something failed stays with the member."""

    PATH = "/home/ada/secret-project/adapters/ada.gguf"

    def check(self, hones: list[FakeHone]) -> None:
        grid = LocalGrid(hones)
        with self.assertLogs("flwr") as logs:
            self.round(grid)
        self.assertTrue(grid.errors())
        self.assertIn(self.PATH, "".join(logs.output))
        told = "".join(grid.errors()) + "".join(str(reply) for reply in grid.replies)
        self.assertFalse("secret-project" in told or self.PATH in told)

    def test_no_text_of_hone_leaves(self):
        for kind in (HoneRefused, RuntimeError, KeyError):
            for method in ("status", "contribute", "receive"):
                with self.subTest(kind=kind, method=method):
                    self.setUp()
                    hones = [FakeHone(self.learned()) for _ in range(4)]
                    if method == "receive":
                        hones[0].version, hones[0].core = 5, "22" * 32
                    failing = unittest.mock.Mock(side_effect=kind(f"{self.PATH}: no such file"))
                    setattr(hones[0], method, failing)
                    self.check(hones)

    def test_the_words_are_fixed(self):
        hones = [FakeHone(self.learned()) for _ in range(4)]
        hones[0].status = unittest.mock.Mock(side_effect=HoneRefused(self.PATH))
        hones[1].status = unittest.mock.Mock(side_effect=OSError(self.PATH))
        grid = LocalGrid(hones)
        self.round(grid)
        failure = "<class 'hone_team.private.Failure'>"
        self.assertEqual(
            grid.errors(), [f"{failure}:<'Hone is not ready'>", f"{failure}:<'failed'>"]
        )


if __name__ == "__main__":
    unittest.main()

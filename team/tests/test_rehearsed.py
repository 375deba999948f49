"""The table of a rehearsal is computed from its reports."""

import json
import tempfile
import unittest
from pathlib import Path

from rehearsed import change, commits, interval, table


def report(names: str, *completed: tuple[int, ...]) -> Path:
    arms = [{"name": name} for name in names.split()]
    typed = [{"arms": [{"completed_chars": count} for count in counts]} for counts in completed]
    file = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)
    with file:
        json.dump({"rehearsals": [{"arms": arms, "commits": typed}]}, file)
    return Path(file.name)


class RehearsedTest(unittest.TestCase):
    def test_commits_of_all_arms_count_and_the_last_half_can_be_taken(self):
        file = report("frozen team", (10, 12), (4, 4), (7,), (6, 9), (0, 3))
        self.addCleanup(file.unlink)
        arms = ("frozen", "team")
        self.assertEqual(commits(file, arms), [(10, 12), (4, 4), (6, 9), (0, 3)])
        self.assertEqual(commits(file, arms, 0.5), [(6, 9), (0, 3)])

    def test_two_of_three_arms_are_compared_by_their_names(self):
        file = report("frozen private team", (10, 11, 12), (4, 5), (6, 8, 9))
        self.addCleanup(file.unlink)
        self.assertEqual(commits(file, ("private", "team")), [(11, 12), (8, 9)])
        self.assertEqual(commits(file, ("frozen", "private")), [(10, 11), (6, 8)])

    def test_a_change_is_relative_and_needs_something_to_compare_with(self):
        self.assertAlmostEqual(change([(10, 12), (10, 9)]), 0.05)
        self.assertIsNone(change([(0, 5)]))

    def test_an_interval_lies_around_the_change_and_needs_enough_commits(self):
        typed = [(10, 11), (20, 26), (8, 8), (12, 10), (5, 9), (30, 33), (7, 7), (9, 12), (4, 4)]
        low, high = interval(typed)
        self.assertLess(low, change(typed))
        self.assertGreater(high, change(typed))
        self.assertEqual(interval([(10, 12)] * 9), (change([(10, 12)]),) * 2)
        self.assertIsNone(interval(typed[:7]))

    def test_the_table_has_everybody_and_all_together(self):
        people = {"Ada": [(10, 12)], "Ben": [(10, 10)], "Cyd": []}
        lines = table(("base model", "both parts"), {"newcomers": people}).splitlines()
        self.assertEqual(lines[0], "| | commits | base model | both parts | |")
        self.assertEqual(lines[2], "| Ada | 1 | 10 | 12 | +20.0% |")
        self.assertEqual(lines[4], "| Cyd | 0 | 0 | 0 |  |")
        self.assertEqual(lines[5], "| **newcomers together** | 2 | 20 | 22 | +10.0% |")


if __name__ == "__main__":
    unittest.main()

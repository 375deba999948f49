import math
import unittest

from hone_team import privacy


class Accounting(unittest.TestCase):
    def test_one_mechanism_is_close_to_the_bound_of_its_renyi_divergence(self):
        # For a Gaussian, the divergence of order a is a/(2 z^2). The conversion of Mironov
        # (arXiv:1702.07476) adds ln(1/delta)/(a-1); that of the library is tighter.
        for noise in (1.0, 4.0):
            orders = [1 + step / 10 for step in range(1, 2000)]
            bound = min(a / (2 * noise**2) + math.log(1e5) / (a - 1) for a in orders)
            spent = privacy.epsilon([(noise, 1)], 1e-5)
            self.assertLessEqual(spent, bound)
            self.assertGreater(spent, 0.7 * bound)

    def test_more_rounds_and_less_noise_spend_more(self):
        spent = [privacy.epsilon([(2.0, rounds)], 1e-5) for rounds in (0, 1, 10, 100)]
        self.assertEqual(spent, sorted(spent))
        self.assertEqual(spent[0], 0)
        self.assertGreater(privacy.epsilon([(1.0, 10)], 1e-5), spent[2])
        self.assertEqual(privacy.epsilon([(2.0, 3), (0.0, 1)], 1e-5), math.inf)

    def test_the_noise_for_an_epsilon_spends_it_and_not_more(self):
        for target in (1.0, 4.0, 8.0):
            noise = privacy.noise_for(target, 10, 1e-5)
            spent = privacy.epsilon([(noise, 10)], 1e-5)
            self.assertLessEqual(spent, target)
            self.assertGreater(spent, 0.99 * target)

    def test_a_member_counts_its_next_contribution(self):
        status = {"noise": 3.0, "delta": 1e-5, "mechanisms": [{"noise": 3.0, "count": 4}]}
        self.assertEqual(privacy.after_one_more(status), privacy.epsilon([(3.0, 5)], 1e-5))
        self.assertIsNone(privacy.after_one_more({**status, "noise": 0.0}))


if __name__ == "__main__":
    unittest.main()

import unittest

import numpy as np

from hone_team import client_app, masks, server_app


class Masks(unittest.TestCase):
    def test_both_apps_use_them(self):
        self.assertTrue(client_app.app and server_app.app)
        self.assertEqual(len(masks.HALVES), 2)
        for half in masks.HALVES:
            self.assertIs(half.pseudo_rand_gen, masks.masks)

    def test_the_whole_secret_counts(self):
        # Flower's generator folds its seed by XOR, so it gives the same masks for these two.
        one, other = bytes(32), bytes([1, 0, 0, 0]) * 2 + bytes(24)
        shapes = [(1,), (1000,)]
        (first,), (second,) = (masks.masks(seed, 1 << 32, shapes)[:1] for seed in (one, other))
        self.assertNotEqual(first[0], second[0])
        again = masks.masks(one, 1 << 32, shapes)
        self.assertTrue((again[0] == first).all())
        self.assertEqual([each.shape for each in again], shapes)

    def test_they_are_uniform(self):
        drawn = masks.masks(b"seed", 1 << 32, [(40_000,)])[0] / 2**32
        self.assertAlmostEqual(drawn.mean(), 0.5, delta=0.01)
        counts, _ = np.histogram(drawn, bins=16, range=(0, 1))
        self.assertLess(np.abs(counts - 2500).max(), 300)
        with self.assertRaises(ValueError):
            masks.masks(b"seed", 1000, [(1,)])


if __name__ == "__main__":
    unittest.main()

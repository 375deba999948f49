import unittest
import zlib

import numpy as np

from hone_team import core

FRAME = bytes(32)


class Deltas(unittest.TestCase):
    def test_a_delta_holds_the_difference_in_planes(self):
        before = np.array([0, 5, -7, 1 << 21], dtype=np.int32)
        after = np.array([1, 4, -7, -(1 << 21)], dtype=np.int32)
        delta = core.encode(FRAME, before, after)
        self.assertEqual(delta[:12], b"HONETMD\0\1\0\0\0")
        self.assertEqual(delta[12:44], core.checksum(FRAME, before))
        self.assertEqual(delta[44:76], core.checksum(FRAME, after))
        planes = zlib.decompress(delta[76:], -zlib.MAX_WBITS)
        # Zigzag: 1 is 2, -1 is 1, 0 is 0, and -2^22 is 2^23 - 1.
        zigzag = [2, 1, 0, (1 << 23) - 1]
        expected = bytes(value >> shift & 255 for shift in (24, 16, 8, 0) for value in zigzag)
        self.assertEqual(planes, expected)

    def test_the_norm_is_that_of_the_values(self):
        self.assertEqual(core.norm(np.array([3 << 15, -4 << 15])), 5.0)

    def test_rounding_loses_nothing_for_good(self):
        left = np.zeros(2)
        total = np.zeros(2)
        for _ in range(100):
            numbers, left = core.rounded(np.array([0.3, -9.7]), left, 3)
            self.assertTrue((numbers % 8 == 0).all())
            total += numbers
        self.assertLessEqual(np.abs(total - [30, -970]).max(), 4)


if __name__ == "__main__":
    unittest.main()

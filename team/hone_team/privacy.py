"""How much privacy contributions spend, by Google's `dp-accounting`.

A contribution is clipped to a norm, and the sum of a round has Gaussian noise of at least `noise`
times that norm. Each round is one Gaussian mechanism for one member's whole contribution. Rényi
differential privacy adds them up (arXiv:1702.07476).
"""

import math
from collections.abc import Iterable

import dp_accounting
from dp_accounting.rdp import RdpAccountant


def epsilon(mechanisms: Iterable[tuple[float, int]], delta: float) -> float:
    """The epsilon of contributions: pairs of a noise multiplier and how many had it."""
    accountant = RdpAccountant()
    for noise, count in mechanisms:
        if count == 0:
            continue
        if noise <= 0:
            return math.inf
        accountant.compose(dp_accounting.GaussianDpEvent(noise), count)
    return float(accountant.get_epsilon(delta))


def noise_for(target: float, rounds: int, delta: float) -> float:
    """The least noise with which this many rounds spend at most `target`."""
    low, high = 1e-2, 1e4
    while high / low > 1.0005:
        middle = math.sqrt(low * high)
        if epsilon([(middle, rounds)], delta) > target:
            low = middle
        else:
            high = middle
    return high


def after_one_more(status: dict) -> float | None:
    """What a member will have spent after the next contribution; None if it adds no noise."""
    noise = float(status["noise"])
    if noise <= 0:
        return None
    made = [(float(each["noise"]), int(each["count"])) for each in status["mechanisms"]]
    return epsilon([*made, (noise, 1)], float(status["delta"]))

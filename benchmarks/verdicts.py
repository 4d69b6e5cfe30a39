"""How many rewards until a verdict: AdaC-TopTwo, and beside it version 0.8's AdaC-UCB that waits for its intervals.

    python benchmarks/verdicts.py [--runs 400] [--only paper,others]

Version 0.8 had no verdict. What one could do with it: play its tight AdaC-UCB, and stop once the interval of one arm is
above those of all others (`estimates(delta)`). Seeds are fixed: the same version prints the same numbers.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits.mechanism.factor import HALF_BEFORE
from private_bandits.policies.legacy import OPENING, ReleaseRecord, combine_releases, upper_bound
from private_bandits.policies.release_memory import MeanError

DELTA = 0.01
RHOS = {0.001: 10_500, 0.01: 5_000, 0.1: 3_500, 1.0: 3_200}
"""Budgets, and how many rewards a verdict on the paper's arms may take on average."""
LONGEST = 10**7
PAPER = [0.75, 0.625, 0.5, 0.375, 0.25]
OTHERS: dict[str, list[float]] = {
    "2, close": [0.55, 0.5],
    "2, medium gap": [0.75, 0.5],
    "2, large gap": [0.9, 0.1],
    "2, near 0": [0.05, 0.02],
    "2, near 1": [0.99, 0.95],
    "3, near 1": [0.99, 0.95, 0.9],
    "3, one close": [0.6, 0.55, 0.2],
    "5, one good": [0.9, 0.5, 0.5, 0.5, 0.5],
    "5, two good": [0.8, 0.75, 0.3, 0.3, 0.3],
    "10, in steps": np.linspace(0.2, 0.8, 10).tolist(),
    "10, low": [0.15, 0.08, 0.06, 0.05, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01],
    "20, one good": [0.8] + [0.6] * 19,
}


def ours(means: list[float], rho: float, runs: int) -> Any:
    """Return the first verdicts of AdaC-TopTwo."""
    policy = pb.AdaCTopTwo(len(means), pb.zCDP(rho), delta=DELTA)
    found = pb.simulate({"": policy}, pb.Bernoulli(means), LONGEST, runs, seed=5, progress=False, verdict=DELTA)
    return found.verdicts[""]


def rival(means: list[float], rho: float, runs: int) -> tuple[Any, float]:
    """Return the rewards that each run of 0.8's tight AdaC-UCB has when its intervals part, and the wrong share."""
    generator = np.random.default_rng(6)
    found = [rival_run(means, pb.zCDP(rho), generator) for _ in range(runs)]
    wrong = [winner is not None and means[winner] < max(means) for _, winner in found]
    return np.array([float(time) for time, _ in found]), float(np.mean(wrong))


def rival_run(means: list[float], budget: pb.zCDP, generator: np.random.Generator) -> tuple[int, int | None]:
    """Play until the intervals part: when, and whose is above the others. An episode's sum is one draw.

    A run without a verdict by LONGEST counts as if it had one there: the ratio is too small then.

    An arm's first release holds one reward, its second brings it to `first`, and then its rewards double.
    """
    arms = len(means)
    first = 2 ** round(math.log2(max(1.0, OPENING * math.sqrt(budget.variance_factor))))
    sd = math.sqrt(budget.variance_factor * float(HALF_BEFORE.column))
    kept: list[list[ReleaseRecord]] = [[] for _ in means]
    before, released = [0.0] * arms, [0] * arms
    mean, widths = np.zeros(arms), np.zeros(arms)
    spread = np.zeros((3, arms))
    number = time = 0
    while time < LONGEST:
        index = upper_bound(mean, MeanError(*spread), math.log(time + 1))
        arm = number if number < arms else int(index.argmax())
        count = max(released[arm], first - released[arm]) if released[arm] else 1
        total = float(generator.binomial(count, means[arm]))
        value = total + before[arm] / 2 + sd * generator.standard_normal()
        kept[arm].append(ReleaseRecord(value, count, sd, 0.0))
        before[arm], released[arm] = total, released[arm] + count
        said = combine_releases(kept[arm], HALF_BEFORE, 1.0)
        mean[arm], spread[:, arm], j = said.mean, said.spread, len(kept[arm])
        widths[arm] = math.sqrt(2 * said.spread.variance * math.log(2 * arms * j * (j + 1) / DELTA))
        best = int(mean.argmax())
        if number >= arms - 1 and mean[best] - widths[best] > np.delete(mean + widths, best).max():
            return time + count, best
        number, time = number + 1, time + count
    return LONGEST, None


def line(name: str, rho: float, means: list[float], runs: int, target: int | None = None) -> float:
    """Print one row, and return how many times fewer rewards it takes."""
    verdicts = ours(means, rho, runs)
    fell = verdicts.decisions[~np.isnan(verdicts.decisions)]
    if len(fell) < runs:
        print(f"{name}: {runs - len(fell)} runs without a verdict")
    other, other_wrong = rival(means, rho, min(runs, 200))
    errors = [part.std(ddof=1) / math.sqrt(len(part)) for part in (fell, other)]
    ratio = float(other.mean() / fell.mean())
    print(
        f"{name:16} {rho:6g} {fell.mean():11,.0f} {errors[0]:7,.0f} {verdicts.wrong.mean():7.4f}"
        f" {other.mean():12,.0f} {errors[1]:7,.0f} {other_wrong:7.4f} {ratio:6.2f}"
        + (f"   {'at most' if fell.mean() <= target else 'ABOVE'} {target:,}" if target else ""),
        flush=True,
    )
    return ratio


def main() -> None:
    """Parse, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--only", default="paper,others")
    options = parser.parse_args()
    print(f"rewards until a verdict with delta {DELTA:g}, mean and its standard error, and the share of wrong ones")
    print(
        f"{'arms':16} {'rho':>6} {'AdaC-TopTwo':>11} {'+-':>7} {'wrong':>7} {'0.8, tight':>12} {'+-':>7} {'wrong':>7}"
    )
    ratios = []
    if "paper" in options.only:
        ratios += [line("the paper's", rho, PAPER, options.runs, target) for rho, target in RHOS.items()]
    if "others" in options.only:
        ratios += [line(name, rho, means, options.runs) for name, means in OTHERS.items() for rho in (0.01, 1.0)]
    print(f"times fewer rewards: {min(ratios):.2f} at least, {np.mean(ratios):.2f} on average")


if __name__ == "__main__":
    main()

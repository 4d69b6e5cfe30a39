"""How many pairs of runs the audit needs to refute a claim, where the agent has twice the rho that it claims.

    python benchmarks/audit.py [--seeds 100]

An agent shows one number with Gaussian noise. The audit knows nothing of it beforehand: neither which of the worlds has
the larger number nor how wide the noise is. It may stop after any pair, and its level is 1e-4 for all of them together.
Seeds are fixed: the same version prints the same numbers. The exit code is 1 if more pairs are needed than stated.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np

from private_bandits.audit.eprocess import Bettor
from private_bandits.audit.evidence import Claim

LEVEL = 1e-4
MOST_PAIRS = {0.1: 3_500, 1.0: 500}
"""Pairs that may be needed on average, for each claimed rho."""
AT_ONCE = 100


def pairs_needed(claim: Claim, rho: float, seed: int, most: int = 100_000) -> int:
    """Play pairs of runs until the claim is refuted. Returns how many there were."""
    generator = np.random.default_rng(seed)
    sd = 1 / math.sqrt(2 * rho)
    bettor = Bettor(claim)
    for done in range(0, most, AT_ONCE):
        x, y = 1 + sd * generator.standard_normal(AT_ONCE), sd * generator.standard_normal(AT_ONCE)
        reached = np.nonzero(bettor.play(x, y) >= math.log(1 / LEVEL))[0]
        if len(reached):
            return done + int(reached[0]) + 1
    return most


def main() -> int:
    """Print a table. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    seeds = parser.parse_args().seeds
    print("claim            rho  pairs on average (standard error)   largest  allowed  seconds")
    late = False
    for notion in ("Gaussian DP", "zCDP"):
        for rho, allowed in MOST_PAIRS.items():
            started = time.perf_counter()
            needed = np.array([pairs_needed(Claim(notion, rho), 2 * rho, seed) for seed in range(seeds)])
            error = needed.std(ddof=1) / math.sqrt(seeds)
            late |= needed.mean() > allowed
            spent = time.perf_counter() - started
            text = f"{needed.mean():10,.0f} ({error:,.0f})"
            print(f"{notion:12s} {rho:7g} {text:>25s} {needed.max():18,d} {allowed:8,d} {spent:8.1f}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())

"""The closing release of many simulated runs: what `finish` would release, and the verdict that follows.

A closing release is made before all of its planned rewards are in. It is read with the weights of the whole release
(policies/closing.py): these are in the tables of remembering.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats, Integers
from private_bandits.policies.evidence import ArmEvidence, Evidence, beats
from private_bandits.simulation.remembering import RememberedReleases
from private_bandits.simulation.simulated_noise import noise_draws
from private_bandits.simulation.verdicts import NOBODY


class Ends(NamedTuple):
    """What is known of each arm at the end of many runs, [arm, run].

    before: without the closing release, where there was one before it (`known`). after: with it. seen: whether anything
    is known.
    """

    before: Evidence
    known: NDArray[np.bool_]
    after: Evidence
    seen: NDArray[np.bool_]

    def winners(self, delta: float) -> Integers:
        """Return the winner of each run, as the verdict after the end declares it, or NOBODY."""
        arms = len(self.after.mean)
        leader: Integers = self.after.mean.argmax(axis=0)
        won = self.seen.all(axis=0)
        for other in range(arms if arms > 1 else 0):
            rows = np.flatnonzero(won & (leader != other))
            won[rows] = self._beaten(leader[rows], np.full(len(rows), other), rows, (arms - 1) / delta)
        return np.where(won, leader, NOBODY)

    def _beaten(self, leader: Integers, other: Integers, rows: Integers, odds: float) -> NDArray[np.bool_]:
        """Say where it costs too much to believe that the other arm is as good, in one way or another."""
        found = np.zeros(len(rows), dtype=bool)
        ways = ((self.before, self.known), (self.after, self.seen))
        for (first, first_known), (second, second_known) in product(ways, ways):
            left = np.flatnonzero(~found & first_known[leader, rows] & second_known[other, rows])
            ahead, behind = first.take((leader[left], rows[left])), second.take((other[left], rows[left]))
            found[left] = beats(ahead, behind, odds)
        return found

    def of_run(self, run: int) -> list[ArmEvidence]:
        """Return what is known of the arms of one run, as a live verdict has it."""
        found: list[ArmEvidence] = []
        for arm in range(len(self.seen)):
            ways = ((self.before, self.known[arm, run]), (self.after, self.seen[arm, run]))
            parts = [Evidence(*(float(part[arm, run]) for part in way)) for way, there in ways if there]
            closes = len(parts) == 2 and parts[0] != parts[1]
            found.append(tuple(parts if closes else parts[-1:]))
        return found


def close(
    known: RememberedReleases,
    which: Integers,
    generators: Sequence[np.random.Generator],
    arrived: Integers,
    needs: Integers,
) -> Ends:
    """Make the closing releases. `known` learns them: it is of no further use.

    which: the policy of each run. arrived: rewards of each arm that are not released; needs: those that were planned,
    [arm, run].
    """
    rows = np.arange(len(which))
    before, seen = known.evidence(rows), known.done > 0
    sums, noise = np.zeros(arrived.shape), np.zeros(arrived.shape)
    for number, (policy, moved, generator) in enumerate(zip(known.policies, known.moved, generators, strict=True)):
        arm, place = np.nonzero(arrived[:, which == number])
        here = arm, np.flatnonzero(which == number)[place]
        sums[here] = known.environment.reward_sums(generator, arm, arrived[here])
        noise[here] = noise_draws(policy.budget, moved, generator, len(arm))
    gain: Floats = known.read[0, known.begin + known.done]
    for arm in range(len(arrived)):
        last = np.flatnonzero(arrived[arm])
        known.learn(last, np.full(len(last), arm), arrived[arm, last], sums[arm, last], noise[arm, last])
    after = known.evidence(rows)
    share = np.where(arrived > 0, 1.0 - (needs - arrived) * gain, 1.0)
    after = after._replace(mean=after.mean / share, share=share)
    return Ends(before, seen, after, seen | (arrived > 0))

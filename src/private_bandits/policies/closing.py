"""What all releases of an arm say at the end, when the last one was made before its planned rewards were in.

How many rewards k a closing release holds depends on when one stopped, so that no bound for a fixed number covers it.
But the weights w are fixed: those of the whole release, with all n rewards that were planned. A reward of episode i has
the weight U_i = (C'w)_i, and with k of n rewards the weights have the sum F_k instead of F_n = 1. The mean is

    m_k = (sum of w_l y_l) / F_k

and exp(x times the centred sum) is a submartingale as rewards come in. So Doob's inequality makes the bound for all n
rewards hold for all k together, with F_k (m_k - mean) in place of what all n would have shown (docs/guarantees.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from private_bandits.budget import NoiseKind
from private_bandits.ledger import Release
from private_bandits.mechanism.factor import INDEPENDENT, Factor
from private_bandits.policies.evidence import ArmEvidence, Evidence
from private_bandits.policies.release_memory import combination_weights


def releases_of_arms(rows: Sequence[Release], arms: int) -> list[list[Release]]:
    """Return the releases of each arm, where each release is of one."""
    found: list[list[Release]] = [[] for _ in range(arms)]
    for row in rows:
        found[row.key].append(row)
    return found


def pooled_evidence(
    releases: Sequence[Release], planned: int | None, factor: Factor | None, low: float, width: float
) -> ArmEvidence:
    """Return what an arm's releases say together: with the closing one, and without it.

    planned: rewards that the last release would have had; None: it is not a closing one.
    """
    if not releases:
        return ()
    if planned is None:
        return (_pooled(releases, releases[-1].count, factor, low, width),)
    before = releases[:-1]
    found = _pooled(releases, max(planned, releases[-1].count), factor, low, width)
    return (_pooled(before, before[-1].count, factor, low, width), found) if before else (found,)


def _pooled(releases: Sequence[Release], planned: int, factor: Factor | None, low: float, width: float) -> Evidence:
    counts = [release.count for release in releases]
    noise = np.array([(release.noise_sd / width) ** 2 for release in releases])
    full = (*counts[:-1], planned)
    weights = combination_weights(full, tuple(noise.tolist()), factor).weights[-1]
    of_rewards = weights @ (factor or INDEPENDENT).matrix(len(counts)) if factor is not None else weights
    share = float(of_rewards @ np.array(counts, float))
    mean = (float(weights @ [release.values[0] for release in releases]) / share - low) / width
    rounding = 0.5 / releases[-1].steps * float(np.abs(of_rewards) @ np.array(counts, float)) / share
    number = len(releases)
    odds = number * (number + 1.0)
    sds = np.abs(weights) * np.sqrt(noise)
    sd, peak, largest = float(np.sqrt(sds @ sds)), float(sds.max()), float(of_rewards.max())
    kind: NoiseKind = releases[-1].noise
    if of_rewards.min() < -1e-12 * largest:  # Hoeffding's bound, which is that of Gaussian noise
        variance = float(of_rewards**2 @ np.array(full, float)) / 4 + sd**2
        return Evidence(mean, rounding, math.inf, variance, odds, share=share)
    return Evidence.of_mean(kind, mean, rounding, 1.0 / largest, sd, peak, odds)._replace(share=share)


def planned_for(planned: int, count: int) -> tuple[int, float]:
    """Return one over the share of doubling number i, and the part that `count` is of planned * 2^i, which holds it.

    >>> planned_for(10, 10), planned_for(10, 30)
    ((2, 1.0), (12, 0.75))
    """
    doublings = max(0, math.ceil(math.log2(count / planned)))
    return (doublings + 1) * (doublings + 2), count / (planned * 2**doublings)

"""The engine: everything that can be seen in two worlds, with its log-probability and log-ratio.

The leaves of a pair's tree are sequences of recommendations and moves of the adversary. A quantity of the form
"sum over what is seen, best over what the adversary does" is a recursion over the prefixes: sum over the last
recommendation, maximum over the move before it, and so on. It finds the best adversary without listing adversaries.

Axes run backwards in time, (o_T, move_(T-1), o_(T-1), ..., pairs): the first axis is always the next to be reduced,
and numpy adds whole blocks. Log-ratios are summed from the ratios of single steps, so that nearly equal worlds keep
all digits.

What is asked of a tree: delta at an epsilon, the KL divergence, Renyi divergences.

With l = log(P/Q) and t = alpha - 1, each is a sum over leaves that the adversary maximises:

    delta(eps)        = sum of  P max(0, 1 - e^(eps - l))
    KL                = sum of  P (l + e^-l - 1)
    e^(t D_alpha) - 1 = sum of  P (e^(t l) - 1 + t (e^-l - 1))

The last two have terms added that sum to zero (both worlds' probabilities sum to one, whatever the adversary does):
each leaf is then at least zero, and nothing cancels when the worlds are close. A leaf with P = 0 < Q would add t Q;
it is left out, because then the same pair in the other order has an infinite divergence, and nothing else matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats
from private_bandits.definitions.policy import SmallPolicy
from private_bandits.definitions.worlds import Ints, WorldPairs

Booleans = NDArray[np.bool_]

LARGE = 500.0
"""Exponents up to here are taken as they are; e^500 is far from the largest float."""


def expm2(x: Floats) -> Floats:
    """e^x - 1 - x.

    >>> f"{expm2(np.array(3e-10)):.12g}"  # e^x - 1 - x itself would have no digit right
    '4.50000000045e-20'
    """
    near = np.clip(x, -0.1, 0.1)
    series = np.zeros_like(near)
    for k in range(12, 1, -1):  # Horner: 1/2! + x/3! + ...; at 0.1 the rest is below 1e-19
        series = (series * near + 1.0) / k
    return np.where(np.abs(x) <= 0.1, near * near * series, np.expm1(x) - x)


def accurate_log_ratio(p: Floats, q: Floats, difference: Floats) -> Floats:
    """log(p/q), where difference = p - q; 0 where p = 0, which no later step can mend."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # where it overflows it is not used
        excess = difference / q
        ratio = np.where(np.abs(excess) < 0.5, np.log1p(excess), np.log(p) - np.log(q))
    return np.where(p > 0, ratio, 0.0)


@dataclass(frozen=True, eq=False)
class Leaves:
    """log P and log(P/Q) of every leaf, P and Q the probabilities in the first and the second world.

    Leaves that are impossible in the first world count nowhere: P = 0, and the log-ratio is set to 0. `steps` are
    the steps whose recommendations are seen; `queried` says whether moves lie between them.
    """

    worlds: WorldPairs
    log_p: Floats
    log_ratio: Floats
    steps: tuple[int, ...]
    queried: bool

    @cached_property
    def p(self) -> Floats:
        """The probabilities in the first world."""
        return np.exp(self.log_p)

    @cached_property
    def largest(self) -> Floats:
        """The largest log-ratio of each pair; infinite if something is possible in the first world only."""
        highest: Floats = self.log_ratio.max(axis=tuple(range(self.log_ratio.ndim - 1)))
        return highest

    @cached_property
    def information(self) -> Floats:
        """P (l + e^-l - 1) with l = log(P/Q): what a leaf adds to the KL divergence. No l may be infinite."""
        with np.errstate(over="ignore", invalid="ignore"):
            usual = self.p * expm2(-self.log_ratio)
        return np.where(self.log_ratio < -LARGE, np.exp(self.log_p - self.log_ratio), usual)

    def best(self, values: Floats) -> Floats:
        """For each pair, the sum of the values of the leaves under the adversary that makes it largest."""
        values = values.sum(axis=0)
        while values.ndim > 1:
            if self.queried:
                values = values.max(axis=0)
            values = values.sum(axis=0)
        return values

    def kept(self, values: Floats) -> Booleans:
        """The leaves that a best adversary lets happen, as a mask; where moves are equally good, the first."""
        choices: list[Ints] = []
        values = values.sum(axis=0)
        while values.ndim > 1:
            if self.queried:
                choices.append(values.argmax(axis=0))
                values = values.max(axis=0)
            values = values.sum(axis=0)
        mask = np.ones(self.log_p.shape, dtype=bool)
        for depth, choice in enumerate(choices):
            axis = 2 * depth + 1
            moves = np.arange(mask.shape[axis]).reshape(-1, *[1] * choice.ndim)
            mask &= moves == choice  # broadcasts over what happens later
        return mask

    def take(self, which: Ints) -> Leaves:
        """Some of the pairs."""
        return Leaves(
            self.worlds.take(which), self.log_p[..., which], self.log_ratio[..., which], self.steps, self.queried
        )


def grow(policy: SmallPolicy, worlds: WorldPairs) -> Leaves:
    """The trees of some pairs of worlds."""
    space, model = policy.space, worlds.model
    arms, rewards, contexts = len(space.arms), len(space.rewards), space.n_contexts
    histories = [worlds.histories[0], worlds.histories[1]]
    context = [worlds.contexts[0, worlds.first], worlds.contexts[1, worlds.first]]
    log_p = log_q = log_ratio = np.zeros(worlds.count)
    for step in range(worlds.first, space.horizon):
        rows = [h * contexts + c for h, c in zip(histories, context, strict=True)]
        p, q = (policy.normalised[step].T[:, row] for row in rows)
        with np.errstate(divide="ignore"):
            log_p = log_p + np.log(p)
            log_q = log_q + np.log(q) if model.observer != "all" else log_q
        if step > worlds.step or model.joint:
            log_ratio = log_ratio + accurate_log_ratio(p, q, p - q)
        if step + 1 == space.horizon:
            break
        histories, context = _after(worlds, rows, step, arms, rewards, contexts)
        if model.plays == "adversary":
            log_p, log_ratio = log_p[None], log_ratio[None]  # an axis of one for the move
    steps = tuple(range(worlds.first, space.horizon))
    if model.observer != "all":
        return _marginal(worlds, log_p, log_q, log_ratio, steps)
    log_ratio = np.where(np.isneginf(log_p), 0.0, log_ratio)
    return Leaves(worlds, log_p, log_ratio, steps, model.plays == "adversary")


def delta_leaves(leaves: Leaves, epsilon: float) -> Floats:
    """P - e^eps Q where that is positive, else 0."""
    gain: Floats = leaves.p * -np.expm1(np.minimum(epsilon - leaves.log_ratio, 0.0))
    return gain


def renyi_leaves(leaves: Leaves, order: float) -> tuple[Floats, Floats | None]:
    """What a leaf adds to e^(t D) - 1 at t = alpha - 1 = order, and no shift.

    Where powers would overflow: what it adds to e^(t D - shift), and the shift of each pair.
    """
    if order * float(leaves.largest.max()) <= LARGE:
        return leaves.p * expm2(order * leaves.log_ratio) + order * leaves.information, None
    exponents = leaves.log_p + order * leaves.log_ratio
    shift: Floats = exponents.max(axis=tuple(range(exponents.ndim - 1)))
    return np.exp(exponents - shift), shift


def log_moments(leaves: Leaves, order: float) -> Floats:
    """t D_(1+t) of each pair under its best adversary: log of the sum of P^(1+t) Q^-t. Convex in t, 0 at t = 0."""
    values, shift = renyi_leaves(leaves, order)
    best = leaves.best(values)
    return np.log1p(best) if shift is None else np.log(best) + shift


def _after(
    worlds: WorldPairs, rows: list[Ints], step: int, arms: int, rewards: int, contexts: int
) -> tuple[list[Ints], list[Ints]]:
    """Histories and contexts of the next step: a new first axis for the arm that was played, or for the move."""
    if worlds.model.rows == "adaptive":
        # A move is an arm, its reward and the next context, the same in both worlds: the pair is spent.
        move = np.arange(arms * rewards * contexts).reshape(-1, 1, *[1] * rows[0].ndim)
        return [row * (arms * rewards) + move // contexts for row in rows], [move % contexts, move % contexts]
    made = []
    for world, row in enumerate(rows):
        # The row of the table decides the reward: (arms, 1, ..., 1, pairs).
        digit = np.arange(arms)[:, None] * rewards + worlds.rewards[world, step]
        between = row.ndim - 1 + (worlds.model.plays == "adversary")
        made.append(row * (arms * rewards) + digit.reshape(arms, *[1] * between, worlds.count))
    return made, [worlds.contexts[0, step + 1], worlds.contexts[1, step + 1]]


def _marginal(worlds: WorldPairs, log_p: Floats, log_q: Floats, log_ratio: Floats, steps: tuple[int, ...]) -> Leaves:
    """Sums over the recommendations that the observer of joint DP does not see."""
    hidden = set(range(worlds.step + 1)) if worlds.model.observer == "later" else {worlds.step}
    axes = tuple(len(steps) - 1 - step for step in hidden)
    p, q = np.exp(log_p), np.exp(log_q)
    with np.errstate(invalid="ignore"):
        difference = np.where(p > 0, -p * np.expm1(-log_ratio), -q).sum(axis=axes)
    p, q = p.sum(axis=axes), q.sum(axis=axes)
    with np.errstate(divide="ignore"):
        log_p = np.log(p)
    ratio = accurate_log_ratio(p, q, difference)
    return Leaves(worlds, log_p, ratio, tuple(s for s in steps if s not in hidden), queried=False)

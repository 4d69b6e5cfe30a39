"""The cost to a person: the dearest way in which at most m rewards of one person can be placed in the releases.

Let a person have k_j rewards in episode j, and let release l hold episode j with the multiplier c_lj. Gaussian noise
that costs a reward of multiplier one rho_l costs this person

    sum over l of  rho_l (sum over j of c_lj k_j)^2  =  k' G k        G_ij = sum over l of  rho_l c_li c_lj

as the person moves release l by at most sum_j c_lj k_j times what one reward moves it by. Laplace noise costs the sum
over l of epsilon_l sum_j |c_lj| k_j. The worst person has the k that makes this largest, of all whole numbers with
k_1 + k_2 + ... <= m and 0 <= k_j <= n_j, n_j the rewards in episode j. With one reward in an episode at most, k_j <= 1.

`worst_person` finds it by branch and bound, in exact fractions. It gives up after so many tries, and returns an upper
bound then, which it says. What an agent promises for however long it runs is in mechanism/composition.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from private_bandits.ledger.rows import Release, label_span

TRIES = 20_000
"""Placements that a search looks at before it gives up."""
MANY = 200
"""Rewards of a person beyond which nothing is searched. All of them in one episode is still found to be the worst."""
MOST_PAIRS = 1_000_000
"""Pairs of episodes in one release, over all releases, beyond which only the dearest episode is looked at."""
FINE = 2**60
"""Cosines between the columns of a combination are rounded up to whole multiples of one over this."""

Episode = tuple[str, int]
"""The sum that an episode belongs to, by its key, and its number."""


@dataclass(frozen=True)
class PersonCost:
    """The cost to the worst person: rho, or epsilon of Laplace noise.

    exact: whether it is the cost of `placement`, and no placement costs more. If not, it is an upper bound.
    placement: how many rewards of that person are in each episode, by label.
    """

    cost: Fraction
    exact: bool
    placement: Mapping[str, int]

    @property
    def rounded(self) -> float:
        """The cost as a float that is not below it."""
        nearest = float(self.cost)
        return nearest if nearest >= self.cost else math.nextafter(nearest, math.inf)


@dataclass
class Releases:
    """The public facts of some releases that the cost to a person follows from.

    sizes: the rewards in each episode. costs: G_ii, the cost to a reward of each. shared: G_ij of two episodes, both
    ways round, without zeros; None once there are too many. linear: whether costs add up as they are (Laplace noise),
    and nothing is shared. beside: episodes that left together with another one. Where a person may have one reward in
    an episode, that is one in all sums that leave together. bounded: whether sums left together with weights, of which
    each counts at the largest: then costs are upper bounds.
    """

    linear: bool = False
    beside: set[Episode] = field(default_factory=set)
    bounded: bool = False
    sizes: dict[Episode, int] = field(default_factory=dict)
    costs: dict[Episode, Fraction] = field(default_factory=dict)
    shared: dict[Episode, dict[Episode, Fraction]] | None = field(default_factory=dict)
    pairs: int = 0

    @classmethod
    def of(cls, rows: Iterable[Release]) -> Releases:
        """Add up G over the rows of a ledger."""
        found = cls()
        for row in rows:
            found.add(row)
        return found

    def add(self, row: Release) -> None:
        """Add one release."""
        self.linear = row.noise == "laplace"
        self.bounded = self.bounded or row.weights is not None
        for i, part in enumerate(part for part in row.parts if part.new):
            key, _, last = label_span(part.episode)
            self.sizes[key, last] = part.rewards
            if i:
                self.beside.add((key, last))
        held = [(one, abs(Fraction(c))) for label, c in row.episodes.items() for one in _episodes(label)]
        cost = Fraction(row.calibrated)
        for one, c in held:
            self.costs[one] = self.costs.get(one, Fraction(0)) + cost * (c if self.linear else c * c)
        self.pairs += len(held) * (len(held) - 1)
        if self.pairs > MOST_PAIRS:
            self.shared = None
        if self.shared is None or self.linear:
            return
        cosines = _cosines(row)
        for i, (one, c) in enumerate(held):
            for j, (other, d) in enumerate(held):
                both = cost * c * d * (1 if cosines is None else cosines[i][j])
                if both and i != j:
                    beside = self.shared.setdefault(one, {})
                    beside[other] = beside.get(other, Fraction(0)) + both


def _episodes(label: str) -> list[Episode]:
    """Return the episodes of a label; a node of a tree has several."""
    key, first, last = label_span(label)
    return [(key, number) for number in range(first, last + 1)]


def _cosines(row: Release) -> list[list[Fraction]] | None:
    """Return how far the sums of a combined release move the same way, rounded up; None where it is one sum.

    A reward of any sum in it counts at the whole sensitivity, as the ledger does not say which weight it had.
    """
    if len(row.keys) == 1:
        return None
    if row.weights is None:  # each sum is a value of its own
        size = range(len(row.keys))
        return [[Fraction(int(i == j)) for j in size] for i in size]
    columns = [[Fraction(w) for w in column] for column in zip(*row.weights, strict=True)]
    return [[_cosine(x, y) for y in columns] for x in columns]


def _cosine(x: Sequence[Fraction], y: Sequence[Fraction]) -> Fraction:
    """Return a whole multiple of 1/FINE that is not below the size of the cosine of two vectors.

    Its sign does not matter: of two rewards, one may fall where the other rises.
    """
    dot = sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))
    if not dot:
        return Fraction(0)
    squared = dot * dot / (sum(a * a for a in x) * sum(b * b for b in y)) * FINE**2
    root = math.isqrt(squared.numerator // squared.denominator) + 1
    return min(Fraction(root, FINE), Fraction(1))


def worst_person(releases: Releases, rewards: int, one_per_episode: bool = False) -> PersonCost:
    """Return the most that releases cost a person with so many rewards in them at most.

    Args:
        releases: What was released.
        rewards: The most rewards that one person may have.
        one_per_episode: Whether a person may have one reward in an episode at most.

    Returns:
        The cost, and a placement of the rewards that has it, or an upper bound if the search gave up.
    """
    found = _worst(releases, rewards, one_per_episode)
    return replace(found, exact=False) if releases.bounded else found


def _worst(releases: Releases, rewards: int, one_per_episode: bool) -> PersonCost:
    caps = {one: min(size, rewards) for one, size in releases.sizes.items()}
    if one_per_episode:
        caps = {one: int(one not in releases.beside) for one in caps}
    most = min(rewards, sum(caps.values()))
    if releases.linear:
        return _dearest_first(releases, caps, most)
    dearest = max(caps, key=lambda e: (releases.costs[e], caps[e]), default=None)
    if dearest is None or not most:
        return PersonCost(Fraction(0), True, {})
    together = most**2 * releases.costs[dearest]  # no placement costs more than all rewards in the dearest episode
    if releases.shared is None or caps[dearest] >= most:
        return PersonCost(together, caps[dearest] >= most, {_label(dearest): most} if caps[dearest] >= most else {})
    return _Search(releases, releases.shared, caps, most).result()


def _dearest_first(releases: Releases, caps: Mapping[Episode, int], most: int) -> PersonCost:
    """Place rewards under Laplace noise, whose costs add up."""
    cost, placement = Fraction(0), dict[str, int]()
    for one in sorted(caps, key=lambda e: (-releases.costs[e], e)):
        taken = min(most - sum(placement.values()), caps[one])
        if taken:
            cost += taken * releases.costs[one]
            placement[_label(one)] = taken
    return PersonCost(cost, True, placement)


class _Search:
    """Branch and bound over placements under Gaussian noise.

    With k placed and r rewards x still to come, k'Gk grows by 2 x'(Gk) + x'Gx. The first is at most 2 r times the
    largest (Gk)_j. The second is x_1 (Gx)_1 + x_2 (Gx)_2 + ..., at most r times the most that r entries of one row of G
    add up to, an entry as often as its episode may have rewards. No entry is negative, so that more rewards cost more.
    """

    def __init__(
        self,
        releases: Releases,
        shared: Mapping[Episode, Mapping[Episode, Fraction]],
        caps: Mapping[Episode, int],
        most: int,
    ) -> None:
        gram = {e: {e: cost, **shared.get(e, {})} for e, cost in releases.costs.items()}
        self._episodes = sorted(caps, key=lambda e: (-releases.costs[e], e))
        place = {one: i for i, one in enumerate(self._episodes)}
        # Whole multiples of one over a common denominator are faster than fractions.
        self._one = math.lcm(*(g.denominator for row in gram.values() for g in row.values()))
        self._gram = [{place[f]: int(g * self._one) for f, g in gram[e].items()} for e in self._episodes]
        self._caps = [caps[e] for e in self._episodes]
        self._most = most
        entries = [sorted(((g, self._caps[j]) for j, g in row.items()), reverse=True) for row in self._gram]
        counts = range(most + 1) if most <= MANY else (most,)
        self._room = {r: r * max((_filled(row, r) for row in entries), default=0) for r in counts}
        self._best, self._best_at = 0, dict[int, int]()
        self._tries = 0

    def result(self) -> PersonCost:
        """Try placements that are likely to be worst, then all that could be worse."""
        bound = self._room[self._most]
        if self._most == sum(self._caps):  # a person may have told everything
            bound = self._try({i: cap for i, cap in enumerate(self._caps) if cap})
        for first in range(min(len(self._caps), MANY)):
            if self._best < bound:
                self._try(self._greedy(first))
        exact = self._best == bound or (self._most <= MANY and self._finds_all())
        placement = {_label(self._episodes[i]): k for i, k in sorted(self._best_at.items())}
        return PersonCost(Fraction(self._best if exact else bound, self._one), exact, placement)

    def _try(self, placement: dict[int, int]) -> int:
        """Return what a placement costs, and remember it if it is the worst so far."""
        gram = self._gram
        cost = sum(k * j * gram[e].get(f, 0) for e, k in placement.items() for f, j in placement.items())
        if cost > self._best:
            self._best, self._best_at = cost, placement
        return cost

    def _greedy(self, first: int) -> dict[int, int]:
        """Fill one episode, and then again and again the one that costs most beside those."""
        placement = {first: min(self._caps[first], self._most)}
        left = self._most - placement[first]
        beside = {j: 2 * placement[first] * g for j, g in self._gram[first].items()}
        while left and len(placement) < min(len(self._caps), MANY):
            free = (j for j in range(len(self._caps)) if j not in placement)
            taken = max(free, key=lambda j: beside.get(j, 0) + self._gram[j][j])
            placement[taken] = min(self._caps[taken], left)
            left -= placement[taken]
            for j, g in self._gram[taken].items():
                beside[j] = beside.get(j, 0) + 2 * placement[taken] * g
        return placement

    def _finds_all(self) -> bool:
        """Look at every placement that may be the worst. Returns whether that was possible."""
        return self._search({}, 0, [0] * len(self._caps), 0, self._most)

    def _search(self, placed: dict[int, int], cost: int, beside: list[int], first: int, left: int) -> bool:
        """Place what is left in episodes from `first` on. beside: Gk of what is placed."""
        for here in range(first, len(self._caps)):
            if cost + 2 * left * max(beside[here:]) + self._room[left] <= self._best:
                return True
            for k in range(min(self._caps[here], left), 0, -1):
                self._tries += 1
                if self._tries > TRIES:
                    return False
                more = {**placed, here: k}
                own = cost + 2 * k * beside[here] + k * k * self._gram[here][here]
                if own > self._best:
                    self._best, self._best_at = own, more
                if left > k:
                    after = beside.copy()
                    for j, g in self._gram[here].items():
                        after[j] += k * g
                    if not self._search(more, own, after, here + 1, left - k):
                        return False
        return True


def _filled(row: Sequence[tuple[int, int]], rewards: int) -> int:
    """Return the most that so many entries add up to. row: the entries, largest first, and how often each may be."""
    found = 0
    for shared, cap in row:
        taken = min(cap, rewards)
        found, rewards = found + taken * shared, rewards - taken
    return found


def _label(episode: Episode) -> str:
    return f"{episode[0]}/{episode[1]}"

"""The bounds against exact computations on small mechanisms, and the counterexample to the paper's bandit bound."""

from __future__ import annotations

import decimal
import itertools
import json
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from private_bandits.budget import ApproxDP, NoPrivacy, PureDP, RenyiDP, epsilon_of, zCDP
from private_bandits.errors import InvalidInput
from private_bandits.theory import (
    Moments,
    bandit_kl,
    kl_bound_bandit,
    kl_bound_product,
    kl_bound_transport,
    kl_bounds,
    kl_of_group,
    largest_probability,
    largest_shift,
    least_rho,
    renyi_of_group,
    rewards_needed,
    robustness,
    shift_bounds,
)
from private_bandits.transport import coupled_run, product_distribution, total_variation

steady = settings(derandomize=True, deadline=None, max_examples=15)
ALPHAS = np.concatenate([1 + np.logspace(-4, 3, 150)])
Law = NDArray[np.float64]


def renyi(p: Law, q: Law, alphas: Law = ALPHAS) -> Law:
    """D_alpha for each alpha, plainly."""
    keep = p > 0
    logs = np.outer(alphas, np.log(p[keep])) + np.outer(1 - alphas, np.log(q[keep]))
    result: Law = np.logaddexp.reduce(logs, axis=1) / (alphas - 1)
    return result


def kl(p: Law, q: Law) -> float:
    keep = p > 0
    return float((p[keep] * np.log(p[keep] / q[keep])).sum())


def discrete_gaussian(centre: float, variance: float, low: int = -80, high: int = 120) -> Law:
    weights = np.exp(-((np.arange(low, high) - centre) ** 2) / (2 * variance))
    law: Law = weights / weights.sum()
    return law


def random_marginals(draw: np.random.Generator, length: int) -> list[dict[int, float]]:
    return [dict(enumerate(draw.dirichlet([1, 1]))) for _ in range(length)]


# Groups.


@pytest.mark.parametrize("distance", [0, 1, 2, 5])
def test_group_privacy_is_exact_for_the_discrete_gaussian(distance: int) -> None:
    rho = 0.03
    shifted, law = discrete_gaussian(distance, 1 / (2 * rho)), discrete_gaussian(0, 1 / (2 * rho))
    for alpha in (1.5, 2.0, 4.0):
        exact = renyi(shifted, law, np.array([alpha]))[0]
        assert exact == pytest.approx(renyi_of_group(rho, distance, alpha), abs=1e-9)
    assert kl(shifted, law) == pytest.approx(kl_of_group(rho, distance), abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_group_privacy_holds_for_randomised_response(epsilon: float) -> None:
    rho = epsilon * math.tanh(epsilon / 2)
    p = np.array([math.exp(epsilon), 1.0]) / (1 + math.exp(epsilon))
    one = renyi(p, p[::-1])
    for m in range(1, 5):
        bounds = np.array([renyi_of_group(rho, m, alpha) for alpha in ALPHAS])
        assert (m * one <= bounds * (1 + 1e-9)).all()
    assert kl(p, p[::-1]) == pytest.approx(kl_of_group(rho, 1))


# Mechanisms whose input is random.


def mixed(mechanism: Callable[[tuple[int, ...]], Law], distribution: dict[Any, float]) -> Law:
    return np.array(sum(mass * mechanism(point) for point, mass in distribution.items()))


@pytest.mark.parametrize("seed", range(8))
def test_no_mechanism_tells_more_than_the_transport_bound(seed: int) -> None:
    draw = np.random.default_rng(seed)
    epsilon = float(draw.uniform(0.2, 3))
    rho_flip = epsilon * math.tanh(epsilon / 2)
    flip = 1 / (1 + math.exp(epsilon))
    rho_sum = float(draw.uniform(0.05, 2))
    points = list(itertools.product([0, 1], repeat=3))

    def every_bit_flipped(d: tuple[int, ...]) -> Law:
        return np.array([math.prod(flip if x != y else 1 - flip for x, y in zip(d, o, strict=True)) for o in points])

    def noisy_sum(d: tuple[int, ...]) -> Law:
        return discrete_gaussian(sum(d), 1 / (2 * rho_sum), -30, 34)

    first, second = (dict(zip(points, draw.dirichlet(np.full(8, 0.3)), strict=True)) for _ in range(2))
    for rho, mechanism in ((rho_flip, every_bit_flipped), (rho_sum, noisy_sum)):
        exact = kl(mixed(mechanism, first), mixed(mechanism, second))
        assert exact <= kl_bound_transport(rho, first, second) * (1 + 1e-9)
        one, two = random_marginals(draw, 3), random_marginals(draw, 3)
        found = kl_bounds(rho, one, two)
        exact = kl(mixed(mechanism, product_distribution(one)), mixed(mechanism, product_distribution(two)))
        assert exact <= found.transport * (1 + 1e-9)
        assert found.transport <= found.product + 1e-9


def test_the_transport_bound_is_reached_by_the_discrete_gaussian() -> None:
    rho = 0.2
    far, near = discrete_gaussian(3, 1 / (2 * rho), -30, 34), discrete_gaussian(0, 1 / (2 * rho), -30, 34)
    assert kl(far, near) == pytest.approx(kl_bound_transport(rho, {(1, 1, 1): 1.0}, {(0, 0, 0): 1.0}), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_product_bound_is_rho_times_the_second_moment_of_independent_differences(seed: int) -> None:
    draw = np.random.default_rng(seed)
    one, two = random_marginals(draw, 4), random_marginals(draw, 4)
    shifts = [total_variation(p, q) for p, q in zip(one, two, strict=True)]
    moment = sum(
        sum(bits) ** 2 * math.prod(t if bit else 1 - t for t, bit in zip(shifts, bits, strict=True))
        for bits in itertools.product([0, 1], repeat=4)
    )
    assert kl_bound_product(0.7, one, two) == pytest.approx(0.7 * moment)
    found = kl_bounds(0.7, one, two)
    assert found.product_distance == pytest.approx(moment)
    assert found.gap == pytest.approx(found.product - 0.7 * found.transport_distance)


def test_how_much_the_best_coupling_gains() -> None:
    low, high = {0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}
    expected = {2: (1.5, 1.25), 4: (5.0, 4.234375), 6: (10.5, 9.1904296875)}
    for n, (independent, best) in expected.items():
        found = kl_bounds(1.0, [low] * n, [high] * n)
        assert found.product == pytest.approx(independent)
        assert found.transport == pytest.approx(best, abs=1e-9)


# Bandits. Arms of the counterexamples: 0 is tried first, 1 pays 1 or 0, 2 pays nothing, the others report.


def coin_policy(probabilities: tuple[float, float]) -> Callable[[Any], list[float]]:
    """Arm 0, then arm 1 with a probability that depends on the first reward."""

    def policy(history: Any) -> list[float]:
        if not history:
            return [1.0, 0.0]
        chance = probabilities[history[0][1]]
        return [1 - chance, chance]

    return policy


def reporting_policy(
    steps: int, follow: tuple[float, float], weights: tuple[int, int], variance: float, levels: range
) -> Callable[[Any], list[float]]:
    """Try arm 0; choose arm 1 or 2 by its reward, for `steps` steps; report a noisy weighted sum by an arm's number."""
    cache: dict[int, list[float]] = {}

    def report(centre: int) -> list[float]:
        if centre not in cache:
            law = discrete_gaussian(centre, variance)
            clipped = np.clip(np.arange(-80, 120), levels[0], levels[-1]) - levels[0]
            cache[centre] = [0.0] * 3 + np.bincount(clipped, law, len(levels)).tolist()
        return cache[centre]

    def policy(history: Any) -> list[float]:
        chances = [0.0] * (3 + len(levels))
        if not history:
            chances[0] = 1.0
        elif len(history) == 1:
            chances[1] = follow[history[0][1]]
            chances[2] = 1 - chances[1]
        elif len(history) <= steps:
            chances[history[1][0]] = 1.0
        else:
            return report(weights[0] * history[0][1] + weights[1] * sum(reward for _, reward in history[1:]))
        return chances

    return policy


def reporting_instances(t: float, arms: int) -> tuple[list[dict[int, float]], list[dict[int, float]]]:
    nothing: dict[int, float] = {0: 1.0}
    return [{0: 1 - t, 1: t}, {1: 1.0}] + [nothing] * (arms - 2), [nothing] * arms


# (steps, follow, weights, variance, levels, t, rho that is kept)
SHORT = (1, (0.04, 0.7), (1, 1), 1 / 16.6, range(3), 0.1, 10.0)
LONG = (4, (0.1, 0.42), (3, 4), 8.0, range(-8, 33), 0.2, 1.0)


def test_conditioning_on_all_actions_is_not_innocent() -> None:
    """Step (c) of the paper's proof fails with two arms, two steps and a policy as private as one likes."""
    for low, high in ((0.0, 1.0), (0.4, 0.6), (0.49, 0.51)):
        run = coupled_run(coin_policy((low, high)), [{0: 0.9, 1: 0.1}, {1: 1.0}], [{0: 1.0}, {0: 1.0}], 2)
        second = 0.1 + 0.9 * (0.1 * high + 0.9 * low)  # mean of the second t: 1 for arm 1, 0.1 for arm 0
        paper = 0.1 + second + 2 * 0.1 * second
        assert run.mean**2 + run.variance + run.spread == pytest.approx(paper)
        assert run.distance_squared == pytest.approx(paper + 2 * 0.1 * 0.9 * 0.9 * (high - low))
        assert run.distance_squared > paper


@pytest.mark.parametrize("example", [SHORT, LONG], ids=["short", "long"])
def test_the_policies_of_the_counterexample_keep_their_budget(example: Any) -> None:
    """Against every adversary: it chooses which rewards are shown, so the second sum may depend on the second action.

    A first reward that changes (the sums may differ by the action, but are the same in both worlds); a later
    reward that changes, after either action.
    """
    steps, follow, weights, variance, _, _, rho = example
    support = np.arange(-300, 340)

    def log_law(centre: int) -> Law:
        logs: Law = -((support - centre) ** 2) / (2 * variance)
        shifted: Law = logs - np.logaddexp.reduce(logs)
        return shifted

    laws = {c: log_law(c) for c in range(weights[0] + steps * weights[1] + 1)}

    def log_view(world: tuple[int, int, int]) -> Law:
        """The first reward, and the sum of the later ones after either action."""
        first, *sums = world
        after = [laws[weights[0] * first + weights[1] * count] for count in sums]
        return np.concatenate([math.log(follow[first]) + after[0], math.log(1 - follow[first]) + after[1]])

    counts = range(steps + 1)
    worlds = list(itertools.product((0, 1), counts, counts))
    pairs = [(one, two) for one, two in itertools.permutations(worlds, 2) if one[0] == two[0] or one[1:] == two[1:]]
    pairs = [(one, two) for one, two in pairs if all(abs(x - y) <= 1 for x, y in zip(one, two, strict=True))]
    alphas = 1 + np.logspace(-3, 1.3, 40)
    worst = 0.0
    for one, two in pairs:
        logs = np.outer(alphas, log_view(one)) + np.outer(1 - alphas, log_view(two))
        worst = max(worst, float((np.logaddexp.reduce(logs, axis=1) / (alphas * (alphas - 1))).max()))
    assert 0.9 * rho < worst <= rho * (1 + 1e-9)


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (SHORT, {"kl": 2.7132, "paper": 2.2720, "coupling": 3.4600, "proven": 4.4944}),
        (LONG, {"kl": 3.1875, "paper": 3.0864, "coupling": 3.4960, "proven": 4.4549}),
    ],
    ids=["short", "long"],
)
def test_a_private_policy_whose_kl_exceeds_the_papers_bound(example: Any, expected: dict[str, float]) -> None:
    steps, follow, weights, variance, levels, t, rho = example
    policy = reporting_policy(steps, follow, weights, variance, levels)
    instances = reporting_instances(t, 3 + len(levels))
    found = bandit_kl(rho, policy, *instances, horizon=steps + 2)
    assert found.paper < found.kl <= found.coupling <= found.proven
    for name, value in expected.items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-4)

    # The same again, by hand: two actions, four positions of the report on the first instance, one on the second.
    clipped = np.clip(np.arange(-80, 120), levels[0], levels[-1]) - levels[0]

    def report(centre: int) -> Law:
        law: Law = np.bincount(clipped, weights=discrete_gaussian(centre, variance), minlength=len(levels)).astype(
            float
        )
        return law

    a, b = weights
    first = np.concatenate(
        [
            t * follow[1] * report(a + b * steps) + (1 - t) * follow[0] * report(b * steps),
            t * (1 - follow[1]) * report(a) + (1 - t) * (1 - follow[0]) * report(0),
        ]
    )
    second = np.concatenate([follow[0] * report(0), (1 - follow[0]) * report(0)])
    played = t * follow[1] + (1 - t) * follow[0]
    paper = rho * (played * (t + steps) ** 2 + (1 - played) * t**2 + t * (1 - t))
    assert found.kl == pytest.approx(kl(first, second), rel=1e-9)
    assert found.paper == pytest.approx(paper, rel=1e-12)
    assert kl(first, second) > paper


@pytest.mark.parametrize(
    ("rho", "steps", "t", "follow", "ratio"),
    [
        (0.1, 40, 0.262, (0.102, 0.152), 1.0013),
        (0.25, 12, 0.235, (0.138, 0.264), 1.0057),
        (0.5, 8, 0.228, (0.106, 0.302), 1.017),
        (1.0, 5, 0.203, (0.079, 0.381), 1.043),
        (2.0, 3, 0.163, (0.052, 0.504), 1.103),
        (5.0, 2, 0.097, (0.017, 0.672), 1.264),
    ],
)
def test_the_papers_bound_fails_at_small_and_large_rho(
    rho: float, steps: int, t: float, follow: tuple[float, float], ratio: float
) -> None:
    """The table of docs/theory.md: a Gaussian report, whose weight of the first reward leaves room for the coin."""
    scale = math.sqrt(2 * rho)
    weight = math.sqrt(1 - least_rho(*follow) / rho)
    x = np.linspace(-10, 10 + scale * (steps + 1), 20_001)

    def log_density(centre: float) -> Law:
        logs: Law = -((x - scale * centre) ** 2) / 2 - math.log(math.sqrt(2 * math.pi))
        return logs

    exact = 0.0
    for count, coin in ((steps, follow), (0, (1 - follow[0], 1 - follow[1]))):
        first = np.logaddexp(
            math.log(t * coin[1]) + log_density(count + weight), math.log((1 - t) * coin[0]) + log_density(count)
        )
        second = math.log(coin[0]) + log_density(0)
        exact += float((np.exp(first) * (first - second)).sum() * (x[1] - x[0]))
    played = t * follow[1] + (1 - t) * follow[0]
    paper = rho * (played * (t + steps) ** 2 + (1 - played) * t**2 + t * (1 - t))
    assert exact / paper == pytest.approx(ratio, abs=6e-4 if ratio > 1.01 else 6e-5)


def interactive_rho(policy: Any) -> float:
    """sup over adversaries, neighbouring tables and orders of D_alpha/alpha: two arms, three steps, rewards 0 and 1."""
    alphas = 1 + np.logspace(-3, 2, 25)
    bits = list(itertools.product([0, 1], repeat=2))
    views: dict[Any, Law] = {}
    for b1, b2 in itertools.product(bits, itertools.product([0, 1], repeat=4)):
        for row1, row2 in itertools.product(bits, bits):
            view = []
            for o1, o2, o3 in itertools.product([0, 1], repeat=3):
                q1, q2 = b1[o1], b2[2 * o1 + o2]
                h1 = ((q1, row1[q1]),)
                h2 = (*h1, (q2, row2[q2]))
                view.append(policy(())[o1] * policy(h1)[o2] * policy(h2)[o3])
            views[b1, b2, row1, row2] = np.array(view)
    worst = 0.0
    for (b1, b2, row1, row2), p in views.items():
        others = [views[b1, b2, row, row2] for row in bits] + [views[b1, b2, row1, row] for row in bits]
        for q in others:
            worst = max(worst, kl(p, q), float((renyi(p, q, alphas) / alphas).max()))
    return worst


@pytest.mark.parametrize("seed", range(3))
def test_exact_kl_coupling_and_proven_bound_are_in_order(seed: int) -> None:
    draw = np.random.default_rng(seed)
    table: dict[Any, Any] = {}

    def policy(history: Any) -> Any:
        return table.setdefault(history, draw.dirichlet([3, 3]))

    one, two = random_marginals(draw, 2), random_marginals(draw, 2)
    rho = interactive_rho(policy)
    found = bandit_kl(rho, policy, one, two, horizon=3)
    assert 0 < found.kl <= found.coupling <= found.proven
    assert found.proven <= 2 * found.paper + 1e-12
    # The last reward is never acted upon.
    assert found.kl <= rho * coupled_run(policy, one, two, 2).distance_squared


def test_forms_of_the_bandit_bound() -> None:
    moments = Moments(mean=3.0, variance=7.0, spread=0.25)
    assert kl_bound_bandit(0.5, moments, "paper") == 0.5 * 16.25
    assert kl_bound_bandit(0.5, moments) == 0.5 * 4.5**2
    assert kl_bound_bandit(0.5, Moments(0.0, 0.0, 0.0)) == 0
    with pytest.raises(InvalidInput, match="got 'best'"):
        kl_bound_bandit(0.5, moments, "best")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="variance must be a finite number, at least 0, got -1"):
        Moments(1.0, -1, 0.5)
    with pytest.raises(InvalidInput, match="spread is at most mean"):
        Moments(1.0, 0.0, 1.5)


# Robustness.

chances = st.floats(0.001, 0.999)
strengths = st.floats(-4, 1).map(lambda exponent: 10.0**exponent)


@steady
@given(chances, chances)
def test_least_rho_against_a_plain_search(p: float, q: float) -> None:
    one, two = np.array([p, 1 - p]), np.array([q, 1 - q])
    orders = 1 + np.logspace(-3, 4, 3000)
    plain = max(
        kl(one, two), kl(two, one), *(float((renyi(x, y, orders) / orders).max()) for x, y in ((one, two), (two, one)))
    )
    assert least_rho(p, q) == pytest.approx(plain, rel=1e-5, abs=1e-9)
    assert least_rho(p, q) == least_rho(q, p)


def precise_least_rho(p: float, q: float) -> decimal.Decimal:
    """The same in 60 digits: KL, and the best of many orders, looked at closer and closer. Never above the truth."""
    one = decimal.Decimal(1)
    best = decimal.Decimal(0)
    for x, y in ((decimal.Decimal(p), decimal.Decimal(q)), (decimal.Decimal(q), decimal.Decimal(p))):
        up, down = (x / y).ln(), ((one - x) / (one - y)).ln()
        best = max(best, x * up + (one - x) * down)
        low, high = decimal.Decimal("-7"), decimal.Decimal(30)
        for _ in range(14):
            tried = {}
            for i in range(41):
                t = (low + (high - low) * i / 40).exp()
                tried[i] = (x * (t * up).exp() + (one - x) * (t * down).exp()).ln() / (t * (one + t))
            at = max(tried, key=lambda i: tried[i])
            best = max(best, tried[at])
            low, high = low + (high - low) * max(at - 1, 0) / 40, low + (high - low) * min(at + 1, 40) / 40
    return best


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (0.37111096809046007, 0.999999999999999),
        (0.3, 1 - 1e-6),
        (0.1, 1 - 2**-53),
        (1e-12, 1 - 1e-12),
        (0.999, 1 - 1e-15),
        (1 - 1e-9, 1 - 1e-12),
        (1e-300, 0.5),
        (0.5, 0.5 + 1e-7),
        (0.1, 0.9),
        (0.0017, 0.0019),
        (5e-324, 0.99),
    ],
)
def test_least_rho_is_never_above_the_truth(p: float, q: float) -> None:
    with decimal.localcontext() as context:
        context.prec, context.Emax, context.Emin = 60, decimal.MAX_EMAX, decimal.MIN_EMIN
        truth = precise_least_rho(p, q)
        assert truth * (1 - decimal.Decimal("1e-6")) <= decimal.Decimal(least_rho(p, q)) <= truth
    assert least_rho(p, q) == least_rho(q, p)
    assert largest_probability(math.nextafter(float(truth), math.inf), 1, p) >= q
    assert rewards_needed(float(truth), p, q) == 1
    assert rewards_needed(float(truth) / 9, p, q) <= 3


def test_numbers_too_large_for_a_float() -> None:
    assert largest_probability(0.1, 10**200, 0.5) == largest_probability(PureDP(0.1), 10**400, 0.5) == 1
    assert largest_probability(0.0, 10**200, 0.5) == 0.5
    assert largest_shift(0.1, 10**200) == largest_shift(PureDP(0.1), 10**400) == 1
    assert robustness(0.1, 10**200).largest == shift_bounds(0.1, 10**200)["exact"] == 1
    assert kl_of_group(0.1, 10**200) == math.inf
    assert kl_of_group(0.0, 10**200) == 0
    assert largest_probability(0.1, 1, 5e-324) < 1e-100


@steady
@given(chances, st.floats(-12, -1))
def test_pure_dp_counts_close_probabilities_right(p: float, exponent: float) -> None:
    """Two coins that are m epsilon apart need at most m rewards, however close they are."""
    q = p + (1 - p) * 10.0**exponent
    with decimal.localcontext() as context:
        context.prec = 60
        x, y = decimal.Decimal(p), decimal.Decimal(q)
        apart = max((y / x).ln(), ((1 - x) / (1 - y)).ln())
    assert rewards_needed(PureDP(float(apart) / 3 * (1 + 1e-12)), p, q) == 3


@steady
@given(strengths, chances)
def test_largest_probability_is_where_the_divergence_reaches_the_budget(rho: float, p: float) -> None:
    largest = largest_probability(rho, 1, p)
    assert p < largest <= 1
    if largest < 1 - 1e-9:
        assert least_rho(p, largest) == pytest.approx(rho, rel=1e-6)
        assert least_rho(p, largest) >= rho * (1 - 1e-9)


@steady
@given(strengths, st.integers(1, 4), chances)
def test_the_gaussian_mechanism_stays_within(rho: float, m: int, p: float) -> None:
    moved = float(norm.cdf(norm.ppf(p) + m * math.sqrt(2 * rho)))
    assert moved <= largest_probability(rho, m, p) + 1e-12
    assert float(2 * norm.cdf(m * math.sqrt(rho / 2)) - 1) <= largest_shift(rho, m) + 1e-12
    assert rewards_needed(rho, p, min(moved, 1 - 1e-9)) <= m


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_discrete_gaussian_sum_stays_within(m: int) -> None:
    rho = 0.05
    before, after = discrete_gaussian(0, 1 / (2 * rho)), discrete_gaussian(m, 1 / (2 * rho))
    assert np.abs(before - after).sum() / 2 <= largest_shift(rho, m)
    for cut in range(60, 110, 3):
        p, q = min(1.0, before[cut:].sum()), min(1.0, after[cut:].sum())
        assert q <= largest_probability(rho, m, p) + 1e-12
        assert rewards_needed(rho, p, q) <= m


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 6.0])
def test_randomised_response_attains_the_largest_shift(epsilon: float) -> None:
    rho, p = epsilon * math.tanh(epsilon / 2), 1 / (1 + math.exp(epsilon))
    assert least_rho(p, 1 - p) == pytest.approx(rho, rel=1e-9)
    assert largest_shift(rho, 1) == pytest.approx(math.tanh(epsilon / 2), rel=1e-9)
    assert largest_probability(rho, 1, p) == pytest.approx(1 - p, rel=1e-9)
    assert largest_shift(PureDP(epsilon), 1) == pytest.approx(1 - 2 * p, rel=1e-9)
    assert largest_probability(PureDP(epsilon), 1, p) == pytest.approx(1 - p, rel=1e-9)


@pytest.mark.parametrize("rho", [1e-8, 0.01, 0.3, 1.0, 4.0])
def test_the_shift_is_the_largest_difference_over_all_probabilities(rho: float) -> None:
    differences = [largest_probability(rho, 1, p) - p for p in np.linspace(0.01, 0.99, 25)]
    assert max(differences) <= largest_shift(rho, 1) * (1 + 1e-9)
    if rho <= 1:
        assert max(differences) >= largest_shift(rho, 1) * 0.99


@steady
@given(strengths, st.integers(0, 5))
def test_no_classic_bound_is_below_the_exact_one(rho: float, m: int) -> None:
    bounds = shift_bounds(rho, m)
    assert bounds["exact"] == min(bounds.values()) == largest_shift(rho, m)


def test_the_conversion_is_that_of_the_budgets() -> None:
    """delta at epsilon = 0, against epsilon_of: with a little more delta, no epsilon is needed."""
    delta = shift_bounds(0.02, 1)["conversion"]
    assert epsilon_of(0.02, delta * 1.001) == 0
    assert epsilon_of(0.02, delta * 0.98) > 0


@steady
@given(strengths, chances, chances)
def test_rewards_needed_and_largest_probability_agree(rho: float, p: float, q: float) -> None:
    low, high = min(p, q), max(p, q)
    for budget in (rho, zCDP(rho), PureDP(rho)):
        m = rewards_needed(budget, low, high)
        if low == high:
            assert m == 0
            continue
        if m > 10**6:
            continue
        assert largest_probability(budget, int(m), low) >= high * (1 - 1e-9)
        assert largest_probability(budget, int(m) - 1, low) <= high * (1 + 1e-9)
        assert rewards_needed(budget, high, low) == m
        assert rewards_needed(budget, 1 - low, 1 - high) == pytest.approx(m, abs=1)  # 1 - p is rounded


@steady
@given(strengths, st.integers(0, 4), chances)
def test_more_budget_rewards_or_probability_never_gives_less(rho: float, m: int, p: float) -> None:
    for make in (zCDP, PureDP):
        here = largest_probability(make(rho), m, p)
        slack = 1 + 1e-11
        assert here <= largest_probability(make(rho * 1.3), m, p) * slack
        assert here <= largest_probability(make(rho), m + 1, p) * slack
        assert here <= largest_probability(make(rho), m, p + (1 - p) / 3) * slack
        assert largest_shift(make(rho), m) <= largest_shift(make(rho), m + 1) <= 1


@pytest.mark.parametrize(
    "budget", [0.0, 0.1, 50.0, zCDP(0.1), PureDP(0.1), ApproxDP(1, 1e-6), RenyiDP(4, 1), NoPrivacy()]
)
def test_ends(budget: Any) -> None:
    for p in (0.0, 1e-300, 0.3, 1 - 1e-16, 1.0):
        assert largest_probability(budget, 0, p) == p
        assert p <= largest_probability(budget, 2, p) <= 1
        assert rewards_needed(budget, p, p) == 0
    assert largest_probability(budget, 3, 0.0) == 0
    assert largest_probability(budget, 3, 1.0) == 1
    assert largest_shift(budget, 0) == 0
    assert rewards_needed(budget, 0.0, 0.5) in (math.inf, 1)  # 1: without privacy anything goes
    assert largest_probability(0.0, 3, 0.4) == 0.4
    assert rewards_needed(0.0, 0.4, 0.5) == math.inf
    assert largest_shift(math.inf, 1) == 1
    found = robustness(budget, 2, 0.3)
    assert 0 <= found.smallest <= 0.3 <= found.largest <= 1
    assert json.loads(json.dumps(found.to_dict()))["rewards"] == 2


def test_budgets_count_as_what_the_agents_keep() -> None:
    assert largest_probability(ApproxDP(1, 1e-6), 2, 0.2) == largest_probability(ApproxDP(1, 1e-6).level, 2, 0.2)
    assert largest_shift(RenyiDP(10, 1), 2) == largest_shift(0.1, 2)
    assert largest_probability(PureDP(0.1), 2, 0.2) == pytest.approx(0.2 * math.exp(0.2))
    assert largest_probability(PureDP(0.1), 2, 0.2) < largest_probability(PureDP(0.1).implied_rho, 2, 0.2)


def test_words_round_to_the_safe_side() -> None:
    found = robustness(0.01, 3, 0.1)
    assert "changed 3 of the rewards, to any values, then" in str(found)
    least, share, given_, low, high = (float(number) for number in re.findall(r"([0-9.]+) %?(?=%)", found.words))
    assert given_ == 10
    assert least / 100 <= 1 - found.shift
    assert share / 100 >= found.shift
    assert low / 100 <= found.smallest
    assert high / 100 >= found.largest
    assert "1 of the rewards, to any value," in robustness(0.01, 1).words
    assert "changes nothing" in robustness(0.01, 0).words
    assert "next to nothing" in robustness(NoPrivacy(), 1).words
    assert robustness(0.0, 5, 0.25).words.endswith("between 25 % and 25 %.")


@pytest.mark.parametrize("value", [-1, math.nan, "0.1", None, True])
def test_what_is_no_rho_no_count_no_probability_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="rho must be a number, at least 0, got"):
        kl_of_group(value, 1)
    with pytest.raises(InvalidInput, match="distance must be a whole number of at least 0, got"):
        kl_of_group(0.1, value)
    with pytest.raises(InvalidInput, match="rewards must be a whole number"):
        robustness(0.1, value)
    with pytest.raises(InvalidInput, match="probability must be a probability, from 0 to 1, got"):
        robustness(0.1, 1, value)
    with pytest.raises(InvalidInput, match="alpha must be a finite number, at least 1, got"):
        renyi_of_group(0.1, 1, value if value is not True else 0.5)
    with pytest.raises(InvalidInput, match="same length, got 1 and 2 marginals"):
        kl_bound_product(0.1, [{0: 1.0}], [{0: 1.0}] * 2)

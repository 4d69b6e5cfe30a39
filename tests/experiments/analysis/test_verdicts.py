"""Verdicts on regrets that were made up so that the answer is known."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from private_bandits.errors import InvalidInput
from private_bandits.experiments.analysis.claims.in_between import in_between_wins
from private_bandits.experiments.analysis.claims.price_vanishes import price_vanishes
from private_bandits.experiments.analysis.claims.tight_wins import tight_wins
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.verdicts import CLAIMS, Verdict, judge
from private_bandits.experiments.run.data import Entry
from tests.experiments.samples import Floats, experiment, finite, frame_of, made_up, placement, tightened

RHOS = (0.01, 0.1, 1.0, 10.0, 1000.0, math.inf)
AT_MARGIN = 0.1 - 1000**-0.5
"""With 1/sqrt(rho) it makes the difference at the largest rho just 10 %: neither within nor beyond."""


def one(claim: str, mean: object, runs: int = 40, spread: float = 0.05, rhos: tuple[float, ...] = RHOS) -> Verdict:
    made = experiment(claims=[claim], rhos=rhos)
    assert callable(mean)
    (verdict,) = judge(made, made_up(made, mean, runs, spread))
    return verdict


def inverse(entry: Entry) -> float:
    """1/sqrt(rho), zero for the twin."""
    return 0.0 if math.isinf(entry.rho) else entry.rho**-0.5


@pytest.mark.parametrize(
    ("mean", "holds", "words"),
    [
        (lambda entry, steps: np.sqrt(steps) * (1 + inverse(entry)), True, "within 10 % of it"),
        (lambda entry, steps: np.sqrt(steps) * (1 + 0.5 * (inverse(entry) > 0)), False, "more than 10 % of it"),
        (lambda entry, steps: np.sqrt(steps) * (1 + (entry.rho == 1.0)), False, "from rho = 0.1 to rho = 1"),
        (lambda entry, steps: np.sqrt(steps) * 1.0, None, "A fall on the way there cannot be seen"),
        (
            lambda entry, steps: np.sqrt(steps) * (1 + inverse(entry) + AT_MARGIN * math.isfinite(entry.rho)),
            None,
            "tell",
        ),
    ],
    ids=["free", "never free", "rises on the way", "no fall", "at the margin"],
)
def test_free_privacy(mean: object, holds: bool | None, words: str) -> None:
    verdict = one("free-privacy", mean)
    assert verdict.holds is holds, verdict.words
    assert words in verdict.words
    assert len(verdict.numbers) == 5
    assert verdict.answer in {"holds", "does not hold", "cannot be told from these runs"}


def test_the_least_margin_is_where_the_test_turns() -> None:
    made = experiment(claims=["free-privacy"], rhos=(1.0, math.inf))
    frame = made_up(made, lambda entry, steps: steps * (1.02 if math.isfinite(entry.rho) else 1.0))
    (verdict,) = judge(made, frame)
    last = Regrets.from_frame(made, frame).difference(*made.entries)[-1]
    base = frame[(frame["rho"] == math.inf) & (frame["step"] == 10_000)]["regret"].mean()
    found = re.search(r"these runs show to hold is ([\d.]+) %", verdict.words)
    assert found
    least = float(found[1]) / 100 * base
    assert last.p_within(0.99 * least) > 0.05 > last.p_within(1.01 * least)


def falling(entry: Entry, steps: Floats) -> Floats:
    """A cost of log(step), beside a regret of sqrt(step)."""
    return np.asarray(np.sqrt(steps) + inverse(entry) * np.log1p(steps))


def rising(entry: Entry, steps: Floats) -> Floats:
    return np.asarray(np.sqrt(steps) * (1 + inverse(entry) * 0.1 * np.log(steps)))


def flat(entry: Entry, steps: Floats) -> Floats:
    return np.asarray(np.sqrt(steps) * (1 + inverse(entry)))


@pytest.mark.parametrize(
    ("mean", "holds", "finding"), [(falling, True, "falling"), (rising, False, "rising"), (flat, None, "unclear")]
)
def test_the_price_vanishes(mean: object, holds: bool | None, finding: str) -> None:
    verdict = one("price-vanishes", mean, spread=0.02)
    assert verdict.holds is holds, verdict.words
    assert verdict.numbers[0]["finding"] == finding
    assert verdict.numbers[-1]["finding"] == "gone"
    assert "1 is gone" in verdict.brief or "gone at" in verdict.brief


def test_a_price_that_is_gone_may_rise() -> None:
    """From 0 to 2 % without any chance: within the margin, so nothing against the claim."""
    tiny = lambda entry, steps: np.sqrt(steps) * (1 + 0.005 * math.isfinite(entry.rho) * np.log10(steps))  # noqa: E731
    assert one("price-vanishes", tiny, spread=0.001).holds is True


def pair(ratio: float, runs: int = 40, seed: int = 0, spread: float = 0.05) -> Verdict:
    """The variant's regret is `ratio` of AdaC-GOPE's at the smallest rho, and the same at the other."""
    made = experiment(claims=["in-between-wins"], policies=["adac-gope", "adac-gope-var"], rhos=(0.01, 1.0))

    def mean(entry: Entry, steps: Floats) -> Floats:
        return steps * (ratio if entry.policy == "adac-gope-var" and entry.rho == 0.01 else 1.0)

    (verdict,) = judge(made, made_up(made, mean, runs, spread, seed))
    return verdict


@pytest.mark.parametrize(
    ("ratio", "holds", "words"),
    [
        (1.1, True, "AdaC-GOPE has less, by"),
        (0.9, False, "AdaC-GOPE has more, by"),
        (1.0, None, "cannot be told apart"),
    ],
)
def test_noise_in_between(ratio: float, holds: bool | None, words: str) -> None:
    verdict = pair(ratio)
    assert verdict.holds is holds
    assert words in verdict.words
    share = verdict.numbers[0]["variant minus AdaC-GOPE"]
    assert isinstance(share, float)
    assert share == pytest.approx(10_000 * (ratio - 1), abs=4 * 10_000 * 0.05 * math.sqrt(2 / 40))


def variants(shares: dict[str, float], runs: int = 40, spread: float = 0.05) -> Verdict:
    """AdaC-IMED's regret is so much of the published one's, by instance."""
    made = tightened(instances=list(shares))

    def mean(entry: Entry, steps: Floats) -> Floats:
        assert entry.instance is not None
        return steps * (shares[entry.instance.name] if entry.policy == "adac-imed" else 1.0)

    (verdict,) = judge(made, made_up(made, mean, runs, spread))
    return verdict


@pytest.mark.parametrize(
    ("shares", "holds", "words"),
    [
        ({"one": 0.7, "two": 0.5}, True, "There is no exception"),
        ({"one": 0.7, "two": 1.2}, False, "It has more at rho = 0.1 on two (lower by -"),
        ({"one": 0.7, "two": 1.0}, None, "no more than 5 % more at rho = 0.1 on two"),
    ],
    ids=["less", "more on one", "equal on one"],
)
def test_tight_wins(shares: dict[str, float], holds: bool | None, words: str) -> None:
    verdict = variants(shares)
    assert verdict.holds is holds, verdict.words
    assert words in verdict.words
    assert verdict.numbers[0]["lower by"] == pytest.approx(0.3, abs=4 * 0.05 * math.sqrt(2 / 40))
    assert len(verdict.numbers) == 3 * len(shares)
    assert verdict.statement == "At equal budget AdaC-IMED has less regret than AdaC-UCB as published."


def test_twins_without_privacy_are_told_of_and_not_judged() -> None:
    made = tightened(instances=["one"])
    shares = {("adac-imed", math.inf): 2.0, ("adac-imed", 0.1): 0.5, ("adac-imed", 1.0): 0.5}
    frame = made_up(made, lambda entry, steps: steps * shares.get((entry.policy, entry.rho), 1.0))
    (verdict,) = judge(made, frame)
    assert verdict.holds is True
    assert re.search(r"Without privacy, where nothing is claimed: -[0-9.]+ %", verdict.words)


def test_a_variant_that_is_hardly_more_is_not_held_against_it() -> None:
    """One per cent more at each budget of one instance: within the margin, but never less there."""
    verdict = variants({"one": 0.7, "two": 1.01}, spread=0.005)
    assert [row["finding"] for row in verdict.numbers] == ["less", "less", "no more", "no more", "less", "no more"]
    assert verdict.holds is None


def test_what_runs_cannot_tell_is_not_said_of_variants() -> None:
    verdict = variants({"one": 0.2, "two": 1.0}, spread=0.4)
    assert [row["finding"] for row in verdict.numbers] == ["less", "less", "unclear", "unclear", "less", "unclear"]
    assert verdict.holds is None
    assert "neither less nor more beyond chance at rho = 0.1 on two" in verdict.words


def test_equal_variants_are_seldom_said_to_be_more() -> None:
    """Four pairs with Holm's: refuted in 5 % of cases at most, up to four standard errors."""
    made, chance, repeats = tightened(instances=["one", "two"]), np.random.default_rng(3), 1_000
    answers = []
    for _ in range(repeats):
        regrets = {entry.label: 100 + 30 * chance.standard_normal((12, 1)) for entry in made.entries}
        answers += [verdict.holds for verdict in tight_wins(Regrets(made, np.array([10]), regrets))]
    assert 0.01 < answers.count(False) / repeats < 0.05 + 4 * math.sqrt(0.05 / repeats)
    assert answers.count(True) / repeats < 0.01


def test_equal_policies_are_seldom_told_apart() -> None:
    """One-sided tests at 5 % of two budgets with Holm's: each wrong side at most 5 %, up to four standard errors."""
    made = experiment(policies=["adac-gope", "adac-gope-var"], rhos=(0.01, 1.0))
    chance, repeats = np.random.default_rng(2), 1_000
    answers = []
    for _ in range(repeats):
        regrets = {entry.label: 100 + chance.standard_normal((12, 1)) for entry in made.entries}
        answers += [verdict.holds for verdict in in_between_wins(Regrets(made, np.array([10]), regrets))]
    for side in (True, False):  # the smallest of two budgets, with Holm's: between 2.5 % and 5 %
        assert 0.025 - 4 * math.sqrt(0.025 / repeats) < answers.count(side) / repeats
        assert answers.count(side) / repeats < 0.05 + 4 * math.sqrt(0.05 / repeats)


@pytest.mark.parametrize("repeats", [150, pytest.param(3_000, marks=pytest.mark.full)])
def test_a_flat_price_is_seldom_said_to_rise(repeats: int) -> None:
    """Three budgets at a price of 50 % for ever: refuted in 5 % of cases at most, up to four standard errors.

    Regrets of a run go up by independent skewed amounts, so that steps are correlated as in real runs.
    """
    made, chance = experiment(rhos=(0.1, 1.0, 10.0, math.inf)), np.random.default_rng(4)
    steps = np.array([100, 300, 1_000, 3_000, 10_000])
    wrong = 0
    for _ in range(repeats):
        regrets = {
            entry.label: (1.5 if math.isfinite(entry.rho) else 1.0) * chance.gamma(3.0, 1.0, (20, 5)).cumsum(axis=1)
            for entry in made.entries
        }
        wrong += sum(verdict.holds is False for verdict in price_vanishes(Regrets(made, steps, regrets)))
    assert wrong / repeats < 0.05 + 4 * math.sqrt(0.05 * 0.95 / repeats)


def test_real_runs_are_judged() -> None:
    made, frame = finite(claims=("free-privacy", "price-vanishes"))
    verdicts = judge(made, frame)
    assert [verdict.claim for verdict in verdicts] == ["free-privacy", "price-vanishes"]
    twin, weak = (
        frame[(frame["rho"] == rho) & (frame["step"] == 10_000)]["regret"].mean() for rho in (math.inf, 100.0)
    )
    assert verdicts[0].numbers[-1]["difference"] == pytest.approx(weak - twin, rel=1e-9)
    assert verdicts[1].numbers[-1]["price at step 10,000"] == pytest.approx(weak / twin - 1, rel=1e-9)
    json.dumps([verdict.to_dict() for verdict in verdicts], allow_nan=False)


def test_few_values_are_told() -> None:
    """In phases regrets take few values: a t test is then an approximation, and the words say so."""
    made = experiment(claims=["in-between-wins"], policies=["adac-gope", "adac-gope-var"], rhos=(0.01,))
    steps = np.array([100, 1_000, 10_000])
    two = np.repeat(np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]]), 10, axis=0)
    regrets = {entry.label: two for entry in made.entries}
    (verdict,) = judge(made, frame_of(made, regrets, steps))
    assert "one of 2 regrets only" in verdict.words
    constant = {entry.label: two[:10] for entry in made.entries}
    (verdict,) = judge(made, frame_of(made, constant, steps))
    assert verdict.holds is None
    assert "with the same regret" in verdict.words


@pytest.mark.parametrize("claim", ["free-privacy", "price-vanishes"])
def test_one_run_decides_nothing(claim: str) -> None:
    verdict = one(claim, falling, runs=1)
    assert verdict.holds is None
    assert "With one run" in verdict.words
    json.dumps(verdict.to_dict(), allow_nan=False)


def test_one_budget_shows_no_fall() -> None:
    verdict = one("free-privacy", falling, rhos=(1000.0, math.inf))
    assert verdict.holds is None
    assert "There is one rho only" in verdict.words


def test_every_policy_with_a_twin_has_its_verdict() -> None:
    made = experiment(claims=["free-privacy"], policies=["adac-ucb", "adap-ucb"])
    verdicts = judge(made, made_up(made, falling))
    assert [verdict.policy for verdict in verdicts] == ["AdaC-UCB", "AdaP-UCB"]


def test_what_cannot_be_judged_is_refused() -> None:
    made, frame = placement(claims=("free-privacy",))
    with pytest.raises(InvalidInput, match="no price of privacy"):
        judge(made, frame)
    with pytest.raises(InvalidInput, match="no claim is called 'magic'"):
        judge(experiment(claims=["magic"]), frame)
    short = experiment(claims=["price-vanishes"], rhos=(1.0, math.inf))
    with pytest.raises(InvalidInput, match="record more checkpoints"):
        judge(short, frame_of(short, {e.label: np.ones((3, 2)) for e in short.entries}, np.array([5, 10_000])))
    assert judge(experiment(), frame) == []
    assert set(CLAIMS) == {"free-privacy", "price-vanishes", "in-between-wins", "tight-wins"}

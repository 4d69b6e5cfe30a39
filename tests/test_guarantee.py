"""The guarantee: the right numbers, and words that say the same."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from statistics import NormalDist

import pytest

from private_bandits.budget import ApproxDP, Budget, NoPrivacy, PureDP, RenyiDP, epsilon_of, zCDP
from private_bandits.guarantee import Guarantee, Unit, guarantee_for

BUDGETS: list[Budget] = [zCDP(0.1), ApproxDP(1.0, 1e-6), RenyiDP(10, 1), PureDP(0.5)]


def guarantee(
    budget: Budget,
    unit: Unit = "reward",
    limit: int | None = None,
    total: float | None = None,
    delta: float = 1e-6,
) -> Guarantee:
    spent = budget.level / 2 if total is None else total
    return guarantee_for(budget, unit, limit, spent, delta, private=True, seeded=False)


# The numbers.


def test_zcdp_is_promised_as_rho_and_as_epsilon_and_delta() -> None:
    made = guarantee(zCDP(0.1), total=0.05)
    assert (made.unit, made.budget, made.private) == ("reward", zCDP(0.1), True)
    assert (made.promised, made.spent, made.delta, made.per_person) == (0.1, 0.05, 1e-6, None)
    assert made.epsilon == pytest.approx(2.1419, abs=5e-5)


def test_approximate_dp_is_promised_at_its_own_delta_and_at_others() -> None:
    budget = ApproxDP(1.0, 1e-6)
    made = guarantee(budget)
    assert made.promised == budget.level
    assert 1.0 - 1e-9 <= made.epsilon <= 1.0
    smaller = guarantee(budget, delta=1e-9)
    assert (smaller.delta, smaller.epsilon) == (1e-9, epsilon_of(budget.level, 1e-9))
    assert smaller.epsilon > 1.0


def test_renyi_dp_is_promised_as_its_rho() -> None:
    made = guarantee(RenyiDP(10, 1))
    assert (made.promised, made.epsilon) == (0.1, epsilon_of(0.1, 1e-6))


def test_pure_dp_is_promised_as_epsilon_without_a_delta() -> None:
    made = guarantee(PureDP(0.5), total=0.25)
    assert (made.promised, made.spent, made.epsilon, made.delta) == (0.5, 0.25, 0.5, 0.0)


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_all_rewards_of_a_person_cost_the_square_of_their_number_and_with_pure_dp_the_number(limit: int) -> None:
    for budget in BUDGETS:
        made = guarantee(budget, limit=limit)
        factor = limit if isinstance(budget, PureDP) else limit**2
        assert made.per_person == pytest.approx(budget.level * factor, rel=1e-15)
        assert (made.promised, made.spent) == (budget.level, budget.level / 2)  # the promise is still per reward


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10, 1000])
def test_a_promise_per_person_is_kept_by_the_share_of_each_reward(limit: int) -> None:
    for budget in BUDGETS:
        made = guarantee(budget, unit="person", limit=limit, total=budget.per_reward(limit).level)
        assert made.unit == "person"
        assert made.promised == made.per_person == budget.level
        assert budget.level * (1 - 1e-15) <= made.spent <= made.promised
        assert made.epsilon == guarantee(budget).epsilon


@pytest.mark.parametrize(
    ("budget", "seeded"), [(NoPrivacy(), False), (NoPrivacy(), True), (zCDP(0.1), True), (PureDP(1.0), True)], ids=str
)
@pytest.mark.parametrize(("limit", "per_person"), [(None, None), (3, math.inf)])
def test_without_secret_noise_nothing_is_promised(
    budget: Budget, seeded: bool, limit: int | None, per_person: float | None
) -> None:
    made = guarantee_for(budget, "reward", limit, 0.01, 1e-6, private=False, seeded=seeded)
    assert (made.private, made.budget) == (False, budget)
    assert (made.promised, made.spent, made.epsilon) == (math.inf, math.inf, math.inf)
    assert made.per_person == per_person


# The words.


def factor_in(made: Guarantee) -> str:
    found = re.search(r"factor of (?:at most )?(exp\([0-9.]+\)|[0-9.e+]*[0-9])", made.words)
    assert found is not None
    return found.group(1)


def test_the_words_for_zcdp() -> None:
    made = guarantee(zCDP(0.1), total=0.05)
    assert str(made) == made.words
    assert made.words.startswith("An attacker ")  # the odds come first
    assert "right at most 59% of the time; a coin is right 50%" in made.words
    assert "spent" not in made.words.lower()
    for part in ("rho-Interactive zCDP with rho = 0.1", "the value of one reward", "for however long", "1e-06"):
        assert part in made.words
    assert factor_in(made) == "8.516"
    assert "person" not in made.words


def test_the_words_for_pure_dp() -> None:
    made = guarantee(PureDP(0.5), total=0.25)
    for part in ("epsilon-Interactive pure DP with epsilon = 0.5", "the value of one reward", "right at most 63%"):
        assert part in made.words
    assert factor_in(made) == "1.649"
    assert "1e-06" not in made.words
    assert "zCDP" not in made.words


@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), RenyiDP(10, 1)], ids=str)
def test_the_words_for_other_gaussian_budgets_name_them_and_their_rho(budget: Budget) -> None:
    made = guarantee(budget, delta=1e-5)
    assert str(budget) in made.words
    assert f"rho-Interactive zCDP with rho = {budget.level:.6g}" in made.words
    assert "1e-05" in made.words
    assert float(factor_in(made)) == pytest.approx(math.exp(epsilon_of(budget.level, 1e-5)), rel=1e-3)


def test_the_words_for_a_person() -> None:
    per_reward = guarantee(zCDP(0.1), limit=3).words
    sides = "one reward 59% (rho = 0.1), all rewards of one person (at most 3) 75% (rho = 0.9)."
    assert sides in per_reward
    assert "the value of one reward" in per_reward
    pure = guarantee(PureDP(0.5), limit=3).words
    assert "(epsilon = 0.5), all rewards of one person (at most 3) 82% (epsilon = 1.5)." in pure
    per_person = guarantee(zCDP(0.1), unit="person", limit=3, total=0.01).words
    assert "guess the value of all rewards of one person (at most 3)" in per_person
    assert "one reward 53% (rho = 0.0111111), all rewards of one person (at most 3) 59% (rho = 0.1)." in per_person


def test_the_odds_are_never_rounded_below_themselves() -> None:
    for rho in (1e-6, 0.001, 0.1, 1.0, 10.0, 30.0, 1e4):
        made = guarantee(zCDP(rho))
        assert made.guessed_right == NormalDist().cdf(math.sqrt(rho / 2))
        stated = re.search(r"right at most ([0-9.]+)%", made.words)
        assert stated is not None
        assert made.guessed_right <= float(stated.group(1)) / 100 <= made.guessed_right + 0.01
    assert guarantee(PureDP(1.0)).guessed_right == pytest.approx(1 / (1 + math.exp(-1)))


def test_people_whose_rewards_are_spread_cost_less() -> None:
    made = guarantee_for(zCDP(0.1), "reward", 3, 0.1, 1e-6, private=True, seeded=False, worth=Fraction(3))
    assert made.per_person == pytest.approx(0.3, rel=1e-15)
    assert made.per_reward == 0.1
    person = guarantee_for(zCDP(0.3), "person", 3, 0.1, 1e-6, private=True, seeded=False, worth=Fraction(3))
    assert person.per_reward == zCDP(0.3).per_reward(3, Fraction(3)).level
    assert (person.per_person, person.spent) == (0.3, 0.3)


def test_the_words_without_privacy_say_why() -> None:
    nothing = guarantee_for(NoPrivacy(), "reward", None, 0.0, 1e-6, private=False, seeded=False)
    assert str(nothing) == "No privacy is promised: this agent adds no noise."
    seeded = guarantee_for(zCDP(0.1), "reward", None, 0.0, 1e-6, private=False, seeded=True)
    assert str(seeded) == (
        "No privacy is promised: the noise comes from a seed, and whoever knows the seed can take it away."
    )


def test_a_factor_too_large_to_read_is_written_as_an_exponential() -> None:
    assert factor_in(guarantee(PureDP(30.0))) == "exp(30)"
    assert factor_in(guarantee(PureDP(1000.0))) == "exp(1000)"


@pytest.mark.parametrize("epsilon", [0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 1.0, 1.7, 2.2, 2.302, 3.3, 5.0, 9.9, 13.8, 20.0])
def test_a_factor_is_never_rounded_below_itself(epsilon: float) -> None:
    stated = float(factor_in(guarantee(PureDP(epsilon))))
    assert math.exp(epsilon) <= stated <= math.exp(epsilon) * 1.001


@pytest.mark.parametrize("epsilon", [20.001, 22.2222, 123.4567, 4321.001])
def test_a_large_factor_is_never_rounded_below_itself(epsilon: float) -> None:
    stated = float(factor_in(guarantee(PureDP(epsilon))).removeprefix("exp(").removesuffix(")"))
    assert epsilon <= stated <= epsilon + 0.0101


# Plain data.


@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.parametrize(
    ("budget", "private"), [*((b, True) for b in BUDGETS), (zCDP(0.1), False), (NoPrivacy(), False)], ids=str
)
def test_a_guarantee_is_strict_json_with_infinity_as_text(budget: Budget, private: bool, limit: int | None) -> None:
    made = guarantee_for(
        budget, "reward", limit, 0.01, 1e-6, private=private, seeded=budget == zCDP(0.1) and not private
    )
    data = json.loads(json.dumps(made.to_dict(), allow_nan=False))
    assert set(data) == {
        "unit",
        "budget",
        "private",
        "promised",
        "spent",
        "epsilon",
        "delta",
        "per_reward",
        "per_person",
        "guessed_right",
        "words",
    }
    assert data["budget"] == str(budget)
    assert (data["unit"], data["private"], data["words"]) == ("reward", private, made.words)
    for name in ("promised", "spent", "epsilon"):
        assert data[name] == (getattr(made, name) if private else "inf")
    assert data["per_person"] == (None if limit is None else made.per_person if private else "inf")

"""The worst case can be followed by hand: played out again, it gives the numbers back."""

from __future__ import annotations

import math

import pytest

from private_bandits.definitions import (
    SmallPolicy,
    WorstCase,
    adaptive_gap,
    analyse,
    as_json,
    as_text,
    counterexample,
    distribution,
    in_words,
)
from tests.definitions import oracle

PLAIN = ("view", "table", "interactive-view", "interactive", "adaptive")


def both_worlds(policy: SmallPolicy, case: WorstCase) -> oracle.Pair:
    """Plays the case out with `distribution`, which knows nothing of the engine; keeps the observed steps."""
    return _world(policy, case, 0), _world(policy, case, 1)


def _world(policy: SmallPolicy, case: WorstCase, world: int) -> oracle.Distribution:
    b = case.adversary
    if case.tables is None:

        def answer(seen: tuple[int, ...]) -> tuple[int, float]:
            assert b is not None
            move = b.move(seen)
            return move.arm, move.rewards[world] if move.rewards else policy.rewards[0]

        full = distribution(policy, "adaptive", adversary=answer)
    else:
        table = case.tables[world]
        rows = [row[0] for row in table] if case.model.rows == "constant" else table
        full = distribution(policy, case.model.name, rows, b)
    return oracle.marginal(full, [step - 1 for step in case.observed])


@pytest.mark.parametrize("model", PLAIN)
@pytest.mark.parametrize("seed", range(4))
def test_played_out_again_it_gives_the_numbers(model: str, seed: int) -> None:
    policy = oracle.random_policy(seed, arms=2 + seed % 2, horizon=3, zeros=0.25 * (seed == 3))
    result = analyse(policy, [model], epsilon=0.4, delta=0.05).results[model]
    for quantity in ("delta", "epsilon", "rho"):
        case = result.worst[quantity]
        p, q = both_worlds(policy, case)
        assert 1 <= case.step < policy.horizon
        if case.tables is not None:
            assert sum(x != y for x, y in zip(*case.tables, strict=True)) == 1
        assert math.fsum(p[seen.actions] for seen in case.event) == pytest.approx(case.p, abs=1e-13)
        assert math.fsum(q[seen.actions] for seen in case.event) == pytest.approx(case.q, abs=1e-13)
        if quantity == "delta":
            assert case.p - math.exp(0.4) * case.q == pytest.approx(result.delta, abs=1e-13)
        elif quantity == "epsilon" and result.epsilon < math.inf:
            assert case.p - math.exp(result.epsilon) * case.q == pytest.approx(0.05, abs=1e-12)
        elif quantity == "rho" and result.rho.low < math.inf:
            assert case.alpha is not None
            reached = oracle.renyi((p, q), case.alpha) / case.alpha
            assert result.rho.low <= reached * (1 + 2e-9) <= result.rho.high * (1 + 4e-9)
        elif quantity != "delta":
            assert case.q == 0 < case.p


def test_the_adversary_answers_only_what_can_happen() -> None:
    def rule(history: tuple[tuple[int, float], ...]) -> tuple[float, float]:
        return (1.0, 0.0) if len(history) == 1 else ((0.5, 0.5) if not history or history[0][1] else (0.2, 0.8))

    policy = SmallPolicy.from_callable(rule, arms=2, horizon=3)
    case = analyse(policy, ["interactive"], epsilon=0.1).results["interactive"].worst["delta"]
    assert case.adversary is not None
    assert set(case.adversary.answers) == {(0,)}  # arm 1 is never recommended at step 2
    assert case.adversary((0, 1)) == 1  # where nothing matters, the recommended arm


def test_pure_dp_names_the_sequence_with_the_largest_ratio() -> None:
    policy = oracle.random_policy(2)
    result = analyse(policy, ["table"], delta=0).results["table"]
    top = result.worst["epsilon"].event[0]
    assert math.log(top.p / top.q) == pytest.approx(result.epsilon)


def test_the_words_of_the_adaptive_gap() -> None:
    text = as_text(analyse(adaptive_gap(), ["interactive", "adaptive"], epsilon=0))
    assert "Step 2: having seen arm 0, the adversary plays arm 0 with reward 1." in text
    assert "Step 2: having seen arm 1, the adversary plays arm 0 with reward 0." in text
    assert "0.81 - e^0 x 0.19 = 0.62." in text


def test_the_words_of_every_model_and_quantity() -> None:
    for policy, contexts in ((counterexample(), False), (oracle.random_policy(1, horizon=3, contexts=2), True)):
        analysis = analyse(policy, epsilon=0.2, delta=0.01)
        for result in analysis.results.values():
            for quantity, case in result.worst.items():
                text = in_words(policy, case)
                assert text.startswith(f"{result.model.name}, {quantity}: patient {case.step} differs.")
                assert ("context" in text) == contexts
        assert as_json(analysis)["results"][0]["worst"]["delta"]["text"]


def test_many_answers_and_sequences_are_cut_with_a_word() -> None:
    text = as_text(analyse(oracle.random_policy(0, horizon=6), ["interactive"], epsilon=0.0), "rho")
    case = analyse(oracle.random_policy(0, horizon=6), ["table"], epsilon=0.0)
    assert "more" in as_text(case)
    assert text


def test_nothing_to_tell() -> None:
    same = SmallPolicy.from_callable(lambda history: (0.5, 0.5), arms=2, horizon=3)
    assert "Nothing that is seen tells the two worlds apart" in as_text(analyse(same))
    short = SmallPolicy.from_callable(lambda history: (0.5, 0.5), arms=2, horizon=1)
    assert "no two worlds differ" in as_text(analyse(short))

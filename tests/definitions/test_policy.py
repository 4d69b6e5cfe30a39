"""Small policies: files, callables, and every way to get one wrong."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from private_bandits.definitions import (
    Histories,
    InvalidPolicy,
    PolicyFileMissing,
    SmallPolicy,
    TooLarge,
    analyse,
    cost,
    counterexample,
    delta_at,
    distribution,
    epsilon_at,
    from_json,
    load,
    rho_of,
    to_dict,
)
from private_bandits.definitions.models import MODELS
from private_bandits.errors import InvalidInput
from tests.definitions import oracle


def tiny(**changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        "arms": 2,
        "rewards": [0, 1],
        "horizon": 2,
        "policy": [
            {"history": [], "probabilities": ["1/2", 0.5]},
            *({"history": [[a, r]], "probabilities": ["1/3", "2/3"]} for a in (0, 1) for r in (0, 1)),
        ],
    }
    return {**data, **changes}


def with_row(number: int, **changes: Any) -> dict[str, Any]:
    data = tiny()
    data["policy"][number] = {**data["policy"][number], **changes}
    return data


def test_the_order_of_histories_is_that_of_the_paper() -> None:
    policy = counterexample()
    assert policy.row([(1, 0)]) == (0.25, 0.75)  # its Example 1
    assert policy.row([(0, 1), (1, 1)]) == (0.0, 1.0)  # its Example 2
    assert policy.space.index([(1, 0)]) == 2
    assert policy.space.index([(0, 1), (1, 1)]) == 7
    assert [policy.space.index(h, c) for h, c in policy.space.each(2)] == list(range(16))
    contextual = Histories.of(arms=2, rewards=[5, 7, 9], horizon=3, contexts=2)
    assert [contextual.index(h, c) for h, c in contextual.each(1)] == list(range(24))
    assert contextual.index([(1, 0, 7)], 1) == ((1 * 2 + 0) * 3 + 1) * 2 + 1


@pytest.mark.parametrize("contexts", [0, 2])
def test_written_and_read_back(contexts: int, tmp_path: Path) -> None:
    policy = oracle.random_policy(3, arms=3, rewards=2, contexts=contexts, zeros=0.2)
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(to_dict(policy)))
    again = load(path)
    assert again.space == policy.space
    for ours, theirs in zip(policy.probabilities, again.probabilities, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_callable_gives_the_numbers_of_the_file() -> None:
    written = counterexample()
    called = SmallPolicy.from_callable(written.row, arms=2, horizon=3, rewards=[0, 1])
    for model in ("view", "table", "interactive", "adaptive"):
        assert delta_at(called, model, 0.95) == delta_at(written, model, 0.95)
        assert epsilon_at(called, model, 0.17) == epsilon_at(written, model, 0.17)


def test_names_and_numbers_mean_the_same() -> None:
    named = tiny(arms=["drug", "placebo"])
    for row in named["policy"]:
        row["history"] = [[["drug", "placebo"][arm], reward] for arm, reward in row["history"]]
    assert from_json(named).arms == ("drug", "placebo")
    assert from_json(named).row([(1, 0)]) == from_json(tiny()).row([(1, 0)])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ([], "must be a JSON object"),
        ({"arms": 2}, "needs the key 'horizon'"),
        (tiny(colour="red"), "unknown key 'colour': it may have arms"),
        (tiny(name=3), "name must be a text, got 3"),
        (tiny(name=None), "name must be a text, got None"),
        (tiny(arms=0), "arms must be a number from 1"),
        (tiny(arms="two"), "arms must be a number or a list of names"),
        (tiny(arms=["a", "a"]), "different names"),
        (tiny(arms=True), "arms must be"),
        (tiny(contexts=-1), "contexts must be a number from 0"),
        (tiny(rewards=[]), "rewards must be a list of finite numbers, got []"),
        (tiny(rewards=[0, 0]), "rewards must be different numbers, got [0.0, 0.0]"),
        (tiny(rewards=[0, float("inf")]), "finite"),
        (tiny(rewards=["0"]), "rewards must be a list of finite numbers"),
        (tiny(rewards=3), "rewards must be a list"),
        (tiny(horizon=0), "horizon must be a whole number of steps, at least 1, got 0"),
        (tiny(horizon=2.5), "horizon must be a whole number"),
        (tiny(policy={}), "policy must be a list of rows"),
        (tiny(policy=[3]), "a row of the policy must be an object"),
        (with_row(0, weight=1), "unknown key 'weight'"),
        (with_row(0, context=1), "unknown key 'context'"),
        (tiny(policy=[{"history": []}]), "needs the key 'probabilities'"),
        (with_row(0, probabilities=0.5), "must be a list, got 0.5"),
        (with_row(0, probabilities=[0.5]), "must be 2 numbers, one for each arm, got 1"),
        (with_row(0, probabilities=[0.5, 0.6]), "must sum to one within 1e-09, got [0.5, 0.6]"),
        (with_row(0, probabilities=[0.5, 0.5 + 2e-9]), "must sum to one"),
        (with_row(0, probabilities=[-0.5, 1.5]), "must be finite and not negative, got [-0.5, 1.5]"),
        (with_row(0, probabilities=[float("nan"), 1]), "must be finite and not negative"),
        (with_row(0, probabilities=["1/0", 1]), "such as 0.5 or"),
        (with_row(0, probabilities=["half", "half"]), "got 'half'"),
        (with_row(0, probabilities=["1e999999999", 0]), "must be finite"),
        (with_row(0, probabilities=[10**400, 0]), "must be a number such as"),
        (tiny(rewards=[0, 10**400]), "rewards must be a list of finite numbers"),
        (with_row(0, probabilities=[None, 1]), "must be a number or a fraction in quotes, got None"),
        (with_row(0, probabilities=[True, 0]), "must be a number or a fraction in quotes, got True"),
        (with_row(1, history=[[0, 0.5]]), "the reward 0.5 in [[0, 0.5]] must be one of [0.0, 1.0]"),
        (with_row(1, history=[[0, True]]), "the reward True"),
        (with_row(1, history=[[2, 0]]), "the arm 2 in [[2, 0]]"),
        (with_row(1, history=[["c", 0]]), "the arm 'c'"),
        (with_row(1, history=[[0, 0], [0, 0]]), "is too long: 1 steps come before the last"),
        (with_row(1, history=[0]), "a history must be a list of [arm, reward]"),
        (with_row(1, history=[[1, 1]]), "the history [[1, 1.0]] has two rows"),
        (tiny(policy=tiny()["policy"][:3]), "2 histories have no probabilities, such as the history [[1, 0.0]]; the"),
        (tiny(contexts=2), "needs the key 'context'"),
    ],
)
def test_a_bad_file_is_told_what_and_where(data: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(text)):
        from_json(data)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileMissing, match="does not exist"):
        load(tmp_path / "nowhere.json")
    with pytest.raises(InvalidPolicy, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(InvalidPolicy, match="is not JSON"):
        load(tmp_path / "bad.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidPolicy, match="cannot be read"):
        load(tmp_path / "binary.json")


def test_bad_arrays_and_callables() -> None:
    space = Histories.of(2, [0, 1], 1)
    with pytest.raises(InvalidPolicy, match="must hold 1 arrays, got 0"):
        SmallPolicy("", space, ())
    with pytest.raises(InvalidPolicy, match=re.escape("must have shape (1, 2), got (2, 2)")):
        SmallPolicy("", space, (np.full((2, 2), 0.5),))
    with pytest.raises(InvalidPolicy, match="row 0 of step 1 must be finite"):
        SmallPolicy("", space, (np.array([[np.nan, 1.0]]),))
    with pytest.raises(InvalidPolicy, match="must be 2 numbers, got None"):
        SmallPolicy.from_callable(lambda history: None, arms=2, horizon=1)  # type: ignore[arg-type, return-value]
    with pytest.raises(InvalidPolicy, match="rewards must be a list of finite numbers"):
        SmallPolicy.from_callable(lambda history: (1,), arms=1, horizon=1, rewards=["a"])  # type: ignore[list-item]


def test_a_rule_that_fails_is_told_where() -> None:
    def fails(history: Any) -> Any:
        if history:
            raise KeyError("two\nlines")
        return 0.5, 0.5

    with pytest.raises(InvalidPolicy, match=re.escape("failed for the history [[0, 0]]: KeyError: 'two\\nlines'")):
        SmallPolicy.from_callable(fails, arms=2, horizon=2)
    with pytest.raises(InvalidPolicy, match=r"failed for the history \[\] with context 0: TypeError: .* 1 positional"):
        SmallPolicy.from_callable(lambda history: (0.5, 0.5), arms=2, horizon=2, contexts=2)
    with pytest.raises(InvalidPolicy, match=r"the rule failed for the history \[\]: TypeError: .*'context'"):
        SmallPolicy.from_callable(lambda history, context: (0.5, 0.5), arms=2, horizon=2)


def test_whole_rewards_can_be_looked_up() -> None:
    table = ((0.2, 0.8), (0.6, 0.4), (0.5, 0.5))
    rule = lambda history: table[history[0][1]] if history else (0.5, 0.5)  # noqa: E731
    policy = SmallPolicy.from_callable(rule, arms=2, horizon=2, rewards=[0.0, np.float64(1), 2])
    assert policy.row([(1, 1.0)]) == (0.6, 0.4)
    seen: list[Any] = []

    def listening(history: Any) -> list[float]:
        seen.extend(history)
        return [1.0]

    SmallPolicy.from_callable(listening, arms=1, horizon=2, rewards=[0.5, 1.0])
    assert [type(reward) for _, reward in seen] == [float, int]


def test_one_name_is_a_list_of_one() -> None:
    assert list(analyse(counterexample(), "view").results) == ["view"]


def test_levels_that_make_no_sense() -> None:
    policy = counterexample()
    wrong: Any
    for wrong in ("0.1", None, True, [0.1]):
        with pytest.raises(InvalidInput, match="epsilon must be at least 0"):
            delta_at(policy, "view", wrong)
        with pytest.raises(InvalidInput, match="delta must be at least 0 and below 1"):
            analyse(policy, delta=wrong)
        with pytest.raises(InvalidInput, match="tolerance must lie between"):
            rho_of(policy, "view", wrong)
        with pytest.raises(InvalidInput, match="model must be one of view, table"):
            delta_at(policy, wrong, 1.0)
        with pytest.raises(InvalidInput, match="observer must be later or others"):
            delta_at(policy, "view", 1.0, wrong)
        with pytest.raises(InvalidInput, match="model must be one of view, table"):
            analyse(policy, [wrong])
    with pytest.raises(InvalidInput, match="models must be a name or a list of names, got 3"):
        analyse(policy, 3)  # type: ignore[arg-type]
    for epsilon in (-0.1, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="epsilon must be at least 0"):
            delta_at(policy, "view", epsilon)
    for delta in (-0.1, 1.0, float("nan")):
        with pytest.raises(InvalidInput, match="delta must be at least 0 and below 1"):
            epsilon_at(policy, "view", delta)
    with pytest.raises(InvalidInput, match="tolerance"):
        rho_of(policy, "view", 0.0)
    with pytest.raises(InvalidInput, match="model must be one of view, table"):
        delta_at(policy, "vew", 1.0)
    with pytest.raises(InvalidInput, match="models must be different"):
        analyse(policy, ["view", "view"])


def test_worlds_that_make_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = counterexample()
    with pytest.raises(InvalidInput, match="must have 3 rows"):
        distribution(policy, "view", [0, 1])
    with pytest.raises(InvalidInput, match=re.escape("2 of the rewards [0.0, 1.0]")):
        distribution(policy, "table", [(0, 1), (0, 2), (0, 0)])
    with pytest.raises(InvalidInput, match="leave the adversary out"):
        distribution(policy, "view", [0, 1, 1], lambda seen: 0)
    with pytest.raises(InvalidInput, match="takes no table"):
        distribution(policy, "adaptive", [0, 1, 1])
    with pytest.raises(InvalidInput, match="contexts must be 2 numbers"):
        distribution(oracle.random_policy(0, horizon=2, contexts=2), "view", [0, 1])
    monkeypatch.setattr("private_bandits.definitions.reductions.MOST_SEQUENCES", 7)
    with pytest.raises(TooLarge, match="sequences are too many"):
        distribution(policy, "view", [0, 1, 1])


def test_a_policy_that_is_too_large_is_refused_at_once() -> None:
    began = time.process_time()
    with pytest.raises(TooLarge, match=r"have 5,592,405 histories in 12 of 40 steps .* a horizon of at most 11"):
        SmallPolicy.from_callable(lambda history: (0.5, 0.5), arms=2, horizon=40)
    with pytest.raises(TooLarge, match="fewer contexts or arms"):
        Histories.of(arms=10_000, rewards=[0, 1], horizon=1, contexts=10_000)
    with pytest.raises(TooLarge, match="a horizon of at most 1"):
        Histories.of(arms=5_000, rewards=[0, 1], horizon=2)
    with pytest.raises(InvalidPolicy, match="arms must be a number from 1 to 10000"):
        Histories.of(arms=10**12, rewards=[0, 1], horizon=2)
    with pytest.raises(TooLarge):
        from_json(tiny(horizon=10**9))
    assert time.process_time() - began < 10


def test_a_question_that_is_too_large_is_refused_at_once() -> None:
    policy = SmallPolicy.from_callable(lambda history: (0.5, 0.5), arms=2, horizon=9)
    began = time.process_time()
    with pytest.raises(TooLarge, match=r"pairs of neighbours .* leaves, .* in all: about .* A horizon of 8 fits"):
        delta_at(policy, "interactive", 1.0)
    with pytest.raises(TooLarge, match="adaptive model fits as it is, and bounds this one from above"):
        analyse(policy, ["interactive"])
    many = SmallPolicy.from_callable(lambda history: [0.01] * 100, arms=100, horizon=3)
    with pytest.raises(TooLarge, match="Take fewer arms"):
        delta_at(many, "table", 1.0)
    wide = SmallPolicy.from_callable(lambda history: [1 / 2000] * 2000, arms=2000, horizon=2)
    with pytest.raises(TooLarge, match=re.escape("has 10^1204 pairs of neighbours")):
        delta_at(wide, "table", 1.0)
    assert time.process_time() - began < 60  # most of it is making the policies


def test_the_cost_is_counted_right() -> None:
    space = Histories.of(2, [0, 1], 5)
    assert cost(space, MODELS["view"]).pairs == 4 * 2**3 * 2
    assert cost(space, MODELS["table"]).pairs == 4 * 4**3 * 12
    assert cost(space, MODELS["interactive"]).pairs == sum(4**s * 4 * 4 ** (3 - s) for s in range(4))
    assert cost(space, MODELS["adaptive"]).cells == sum(4 ** (s + 1) * 2 * 8 ** (3 - s) for s in range(4))

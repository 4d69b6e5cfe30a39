"""The agent's interface: what it does, what it refuses, and that a refusal changes nothing."""

from __future__ import annotations

import math
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import (
    AgentClosed,
    CapacityExceeded,
    ClosedDecision,
    InvalidInput,
    PrivateBanditsError,
    UnknownDecision,
    UnsupportedBudget,
)
from tests.support import EVERY_POLICY, OTHER_VARIANTS, offered, policy_id


def new_agent(arms: int = 3, budget: Any = None, **options: Any) -> pb.Agent:
    return pb.Agent(pb.AdaCUCB(arms, budget or pb.zCDP(1.0)), **options)


def everything(agent: pb.Agent) -> tuple[Any, ...]:
    """All state, public and private, as plain data."""
    public = bandit_of(agent).public
    return (
        public.asked,
        agent.open_decisions,
        list(public.waiting),
        agent.policy.dump_state(public.policy),
        {key: episode.dump() for key, episode in bandit_of(agent).private.episodes.items()},
        agent.ledger.rows,
    )


# Asking.


def test_first_pulls_may_all_be_open_together_and_more_spread_out() -> None:
    agent = new_agent(arms=5)
    assert [d.action for d in agent.ask(5)] == [0, 1, 2, 3, 4]
    assert Counter(d.action for d in agent.ask(10)) == dict.fromkeys(range(5), 2)


def test_beyond_the_plan_asks_get_the_current_public_choice() -> None:
    agent = new_agent(arms=3, budget=pb.NoPrivacy())
    for decision, reward in zip(agent.ask(3), (0.0, 1.0, 0.0), strict=True):
        agent.tell(decision, reward)
    assert {d.action for d in agent.ask(20)} == {1}


def test_a_late_first_pull_does_not_hold_up_the_others() -> None:
    agent = new_agent(arms=3, budget=pb.NoPrivacy())
    first = agent.ask(3)
    agent.tell(first[0], 0.0)
    agent.tell(first[1], 1.0)
    assert {d.action for d in agent.ask(5)} == {1}
    agent.give_up(first[2])
    assert agent.ask().action == 2


def test_an_arm_whose_first_reward_never_comes_is_tried_again() -> None:
    """Nobody gives the first decision up, and its arm is the best: it is not lost for ever."""
    agent = new_agent(arms=3, budget=pb.NoPrivacy())
    agent.ask()
    actions = []
    for _ in range(2000):
        decision = agent.ask()
        actions.append(decision.action)
        agent.tell(decision, (0.9, 0.3, 0.1)[decision.action])
    assert 0 not in actions[:100]
    assert actions[-100:] == [0] * 100


def test_the_papers_doubling_with_every_reward_in_time() -> None:
    agent = new_agent(arms=2, budget=pb.NoPrivacy())
    for _ in range(5000):
        decision = agent.ask()
        agent.tell(decision, float(decision.action))
    for arm in (0, 1):
        counts = [row.count for row in agent.ledger if row.key == arm]
        assert counts == [1] + [2**i for i in range(len(counts) - 1)]


def test_ids_are_texts_that_no_other_agent_knows() -> None:
    one, other = new_agent(), new_agent()
    decision = one.ask()
    other.ask()
    assert isinstance(decision.id, str)
    with pytest.raises(UnknownDecision, match="not handed out by this agent"):
        other.tell(decision, 1.0)
    one.tell(decision.id, 1.0)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3"])
def test_bad_numbers_of_asks_are_named(n: Any) -> None:
    agent = new_agent()
    before = everything(agent)
    with pytest.raises(InvalidInput, match="n must be a whole number"):
        agent.ask(n)
    assert everything(agent) == before


# Telling.


def test_played_counts_for_the_action_played() -> None:
    agent = new_agent(arms=3, budget=pb.NoPrivacy())
    agent.tell(agent.ask(), 0.25, played=2)
    assert [(row.key, row.values) for row in agent.ledger] == [(2, (0.25,))]
    named = pb.Agent(pb.AdaCUCB(arms=["A", "B"], budget=pb.NoPrivacy()))
    named.tell(named.ask(), 0.5, played="B")
    assert named.ledger[0].key == 1


def test_rewards_come_in_any_order() -> None:
    agent = new_agent(arms=2, budget=pb.NoPrivacy())
    decisions = agent.ask(40)
    agent.tell_many([(d, 0.5) for d in reversed(decisions)])
    assert (
        sum(row.count for row in agent.ledger) + sum(e.count for e in bandit_of(agent).private.episodes.values()) == 40
    )
    assert not agent.open_decisions


BAD_TELLS: dict[str, tuple[Callable[[Any, Any, Any], Any], type[PrivateBanditsError]]] = {
    "told twice": (lambda agent, opened, closed: agent.tell(closed, 1.0), ClosedDecision),
    "told twice, other value": (lambda agent, opened, closed: agent.tell(closed, 0.0), ClosedDecision),
    "told twice, not a number": (lambda agent, opened, closed: agent.tell(closed, math.nan), ClosedDecision),
    "given up twice": (lambda agent, opened, closed: agent.give_up(closed), ClosedDecision),
    "unknown": (lambda agent, opened, closed: agent.tell("nonsense", 1.0), UnknownDecision),
    "never asked": (lambda agent, opened, closed: agent.tell(opened.id + "9", 1.0), UnknownDecision),
    "number zero": (lambda agent, opened, closed: agent.tell(opened.id.rsplit("-", 1)[0] + "-0", 1.0), UnknownDecision),
    "not a decision": (lambda agent, opened, closed: agent.tell(17, 1.0), UnknownDecision),
    "none": (lambda agent, opened, closed: agent.tell(None, 1.0), UnknownDecision),
    "list": (lambda agent, opened, closed: agent.tell([opened.id], 1.0), UnknownDecision),
    "NaN": (lambda agent, opened, closed: agent.tell(opened, math.nan), InvalidInput),
    "numpy NaN": (lambda agent, opened, closed: agent.tell(opened, np.float32("nan")), InvalidInput),
    "infinite": (lambda agent, opened, closed: agent.tell(opened, math.inf), InvalidInput),
    "minus infinite": (lambda agent, opened, closed: agent.tell(opened, -math.inf), InvalidInput),
    "text": (lambda agent, opened, closed: agent.tell(opened, "1.0"), InvalidInput),
    "nothing": (lambda agent, opened, closed: agent.tell(opened, None), InvalidInput),
    "complex": (lambda agent, opened, closed: agent.tell(opened, 1j), InvalidInput),
    "array": (lambda agent, opened, closed: agent.tell(opened, np.array([1.0])), InvalidInput),
    "arm too large": (lambda agent, opened, closed: agent.tell(opened, 1.0, played=3), InvalidInput),
    "arm negative": (lambda agent, opened, closed: agent.tell(opened, 1.0, played=-1), InvalidInput),
    "arm a fraction": (lambda agent, opened, closed: agent.tell(opened, 1.0, played=1.0), InvalidInput),
    "arm a truth value": (lambda agent, opened, closed: agent.tell(opened, 1.0, played=True), InvalidInput),
    "arm unknown": (lambda agent, opened, closed: agent.tell(opened, 1.0, played="Z"), InvalidInput),
    "batch with a bad reward": (
        lambda agent, opened, closed: agent.tell_many([(opened, 1.0), (agent.open_decisions[1], math.nan)]),
        InvalidInput,
    ),
    "batch with a decision twice": (
        lambda agent, opened, closed: agent.tell_many([(opened, 1.0), (opened.id, 1.0)]),
        ClosedDecision,
    ),
    "batch with a closed decision": (
        lambda agent, opened, closed: agent.tell_many([(opened, 1.0), (closed, 1.0)]),
        ClosedDecision,
    ),
    "batch of decisions": (lambda agent, opened, closed: agent.tell_many([opened]), InvalidInput),
    "batch of numbers": (lambda agent, opened, closed: agent.tell_many([1, 2]), InvalidInput),
}


@pytest.mark.parametrize("case", BAD_TELLS)
@pytest.mark.parametrize("durable", [False, True])
def test_a_bad_tell_is_a_clear_error_that_knows_no_value_and_changes_nothing(
    case: str, durable: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, kind = BAD_TELLS[case]
    monkeypatch.setattr("private_bandits.state.secrets.token_hex", lambda size: "ab" * size)  # the same ids in all
    texts = set()
    for stored in (0.0, 1.0, 0.731):
        agent = new_agent(path=tmp_path / f"{stored}.db" if durable else None)
        decisions = agent.ask(8)
        agent.tell_many([(d, stored) for d in decisions[:6]])
        before = everything(agent)
        with pytest.raises(kind) as refused:
            call(agent, decisions[6], decisions[0])
        assert everything(agent) == before
        assert len(str(refused.value)) > 20
        texts.add(str(refused.value))
        agent.tell(decisions[6], stored)  # it goes on
        agent.close()
    assert len(texts) == 1, "the text depends on what is stored"


def test_a_refused_reward_is_not_in_the_text() -> None:
    agent = new_agent()
    with pytest.raises(InvalidInput) as refused:
        agent.tell(agent.ask(), "cured of syphilis")  # type: ignore[arg-type]
    assert "syphilis" not in str(refused.value)


@pytest.mark.parametrize(
    ("reward", "counted"),
    [
        *((7.0, 1.0), (-3.0, 0.0), (10**400, 1.0), (-(10**400), 0.0), (True, 1.0), (np.bool_(True), 1.0)),
        *((np.int8(1), 1.0), (np.float32(0.5), 0.5), (Fraction(1, 4), 0.25), (1e308, 1.0), (5e-324, 0.0)),
    ],
)
def test_finite_rewards_of_any_type_are_taken_and_clipped(reward: Any, counted: float) -> None:
    agent = new_agent(budget=pb.NoPrivacy())
    agent.tell(agent.ask(), reward)
    assert agent.ledger[0].values == (counted,)


def test_clipping_leaves_no_trace(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    shown = []
    for reward in (1.0, 50.0):
        agent = new_agent(seed=1)
        for _ in range(50):
            agent.tell(agent.ask(), reward)
        shown.append((agent.ledger.rows, agent.estimates(), str(agent.guarantee())))
    assert shown[0] == shown[1]
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("bounds", [(0, 1e100), (-1e-100, 1e-100), (1e15, 1e15 + 1), (-5, 3)])
def test_other_ranges(bounds: tuple[float, float]) -> None:
    agent = new_agent(budget=pb.NoPrivacy(), reward_range=bounds)
    middle = bounds[0] + (bounds[1] - bounds[0]) / 4
    agent.tell(agent.ask(), middle)
    assert agent.ledger[0].values[0] == pytest.approx(middle, abs=(bounds[1] - bounds[0]) / 2**24)


@pytest.mark.parametrize(
    "bounds",
    [(1, 0), (1, 1), (0, math.inf), (math.nan, 1), (-1e308, 1e308), (0, 1e-310), (0,), "01", None, (0, 10**400)],
)
def test_bad_ranges_are_named(bounds: Any) -> None:
    with pytest.raises(InvalidInput, match="reward_range"):
        new_agent(reward_range=bounds)


def test_sums_near_the_limit_of_64_bits_are_refused_on_public_grounds() -> None:
    texts = set()
    for reward in (0.0, 1.0):
        agent = new_agent(arms=1)
        for _ in range(5):
            agent.tell(agent.ask(), 0.0)
        episode = bandit_of(agent).private.episodes[0]
        bandit_of(agent).public.policy.released[0] = 10**15  # as after a very long life
        episode.count = bandit_of(agent).door.grid.capacity // bandit_of(agent).door.grid.steps - 1
        agent.tell(agent.ask(), reward)
        before, decision = everything(agent), agent.ask()
        with pytest.raises(CapacityExceeded, match="64 bits") as refused:
            agent.tell(decision, reward)
        agent.give_up(decision)
        assert everything(agent)[2:] == before[2:]
        texts.add(str(refused.value))
    assert len(texts) == 1


def test_budgets_whose_noise_does_not_fit_are_refused() -> None:
    for rho in (1e-6, 1e-20, 1e-30):
        agent = new_agent(budget=pb.zCDP(rho))
        agent.tell(agent.ask(), 1.0)
        assert agent.ledger.total <= rho
    with pytest.raises(InvalidInput, match="64 bits"):
        new_agent(budget=pb.zCDP(1e-40))


# Giving up.


def test_given_up_after_a_number_of_later_decisions() -> None:
    agent = new_agent(give_up_after=3)
    decisions = [agent.ask() for _ in range(3)]
    assert agent.open_decisions == decisions
    agent.ask()
    with pytest.raises(ClosedDecision):
        agent.tell(decisions[0], 1.0)
    agent.tell(decisions[1], 1.0)
    agent.ask(100)
    assert len(agent.open_decisions) == 3


def test_only_open_decisions_are_kept() -> None:
    agent = new_agent(give_up_after=50)
    for _ in range(2000):
        agent.tell(agent.ask(), 1.0)
    assert not agent.open_decisions


# People.


def test_later_rewards_of_a_person_count_as_given_up() -> None:
    agent = new_agent(arms=1, budget=pb.NoPrivacy(), max_rewards_per_person=2)
    decisions = [agent.ask(person="ann") for _ in range(4)] + [agent.ask(person="bob")]
    agent.tell_many([(d, 1.0) for d in decisions])
    assert sum(row.count for row in agent.ledger) + bandit_of(agent).private.episodes[0].count == 3
    assert not agent.open_decisions


def test_the_promise_per_person() -> None:
    per_reward = new_agent(max_rewards_per_person=3).guarantee()
    assert (per_reward.promised, per_reward.per_person, per_reward.unit) == (1.0, 9.0, "reward")
    agent = new_agent(max_rewards_per_person=3, unit="person")
    for i in range(30):
        agent.tell(agent.ask(person=str(i)), 1.0)
    guarantee = agent.guarantee()
    assert guarantee.promised == guarantee.per_person == 1.0
    assert 0.999 < guarantee.spent <= 1.0
    assert agent.ledger.total <= 1 / 9
    assert agent.ledger[0].noise_sd == pytest.approx(3 * new_noise_sd())


def new_noise_sd() -> float:
    agent = new_agent()
    agent.tell(agent.ask(), 1.0)
    return agent.ledger[0].noise_sd


def test_the_promise_per_person_of_other_budgets() -> None:
    approx = pb.ApproxDP(1.0, 1e-6)
    agent = new_agent(budget=approx, max_rewards_per_person=2)
    guarantee = agent.guarantee(delta=1e-6)
    assert guarantee.epsilon <= 1.0
    assert guarantee.per_person == pytest.approx(4 * approx.level)  # converted from rho m^2, never scaled
    pure = pb.Agent(pb.AdaPUCB(2, pb.PureDP(1.0)), max_rewards_per_person=4, unit="person")
    pure.tell(pure.ask(person="x"), 1.0)
    assert pure.ledger.total <= 0.25
    assert pure.guarantee().spent <= 1.0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"unit": "person"}, "max_rewards_per_person"),
        ({"unit": "click"}, "unit"),
        ({"max_rewards_per_person": 0}, "max_rewards_per_person"),
        ({"max_rewards_per_person": 1.5}, "max_rewards_per_person"),
        ({"seed": -1}, "seed"),
        ({"seed": "x"}, "seed"),
        ({"give_up_after": 0}, "give_up_after"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        new_agent(**options)


def test_a_limit_per_person_needs_the_person() -> None:
    agent = new_agent(max_rewards_per_person=1)
    for person in (None, "", 5):
        with pytest.raises(InvalidInput, match="person"):
            agent.ask(person=person)  # type: ignore[arg-type]


# Policies.


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"n_arms": 0}, "n_arms"),
        ({"n_arms": 2.0}, "n_arms"),
        ({"n_arms": None}, "n_arms"),
        ({"n_arms": 3, "arms": ["A", "B"]}, "n_arms is 3"),
        ({"arms": ["A", "A"], "n_arms": None}, "different names"),
        ({"arms": "AB", "n_arms": None}, "list of names"),
        ({"arms": [], "n_arms": None}, "list of names"),
        ({"beta": 0}, "beta"),
        ({"beta": math.nan}, "beta"),
        ({"budget": None}, "budget"),
        ({"budget": 0.1}, "budget"),
        ({"variant": "tighter"}, "variant"),
    ],
)
def test_bad_policies_are_named(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        pb.AdaCUCB(**{"n_arms": 2, "budget": pb.zCDP(1.0), **arguments})


def test_pure_dp_is_refused_with_a_pointer() -> None:
    with pytest.raises(UnsupportedBudget, match="AdaPUCB"):
        pb.AdaCUCB(2, pb.PureDP(1.0))


def test_names_may_come_first() -> None:
    assert pb.AdaCUCB(["A", "B"], pb.zCDP(1.0)) == pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0))


def test_a_resumed_agent_tells_its_settings(tmp_path: Any) -> None:
    new_agent(reward_range=(-1, 1), max_rewards_per_person=2, give_up_after=9, path=tmp_path / "a.db").close()
    with pb.Agent.open(tmp_path / "a.db") as agent:
        assert agent.settings == {
            "reward_range": (-1.0, 1.0),
            "max_rewards_per_person": 2,
            "one_reward_per_episode": False,
            "unit": "reward",
            "seed": None,
            "give_up_after": 9,
            "control": None,
            "control_share": None,
        }


def test_the_words_name_the_budget_that_was_asked_for() -> None:
    assert "ApproxDP(epsilon=1.0, delta=0.0001)" in str(new_agent(budget=pb.ApproxDP(1, 1e-4)).guarantee())
    assert new_agent(budget=pb.ApproxDP(1, 1e-4)).guarantee().delta == 1e-4
    assert new_agent().guarantee().delta == 1e-6


@pytest.mark.parametrize("policy", ["adac-ucb", None, pb.AdaCUCB])
def test_an_agent_needs_a_policy(policy: Any) -> None:
    with pytest.raises(InvalidInput, match="policy must be a policy"):
        pb.Agent(policy)


# What is shown.


def test_no_raw_value_in_any_repr_or_traceback() -> None:
    agent = new_agent(arms=1, budget=pb.zCDP(1.0))
    for _ in range(9):
        agent.tell(agent.ask(), 0.0)
    for _ in range(6):
        agent.tell(agent.ask(), 0.73571)
    episode = bandit_of(agent).private.episodes[0]
    shown = [
        repr(x)
        for x in (
            agent,
            bandit_of(agent).private,
            bandit_of(agent).private.episodes,
            episode,
            bandit_of(agent).door,
            agent.ledger,
        )
    ]
    shown += [f"{episode} {episode.totals} {agent!s}", str(agent.estimates()), str(agent.guarantee())]
    # The next release fails half-way.
    bandit_of(agent).door.account.charge_new = None  # type: ignore[assignment,method-assign]
    try:
        agent.tell(agent.ask(), 0.0)
    except TypeError as error:
        shown += traceback.TracebackException.from_exception(error, capture_locals=True).format()
    else:
        pytest.fail("the release did not happen")
    secret = str(episode.totals.reveal()[0])
    assert len(secret) > 6
    assert not [text for text in shown if secret in text]


def test_estimates_before_any_release_are_the_whole_range() -> None:
    agent = new_agent(reward_range=(-1, 3))
    assert [(e.mean, e.low, e.high, e.rewards) for e in agent.estimates()] == [(None, -1.0, 3.0, 0)] * 3
    for delta in (0, 1, -1, math.nan, "x"):
        with pytest.raises(InvalidInput, match="delta"):
            agent.estimates(delta)  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [pb.AdaCUCB(2, pb.zCDP(0.2), beta=0.5), pb.AdaPUCB(2, pb.PureDP(0.7), beta=0.5)])
def test_intervals_hold_for_all_arms_at_all_times_together(policy: pb.AdaCUCB | pb.AdaPUCB) -> None:
    """400 agents at delta = 0.2: a wrong one may happen 80 times on average, 3 sigma more is 104.

    A greedy policy stops looking at an arm after bad luck, which is what breaks careless intervals.
    """
    delta, truth, wrong = 0.2, (0.6, 0.45), 0
    chance = np.random.default_rng(8)
    for seed in range(400):
        agent = pb.Agent(policy, seed=seed)
        missed = False
        for _ in range(40):
            decision = agent.ask()
            agent.tell(decision, float(chance.random() < truth[decision.action]))
            missed |= any(not e.low <= truth[e.action] <= e.high for e in agent.estimates(delta))
        wrong += missed
    assert wrong <= 104


def test_intervals_shrink() -> None:
    agent = new_agent(arms=1)
    widths = []
    for count in (10, 100, 10_000):
        agent.tell_many([(d, 0.5) for d in agent.ask(count)])
        e = agent.estimates()[0]
        widths.append(e.high - e.low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.1


# Its life.


def test_a_closed_agent_is_read_but_not_used() -> None:
    with new_agent() as agent:
        decision = agent.ask()
        agent.tell(decision, 1.0)
    assert len(agent.ledger) == 1
    for call in (agent.ask, lambda: agent.tell(decision, 1.0), lambda: agent.tell_many([])):
        with pytest.raises(AgentClosed, match="make a new one"):
            call()
    agent.close()


def test_threads_may_share_an_agent() -> None:
    agent = new_agent(arms=3, budget=pb.NoPrivacy())

    def work() -> None:
        for _ in range(500):
            agent.tell(agent.ask(), 1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(r.count for r in agent.ledger) + sum(e.count for e in bandit_of(agent).private.episodes.values()) == 2000
    labels = [label for row in agent.ledger for label in row.episodes]
    assert len(labels) == len(set(labels))


def test_the_ledger_that_is_shown_is_a_copy() -> None:
    agent = new_agent()
    agent.tell(agent.ask(), 1.0)
    shown = agent.ledger
    agent.tell(agent.ask(), 1.0)
    assert (len(shown), len(agent.ledger)) == (1, 2)


def test_a_reward_in_the_place_of_an_action_is_not_named() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)))
    for wrong in (0.737, 737, -1, True, None.__class__):
        with pytest.raises(InvalidInput, match="played must be an arm from 0 to 1") as caught:
            agent.tell_many([(agent.ask(), 1, wrong)])
        assert "737" not in str(caught.value)


def test_a_policy_without_a_name_of_its_own_gets_no_file(tmp_path: Path) -> None:
    class Nameless(pb.AdaCUCB):
        pass

    with pytest.raises(InvalidInput, match="no name of its own"):
        pb.Agent(Nameless(2, pb.zCDP(1)), path=tmp_path / "a.db")
    assert not list(tmp_path.iterdir())
    pb.Agent(Nameless(2, pb.zCDP(1))).ask()


EXTREME = [
    (-8e307, 8e307),
    (0.0, 1e307),
    (0.0, 1e154),
    (-1e100, 1e100),
    (1e300, 1.0000001e300),
    (1.0, 1.0 + 2.0**-52),
    (0.0, 1e-101),
    (-1e-300, 1e-300),
]
EVERY_VARIANT = [*EVERY_POLICY, *OTHER_VARIANTS]


def test_extreme_ranges_are_refused_by_every_policy_with_the_same_words_before_a_file_is_made(tmp_path: Path) -> None:
    for reward_range in EXTREME:
        words = set()
        for policy in EVERY_VARIANT:
            with pytest.raises(InvalidInput, match="too wide or too narrow") as caught:
                pb.Agent(policy, reward_range, path=tmp_path / "agent.db")
            words.add(str(caught.value))
        assert len(words) == 1
    assert not list(tmp_path.iterdir())


def numbers_in(shown: Any) -> Iterator[float]:
    """Every float in plain data."""
    if isinstance(shown, dict):
        shown = list(shown.values())
    if isinstance(shown, (list, tuple)):
        for part in shown:
            yield from numbers_in(part)
    elif isinstance(shown, float):
        yield shown


@pytest.mark.parametrize(
    "reward_range",
    [(0.0, 1e100), (-5e99, 5e99), (1e100 - 1e85, 1e100), (-1e100, -1e100 + 1e85), (0.0, 1e-100), (1e15, 1e15 + 1)],
    ids=str,
)
def test_every_policy_shows_finite_numbers_alone_in_the_most_extreme_ranges(reward_range: tuple[float, float]) -> None:
    low, high = reward_range
    rewards = [low, high, low / 2 + high / 2]
    for policy in EVERY_VARIANT:
        agent = pb.Agent(policy, reward_range, seed=1)
        step = 0
        while step < 24 or (step < 200 and not len(agent.ledger)):  # some have a long first episode
            agent.tell(agent.ask(actions=offered(policy, step)), rewards[step % 3])
            step += 1
            shown = [agent.estimates(), agent.learned, [(r.values, r.noise_sd, r.rounding) for r in agent.ledger]]
            assert all(map(math.isfinite, numbers_in(shown))), policy_id(policy)
        assert len(agent.ledger), policy_id(policy)
        agent.guarantee()


# What callers hand in.


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pb.Agent(pb.AdaCUCB), "got the class AdaCUCB: call it"),  # type: ignore[arg-type]
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), path=5), "path must name a file.*got 5"),  # type: ignore[arg-type]
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), path=""), "path must name a file.*got ''"),
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), path="a\0b"), "path must name a file"),
        (lambda: pb.Agent.open(None), "path must name a file.*got None"),  # type: ignore[arg-type]
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), noise=5), "noise must be a source.*got int"),  # type: ignore[arg-type]
        (lambda: new_agent().ask(0), "n must be a whole number of at least 1, got 0"),
        (lambda: new_agent().tell_many(None), r"a list of \(decision, reward\), got a value of type NoneType"),  # type: ignore[arg-type]
        (lambda: new_agent().tell("A", 1.0), r"tell what ask\(\) returned, or its id"),
        (lambda: new_agent().tell(3, 1.0), "expected a decision or its id"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_argument_is_refused_with_its_value_and_a_remedy(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(pb.errors.PrivateBanditsError, match=words):
        call()


def test_a_refusal_in_a_batch_says_which_one_it_is_of() -> None:
    agent = new_agent()
    decisions = agent.ask(3)
    with pytest.raises(InvalidInput, match="NaN") as refused:
        agent.tell_many([(decisions[0], 1.0), (decisions[1], math.nan), (decisions[2], 1.0)])
    assert refused.value.__notes__ == ["this is number 2 of the 3 in the batch: nothing was changed"]
    assert agent.open_decisions == decisions


def test_an_agent_in_memory_does_not_say_that_it_can_be_resumed() -> None:
    agent = new_agent()
    agent.close()
    with pytest.raises(AgentClosed, match="was closed: it was in memory, make a new one"):
        agent.ask()

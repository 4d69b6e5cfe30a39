"""A control arm that a coin gives out: its share, who can foresee it, and that nothing else changes."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import pytest

import private_bandits as pb
from private_bandits import testing
from private_bandits.agent import bandit_of
from private_bandits.audit import inside
from private_bandits.audit.target import of_factory
from private_bandits.bandit import Bandit
from private_bandits.control import ControlCoin
from private_bandits.errors import InvalidInput
from private_bandits.ledger.chain import canonical
from private_bandits.opening import check_opening
from private_bandits.policies import Policy
from private_bandits.state import Settings
from private_bandits.testing import PolicyRules, interact
from tests.support import ONE_OF_EACH_NOISE, SELDOM

ARMS = ["placebo", "A", "B"]


def ucb(arms: Any = ARMS) -> pb.AdaCUCB:
    return pb.AdaCUCB(arms, pb.zCDP(0.1))


def tolerance(n: int) -> float:
    """Of a share of n tosses: by Hoeffding it is exceeded once in 1/SELDOM tests."""
    return math.sqrt(math.log(2 / SELDOM) / (2 * n))


# The coin.


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_the_share_of_decisions_that_play_the_control(share: float, seed: int | None) -> None:
    n = 20_000
    agent = pb.Agent(ucb(), control="placebo", control_share=share, seed=seed)
    agent.warm_start([(arm, float(arm == "A")) for arm in ARMS for _ in range(500)])
    assert agent.ask(n=1)
    best = bandit_of(agent).public.policy.choice
    assert best == 1  # so that only the coin plays the control
    played = Counter(decision.arm for decision in agent.ask(n=n))
    assert abs(played["placebo"] / n - share) < tolerance(n)
    assert played.keys() == {"placebo", "A"}


def test_tosses_do_not_follow_each_other_nor_the_seed_of_a_neighbour() -> None:
    n = 20_000
    live = ControlCoin(0, 0.5, None)
    tosses = {
        "live": [live.gives_control(1) for _ in range(n)],  # one decision asked again is another toss
        "seeded": [ControlCoin(0, 0.5, 7).gives_control(i) for i in range(n)],
        "next seed": [ControlCoin(0, 0.5, 8).gives_control(i) for i in range(n)],
        "seeds": [ControlCoin(0, 0.5, seed).gives_control(1) for seed in range(n)],
    }
    for name, found in tosses.items():
        changes = sum(a != b for a, b in pairwise(found))
        assert abs(changes / (n - 1) - 0.5) < tolerance(n - 1), name
    same = sum(a == b for a, b in zip(tosses["seeded"], tosses["next seed"], strict=True))
    assert abs(same / n - 0.5) < tolerance(n)


@pytest.mark.parametrize(("share", "below"), [(0.5, 2**52), (1e-300, 1), (1 - 2**-53, 2**53 - 1)])
def test_the_probability_is_the_share(share: float, below: int) -> None:
    for toss, expected in ((below - 1, True), (below, False)):
        with mock.patch("private_bandits.control.secrets.randbits", return_value=toss):
            assert ControlCoin(0, share, None).gives_control(1) is expected


def test_a_live_coin_asks_the_operating_system_whatever_generators_are_seeded() -> None:
    runs = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002  (the old generator as well)
        agent = pb.Agent(ucb(), control="placebo", control_share=0.5)
        runs.append([d.action == 0 for d in agent.ask(n=200)])
    assert runs[0] != runs[1]  # the same by chance once in 2^200


def test_a_seeded_run_is_reproducible_and_the_coin_looks_at_nothing_but_the_number() -> None:
    def plays(rewards: float, batch: int) -> list[bool]:
        agent = pb.Agent(ucb(), control="placebo", control_share=0.3, seed=3)
        tosses = []
        coin = ControlCoin(0, 0.3, 3)
        for number in range(1, 241, batch):
            for i, decision in enumerate(agent.ask(n=batch)):
                if coin.gives_control(number + i):
                    assert decision.arm == "placebo"
                tosses.append(coin.gives_control(number + i))
                agent.tell(decision, rewards)
        return tosses

    assert plays(1.0, 1) == plays(0.0, 1) == plays(1.0, 6)


def test_the_noise_of_a_seeded_agent_is_the_same_with_a_coin() -> None:
    def noise(**options: Any) -> list[tuple[float, ...]]:
        agent = pb.Agent(ucb(), seed=4, **options)
        for _ in range(200):
            agent.tell(agent.ask(), 0.0)  # a sum of zeros: what leaves is the noise alone
        return [row.values for row in agent.ledger]

    plain, tossed = noise(), noise(control=0, control_share=0.3)
    n = min(len(plain), len(tossed))
    assert n > 10
    assert plain[:n] == tossed[:n]


# The agent.


def test_the_settings_tell_of_the_control() -> None:
    first: Any = np.int64(0)  # numpy has integers of its own
    agent = pb.Agent(ucb(), control=first)
    assert (agent.settings["control"], agent.settings["control_share"]) == ("placebo", 0.2)
    assert "control='placebo', control_share=0.2" in repr(agent)
    opening = json.loads(agent.ledger.opening)
    assert (opening["settings"]["control"], opening["settings"]["control_share"]) == ("placebo", 0.2)
    assert agent.ledger.verify().ok
    plain = pb.Agent(ucb())
    assert (plain.settings["control"], plain.settings["control_share"]) == (None, None)
    assert "control" not in repr(plain)
    assert plain.guarantee().to_dict() == agent.guarantee().to_dict()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"control": "sugar"}, r"control must be one of the arms \['placebo', 'A', 'B'\], .* got 'sugar'"),
        ({"control": 3}, "or the index of one, got 3"),
        ({"control": -1}, "or the index of one, got -1"),
        ({"control": True}, "or the index of one, got True"),
        ({"control": 0.0}, r"or the index of one, got 0\.0"),
        ({"control": ["A"]}, "or the index of one, got"),
        ({"control_share": 0.2}, r"control_share=0\.2 needs control"),
        *(
            ({"control": 0, "control_share": share}, "control_share must lie strictly between 0 and 1")
            for share in (0, 1, -0.1, 1.5, math.nan, True, "0.2")
        ),
    ],
)
def test_wrong_controls_are_refused_and_leave_no_file(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=words):
        pb.Agent(ucb(), path=tmp_path / "agent.db", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "policy",
    [p for p in ONE_OF_EACH_NOISE if not p.arm_names and p.budget.noise == "gaussian" and not p.replaced_by],
    ids=testing.policy_id,
)
def test_contextual_policies_are_refused(policy: Policy[Any]) -> None:
    with pytest.raises(InvalidInput, match=f"the same arms at every step, and those of {type(policy).__name__} change"):
        pb.Agent(policy, control=0)


def test_one_arm_has_nothing_to_be_compared_with() -> None:
    with pytest.raises(InvalidInput, match="the policy has one arm"):
        pb.Agent(ucb(["A"]), control="A")


def test_open_decisions_count_for_the_arm_that_is_really_played() -> None:
    agent = pb.Agent(ucb(), control="placebo", control_share=0.5, seed=1)
    open_now = agent.ask(n=60)
    for i, decision in enumerate(agent.ask(n=60)):
        if i % 3 == 0:
            agent.give_up(decision)
        else:
            agent.tell(decision, 1.0)
    counts = Counter(decision.action for decision in open_now)
    assert list(bandit_of(agent).public.waiting) == [counts[arm] for arm in range(3)]
    assert counts[0] >= 20
    assert Counter(d.action for d in agent.open_decisions) == counts


def test_rewards_of_the_control_are_learned_from() -> None:
    agent = pb.Agent(pb.AdaCUCB(ARMS, pb.NoPrivacy()), control="placebo", control_share=0.3, seed=2)
    played = Counter[int]()
    for _ in range(300):
        decision = agent.ask()
        played[decision.action] += 1
        agent.tell(decision, (0.25, 1.0, 0.0)[decision.action])
    assert played[0] > 50
    entered = Counter[int]()
    for row in agent.ledger:
        entered[row.key] += row.count
    for key, episode in bandit_of(agent).private.episodes.items():
        entered[key] += episode.count
    assert entered == played
    estimate = agent.estimates()[0]
    assert estimate.mean == pytest.approx(0.25)
    assert estimate.rewards > 20


def test_a_limit_for_people_and_giving_up_go_with_it() -> None:
    agent = pb.Agent(ucb(), control=0, max_rewards_per_person=2, unit="person", give_up_after=5, seed=1)
    for step in range(100):
        agent.tell(agent.ask(person=f"p{step % 40}"), 1.0)
        agent.ask(person="nobody")
    assert agent.counts.over_limit == 20
    assert agent.counts.out_of_time == 97  # every second one, up to the last five
    assert sum(bandit_of(agent).public.waiting) == len(agent.open_decisions) == 3


# Files.


def test_a_resumed_agent_tosses_on(tmp_path: Path) -> None:
    path, whole = tmp_path / "agent.db", pb.Agent(ucb(), control=2, control_share=0.4, seed=6)
    pb.Agent(ucb(), path=path, control=2, control_share=0.4, seed=6).close()
    for _ in range(6):
        with pb.Agent.open(path) as agent:
            assert agent.settings == whole.settings
            for _ in range(10):
                decision, expected = agent.ask(), whole.ask()
                assert decision.action == expected.action
                agent.tell(decision, 1.0)
                whole.tell(expected, 1.0)
    live = tmp_path / "live.db"
    pb.Agent(ucb(), path=live, control="B", control_share=0.9).close()
    with pb.Agent.open(live) as agent:
        n = 400
        share = sum(d.arm == "B" for d in agent.ask(n=n)) / n
        assert share > 0.9 - tolerance(n)
        assert agent.settings["control"] == "B"


def test_files_of_earlier_versions_have_no_control(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent / "storage" / "files" / "plain.db", tmp_path / "plain.db")
    with pb.Agent.open(tmp_path / "plain.db") as agent:
        assert agent.settings["control"] is None
        assert agent.settings["control_share"] is None
        assert bandit_of(agent).coin is None


def test_settings_without_a_word_of_controls_fit_their_opening() -> None:
    agent = pb.Agent(ucb())
    before = {name: value for name, value in bandit_of(agent).settings.to_dict().items() if "control" not in name}
    settings = Settings.from_dict(before)
    assert (settings.control, settings.control_share, settings.coin) == (None, None, None)
    check_opening(canonical({"settings": {k: v for k, v in before.items() if k != "salt"}}), settings)


def test_a_file_with_another_share_than_its_ledger_began_with_is_refused() -> None:
    agent = pb.Agent(ucb(), control="A", control_share=0.3)
    for changed in ({"control_share": 0.4}, {"control": "B"}):
        other = Settings.from_dict(bandit_of(agent).settings.to_dict() | changed)
        with pytest.raises(pb.errors.AgentFileInvalid, match="not those that its ledger began with"):
            check_opening(agent.ledger.opening, other)


# Every policy, and the audit.


class _WithControl(pb.Agent):
    """An agent of which every third decision plays the control, about."""

    def __init__(self, policy: Policy[Any], **options: Any) -> None:
        super().__init__(policy, control=1, control_share=0.3, **options)


class TestEveryPolicyWithControl(PolicyRules):
    """Every policy with fixed arms keeps all rules beside a coin."""

    policies: ClassVar = [
        p for p in ONE_OF_EACH_NOISE if p.arm_names and p.budget.noise != "none" and not p.replaced_by
    ]

    @pytest.fixture(autouse=True)
    def _agents_with_control(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(testing, "Agent", _WithControl)

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """One script, and the others among the full counts."""
        first, *others = testing.SCRIPTS
        scripts = [first, *(pytest.param(seed, marks=pytest.mark.full) for seed in others)]
        with mock.patch.object(testing, "SCRIPTS", scripts):
            super().pytest_generate_tests(metafunc)

    def test_the_control_is_played(self, policy: Policy[Any]) -> None:
        agent = _WithControl(policy, seed=1)
        transcript = interact(agent, steps=200, script_seed=1)
        assert bandit_of(agent).coin is not None
        assert sum(played == 1 for played, _ in transcript.plays) > 60


def controlled() -> pb.Agent:
    return pb.Agent(pb.AdaCUCB(3, pb.zCDP(0.5)), control=0, control_share=0.4)


class _PeekingCoin(ControlCoin):
    """A coin that falls by what is in the sums."""

    def __init__(self, bandit: Bandit) -> None:
        super().__init__(0, 0.4, 1)
        self._bandit = bandit

    def gives_control(self, number: int) -> bool:
        return any(sum(episode.totals.reveal()) > 0 for episode in self._bandit.private.episodes.values())

    def with_seed(self, seed: int) -> ControlCoin:
        return self


class _Peeking(Bandit):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.coin = _PeekingCoin(self)


class _PeekingAgent(pb.Agent):
    bandit_type = _Peeking


def peeking() -> pb.Agent:
    return _PeekingAgent(pb.AdaCUCB(3, pb.zCDP(0.5)), control=0, control_share=0.4)


def test_the_audit_tosses_alike_in_both_worlds_and_accuses_a_coin_that_looks_at_rewards() -> None:
    right = inside.examine(of_factory(controlled), scripts=4, seed=0)
    assert not right.flaws
    assert not right.blind
    assert inside.examine(of_factory(peeking), scripts=4, seed=0).flaws

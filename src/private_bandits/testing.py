"""Is it a policy? What every policy has to keep, as tests that a test class of yours inherits.

    from private_bandits.testing import PolicyContract

    class TestMine(PolicyContract):
        policies = [MyPolicy]  # MyPolicy.example(budget) for every budget that it serves; or instances

pytest then runs every rule, and the audit, on each of them. The policies of this package are held to the same rules
(tests/policies/test_contract.py). pytest is needed to run the tests, not to import this module; `check_policy` runs
the same without it. docs/own-policy.md explains what a policy has to do, and why.
"""

from __future__ import annotations

import inspect
import io
import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

from rich.console import Console

from private_bandits.agent import Agent, Decision, bandit_of
from private_bandits.audit import SHORT, Report, Thoroughness, audit, of_policy
from private_bandits.audit.offers import OFFERED, Offers
from private_bandits.audit.target import EXAMPLES
from private_bandits.errors import InvalidInput, UnsupportedBudget
from private_bandits.ledger import Release
from private_bandits.policies import Policy, policy_from_dict

__all__ = [
    "BRIEF",
    "PolicyAudit",
    "PolicyContract",
    "PolicyRules",
    "Transcript",
    "audit_policy",
    "check_policy",
    "examples_of",
    "holds",
    "interact",
    "offered",
    "policy_id",
]

BRIEF = replace(SHORT, scripts=3, seconds=0.0, false_accusation=1e-10)
"""An audit of some seconds: exact replays, noise and ledger. From inside, where a policy has nowhere to hide.

Tests run again and again, so that a right policy is accused more seldom than by the command.
"""


# What the tests do with an agent.


LOOKS = 12
"""How often a policy is asked the same. Coins of its own would hardly ever fall alike so often."""


def examples_of(
    policies: Iterable[Policy[Any] | type[Policy[Any]]], one_of_each_noise: bool = False
) -> list[Policy[Any]]:
    """Each policy as it is; of a class, an example for every budget that it serves.

    one_of_each_noise: of a class only as many as there are kinds of noise; other budgets differ in the level alone.

    >>> import private_bandits as pb
    >>> [policy_id(policy) for policy in examples_of([pb.AdaPUCB])]
    ['adap-ucb-PureDP', 'adap-ucb-NoPrivacy']
    """
    found: list[Policy[Any]] = []
    for one in policies:
        if isinstance(one, Policy):
            found.append(one)
            continue
        budgets = [EXAMPLES[notion] for notion in one.supported_budgets]
        if one_of_each_noise:
            budgets = [b for i, b in enumerate(budgets) if b.noise not in {other.noise for other in budgets[:i]}]
        found += map(one.example, budgets)
    return found


def policy_id(policy: Policy[Any]) -> str:
    """Its name and the kind of its budget."""
    return f"{policy.name}-{type(policy.budget).__name__}"


def offered(policy: Policy[Any], step: int) -> Any:
    """Actions for a step, where they change."""
    return None if policy.arm_names else Offers(policy)(step)


@dataclass
class Transcript:
    """Everything that an interaction showed to the outside, in order; and what only a test knows."""

    shown: list[Any] = field(default_factory=list)
    plays: list[tuple[int, float]] = field(default_factory=list)
    """Action and reward of every told decision, in the order of telling."""
    entries: list[tuple[int, tuple[int, ...]] | None] = field(default_factory=list)
    """The sum that each told reward entered, and its weight there; None: it was dropped."""
    labels: list[str] = field(default_factory=list)
    """The episode that each told reward entered; "" for none."""


PREDICTED = 8
"""Predictions are looked at every so many steps: they take longer than the rest."""


def interact(
    agent: Agent,
    steps: int,
    script_seed: int,
    change: Callable[[int, float], float] = lambda told, reward: reward,
    pause: Callable[[Agent, int], Agent] = lambda agent, step: agent,
) -> Transcript:
    """Random asks, late and missing rewards and other plays than recommended, the same for the same script_seed.

    The script does not look at the agent's actions, so two agents see the same. `change` may alter the value of
    the n-th told reward. `pause` may close and reopen the agent between two steps.
    """
    script = random.Random(script_seed)  # noqa: S311  (not for protection)
    transcript = Transcript()
    arms = len(agent.policy.arm_names) or OFFERED
    waiting: list[Decision] = []
    for step in range(steps):
        agent = pause(agent, step)
        waiting += agent.ask(script.choice([1, 1, 1, 2, 5]), actions=offered(agent.policy, step))
        transcript.shown.append([d.action for d in waiting])
        while waiting and script.random() < 0.75:
            decision = waiting.pop(script.randrange(len(waiting)))
            fate, reward, other = script.random(), script.random(), script.randrange(arms)
            if fate < 0.1:
                agent.give_up(decision)
                continue
            played = other if fate < 0.3 else decision.action
            told = change(len(transcript.plays), reward)
            bandit = bandit_of(agent)
            opened = bandit.records.find(decision.id)
            assert opened is not None, f"{decision.id} was asked, and is not open"
            entry = bandit.entry(bandit.offered_to(opened), played)
            transcript.entries.append(entry)
            transcript.labels.append("" if entry is None else _label(agent, entry[0]))
            agent.tell(decision, told, played=played)
            transcript.plays.append((played, told))
            transcript.shown.append([row.to_dict() for row in agent.ledger.rows[-1:]])
        transcript.shown.append((agent.estimates(), _conclusions(agent, step)))
    transcript.shown.append([row.to_dict() for row in agent.ledger])
    return transcript


def _conclusions(agent: Agent, step: int) -> Any:
    """What is said of the best arm, and now and then of the actions of a step, if the policy predicts anything."""
    found: list[Any] = [agent.verdict(delta=0.5).action] if agent.policy.arm_names else []
    if step % PREDICTED == 0:
        with suppress(InvalidInput):
            found += agent.predict(offered(agent.policy, step))
    return found


def _label(agent: Agent, key: int) -> str:
    episode = bandit_of(agent).private.episodes.get(key)
    return episode.label if episode else f"{key}/1"


def holds(row: Release, label: str) -> bool:
    """Whether the rewards of an episode are in a release, alone or as one of several in a row."""
    key, _, number = label.partition("/")
    for covered in row.episodes:
        owner, _, numbers = covered.partition("/")
        first, _, last = numbers.partition("-")
        if owner == key and int(first) <= int(number) <= int(last or first):
            return True
    return False


def _first_difference(one: list[Any], other: list[Any]) -> int | None:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)


def _but_for_values(shown: Any) -> Any:
    """A release that was shown, without what the noise protects; anything else as it is."""
    if isinstance(shown, list) and len(shown) == 1 and isinstance(shown[0], dict):
        return [{name: value for name, value in shown[0].items() if name != "values"}]
    return shown


# The rules.


class PolicyRules:
    """What can be checked without any chance: every policy keeps these, or it is none."""

    policies: ClassVar[Sequence[Policy[Any] | type[Policy[Any]]]] = ()
    """What is tested; a class stands for its `example(budget)` with every budget that it serves."""

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """pytest asks here: every test is run for every policy, and some for several scripts."""
        if not self.policies:
            raise InvalidInput(f"{type(self).__name__} has nothing to test: give it policies = [MyPolicy]")
        for name, less in (("policy", False), ("audited", True)):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, examples_of(self.policies, less), ids=policy_id)
        if "script_seed" in metafunc.fixturenames:
            metafunc.parametrize("script_seed", SCRIPTS)

    def test_actions_are_valid(self, policy: Policy[Any]) -> None:
        """A decision is one of the actions, and has its name. The agent refuses a recommendation that is none."""
        names = policy.arm_names or [f"action {i}" for i in range(OFFERED)]
        refusal = ""
        try:
            for decision in Agent(policy, seed=1).ask(7, actions=offered(policy, 0)):
                assert decision.arm == names[decision.action], f"action {decision.action} is called {decision.arm!r}"
            interact(Agent(policy, seed=1), steps=200, script_seed=2)
        except InvalidInput as error:
            refusal = str(error)
        assert not refusal, refusal

    def test_nothing_published_moves_before_the_release_of_a_changed_reward(
        self, policy: Policy[Any], script_seed: int
    ) -> None:
        """Of two worlds that differ in one reward, nothing differs but the values of the release that holds it."""
        original = interact(Agent(policy, seed=3), steps=60, script_seed=script_seed)
        for changed in range(0, len(original.plays), 7):
            agent = Agent(policy, seed=3)
            other = interact(agent, 60, script_seed, change=lambda told, r, at=changed: 1 - r if told == at else r)  # type: ignore[misc]
            where = f"script {script_seed}, reward number {changed + 1} changed"
            label = original.labels[changed]
            assert other.labels[: changed + 1] == original.labels[: changed + 1], f"{where}: episodes before it moved"
            release = next((row for row in agent.ledger if label and holds(row, label)), None)
            i = _first_difference(original.shown, other.shown)
            if release is None:  # it was dropped, or stayed in an open episode: nobody may see a difference
                assert i is None, f"{where}, and no release holds it: {original.shown[i]} became {other.shown[i]}"
                assert len(original.shown) == len(other.shown), where
            elif i is not None:
                one, another = original.shown[i], other.shown[i]
                text = f"{where}: the first thing that moves is not the release that holds it: {one} became {another}"
                assert another == [release.to_dict()], text
                assert _but_for_values(one) == _but_for_values(another), f"{where}: more than values: {one}, {another}"

    def test_a_changed_reward_is_seen_without_noise(self, policy: Policy[Any]) -> None:
        """The test above can fail: under the same noise a release does tell the reward."""
        one = interact(Agent(policy, seed=3), 60, 0)
        other = interact(Agent(policy, seed=3), 60, 0, change=lambda told, r: 1 - r if told == 0 else r)
        assert one.shown != other.shown, (
            "the first reward was in no release within 60 steps: let example() make a policy that releases sooner"
        )

    def test_noise_is_drawn_once_per_release(self, policy: Policy[Any]) -> None:
        """As often as there are rows in the ledger; looking at it draws nothing."""
        agent = Agent(policy)
        mechanism = type(bandit_of(agent).door.noise.calibrate("none", 1.0, 1, 1, 1))
        draw, draws = mechanism.__call__, []

        def counted(self: Any, totals: Any) -> list[int]:
            draws.append(self.kind)
            return draw(self, totals)

        with mock.patch.object(mechanism, "__call__", counted):
            interact(agent, steps=100, script_seed=4)
            assert len(draws) == len(agent.ledger), f"{len(draws)} draws for {len(agent.ledger)} releases"
            assert len(draws) > 2, f"only {len(draws)} releases in 100 steps: let example() release sooner"
            agent.estimates()
            agent.guarantee()
            agent.ask(50, actions=offered(policy, 0))
            assert len(draws) == len(agent.ledger), "noise was drawn for a look"

    def test_each_reward_enters_one_release_and_counts_for_what_was_played(self, policy: Policy[Any]) -> None:
        """Released or still open, each reward is counted once, in the sum that `entry` named.

        With a factor, releases hold episodes again, with its multipliers and no others.
        """
        agent = Agent(policy, seed=5)
        transcript = interact(agent, steps=150, script_seed=6)
        held = _multipliers(agent)
        if policy.factor is None:
            assert all(len(times) == 1 for times in held.values()), "an episode is in two releases"
        else:
            wanted = [c / policy.factor.unit for c in policy.factor.multipliers]
            for label, times in held.items():
                assert times == wanted[: len(times)], f"episode {label} is in releases with multipliers {times}"
        entered = Counter(entry[0] for entry in transcript.entries if entry is not None)
        counted = Counter[int]()
        for row in agent.ledger:
            counted.update(dict(zip(row.keys, row.counts, strict=True)))
            assert row.count == sum(row.counts), f"release {row.number} says {row.count} new rewards, {row.parts}"
        for key, episode in bandit_of(agent).private.episodes.items():
            counted[key] += episode.count
        assert +counted == entered, f"by sum, {dict(counted)} rewards were counted and {dict(entered)} entered"
        # Nodes of a tree hold the rewards of nodes below them, and do not add up so.
        if policy.budget.noise == "none" and policy.setting == "finite" and not policy.tree_levels:
            _check_sums(agent, transcript)

    def test_the_ledger_stays_within_the_budget(self, policy: Policy[Any]) -> None:
        """However long it runs."""
        agent = Agent(policy)
        interact(agent, steps=150, script_seed=7)
        assert agent.ledger.total <= policy.budget.level, f"{agent.ledger.total} spent of {policy.budget.level}"
        assert agent.guarantee().private == (policy.budget.noise != "none")

    def test_finishing_releases_what_is_left_once(self, policy: Policy[Any]) -> None:
        """`Agent.finish` may come at any time: every reward taken has then left, within the budget."""
        for steps in (0, 5, 40):
            agent = Agent(policy)
            interact(agent, steps, script_seed=steps)
            agent.finish()
            told, left = agent.counts.told, sum(row.count for row in agent.ledger)
            assert left == told, f"finished after {steps} steps, {left} of {told} rewards were released"
            assert agent.ledger.total <= policy.budget.level, f"{agent.ledger.total} spent of {policy.budget.level}"
            agent.estimates()
            if policy.arm_names:
                agent.verdict()
            assert agent.finish() == 0, "finishing again released something"

    def test_a_seeded_agent_promises_nothing(self, policy: Policy[Any]) -> None:
        """Whoever knows the seed can take the noise away."""
        agent = Agent(policy, seed=0)
        interact(agent, steps=200, script_seed=8)
        assert agent.ledger.total == math.inf
        assert not any(row.private for row in agent.ledger)
        assert agent.guarantee().promised == math.inf
        assert "No privacy" in str(agent.guarantee())

    def test_only_learn_changes_the_state(self, policy: Policy[Any]) -> None:
        """Every other method looks, and looking again gives the same answer."""
        agent = Agent(policy, seed=9)
        interact(agent, steps=30, script_seed=9)
        state, arrived = bandit_of(agent).public.policy, bandit_of(agent).arrived
        before = _as_json(policy, state)
        arms = len(policy.arm_names) or OFFERED
        for waiting in ([0] * arms, [5 * (arm % 2) for arm in range(arms)], [3] * arms):
            offer = policy.offer(offered(policy, 1))
            if offer is None:
                answers = [policy.recommend(state, waiting, arrived, step=99) for _ in range(LOOKS)]
                entry = policy.entry(state, answers[0])
            else:
                answers = [policy.choose(state, offer, step=99) for _ in range(LOOKS)]
                entry = policy.entry_of(state, offer, answers[0])
            assert set(answers) == {answers[0]}, f"asked again in the same state it recommends {answers}"
            for count in (1, 2, 7) if entry is not None else ():
                assert entry is not None
                due = [policy.due(state, entry[0], count, arrived) for _ in range(2)]
                assert due[0] == due[1], f"asked twice in the same state, due says {due}"
        policy.estimates(state, 0.1)
        after = _as_json(policy, state)
        assert after == before, f"a method other than learn changed the state: {before} became {after}"

    def test_the_same_moves_have_the_same_answers(self, policy: Policy[Any]) -> None:
        """Coins of its own that nobody else knows make a policy that can be neither resumed nor replayed."""
        one, other = (interact(Agent(policy, seed=11), steps=60, script_seed=11) for _ in range(2))
        i = _first_difference(one.shown, other.shown)
        assert i is None, f"two runs under one seed differ: {one.shown[i]} and {other.shown[i]}"

    def test_agents_do_not_meet(self, policy: Policy[Any]) -> None:
        """What an agent has learned is in its state, and not where another agent's policy finds it."""
        alone = interact(Agent(policy, seed=12), steps=40, script_seed=12)
        second = Agent(policy, seed=13)

        def meanwhile(agent: Agent, step: int) -> Agent:
            second.tell(second.ask(actions=offered(policy, step)), float(step % 2))
            return agent

        beside = interact(Agent(policy, seed=12), steps=40, script_seed=12, pause=meanwhile)
        i = _first_difference(alone.shown, beside.shown)
        assert i is None, f"another agent changed what this one shows: {alone.shown[i]} became {beside.shown[i]}"

    def test_policy_and_state_survive_as_plain_data(self, policy: Policy[Any]) -> None:
        """As JSON, there and back."""
        back = policy_from_dict(json.loads(json.dumps(policy.to_dict())))
        assert back == policy, f"{policy} came back as {back}"
        agent = Agent(policy, seed=9)
        interact(agent, steps=30, script_seed=9)
        state = bandit_of(agent).public.policy
        loaded = policy.load_state(json.loads(_as_json(policy, state)))
        assert loaded == state, f"the state {state} came back as {loaded}"

    def test_a_resumed_agent_goes_on_as_the_old_one_would_have(self, policy: Policy[Any]) -> None:
        """Nothing that counts is anywhere but in the file."""
        never_closed = interact(Agent(policy, seed=10), steps=80, script_seed=10)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "agent.db"

            agents = [Agent(policy, path=path, seed=10)]

            def reopen(agent: Agent, step: int) -> Agent:
                if step % 9 == 0:
                    agent.close()
                    agents[0] = agent = Agent.open(path)
                return agent

            try:
                resumed = interact(agents[0], steps=80, script_seed=10, pause=reopen)
            finally:
                agents[0].close()
        i = _first_difference(resumed.shown, never_closed.shown)
        assert i is None, f"after a restart it shows {resumed.shown[i]}, without one {never_closed.shown[i]}"

    def test_budgets_that_it_cannot_keep_are_refused(self, policy: Policy[Any]) -> None:
        """`supported_budgets` says which it can, and `check_budget` is called."""
        for notion, budget in EXAMPLES.items():
            refused = None
            try:
                policy.with_budget(budget)
            except UnsupportedBudget as error:
                refused = error
            assert (refused is None) == (notion in policy.supported_budgets), f"{budget}, refused: {refused}"


def _multipliers(agent: Agent) -> dict[str, list[float]]:
    """By episode, what it is in releases with, in the order of release."""
    found: dict[str, list[float]] = {}
    for row in agent.ledger:
        for label, multiplier in row.episodes.items():
            found.setdefault(label, []).append(multiplier)
    return found


SCRIPTS = range(6)
"""Seeds of the scripts for the rule that everything rests on."""


def _check_sums(agent: Agent, transcript: Transcript) -> None:
    """Without noise, what was released of a sum and what is still open add up to what entered it."""
    rows = [row for row in agent.ledger if row.weights is None]
    if len(rows) < len(agent.ledger):
        return
    for key, episode in bandit_of(agent).private.episodes.items():
        entered = [
            (entry[1], reward)
            for entry, (_, reward) in zip(transcript.entries, transcript.plays, strict=True)
            if entry is not None and entry[0] == key
        ]
        for i, open_total in enumerate(episode.totals.reveal()):
            released = math.fsum(_released(rows, key, i))
            total = math.fsum(weight[i] * reward for weight, reward in entered)
            found = released + open_total / episode.grid.steps
            assert math.isclose(found, total, rel_tol=1e-6, abs_tol=1e-6), f"sum {key} is {found}, told were {total}"


def _released(rows: Sequence[Release], key: int, i: int) -> list[float]:
    """Coordinate i of the sums of all released episodes, without those that their releases held again."""
    found: list[float] = []
    for row in rows:
        if key in row.keys:
            again = [part.multiplier for part in row.parts if not part.new]
            value = row.values[row.keys.index(key) + i]
            found.append(value - math.fsum(m * x for m, x in zip(again, reversed(found), strict=False)))
    return found


def _as_json(policy: Policy[Any], state: Any) -> str:
    try:
        return json.dumps(policy.dump_state(state))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"dump_state must give plain data, for JSON: {error}") from error


# The audit.


def audit_policy(policy: Policy[Any], thoroughness: Thoroughness = BRIEF) -> Report:
    """Audit an agent with the policy (docs/audit.md). AssertionError, with the evidence, if its promise is broken.

    A policy that keeps its promise is accused with probability at most `thoroughness.false_accusation`, 1e-10 by
    default. Nothing found is no proof.
    """
    report = audit(of_policy(policy), thoroughness, processes=1)
    text = io.StringIO()
    report.print(Console(file=text, width=200))
    assert not report.violated, f"the audit found a broken promise\n{text.getvalue()}"
    assert not any(part.skipped for part in report.parts), f"the audit could not look inside\n{text.getvalue()}"
    return report


class PolicyAudit:
    """The package's audit, as a test."""

    policies: ClassVar[Sequence[Policy[Any] | type[Policy[Any]]]] = ()
    thoroughness: ClassVar[Thoroughness] = BRIEF
    """How much to try. `Thoroughness(seconds=60)`, for a nightly run, looks from outside too."""

    pytest_generate_tests = PolicyRules.pytest_generate_tests

    def test_the_audit_finds_nothing(self, audited: Policy[Any]) -> None:
        """Neighbouring worlds, noise, the ledger; of a class, once for each kind of noise."""
        audit_policy(audited, self.thoroughness)


class PolicyContract(PolicyRules, PolicyAudit):
    """All rules and the audit: what the tests of a policy of your own inherit."""


def check_policy(policy: Policy[Any] | type[Policy[Any]], contract: type[Any] = PolicyContract) -> None:
    """Every test of the contract, without pytest. AssertionError if one fails, with its name and what was seen.

    >>> import private_bandits as pb
    >>> check_policy(pb.AdaCUCB(n_arms=2, budget=pb.zCDP(1)), contract=PolicyRules)
    """
    tests = contract()
    for name in dict.fromkeys(name for cls in contract.__mro__ for name in vars(cls) if name.startswith("test_")):
        test = getattr(tests, name)
        takes = inspect.signature(test).parameters
        for one in examples_of([policy], one_of_each_noise="audited" in takes):
            for options in [{"script_seed": seed} for seed in SCRIPTS] if "script_seed" in takes else [{}]:
                try:
                    test(one, **options)
                except Exception as error:  # of the policy's own code as well
                    what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
                    raise AssertionError(f"{policy_id(one)}: {name}: {what}") from error

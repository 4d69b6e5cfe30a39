"""Tries a policy on a log: what would its mean reward have been, had it chosen?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_bandits.agent import Agent, Decision
from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.offline.logs import read_log
from private_bandits.policies import Policy
from private_bandits.policies.base import arm_names


class Replay:
    """A log of past plays, on which any policy can be tried out: the replay method of Li et al. (2011).

    The policy is asked; a row whose logged arm is the recommended one gives its reward, and is a step; other rows are
    skipped. If rows are independent and logged arms were chosen uniformly at random, steps are distributed as if the
    policy had been live, and the mean reward estimates what it would have earned in as many steps. Chosen otherwise,
    arms need a column of the probabilities p that they were chosen with: rows are then kept with probability
    min(p)/p, which leaves arms that are uniform.

    log: a CSV file, a table such as a DataFrame, or tuples (arm, reward) or (arm, reward, probability).
    reward_range: (low, high), public; rewards outside are refused, not clipped.
    arms: names of the arms; by default those of the log, in the order in which they come first. Public.
    arm, reward, probability, actions: names of the columns. `probability` may be missing; `actions` is for contextual
    policies: the table of actions that there was to choose from, a row each (in a CSV file as JSON), and the arm is
    then the index of the chosen row.

    Regret is not known on a log, so `simulate` does not take one: see `run`.

    Li, Chu, Langford and Wang 2011, Unbiased offline evaluation of contextual-bandit-based news article recommendation
    algorithms, Algorithm 2 and Theorem 1.

    >>> import private_bandits as pb
    >>> log = Replay([("A", 1.0), ("B", 0.0), ("A", 0.5), ("B", 0.0)] * 100)
    >>> log
    Replay(400 rows, arms ('A', 'B'), reward_range=(0, 1))
    >>> result = log.run(pb.AdaCUCB(arms=["A", "B"], budget=pb.NoPrivacy()))
    >>> result.rows, result.steps, sum(result.plays.values())
    (400, 204, 204)
    """

    def __init__(
        self,
        log: Any,
        reward_range: tuple[float, float] | RewardRange = (0.0, 1.0),
        arms: Sequence[str] | None = None,
        *,
        arm: str = "arm",
        reward: str = "reward",
        probability: str = "probability",
        actions: str = "actions",
    ) -> None:
        bounds = RewardRange.of(reward_range)
        roles = {"arm": arm, "reward": reward, "probability": probability, "actions": actions}
        found = read_log(log, roles, required=["arm", "reward"])
        self.reward_range = (bounds.low, bounds.high)
        self._rewards = found.rewards(bounds)
        self._probabilities = found.probabilities()
        self._tables = found.tables() if "actions" in found.columns else None
        self.arms = () if self._tables is not None else arm_names(None, found.arm_names() if arms is None else arms)
        self._logged = found.actions(self.arms) if self._tables is None else found.chosen(self._tables)
        missing = set(range(len(self.arms))) - set(self._logged)
        if missing:
            raise InvalidInput(
                f"arm {self.arms[min(missing)]!r} is never in the log: a policy that recommends it would wait for ever"
            )

    def __len__(self) -> int:
        return len(self._rewards)

    def __repr__(self) -> str:
        low, high = self.reward_range
        shown = f"arms {self.arms}" if self.arms else "actions of their own"
        return f"Replay({len(self)} rows, {shown}, reward_range=({low:g}, {high:g}))"

    def run(self, policy: Policy[Any], seed: int | None = None) -> ReplayResult:
        """Play the policy on the log, once and in the order of its rows.

        Its arms are those of the log by name, or by index where it has as many without names of their own. It learns
        through an agent as it would live: without a seed what that agent publishes keeps its guarantee. The result is
        computed from raw rewards, and is not private.
        """
        order = self._order(policy)
        agent = Agent(policy, self.reward_range, seed=seed)
        matched = list(self._matched(agent, order, self._kept(seed)))
        plays = Counter(self.arms[self._logged[row]] if self.arms else str(self._logged[row]) for row in matched)
        return ReplayResult(agent, len(self), dict(plays), np.array([self._rewards[row] for row in matched], float))

    def _order(self, policy: Policy[Any]) -> Sequence[int]:
        """For each arm of the policy, which arm of the log it is; empty where actions change."""
        if not isinstance(policy, Policy):
            raise InvalidInput(f"policy must be a policy such as AdaCUCB(...), got {type(policy).__name__}")
        names = policy.arm_names
        if bool(names) != bool(self.arms):
            has, needs = ("has no", "needs one") if self.arms else ("has a", f"is for the {policy.setting} setting")
            raise InvalidInput(f"the log {has} column of actions, {type(policy).__name__} {needs}")
        if set(names) == set(self.arms):
            return [self.arms.index(name) for name in names]
        if len(names) == len(self.arms) and names in (
            arm_names(len(names), None),
            arm_names(len(names), None, "action"),
        ):
            return range(len(names))
        raise InvalidInput(f"the policy has the arms {list(names)}, the log {list(self.arms)}: name the policy's alike")

    def _kept(self, seed: int | None) -> Iterable[int]:
        """Rows that make logged arms uniform: all of them, where they are."""
        if self._probabilities is None:
            return range(len(self))
        generator = np.random.default_rng(None if seed is None else [seed, 1])  # not the agent's noise
        share = min(self._probabilities) / np.array(self._probabilities)
        found: list[int] = np.flatnonzero(generator.random(len(self)) < share).tolist()
        return found

    def _matched(self, agent: Agent, order: Sequence[int], rows: Iterable[int]) -> Iterator[int]:
        """The rows whose reward the agent was told. A decision among arms waits for a row of its arm."""
        decision = None
        for row in rows:
            if decision is None:
                decision = self._ask(agent, row)
            if (order[decision.action] if order else decision.action) == self._logged[row]:
                agent.tell(decision, self._rewards[row])
                decision = None
                yield row
            elif not order:
                agent.give_up(decision)
                decision = None

    def _ask(self, agent: Agent, row: int) -> Decision:
        try:
            return agent.ask(actions=None if self._tables is None else self._tables[row])
        except InvalidInput as error:
            raise InvalidInput(f"row {row} of the log (the first is 0): {error}") from None


@dataclass(frozen=True, repr=False, eq=False)
class ReplayResult:
    """What a policy earned on a log. NOT private: it is computed from raw rewards.

    agent: what learned from the log. Its ask, estimates, ledger and guarantee are what they would be live.
    rows: in the log. plays: how often each arm was matched. rewards: of every step, in order.
    """

    agent: Agent
    rows: int
    plays: Mapping[str, int]
    rewards: Floats

    @property
    def steps(self) -> int:
        """Rows that the policy's recommendation matched."""
        return len(self.rewards)

    @property
    def mean(self) -> float | None:
        """The estimate: mean reward over the steps; None without any."""
        return float(self.rewards.mean()) if self.steps else None

    @property
    def standard_error(self) -> float | None:
        """Of the mean, as if steps were independent; None with less than two."""
        return float(self.rewards.std(ddof=1) / math.sqrt(self.steps)) if self.steps > 1 else None

    @property
    def curve(self) -> Floats:
        """Mean reward over the first 1, 2, 3, ... steps."""
        return np.asarray(self.rewards.cumsum() / np.arange(1, self.steps + 1))

    @property
    def note(self) -> str:
        """Who may see it."""
        return (
            "NOT private: mean, standard_error, curve and rewards are computed from raw rewards without noise: publish "
            "none. What `agent` publishes keeps its guarantee: " + self.agent.guarantee().words
        )

    def __repr__(self) -> str:
        mean, error = (math.nan if x is None else x for x in (self.mean, self.standard_error))
        return (
            f"ReplayResult({self.agent.policy}: {self.steps} of {self.rows} rows matched, mean reward {mean:.6g}, "
            f"standard error {error:.2g}; NOT private, as computed from raw rewards)"
        )

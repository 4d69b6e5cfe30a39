"""Where simulated rewards come from. An environment knows the truth that a policy has to learn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from private_bandits.agent import Agent, Decision
from private_bandits.errors import InvalidInput
from private_bandits.logs import read_log
from private_bandits.policies import Policy
from private_bandits.policies.base import arm_names
from private_bandits.policies.linear import check_actions
from private_bandits.rewards import RewardRange

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class FiniteEnvironment(Protocol):
    """K arms whose rewards are independent draws, arm by arm."""

    @property
    def means(self) -> Floats:
        """The mean reward of each arm."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """Where rewards lie."""

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """For each i, the sum of counts[i] rewards of arm arms[i], exact in distribution, in one draw."""


@dataclass(frozen=True)
class Bernoulli:
    """Rewards of 1 with the arm's probability, else 0.

    >>> Bernoulli([0.75, 0.5]).means.tolist()
    [0.75, 0.5]
    """

    probabilities: Sequence[float]

    def __post_init__(self) -> None:
        try:
            values = tuple(float(p) for p in self.probabilities)
        except (TypeError, ValueError):
            raise InvalidInput(f"the means must be numbers, got {self.probabilities!r}") from None
        if not values:
            raise InvalidInput("the means must name at least one arm")
        if not all(0 <= p <= 1 for p in values):
            raise InvalidInput(f"the means of Bernoulli arms must lie in [0, 1], got {list(values)}")
        object.__setattr__(self, "probabilities", values)

    @property
    def means(self) -> Floats:
        """The probabilities of a reward of 1."""
        return np.array(self.probabilities)

    @property
    def reward_range(self) -> tuple[float, float]:
        """[0, 1]."""
        return (0.0, 1.0)

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """A Binomial draw each."""
        return generator.binomial(counts, self.means[arms]).astype(float)


def _parameter(theta: Any, size: int) -> tuple[float, ...]:
    """theta, checked: as many numbers as an action has."""
    try:
        numbers = tuple(float(x) for x in theta)
    except (TypeError, ValueError):
        raise InvalidInput(f"theta must be a list of numbers, got {theta!r}") from None
    if len(numbers) != size or not all(map(math.isfinite, numbers)):
        raise InvalidInput(f"theta must be {size} finite numbers, as many as an action has, got {list(numbers)}")
    return numbers


@dataclass(frozen=True)
class Linear:
    """Actions that are vectors, with rewards of mean <theta, a>.

    noise: "bounded" has rewards of +1 and -1, with P(+1) = (1 + <theta, a>)/2; "gaussian" adds N(0, 1) to the mean,
    as in the paper's experiment, which leaves every bounded range: no guarantee holds for such rewards.

    >>> Linear([[1, 0], [0.6, 0.8]], theta=[0.5, 0.25]).means.tolist()
    [0.5, 0.5]
    """

    actions: Any
    theta: Any
    noise: str = "bounded"

    def __post_init__(self) -> None:
        actions = check_actions(self.actions, math.inf)
        theta = _parameter(self.theta, len(actions[0]))
        if self.noise not in ("bounded", "gaussian"):
            raise InvalidInput(f"noise must be 'bounded' or 'gaussian', got {self.noise!r}")
        object.__setattr__(self, "actions", actions)
        object.__setattr__(self, "theta", theta)
        largest = float(np.abs(self.means).max())
        if self.bounded and largest > 1 + 1e-9:
            raise InvalidInput(
                f"rewards of +1 and -1 have means in [-1, 1], got |<theta, a>| = {largest:.6g}: divide theta by it"
            )

    @property
    def bounded(self) -> bool:
        """Whether rewards stay in their range."""
        return self.noise == "bounded"

    @property
    def means(self) -> Floats:
        """<theta, a> of every action."""
        return np.asarray(np.array(self.actions) @ np.array(self.theta), float)

    @property
    def reward_range(self) -> tuple[float, float]:
        """[-1, 1]: of Gaussian rewards, what is declared."""
        return (-1.0, 1.0)

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """A Binomial or a Normal draw each."""
        means = self.means[arms]
        if self.bounded:
            return np.asarray(2.0 * generator.binomial(counts, ((1 + means) / 2).clip(0, 1)) - counts, float)
        return np.asarray(counts * means + np.sqrt(counts) * generator.standard_normal(len(counts)))


@dataclass(frozen=True)
class Contextual:
    """Fresh actions at every step, with rewards of mean <theta, a>.

    Each of the `arms` actions is drawn from N((1/sqrt(d), ..., 1/sqrt(d)), I/10), d the dimension.

    setting: "strict" scales actions into the unit ball, a / max(1, |a|), and has rewards of +1 and -1, with
    P(+1) = (1 + <theta, a>)/2. "paper" leaves actions as drawn and adds N(0, 1) to the mean, as in the paper's
    experiment: neither stays within its bound, so no guarantee holds.

    >>> world = Contextual(dimension=2, arms=5, theta=[0.6, 0.8])
    >>> actions = world.draw_actions(np.random.default_rng(0))
    >>> actions.shape, bool((np.linalg.norm(actions, axis=1) <= 1).all())
    ((5, 2), True)
    """

    dimension: int
    arms: int
    theta: Any
    setting: str = "strict"

    def __post_init__(self) -> None:
        for name in ("dimension", "arms"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InvalidInput(f"{name} must be a whole number of at least 1, got {value!r}")
            object.__setattr__(self, name, int(value))
        theta = _parameter(self.theta, self.dimension)
        if self.setting not in ("strict", "paper"):
            raise InvalidInput(f"setting must be 'strict' or 'paper', got {self.setting!r}")
        object.__setattr__(self, "theta", theta)
        if self.bounded and math.hypot(*theta) > 1 + 1e-9:
            raise InvalidInput(
                f"rewards of +1 and -1 need |theta| at most 1, got {math.hypot(*theta):.6g}: divide theta by it"
            )

    @property
    def scaled(self) -> bool:
        """Whether actions are scaled into the unit ball."""
        return self.setting == "strict"

    @property
    def bounded(self) -> bool:
        """Whether rewards are +1 and -1; else they are Gaussian."""
        return self.setting == "strict"

    @property
    def deviation(self) -> float:
        """The standard deviation of a Gaussian reward."""
        return 1.0

    @property
    def reward_range(self) -> tuple[float, float]:
        """[-1, 1]: of Gaussian rewards, what is declared."""
        return (-1.0, 1.0)

    def draw_actions(self, generator: np.random.Generator) -> Floats:
        """The actions of one step, a row each."""
        actions = generator.normal(1 / math.sqrt(self.dimension), math.sqrt(0.1), (self.arms, self.dimension))
        if self.scaled:
            # A hair less than one, so that rounding leaves no action outside the unit ball.
            actions *= np.minimum(1.0, (1 - 1e-12) / np.linalg.norm(actions, axis=1, keepdims=True))
        return actions

    def draw_reward(self, generator: np.random.Generator, action: Floats) -> float:
        """A reward of one action."""
        mean = float(np.dot(self.theta, action))
        if self.bounded:
            return 1.0 if 2 * generator.random() - 1 < mean else -1.0
        return mean + self.deviation * float(generator.standard_normal())


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

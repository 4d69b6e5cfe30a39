"""What is audited: something that makes agents, and what those agents claim."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np

from private_bandits.agent import Agent, bandit_of
from private_bandits.audit.attempts import Hanging, attempt, watched
from private_bandits.audit.evidence import Claim
from private_bandits.audit.offers import Offers
from private_bandits.budget import ApproxDP, Budget, NoPrivacy, PureDP, RenyiDP, equal_budget, zCDP
from private_bandits.errors import InvalidInput
from private_bandits.guarantee import Unit
from private_bandits.loading import load_object
from private_bandits.policies import POLICIES, Policy
from private_bandits.policies.base import instead_of


@dataclass(frozen=True)
class Target:
    """Makes fresh agents. `inside`: they are this package's, so that sums can be watched on their way to the noise."""

    name: str
    make: Callable[..., Any]
    claim: Claim | None
    low: float
    high: float
    names: tuple[Hashable, ...]
    """The actions, as a decision shows them."""
    inside: bool
    takes_path: bool
    may_play: bool
    parts: tuple[int, ...] = (0,)
    """The parts of a decision that say what is recommended; others are ids."""
    reward_by_name: bool = False
    names_people: bool = False
    unit: Unit = "reward"
    also: tuple[Target, ...] = ()
    """The same agents made with other options: a limit for people, decisions that run out of time."""
    options: str = ""
    """Those options in words."""
    asks_many: bool = False
    """Whether ask(n=...) hands out a list."""
    tells_many: bool = False
    supports_warm_start: bool = False
    finishes: bool = False
    """Whether there is a finish() that ends the run."""
    unused: tuple[str, ...] = ()
    """Methods that look like those of this package and did not work like them."""
    offers: Offers | None = None
    """Where actions change from step to step: those of a step, by its number."""
    private_contexts: bool = False
    """Whether those are secret too: then what a person is recommended is for that person's eyes."""

    @property
    def arms(self) -> int:
        """How many actions there are."""
        return len(self.names)

    def action(self, decision: Any) -> Hashable:
        """What a decision recommends."""
        return _joined(parts_of(decision), self.parts)

    def place(self, action: Hashable) -> int:
        """The number of an action; of one that was never seen before, one that depends on its name alone."""
        return self.names.index(action) if action in self.names else crc32(str(action).encode()) % self.arms

    def tell(self, agent: Any, decision: Any, reward: float, played: Hashable | None = None) -> Any:
        """Tell as the agent wants to be told; whatever it answers."""
        return _tell(agent, decision, reward, self.reward_by_name, {} if played is None else {"played": played})

    def ask(self, agent: Any, person: int, offered: Any = None, many: int | None = None) -> Any:
        """Ask as this person, where agents want to know.

        offered: instead of what this step offers. many: for a list of so many decisions at once.
        """
        options = self.options_of_ask(agent, person, offered)
        return agent.ask(**options) if many is None else agent.ask(n=many, **options)

    def options_of_ask(self, agent: Any, person: int, offered: Any = None) -> dict[str, Any]:
        """Who asks and what is offered, where agents want to know."""
        options: dict[str, Any] = {"person": f"person {person}"} if self.names_people else {}
        if self.offers is not None:
            options["actions"] = self.offers(bandit_of(agent).public.asked) if offered is None else offered
        return options

    def reward(self, share: float) -> float:
        """The reward that is this share of the range."""
        return self.low + share * (self.high - self.low)

    def log_row(self, arm: int, share: float, person: int, step: int) -> tuple[Any, ...]:
        """A past reward as a row of a log. step: of whose offer the arm is, where actions change."""
        played = self.names[arm] if self.offers is None else self.offers(step)[arm]
        row = (played, self.reward(share))
        return (*row, f"person {person}") if self.names_people else row

    def open(self, agent: Any, path: Any) -> Any:
        """Another agent that goes on from the file of this one."""
        return type(agent).open(path)


def of_policy(policy: Policy[Any], reward_range: tuple[float, float] = (0.0, 1.0)) -> Target:
    """Agents of this package with the policy."""
    claim = _claim(policy.budget, inside=True) if policy.budget.noise != "none" else None
    low, high = reward_range
    make = partial(Agent, policy, reward_range)
    variant = f" {policy.variant}" if len(policy.variants) > 1 else ""  # type: ignore[attr-defined]
    name = f"{policy.name}{variant} {policy.budget}"
    target = Target(name, make, claim, low, high, _arms_of(policy), True, True, True, **_abilities_of(policy))
    return replace(target, also=_with_options(target))


LIMITS: dict[str, Any] = {"max_rewards_per_person": 2}
SPREAD: dict[str, Any] = {"max_rewards_per_person": 3, "one_reward_per_episode": True}
HURRY: dict[str, Any] = {"give_up_after": 3}


def _with_options(target: Target) -> tuple[Target, ...]:
    """Agents of this package that promise something to people, and agents that forget people and decisions."""
    per_person = partial(target.make, unit="person", **LIMITS)
    spread = partial(target.make, unit="person", **SPREAD)
    forgetful = partial(target.make, **LIMITS, **HURRY)
    return (
        replace(target, make=per_person, names_people=True, unit="person", options="unit='person', two rewards each"),
        replace(target, make=forgetful, names_people=True, options="two rewards a person, give_up_after=3"),
        replace(
            target,
            make=spread,
            names_people=True,
            unit="person",
            options="unit='person', three rewards each, spread out",
        ),
    )


def _arms_of(policy: Policy[Any]) -> tuple[int, ...]:
    return tuple(range(len(policy.arm_names) or Offers(policy).rows))


def _abilities_of(policy: Policy[Any]) -> dict[str, Any]:
    """The calls that agents of this package can serve with the policy."""
    supports_warm_start = policy.supports_warm_start and not policy.private_contexts
    found: dict[str, Any] = {"asks_many": True, "tells_many": True, "supports_warm_start": supports_warm_start}
    found["finishes"] = True
    if not policy.arm_names:
        found |= {"offers": Offers(policy), "private_contexts": policy.private_contexts}
    return found


def of_factory(
    factory: str | Callable[..., Any],
    budget: Budget | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    arms: int | None = None,
    gaussian: bool = False,
) -> Target:
    """Return a target of agents that a user's function makes.

    Args:
        factory: The function, or where it is, as "module:function".
        budget: What the agents claim. None: their own guarantee is taken at its word.
        reward_range: Of a reward.
        arms: How many there are. None: as many as are seen.
        gaussian: Whether the claim is of Gaussian noise, which has a sharper curve than its zCDP (docs/audit.md).
    """
    try:
        with watched():
            return _of_factory(factory, budget, reward_range, arms, gaussian)
    except Hanging as error:
        raise InvalidInput(f"the agents of {factory} cannot be audited: {error}") from None


def _of_factory(
    factory: str | Callable[..., Any],
    budget: Budget | None,
    reward_range: tuple[float, float],
    arms: int | None,
    gaussian: bool,
) -> Target:
    if budget is not None and not isinstance(budget, Budget):
        raise InvalidInput(f"budget must be one such as zCDP(0.5), got {budget!r}")
    if not callable(factory) and not isinstance(factory, str):
        raise InvalidInput(f"an audit needs a function that makes agents, got a {type(factory).__name__}")
    function = _load(factory) if isinstance(factory, str) else factory
    make = Named(factory) if isinstance(factory, str) else factory
    name = factory if isinstance(factory, str) else getattr(factory, "__qualname__", repr(factory))
    agent, another = _two_agents(make, name)
    inside = isinstance(agent, Agent)
    by_name = _takes_reward_by_name(agent.tell)
    if not inside:
        _check_answers(another, name, reward_range[1], by_name)
    low, high = agent.settings["reward_range"] if inside else reward_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"reward_range must be low < high, got ({low}, {high})")
    claim = _claim(budget, inside=False) if budget is not None else _own_claim(agent, name)
    if gaussian:
        claim = _gaussian_claim(claim)
    settings = agent.settings if inside else {}
    names, parts = (_arms_of(agent.policy), (0,)) if inside else find_actions(make, low, high, arms, by_name)
    target = Target(
        name,
        make,
        claim,
        low,
        high,
        names,
        inside,
        takes_path=inside and accepts(function, "path"),
        may_play=accepts(agent.tell, "played"),
        parts=parts,
        reward_by_name=by_name,
        names_people=settings.get("max_rewards_per_person") is not None,
        unit=settings.get("unit", "reward"),
        **(_abilities_of(agent.policy) if inside else {}),
    )
    if not inside:
        return _with_found_abilities(target)
    hurried = replace(target, make=partial(make, **HURRY), options="give_up_after=3")
    return replace(target, also=(hurried,)) if accepts(function, "give_up_after") else target


def _two_agents(make: Callable[..., Any], name: str) -> tuple[Any, Any]:
    """Two fresh agents that have ask and tell."""
    with redirect_stdout(sys.stderr):
        made = attempt(lambda: (make(), make()))
    if made.failed:
        raise InvalidInput(f"{name}() failed with {made.words}")
    agent, another = made.value
    if agent is None:
        raise InvalidInput(f"{name}() returned nothing: it must return an agent")
    if agent is another:
        raise InvalidInput(f"{name}() returns the same agent twice: an audit needs a fresh one each time")
    for verb in ("ask", "tell"):
        if not callable(getattr(agent, verb, None)):
            raise InvalidInput(
                f"{name} made a {type(agent).__name__}, which has no {verb}(): an agent has ask and tell"
            )
    return agent, another


def _with_found_abilities(target: Target) -> Target:
    """Try out on fresh foreign agents which calls beside ask and tell they serve."""
    tries: dict[str, Callable[[], Any]] = {
        "asks_many": partial(_asks_many, target),
        "tells_many": partial(_tells_many, target),
        "supports_warm_start": partial(_takes_logs, target),
    }
    methods = {"asks_many": "ask(n=...)", "tells_many": "tell_many", "supports_warm_start": "warm_start"}
    found: dict[str, bool] = {}
    unused = []
    with redirect_stdout(sys.stderr):
        for name, call in tries.items():
            answer = attempt(call)
            found[name] = answer.value is True
            if answer.failed:
                unused.append(f"{methods[name]} was tried and left out, as it failed with {answer.words}")
    found["finishes"] = attempt(lambda: callable(target.make().finish)).value is True
    return replace(target, **found, unused=tuple(unused))  # type: ignore[arg-type]


def _asks_many(target: Target) -> bool:
    """Whether ask(n=2) makes two of what ask() makes one of."""
    agent = target.make()
    if not accepts(agent.ask, "n"):
        return False
    one, two = agent.ask(), agent.ask(n=2)
    return isinstance(two, Sequence) and len(two) == 2 and all(type(each) is type(one) for each in two)


def _tells_many(target: Target) -> bool:
    """Whether some batch is taken: others may be refused for their rewards, which is for the audit to find."""
    if not callable(getattr(target.make(), "tell_many", None)):
        return False
    return _works_once(partial(_tell_batch, target, share) for share in (0.0, 0.5, 1.0))


def _tell_batch(target: Target, share: float) -> None:
    agent = target.make()
    agent.tell_many([(agent.ask(), target.reward(share)), (agent.ask(), target.reward(share))])


def _takes_logs(target: Target) -> bool:
    """Whether some log is taken."""
    if not callable(getattr(target.make(), "warm_start", None)):
        return False
    return _works_once(partial(_start_from_log, target, share) for share in (0.0, 0.5, 1.0))


def _start_from_log(target: Target, share: float) -> None:
    target.make().warm_start([target.log_row(0, share, 0, 0), target.log_row(0, share, 0, 1)])


def _works_once(calls: Iterable[Callable[[], Any]]) -> bool:
    """Whether one of the calls does not fail. If all of them do, the last one's failure is raised."""
    *first, last = calls
    return any(not attempt(call).failed for call in first) or last() is None


def _takes_reward_by_name(tell: Any) -> bool:
    try:
        parameter = inspect.signature(tell).parameters.get("reward")
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.kind is parameter.KEYWORD_ONLY


def _tell(agent: Any, decision: Any, reward: float, by_name: bool, options: dict[str, Any]) -> Any:
    return agent.tell(decision, reward=reward, **options) if by_name else agent.tell(decision, reward, **options)


def _check_answers(agent: Any, name: str, reward: float, by_name: bool) -> None:
    """One ask and one tell: an agent that no reward reaches would look private."""
    with redirect_stdout(sys.stderr):
        asked = attempt(agent.ask)
        told = attempt(lambda: _tell(agent, asked.value, reward, by_name, {}))
    for verb, answer in (("ask()", asked), ("tell(decision, reward)", told)):
        if answer.failed:
            raise InvalidInput(f"{name} refuses its first {verb}: {answer.words}")
    if asked.value is None:
        raise InvalidInput(
            f"ask() of {name} returned nothing: a decision has .action or .arm, or is a number or a name"
        )


EXAMPLES: dict[str, Budget] = {
    "zCDP": zCDP(0.5),
    "ApproxDP": ApproxDP(1.0, 1e-6),
    "RenyiDP": RenyiDP(8.0, 2.0),
    "PureDP": PureDP(1.0),
    "NoPrivacy": NoPrivacy(),
}
"""What a shipped policy is audited with when no budget is asked for: one of each kind that it serves."""


def shipped(name: str = "all", budget: Budget | None = None, variant: str | None = None) -> list[Target]:
    """The package's own policies, found by name or all of them.

    budget: None audits one policy with every kind of budget that it serves, and all of them with one for each kind of
    noise: budgets of one kind differ in nothing but the level. variant: None audits one policy as it is by default, and
    all of them in every variant; of all of them, those that have the variant are audited.
    """
    own = [n for n, policy in POLICIES.items() if policy.__module__.startswith("private_bandits.")]
    names = sorted(own) if name == "all" else [name]
    found = []
    for one in names:
        policy = POLICIES[one]
        every = [EXAMPLES[n] for n in policy.supported_budgets]
        if name == "all":
            every = list({b.noise: b for b in reversed(every)}.values())[::-1]
        budgets = every if budget is None else [equal_budget(budget, policy.supported_budgets)]
        small = [_small(policy.example(b)) for b in budgets]
        found += [of_policy(v) for made in small for v in _variants(made, variant, every=name == "all")]
    if not found:
        raise InvalidInput(f"no policy has a variant {variant!r}")
    return found


def _variants(policy: Any, variant: str | None, every: bool) -> list[Any]:
    """The policy in this variant, or as it is by default; every: in all that it has, or in this one if it has it."""
    own = getattr(policy, "variant", policy.variants[0])
    chosen = [v for v in policy.variants if variant in (None, v)] if every else [variant or own]
    if not set(chosen) <= set(policy.variants):
        raise InvalidInput(
            f"variant of {policy.name} must be one of {', '.join(policy.variants)}, got {variant!r}"
            + instead_of(type(policy), variant)
        )
    return [policy if v == own else replace(policy, variant=v) for v in chosen]


SMALL_TREE = 15
"""Leaves of the trees that are audited: few, so that replays fill them and go on."""
SMALL_FACTOR = 1
"""Steps that the factors with a cap are made for: few, so that replays use them up and go on."""


def _small(policy: Any) -> Any:
    if policy.tree_levels:
        return replace(policy, horizon=SMALL_TREE)
    capped = policy.factor is not None and policy.factor.cap is not None
    return replace(policy, horizon=SMALL_FACTOR) if capped else policy


@dataclass(frozen=True)
class Named:
    """The function that `module:name` names, found by this name in other processes too."""

    path: str

    def __call__(self, **options: Any) -> Any:
        """Call it."""
        return load_object(self.path)(**options)


def _load(path: str) -> Callable[..., Any]:
    if ":" not in path:
        raise InvalidInput(
            f"policy must be all, one of {', '.join(sorted(POLICIES))}, or a factory as module:make_agent, got {path!r}"
        )
    found = load_object(path)
    if not callable(found):
        raise InvalidInput(f"{path} is a {type(found).__name__}, not a function that makes an agent")
    return found  # type: ignore[no-any-return]


def _claim(budget: Budget, inside: bool) -> Claim | None:
    """A Gaussian budget of this package's agents is kept, and stated, as rho."""
    if budget.noise == "none":
        return None
    if isinstance(budget, PureDP):
        return Claim("pure DP", budget.epsilon)
    if isinstance(budget, ApproxDP) and not inside:
        return Claim("approximate DP", budget.epsilon, budget.delta)
    return Claim("zCDP", budget.level)


def _gaussian_claim(claim: Claim | None) -> Claim:
    if claim is None or claim.notion != "zCDP":
        raise InvalidInput(f"a claim of Gaussian noise has a rho, such as zCDP(0.5), got {claim or 'no claim'}")
    return Claim("Gaussian DP", claim.level)


def _own_claim(agent: Any, name: str) -> Claim | None:
    said = attempt(lambda: _promised(agent.guarantee()))
    if said.failed:
        raise InvalidInput(f"{name} does not say what it keeps: give rho, or epsilon")
    promised, pure = said.value
    if not promised < math.inf:
        return None
    return Claim("pure DP" if pure else "zCDP", promised)


def _promised(guarantee: Any) -> tuple[float, bool]:
    return float(guarantee.promised), getattr(guarantee, "delta", 1.0) == 0.0


def find_actions(
    make: Callable[..., Any], low: float, high: float, arms: int | None, by_name: bool
) -> tuple[tuple[Hashable, ...], tuple[int, ...]]:
    """The actions that show up when rewards are bad, good and mixed, and which parts of a decision make them.

    A part that is never the same twice is an id.
    """
    runs: list[list[tuple[Hashable, ...]]] = []
    for rewards in ((low,), (high,), (low, high), (high, low, low)):
        runs.append([])
        # An agent may refuse to go on, after its last step for instance: what it showed until then counts.
        with redirect_stdout(sys.stderr):
            attempt(partial(_show_actions, make, rewards, by_name, runs[-1]))
    seen = [parts for run in runs for parts in run]
    if not seen:
        raise InvalidInput("no fresh agent answers ask(): an audit needs decisions")
    width = min(map(len, seen))
    keep = tuple(i for i in range(width) if any(len({p[i] for p in run}) < max(2, len(run)) for run in runs))
    keep = keep or tuple(range(width))
    names = {_joined(parts, keep) for parts in seen}
    if len(names) > 100 and len(names) > len(seen) / 2:
        raise InvalidInput(
            f"nearly every decision is a new one ({len(names)} of {len(seen)}): give it an attribute `action` or `arm`"
        )
    numbers = [name for name in names if isinstance(name, int)]
    if len(numbers) == len(names) and min(numbers) >= 0 and max(numbers) < 1000:
        return tuple(range(max(arms or 0, 1 + max(numbers)))), keep
    return tuple(sorted(names, key=str)), keep


def _show_actions(
    make: Callable[..., Any], rewards: tuple[float, ...], by_name: bool, shown: list[tuple[Hashable, ...]]
) -> None:
    agent = make()
    for i in range(64):
        decision = agent.ask()
        shown.append(parts_of(decision))
        _tell(agent, decision, rewards[i % len(rewards)], by_name, {})


def parts_of(decision: Any) -> tuple[Hashable, ...]:
    """What a decision says: its `action` or `arm` where it has one, or else all of its fields or elements."""
    for name in ("action", "arm"):
        if isinstance(decision, Mapping) and name in decision:
            return (_plain(decision[name]),)
        if hasattr(decision, name):
            return (_plain(getattr(decision, name)),)
    if isinstance(decision, Mapping):
        return tuple(_plain(value) for value in decision.values())
    if isinstance(decision, (tuple, list)):
        return tuple(map(_plain, decision))
    if hasattr(decision, "__dict__") and not isinstance(decision, Enum):
        return tuple(_plain(value) for name, value in vars(decision).items() if name[0] != "_")
    return (_plain(decision),)


def _plain(value: Any) -> Hashable:
    if isinstance(value, (int, float, np.number)):
        return int(value) if value == int(value) else float(value)
    return str(value)


def _joined(parts: tuple[Hashable, ...], keep: tuple[int, ...]) -> Hashable:
    chosen = tuple(parts[i] for i in keep if i < len(parts))
    return chosen[0] if len(chosen) == 1 else str(chosen)


def accepts(function: Any, name: str) -> bool:
    """Whether a function takes an argument of this name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == name for p in parameters)

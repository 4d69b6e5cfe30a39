"""What a policy is: it sees actions and releases, never a reward.

A policy is a frozen set of parameters. Its state is a plain object of its own. `learn` changes it, which is given a
release, and so do `arrive` and `leave`, which are given counts and public weights. So nothing that a policy says can
depend on a reward that has not been released.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_bandits.budget import Budget
from private_bandits.checks import large_number, whole_number
from private_bandits.errors import InvalidInput, UnsupportedBudget
from private_bandits.ledger import Release
from private_bandits.mechanism.factor import Factor
from private_bandits.mechanism.moments import MomentScale
from private_bandits.policies.evidence import ArmEvidence

State = TypeVar("State")

_READ_IN_A_BATCH = {"entry", "entry_of", "due", "combination", "arrive", "leave", "learn", "take", "wait"}

UNIT_WEIGHT = (1,)

Variant = Literal["paper", "tight"]
"""As published, or with less regret for the same budget."""

POLICIES: dict[str, type[Policy[Any]]] = {}
"""Every policy by the name that the command line and stored files use; filled as classes are defined."""


class Estimate(NamedTuple):
    """What the releases say of one arm: its mean, and an interval that holds it.

    The intervals of all arms, at all times, hold together with probability at least 1 - delta, if the rewards
    of an arm share one mean whatever happened before. rewards: how many are in the release that says it, of this arm
    alone or, for linear policies, of all that were played.
    """

    action: int
    arm: str
    mean: float | None
    low: float
    high: float
    rewards: int


class Prediction(NamedTuple):
    """What the releases say of the mean reward of an action that is a vector: the mean, and an interval that holds it.

    The intervals of all actions, at all times, hold together with probability at least 1 - delta, if mean rewards are
    linear in the action as the policy assumes (docs/guarantees.md, "Predictions"). mean is None where nothing was
    released that says anything of the action: then the interval is the reward range.
    """

    mean: float | None
    low: float
    high: float


class Combination(NamedTuple):
    """Several sums that are to leave together, in one release.

    keys: of the sums. weights: a row for each value that leaves, a number for each sum; None: each sum by itself.
    """

    keys: tuple[int, ...]
    weights: Sequence[Sequence[float]] | None


Offer = NDArray[np.int64]
"""The actions of one step, a row each, in whole steps of the policy's grid."""


class Policy(ABC, Generic[State]):
    """A rule that recommends actions and says which sums of rewards it wants released.

    A reward for `action` enters the sum that `entry` names, with a public weight. As soon as `due` says so the
    sum goes through the door, alone or as `combination` says, and `learn` is told the release. No method is ever
    given a reward; `arrived` is how many rewards each open sum holds, by key.

    Subclasses are frozen dataclasses that call `check_budget` when they are made.
    """

    name: ClassVar[str] = ""
    setting: ClassVar[str]
    supported_budgets: ClassVar[tuple[str, ...]]
    """The budgets it can keep, by name."""
    source: ClassVar[str]
    """Where it was published."""
    in_words: ClassVar[str] = "A method of its own chooses, from what was released so far and from what is public."
    """How it chooses, for people who know nothing of algorithms: a statement says it (statement/)."""
    variants: ClassVar[tuple[Variant, ...]] = ("paper",)
    """What `variant` may be: as published, or "tight", with less regret for the same budget."""
    former_variants: ClassVar[Mapping[str, str]] = {}
    """Variants that earlier versions had, each with what to use instead."""
    formerly: ClassVar[Mapping[str, Any]] = {}
    """What parameters were before files held them: what earlier versions did without them."""
    replaced_by: ClassVar[str] = ""
    """The policy that new agents use instead of one that is only there for files of earlier versions."""
    private_contexts: ClassVar[bool] = False
    """Whether actions are private as well, so that nothing but `choose` and the sums may depend on them."""
    supports_warm_start: ClassVar[bool] = False
    """Whether it learns from a release whatever the number of rewards in it, and from each sum alone: `warm_start`."""
    changes_on_arrival: ClassVar[bool] = False
    """Whether `arrive` does anything, so that `dump_arrivals` has to be stored with every reward."""
    waits_for: ClassVar[Literal["all", "none"]] = "all"
    """Which releases of a batch it has to learn before it is asked about the next reward: "all", or "none" if `entry`,
    `due`, `combination` and `arrive` read nothing that `learn` changes but counts, of which `leave` tells in time.
    Releases that wait are written together. A subclass that changes one of these methods waits for all."""
    alternative_hint: ClassVar[str] = ""
    """What to use for the other budgets."""

    budget: Budget

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for ancestor in cls.__mro__:
            if "waits_for" in vars(ancestor):
                break
            if not _READ_IN_A_BATCH.isdisjoint(vars(ancestor)):  # changed, and who said what to wait for did not know
                cls.waits_for = "all"
                break
        if cls.__dict__.get("name"):
            known = POLICIES.get(cls.name, cls)
            if known.__module__.startswith(__package__) and not cls.__module__.startswith(__package__):
                # A file of the one would come back as the other.
                raise InvalidInput(f"the name {cls.name!r} belongs to {known.__name__}: give {cls.__name__} another")
            POLICIES[cls.name] = cls

    @classmethod
    @abstractmethod
    def example(cls, budget: Budget) -> Self:
        """A small instance: what contract tests and audits run on."""

    def check_budget(self) -> None:
        """Refuse a promise that this policy cannot keep."""
        if not isinstance(self.budget, Budget):
            raise InvalidInput(f"{type(self).__name__} needs a budget such as zCDP(0.1), got {self.budget!r}")
        if type(self.budget).__name__ not in self.supported_budgets:
            raise UnsupportedBudget(
                f"{type(self).__name__} cannot keep {self.budget}: it serves {', '.join(self.supported_budgets)}. "
                + self.alternative_hint
            )

    @property
    def weight_room(self) -> int:
        """How large weights have to get, in whole numbers, to be of use; the grid leaves room for noise on them."""
        return 1

    @property
    def declared_weight(self) -> int:
        """A norm that weights have at most, and that the noise is for whatever they were; 0: for those summed."""
        return 0

    @property
    def tree_levels(self) -> int:
        """In how many releases a reward may be; 0 for one, without a tree (tree.py)."""
        return 0

    @property
    def factor(self) -> Factor | None:
        """How later releases hold earlier episodes again, so that their noise goes together (factor.py); None: not.

        `count` of such a release is the number of rewards that are new in it. `parts` of it lists the episodes that it
        holds again too. `combination` is for policies without a factor.
        """
        return None

    def moments(self, low: float, high: float) -> MomentScale | None:
        """What is summed for rewards in [low, high] where contexts are private; None: weights times rewards."""
        return None

    @property
    @abstractmethod
    def arm_names(self) -> tuple[str, ...]:
        """The actions by name, in the order of their indices."""

    def with_budget(self, budget: Budget) -> Self:
        """The same policy under another budget."""
        return replace(self, budget=budget)  # type: ignore[type-var]

    def for_people(self, rewards: int) -> Self:
        """Return the policy to run for people with so many rewards each, one in an episode at most.

        Where releases hold earlier episodes again, rewards of one person in several episodes meet in one release and
        cost more than each by itself. A policy may have another factor, or episodes of other lengths, for that.
        """
        return self

    @abstractmethod
    def start(self, low: float, high: float) -> State:
        """The state before the first decision, for rewards in [low, high]."""

    @abstractmethod
    def recommend(self, state: State, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """The action of decision number `step`; waiting[a] decisions for action a are open. Changes nothing.

        It is not asked of decisions that play a control arm by a coin.
        """

    def choose(self, state: State, offered: Offer, step: int) -> int:
        """The same, among actions that were offered: only where they change from step to step."""
        raise InvalidInput(f"{type(self).__name__} has the same actions at every step")

    def entry_of(self, state: State, offered: Offer, played: int) -> tuple[int, tuple[int, ...]] | None:
        """`entry` for an action that was offered."""
        raise InvalidInput(f"{type(self).__name__} has the same actions at every step")

    @abstractmethod
    def entry(self, state: State, action: int) -> tuple[int, tuple[int, ...]] | None:
        """The sum that a reward for `action` enters and its integer weight there; None drops the reward."""

    @abstractmethod
    def due(self, state: State, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """Whether to release once the sum `key` holds `count` rewards and the others what has arrived."""

    def combination(self, state: State, key: int, arrived: Mapping[int, int]) -> Combination | None:
        """What leaves when the sum `key` is due: None, that sum alone. Its last reward is not in `arrived` yet."""
        return None

    def offer(self, actions: ArrayLike | None) -> Offer | None:
        """What `ask(actions=...)` offers, checked and on the grid: only where actions change from step to step."""
        if actions is not None:
            raise InvalidInput(f"{type(self).__name__} has the same actions at every step: ask without actions")
        return None

    def arrive(self, state: State, key: int, weight: tuple[int, ...]) -> Callable[[], None]:
        """A reward of this weight has arrived, whatever it is. Returns how to undo it.

        Where contexts are private the weight is (): that it arrived is all that is public.
        """
        return nothing_to_undo

    def leave(self, state: State, rewards: Mapping[int, int]) -> Callable[[], None]:
        """Sums leave now, with so many rewards, by key; `learn` is told the release later. Returns how to undo it."""
        return nothing_to_undo

    @abstractmethod
    def learn(self, state: State, release: Release, step: int) -> None:
        """Take in a release; `step` is the number of the next decision. The only method that sees what rewards were."""

    @abstractmethod
    def estimates(self, state: State, delta: float) -> list[Estimate]:
        """What the releases say of each arm, right for all arms and times with probability 1 - delta."""

    def evidence(self, state: State) -> list[ArmEvidence] | None:
        """What a verdict is drawn from, for each arm; None: a verdict is drawn from the intervals of `estimates`.

        For policies whose number of rewards in an arm's j-th release is known beforehand (docs/guarantees.md).
        """
        return None

    def planned(self, state: State, key: int) -> int | None:
        """How many rewards the next release of the sum `key` would have; None: that is not known beforehand."""
        return None

    def final_evidence(self, state: State, rows: Sequence[Release], closing: int) -> list[ArmEvidence] | None:
        """What all releases of each arm say at the end, the closing ones included, in which rewards may be missing.

        rows: of the ledger. closing: the number of the first closing one. None: nothing but `estimates` is known.
        """
        return None

    def eliminates(self, delta: float) -> bool:
        """Whether it drops actions, and never the best one with probability at least 1 - delta."""
        return False

    def only_left(self, state: State) -> int | None:
        """The one action that is left, if all others were dropped."""
        return None

    def predict(self, state: State, actions: ArrayLike | None, delta: float) -> list[Prediction]:
        """What the releases say of the mean reward of any action, right for all actions and times with 1 - delta.

        actions: a row each, or one vector. Only where actions are vectors, and where a width is proven.
        """
        if self.setting == "finite":
            raise InvalidInput(f"{type(self).__name__} has arms that no vectors describe: use estimates()")
        raise InvalidInput(f"{type(self).__name__} has no proven interval for the mean reward of an action")

    @abstractmethod
    def load_state(self, data: Mapping[str, Any]) -> State:
        """The state that `dump_state` wrote."""

    def dump_state(self, state: State) -> dict[str, Any]:
        """The state as plain data. Public: nothing in it depends on an unreleased reward."""
        return plain_copy(state)  # type: ignore[no-any-return]

    def dump_arrivals(self, state: State) -> dict[str, Any]:
        """Of `dump_state` what `arrive` may have changed since the last release."""
        return self.dump_state(state)

    def to_dict(self) -> dict[str, Any]:
        """The parameters as plain data."""
        data: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self) if f.init}  # type: ignore[arg-type]
        data["budget"] = {"kind": type(self.budget).__name__, **asdict(self.budget)}
        return {"policy": self.name, **data}


def no_budget() -> Budget:
    """Refuse a policy that is made without a budget: there is no default promise."""
    raise InvalidInput("a policy needs a budget: give it one, such as budget=zCDP(0.1)")


@dataclass(frozen=True)
class FiniteArmsPolicy(Policy[State]):
    """A policy over K arms that are counted, or named."""

    setting: ClassVar[str] = "finite"

    n_arms: int | Sequence[str] | None = None
    budget: Budget = field(default_factory=no_budget)
    arms: Sequence[str] | None = None

    def __post_init__(self) -> None:
        names = arm_names(self.n_arms, self.arms)
        object.__setattr__(self, "arms", names)
        object.__setattr__(self, "n_arms", len(names))
        self.check_budget()

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Three arms."""
        return cls(n_arms=3, budget=budget)

    @property
    def as_planned(self) -> bool:
        """Whether rewards enter sums, and sums leave and are read, by methods of this package.

        Then lengths of releases are known beforehand. A subclass that changes one of these methods says for itself what
        its releases are worth.
        """
        found = (getattr(type(self), name, None) for name in ("entry", "due", "leave", "learn", "take", "combination"))
        return all(method is None or method.__module__.startswith(__package__) for method in found)

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The arms by name."""
        assert self.arms is not None
        return tuple(self.arms)


_ATOMS = frozenset((int, float, bool, str, type(None)))


def plain_copy(value: Any) -> Any:
    """Return what dataclasses.asdict makes of a value, in a tenth of the time for long lists of numbers."""
    if type(value) is list or isinstance(value, tuple):
        if _ATOMS.issuperset(map(type, value)):
            return value[:] if type(value) is list else value
        parts = map(plain_copy, value)
        if type(value) is list:
            return list(parts)
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {plain_copy(key): plain_copy(one) for key, one in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: plain_copy(getattr(value, part.name)) for part in fields(value)}
    return value if type(value) in _ATOMS else deepcopy(value)


def nothing_to_undo() -> None:
    """There is nothing to undo."""


MOST_STEPS = 1e100
"""Of a horizon: far beyond any run, and far from the ends of what a float can hold."""


def checked_horizon(value: float) -> int:
    """A whole number of steps, which may be written as 1e6."""
    return large_number("horizon", value, most=MOST_STEPS)


def check_variant(policy: Any) -> None:
    """Only what exists can be asked for."""
    if policy.variant not in policy.variants:
        raise InvalidInput(
            f"variant of {type(policy).__name__} must be one of {', '.join(map(repr, policy.variants))}, "
            f"got {policy.variant!r}{instead_of(type(policy), policy.variant)}"
        )


def instead_of(policy: type[Policy[Any]], variant: str | None) -> str:
    """Return what to use instead of a variant that a policy had once, as the end of an error; else nothing."""
    hint = policy.former_variants.get(variant or "")
    return f". {hint}" if hint else ""


def arm_names(n_arms: int | Sequence[str] | None, arms: Sequence[str] | None, kind: str = "arm") -> tuple[str, ...]:
    """The names that were given, or "arm 0", "arm 1", ..."""
    if arms is None and isinstance(n_arms, (list, tuple)):
        n_arms, arms = None, n_arms
    if arms is None:
        return tuple(f"{kind} {i}" for i in range(whole_number("n_arms", n_arms)))
    if isinstance(arms, int):
        raise InvalidInput(f"arms must be a list of names, got {arms!r}: for a number of arms use n_arms={arms!r}")
    names = tuple(arms)
    if isinstance(arms, str) or not names or not all(isinstance(n, str) and n for n in names):
        raise InvalidInput(f"arms must be a list of names, which are texts, got {arms!r}")
    if len(set(names)) < len(names):
        raise InvalidInput(f"arms must have different names, got {list(names)}")
    if n_arms is not None and n_arms != len(names):
        raise InvalidInput(
            f"{'n_arms' if kind == 'arm' else 'the number of actions'} is {n_arms} but {len(names)} are named"
        )
    return names

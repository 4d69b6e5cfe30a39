"""One run of an agent from outside: an adversary's script, one secret reward, and all that was shown.

The adversary fixes every reward but one, when each is told, which action is played where the agent lets it, and
asks more often than it tells. The same script is run with the secret reward at its lowest and at its highest. Where
contexts are private too, the person of the secret reward is offered other actions in the second world, and what is
recommended to that person is not seen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import product
from numbers import Real
from typing import Any

import numpy as np

from private_bandits.audit.scores import View
from private_bandits.audit.target import Target
from private_bandits.ledger import Ledger

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0, -1.0)
OFTEN = (1, 2, 3, 4, 6, 8, 16, 32)
"""Rewards after which everything shown is looked at."""
ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class Scenario:
    """What the adversary does.

    steps: rewards told. secret: the one whose value differs, counted from 0.
    levels: the reward of each arm, as a share of the range; below 0: now low, now high.
    played: the arm played at each step where it is not the recommended one (empty: always the recommended).
    batch: decisions asked for before their rewards are told. looks: asks after the last reward.
    """

    steps: int
    secret: int
    levels: tuple[float, ...]
    played: tuple[int | None, ...] = ()
    batch: int = 1
    looks: int = 4

    def __str__(self) -> str:
        levels = ", ".join("low and high in turn" if x < 0 else f"{x:g}" for x in self.levels)
        text = f"{self.steps} rewards, number {self.secret + 1} is the secret; rewards by arm: {levels}"
        if any(p is not None for p in self.played):
            text += f"; played arms: {', '.join('-' if p is None else str(p) for p in self.played)}"
        if self.batch > 1:
            text += f"; rewards come {self.batch} at a time"
        return text + f"; {self.looks} more asks at the end"


def plain_scenarios(arms: int, longest: int) -> list[Scenario]:
    """The attacks that hurt index policies most: an early secret, and other arms that wait for it to look good."""
    found = []
    for steps in sorted({min(s, longest) for s in (arms + 1, 3 * arms, 6 * arms, 32, 100)}):
        for secret in sorted({0, arms - 1, steps // 2}):
            for own, other in ((0.5, 1.0), (0.0, 0.5), (1.0, 1.0)):
                levels = tuple(own if a == secret else other for a in range(arms))
                found.append(Scenario(steps, secret, levels, looks=4))
    return found


def staged_scenarios(dice: random.Random, arms: int, may_play: bool, longest: int) -> Iterator[tuple[Scenario, int]]:
    """Scenarios to be balanced (on_the_scale), each with the arm that it should be undecided about.

    Where the adversary may play, it plays all arms in turn, or first the others, so that they are well known, and
    then the secret's. In turn, an agent that shows a reward often shows it at known places; a well-known rival adds
    no noise of its own, if it is known well enough: of those there is every kind before one comes again.
    """
    lengths = [n for n in (1, 2, 4, 8, 16, 32, 48) if n <= max(1, longest // 2)]
    rivals = [(before, after) for before, after in product(lengths, repeat=2) if before >= 2 * after] or [(1, 1)]
    left: list[tuple[int, int]] = []
    while True:
        own, looks, after = dice.randrange(arms), dice.choice((2, 4, 16, 40)), dice.choice(lengths)
        how = dice.random() if may_play else 1.0
        played: tuple[int, ...] = ()
        if how < 0.3:
            played = tuple((own + i) % arms for i in range(max(2, min(longest, arms * after))))
            secret = arms * (dice.randrange(len(played)) // arms) if dice.random() < 0.4 else 0
        elif how < 0.75:
            left = left or dice.sample(rivals, len(rivals))
            before, after = left.pop()
            others = [a for a in range(arms) if a != own] or [own]
            played = (*(others[i % len(others)] for i in range(max(before, len(others)))), *[own] * after)
            secret = len(played) - 1 - dice.randrange(after) // dice.choice((1, 2, 4))
        else:
            after = max(2, min(longest, arms * after))
            secret = own % after if dice.random() < 0.5 else dice.randrange(after)
        yield Scenario(len(played) or after, secret, (0.5,) * arms, played, looks=looks), own


def on_the_scale(scenario: Scenario, own: int, weight: float) -> Scenario:
    """The scenario with steady rewards: at weight 0 all for the arm `own`, at 1 equal, at 2 all for the others."""
    pair = (min(1.0, 2 - weight), min(1.0, weight))
    return replace(scenario, levels=tuple(pair[a != own] for a in range(len(scenario.levels))))


def random_scenario(dice: random.Random, arms: int, may_play: bool, longest: int) -> Scenario:
    """A scenario to try. Early secrets and extreme rewards are likelier: noise is largest beside few rewards."""
    steps = dice.choice(
        [s for s in (arms + 1, 2 * arms, 3 * arms, 8, 12, 16, 24, 32, 48, 100) if s <= longest] or [longest]
    )
    secret = min(int(dice.expovariate(3 / steps)), steps - 1) if dice.random() < 0.7 else dice.randrange(steps)
    levels = tuple(dice.choice(LEVELS) for _ in range(arms))
    played: tuple[int | None, ...] = ()
    if may_play and dice.random() < 0.4:
        favoured = dice.randrange(arms)
        played = tuple(dice.choice((None, favoured, favoured, dice.randrange(arms))) for _ in range(steps))
    return Scenario(steps, secret, levels, played, dice.choice((1, 1, 1, 1, 2, 4)), dice.choice((2, 4, 4, 16, 40)))


def changed(scenario: Scenario, dice: random.Random, longest: int) -> Scenario:
    """The scenario with one thing changed."""
    arm = dice.randrange(len(scenario.levels))
    reach = dice.choice((0.05, 0.25))
    near = min(1.0, max(0.0, scenario.levels[arm] + dice.uniform(-reach, reach)))  # a tie is where a little tells most
    level = dice.choice((*LEVELS, near, near, near, near))
    steps = max(2, min(longest, round(scenario.steps * dice.choice((0.6, 0.8, 1.25, 1.6)))))
    other = dice.choice(
        (
            replace(scenario, levels=(*scenario.levels[:arm], level, *scenario.levels[arm + 1 :])),
            replace(scenario, levels=(*scenario.levels[:arm], level, *scenario.levels[arm + 1 :])),
            replace(scenario, steps=steps),
            replace(scenario, secret=scenario.secret + dice.choice((-2, -1, 1, 2))),
            replace(scenario, looks=dice.choice((2, 16, 40)), batch=dice.choice((1, 1, 2))),
        )
    )
    return replace(other, secret=max(0, min(other.secret, other.steps - 1)))


def play(target: Target, scenario: Scenario, secret: float, look: bool) -> View:
    """Run the scenario on a fresh agent; the secret reward is this share of the range.

    look: see everything, not only actions. A refusal to answer is something shown as well.
    """
    agent = target.make()
    actions: list[Hashable] = []
    shown: dict[str, float] = {}
    turns = [0] * len(scenario.levels)
    told = 0
    last: Any = None
    own = scenario.secret if target.private_contexts else None
    while told < scenario.steps:
        offered = [_offered(target, n, secret) if n == own else None for n in range(len(actions), scenario.steps)]
        batch = [_ask(target, agent, actions, table) for table in offered[: scenario.batch]]
        for decision, recommended in batch:
            forced = scenario.played[told] if told < len(scenario.played) else None
            place = target.place(recommended) if forced is None else forced
            share = secret if told == scenario.secret else _share(scenario.levels[place], turns[place])
            turns[place] += told != own  # what others tell may not depend on what is not seen
            if decision is not None:
                reward = target.low + share * (target.high - target.low)
                said = _tell(target, agent, decision, reward, None if forced is None else target.names[forced])
                if look and said is not None:
                    _take(f"answer {told}", said, shown)
                last = decision
            told += 1
        if look and told in OFTEN:
            _look(agent, f"after {told}", shown)
    for i in range(scenario.looks):
        _ask(target, agent, actions)
        if look and i < 3:
            _look(agent, f"look {i}", shown)
    if look:
        _look_at_ledger(agent, shown)
        _provoke(target, agent, last, shown)
    return tuple(action for i, action in enumerate(actions) if i != own), shown


def _offered(target: Target, number: int, secret: float) -> Any:
    """What the person of the secret brings: the more different, the larger the secret."""
    assert target.offers is not None
    return None if secret < 0.5 else target.offers.instead(number)[0]


def _ask(target: Target, agent: Any, actions: list[Hashable], offered: Any = None) -> tuple[Any, Hashable]:
    try:
        decision = target.ask(agent, len(actions), offered)
        actions.append(target.action(decision))
    except Exception as error:
        decision = None
        actions.append(f"refused: {type(error).__name__}")
    return decision, actions[-1]


def _tell(target: Target, agent: Any, decision: Any, reward: float, played: Hashable | None) -> Any:
    try:
        return target.tell(agent, decision, reward, played)
    except Exception as error:
        return f"refused: {type(error).__name__}: {error}"


def _share(level: float, turn: int) -> float:
    return float(turn % 2) if level < 0 else level


# Everything else that an agent shows, as numbers under stable names.


def _look(agent: Any, when: str, shown: dict[str, float]) -> None:
    with suppress(Exception):
        _take(f"{when}/estimates", agent.estimates(), shown)
    with suppress(Exception):
        shown[f"{when}/open"] = float(len(agent.open_decisions))


def _look_at_ledger(agent: Any, shown: dict[str, float]) -> None:
    with suppress(Exception):
        ledger = agent.ledger
        ours = isinstance(ledger, Ledger)
        _take(
            "ledger",
            {f"{row.number} {','.join(row.episodes)}": row.values for row in ledger} if ours else ledger,
            shown,
        )
        _take("rows", len(ledger), shown)
        _take("total", ledger.total, shown)
    for name in ("guarantee", "settings", "__repr__"):
        with suppress(Exception):
            value = getattr(agent, name)
            _take(name, value() if callable(value) else value, shown)


def _provoke(target: Target, agent: Any, closed: Any, shown: dict[str, float]) -> None:
    """What errors say: a decision told twice, one that never was, a reward that is none."""
    tries: tuple[tuple[str, Any], ...] = (
        ("told twice", lambda: target.tell(agent, closed, 0.5)),
        ("unknown decision", lambda: target.tell(agent, "no such decision", 0.5)),
        ("no number", lambda: target.tell(agent, target.ask(agent, 0), float("nan"))),
        ("no such arm", lambda: target.tell(agent, target.ask(agent, 0), 0.5, "no such arm")),
    )
    for name, attempt in tries:
        try:
            attempt()
        except Exception as error:
            text = str(error).replace(str(getattr(closed, "id", "no id")), "#")
            _take(f"error/{name}/{type(error).__name__}", text, shown)


def _take(name: str, value: Any, shown: dict[str, float], depth: int = 0) -> None:
    """Flatten whatever was shown into numbers; a text counts by its numbers and by its other words."""
    if type(value) is float or isinstance(value, Real):
        shown[name] = float(value)
    elif isinstance(value, str):
        value = ADDRESS.sub("0x#", value)
        for i, number in enumerate(NUMBER.findall(value)[:20]):
            with suppress(OverflowError):
                shown[f"{name}#{i}"] = float(number)
        shown[f"{name}={NUMBER.sub('#', value)[:120]}"] = 1.0
    elif depth < 6:
        for key, part in _parts(value):
            if key != "id":  # random by design, and known to whom it was given
                _take(f"{name}/{key}", part, shown, depth + 1)


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return iter(value.items())
    if is_dataclass(value):
        return ((f.name, getattr(value, f.name)) for f in fields(value))
    if hasattr(value, "_asdict"):
        return iter(value._asdict().items())
    if isinstance(value, (Sequence, np.ndarray)):
        return enumerate(value)
    return iter(())  # some object: what is inside it was not shown

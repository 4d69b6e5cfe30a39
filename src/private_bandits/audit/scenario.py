"""One run of an agent from outside: an adversary's script, one secret reward, and all that was shown.

The adversary fixes every reward but one, when each is told, which action is played where the agent lets it, and
asks more often than it tells. Where the agent has more than ask and tell, it is used as well: several decisions or
rewards in one call, a log before the first ask, other options, a restart. The same script is run with the secret reward
at its lowest and at its highest. Where contexts are private too, the person of the secret reward is offered other
actions in the second world, and what is recommended to that person is not seen.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import product
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from private_bandits.audit.attempts import Answer, ask_agent
from private_bandits.audit.scores import View
from private_bandits.audit.target import Target
from private_bandits.ledger import Ledger

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0, -1.0)
ODD = 6
"""Of so many scenarios one has rewards that come late, never or twice."""
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
    together: the decisions of a batch are asked for, and their rewards told, in one call each.
    log: so many of the rewards are told as a log, before the first ask. people: how many come in turn; 0: all are new.
    option: which of the target's other options agents are made with; 0: none.
    restart: the agent is closed, and opened from its file, after so many rewards; 0: never.
    late: each reward is told when so many later decisions have been made.
    missing: the reward of every so-maniest decision never comes, unless it is the secret; 0: all come.
    repeated: each decision is told once more, with half of the range, whatever its reward was.
    finish: the agent is finished after the last reward.
    after: the reward of the secret's arm after the secret, where it is another than before.
    """

    steps: int
    secret: int
    levels: tuple[float, ...]
    played: tuple[int | None, ...] = ()
    batch: int = 1
    looks: int = 4
    together: bool = False
    log: int = 0
    people: int = 0
    option: int = 0
    restart: int = 0
    late: int = 0
    missing: int = 0
    repeated: bool = False
    finish: bool = False
    after: float | None = None

    def __str__(self) -> str:
        levels = ", ".join("low and high in turn" if x < 0 else f"{x:g}" for x in self.levels)
        text = f"{self.steps} rewards, number {self.secret + 1} is the secret; rewards by arm: {levels}"
        if any(p is not None for p in self.played):
            text += f"; played arms: {', '.join('-' if p is None else str(p) for p in self.played)}"
        if self.batch > 1:
            text += f"; rewards come {self.batch} at a time"
        if self.together:
            text += "; by ask(n) and tell_many"
        if self.log:
            text += f"; the first {self.log} rewards are a log"
        if self.people:
            text += f"; {self.people} people in turn"
        if self.option:
            text += f"; made with other options, number {self.option}"
        if self.restart:
            text += f"; restarted after {self.restart}"
        return text + self._oddities() + f"; {self.looks} more asks at the end"

    def _oddities(self) -> str:
        text = "" if self.after is None else f"; later rewards of the secret's arm: {self.after:g}"
        text += f"; each reward comes {self.late} decisions late" if self.late else ""
        if self.missing:
            text += f"; one reward in {self.missing} never comes"
        if self.repeated:
            text += "; each decision is told again with half of the range"
        return text + ("; then finish()" if self.finish else "")


def plain_scenarios(arms: int, longest: int) -> list[Scenario]:
    """The attacks that hurt index policies most: an early secret, and other arms that wait for it to look good."""
    found = []
    for steps in sorted({min(s, longest) for s in (arms + 1, 3 * arms, 6 * arms, 32, 100)}):
        for secret in sorted({0, arms - 1, steps // 2}):
            for own, other in ((0.5, 1.0), (0.0, 0.5), (1.0, 1.0)):
                levels = tuple(own if a == secret else other for a in range(arms))
                found.append(Scenario(steps, secret, levels, looks=4))
    return found


def with_more(scenario: Scenario, dice: random.Random, target: Target, turn: int) -> Scenario:
    """The scenario, at every second turn with something that the target's agents have beside ask and tell."""
    if turn % ODD == ODD - 1:
        return _with_oddity(scenario, dice)
    ways: list[Scenario] = []
    if target.finishes:
        ways.append(replace(scenario, finish=True))
    if (target.asks_many or target.tells_many) and not target.private_contexts:
        ways.append(replace(scenario, together=True, batch=dice.choice((2, 3, 4))))
    if target.supports_warm_start:
        log = min(scenario.steps, dice.choice((1, 2, len(scenario.levels), scenario.steps)))
        ways.append(replace(scenario, log=log, secret=dice.randrange(log)))
    if target.also:
        option, people = dice.randrange(1, len(target.also) + 1), dice.choice((0, 3))
        ways.append(replace(scenario, option=option, people=people, batch=2))
    if target.names_people:
        ways.append(replace(scenario, people=dice.choice((2, 5))))
    if target.takes_path:
        ways.append(replace(scenario, restart=dice.randrange(1, scenario.steps + 1), batch=2))
    return ways[turn // 2 % len(ways)] if ways and turn % 2 else scenario


def _with_oddity(scenario: Scenario, dice: random.Random) -> Scenario:
    """The scenario with rewards that are late, missing or told again: every agent has to do with those."""
    late = replace(scenario, late=dice.choice((1, 2, 5)))
    return dice.choice((late, replace(scenario, missing=dice.choice((2, 3))), replace(scenario, repeated=True)))


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


def prolonged(scenario: Scenario, dice: random.Random) -> Scenario:
    """The scenario with more plays of the secret's arm after the secret, which ends the plays so far.

    A reward that is held again shows once more when so many rewards have come that the agent looks at them.
    """
    own = scenario.played[scenario.secret]
    ending = scenario.played[: scenario.secret + 1]
    more = max(1, round(ending.count(own) * dice.choice((0.25, 0.5, 1, 1, 1, 2))))
    played = (*ending, *[own] * more)
    return replace(scenario, played=played, steps=len(played), after=0.5, looks=2)


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
    if other.after is not None and dice.random() < 0.3:
        other = replace(other, after=min(1.0, max(0.0, other.after + dice.uniform(-reach, reach))))
    secret, log = max(0, min(other.secret, other.steps - 1)), min(other.log, other.steps)
    return replace(other, secret=secret, log=log, restart=min(other.restart, other.steps))


def play(target: Target, scenario: Scenario, secret: float, look: bool) -> View:
    """Run the scenario on a fresh agent; the secret reward is this share of the range.

    look: see everything, not only actions. A call that fails is something shown as well.
    """
    used = target.also[scenario.option - 1] if scenario.option else target
    if not scenario.restart:
        return _Play(used, scenario, secret, look).run(used.make)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.db"
        return _Play(used, scenario, secret, look, path).run(partial(used.make, path=path))


class _Play:
    """One run: the agent, what was shown, and how far the script is."""

    def __init__(self, target: Target, scenario: Scenario, secret: float, look: bool, path: Path | None = None) -> None:
        self.target = target
        self.scenario = scenario
        self.secret = secret
        self.look = look
        self.path = path
        self.agent: Any = None
        self.actions: list[Hashable] = []
        self.shown: dict[str, float] = {}
        self.turns = [0] * len(scenario.levels)
        self.told = 0
        self.waiting: list[tuple[Any, ...]] = []
        """Rewards that come late."""
        self.last: Any = None
        self.secret_place = -1
        """The arm of the secret, once it was told."""
        self.together = scenario.together and target.tells_many
        self.own = scenario.secret if target.private_contexts else None
        """The decision of which nobody else sees what it recommends."""

    def run(self, make: Callable[[], Any]) -> View:
        """All of the scenario; what others than the person of the secret see."""
        made = ask_agent(make)
        if made.failed:
            return (f"refused: {made.kind}",), self._said("made", made)
        self.agent = made.value
        if self.scenario.log:
            self._start_from_log()
        while self.told < self.scenario.steps:
            self._tell_batch(self._ask_batch())
            if self.look and self.told in OFTEN:
                _look(self.agent, f"after {self.told}", self.shown)
        self._tell_late(0)
        if self.scenario.finish:
            self._said("finish", ask_agent(lambda: self.agent.finish()))
        for i in range(self.scenario.looks):
            self._ask()
            if self.look and i < 3:
                _look(self.agent, f"look {i}", self.shown)
        if self.look:
            _look_at_ledger(self.agent, self.shown)
            _provoke(self.target, self.agent, self.last, self.shown)
        if self.path is not None:
            ask_agent(lambda: self.agent.close())
        return tuple(action for i, action in enumerate(self.actions) if i != self.own), self.shown

    def _said(self, name: str, answer: Answer) -> dict[str, float]:
        """Take the answer of a call, or the words with which it failed. Returns all that was shown."""
        if self.look and (answer.kind or answer.value is not None):
            _take_safely(name, answer, self.shown)
        return self.shown

    def _share_of(self, place: int) -> float:
        """The next reward, which is of this arm."""
        mine = self.told == self.scenario.secret
        level = self.scenario.levels[place]
        if mine:
            self.secret_place = place
        elif self.scenario.after is not None and place == self.secret_place:
            level = self.scenario.after
        share = self.secret if mine else _share(level, self.turns[place])
        self.turns[place] += self.told != self.own  # what others tell may not depend on what is not seen
        return share

    def _forced(self) -> int | None:
        return self.scenario.played[self.told] if self.told < len(self.scenario.played) else None

    def _start_from_log(self) -> None:
        rows = []
        for i in range(self.scenario.log):
            forced = self._forced()
            arm = i % len(self.turns) if forced is None else forced
            rows.append(self.target.log_row(arm, self._share_of(arm), self._person(i), i))
            self.told += 1
        self._said("log", ask_agent(lambda: self.agent.warm_start(rows)))

    def _person(self, number: int) -> int:
        return number % self.scenario.people if self.scenario.people else number

    def _ask_batch(self) -> list[tuple[Any, Hashable]]:
        count = min(self.scenario.batch, self.scenario.steps - self.told)
        if not (self.scenario.together and self.target.asks_many):
            return [self._ask(self.told + i) for i in range(count)]
        asked = ask_agent(lambda: self._decisions(count))
        return (
            [self._answered(Answer(pair)) for pair in asked.value] if asked.value else [self._answered(asked)] * count
        )

    def _decisions(self, count: int) -> list[tuple[Any, Hashable]]:
        """Several at once, each with what it recommends."""
        decisions = self.target.ask(self.agent, self._person(self.told), None, count)
        return [(decision, self.target.action(decision)) for decision in decisions]

    def _ask(self, number: int | None = None) -> tuple[Any, Hashable]:
        """number: of the reward that is told to it, if any."""
        mine = number is not None and number == self.own
        return self._answered(ask_agent(lambda: self._decision(self._instead() if mine else None)))

    def _instead(self) -> Any:
        """The actions that the person of the secret brings: other ones where the secret is high."""
        assert self.target.offers is not None
        return None if self.secret < 0.5 else self.target.offers.instead(self.scenario.secret)[0]

    def _decision(self, offered: Any) -> tuple[Any, Hashable]:
        decision = self.target.ask(self.agent, self._person(self.scenario.log + len(self.actions)), offered)
        return decision, self.target.action(decision)

    def _answered(self, asked: Answer) -> tuple[Any, Hashable]:
        """The decision and what it recommends; or that there is none."""
        if not asked.value:
            self._said(f"ask {len(self.actions)}", asked)
            asked = Answer((None, f"refused: {asked.kind}"))
        self.actions.append(asked.value[1])
        found: tuple[Any, Hashable] = asked.value
        return found

    def _tell_batch(self, batch: list[tuple[Any, Hashable]]) -> None:
        target, rows = self.target, []
        for decision, recommended in batch:
            forced = self._forced()
            reward = target.reward(self._share_of(target.place(recommended) if forced is None else forced))
            if decision is not None:
                self.last = decision
                row = (decision, reward) if forced is None else (decision, reward, target.names[forced])
                if not self._comes():
                    pass
                elif self.together:
                    rows.append(row)
                else:
                    self.waiting.append(row)
                    self._tell_late(self.scenario.late)
            self.told += 1
        if rows:
            self._said(f"answer {self.told}", ask_agent(lambda: self.agent.tell_many(rows)))
        if self.told - len(batch) < self.scenario.restart <= self.told:
            self._restart()

    def _comes(self) -> bool:
        """Whether the reward of this step ever comes."""
        every = self.scenario.missing
        return not every or self.told == self.scenario.secret or self.told % every != every - 1

    def _tell_late(self, keep: int) -> None:
        """Tell the oldest rewards until so many are left."""
        while len(self.waiting) > keep:
            row = self.waiting.pop(0)
            self._tell(row)
            if self.scenario.repeated:
                self._tell((row[0], self.target.reward(0.5), *row[2:]))

    def _tell(self, row: tuple[Any, ...]) -> None:
        answer = ask_agent(lambda: self.target.tell(self.agent, *row))
        if self.look:
            self._said(f"answer {self.told}", answer)

    def _restart(self) -> None:
        self._said("close", ask_agent(lambda: self.agent.close()))
        opened = ask_agent(lambda: self.target.open(self.agent, self.path))
        if opened.failed:
            self._said("open", opened)
        else:
            self.agent = opened.value


def _share(level: float, turn: int) -> float:
    return float(turn % 2) if level < 0 else level


# Everything else that an agent shows, as numbers under stable names.


def has(agent: Any, name: str) -> bool:
    """Whether the agent has it, without a look at what it is."""
    kind = type(agent)
    return hasattr(kind, name) or name in getattr(agent, "__dict__", ()) or hasattr(kind, "__getattr__")


def _look(agent: Any, when: str, shown: dict[str, float]) -> None:
    _see(agent, "estimates", f"{when}/estimates", lambda: agent.estimates(), shown)
    _see(agent, "open_decisions", f"{when}/open", lambda: len(agent.open_decisions), shown)


def _see(agent: Any, name: str, place: str, look: Callable[[], Any], shown: dict[str, float]) -> None:
    """Take what is there; that it cannot be read is something shown."""
    if has(agent, name):
        _take_safely(place, ask_agent(look), shown)


def _look_at_ledger(agent: Any, shown: dict[str, float]) -> None:
    _see(agent, "ledger", "ledger", lambda: _rows(agent.ledger), shown)
    _see(agent, "ledger", "rows", lambda: len(agent.ledger), shown)
    total = ask_agent(lambda: agent.ledger.total)
    if not total.failed:  # a ledger of another make may have none
        _take_safely("total", total, shown)
    for name in ("verdict", "guarantee", "settings", "__repr__"):
        _see(agent, name, name, partial(_value, agent, name), shown)


def _rows(ledger: Any) -> Any:
    if not isinstance(ledger, Ledger):
        return ledger
    return {f"{row.number} {','.join(row.episodes)}": row.values for row in ledger}


def _value(agent: Any, name: str) -> Any:
    found = getattr(agent, name)
    return found() if callable(found) else found


def _provoke(target: Target, agent: Any, closed: Any, shown: dict[str, float]) -> None:
    """Make mistakes and take the errors: a decision told twice or unknown, no number, alone or in a batch."""
    tries: list[tuple[str, Any]] = [
        ("told twice", lambda: target.tell(agent, closed, 0.5)),
        ("unknown decision", lambda: target.tell(agent, "no such decision", 0.5)),
        ("no number", lambda: target.tell(agent, target.ask(agent, 0), float("nan"))),
        ("no such arm", lambda: target.tell(agent, target.ask(agent, 0), 0.5, "no such arm")),
    ]
    if target.tells_many:
        tries.append(("batch told twice", lambda: agent.tell_many([(target.ask(agent, 0), 0.5), (closed, 0.5)])))
        tries.append(("no number in a batch", lambda: agent.tell_many([(target.ask(agent, 0), float("nan"))])))
    if target.supports_warm_start:
        tries.append(("late log", lambda: agent.warm_start([target.log_row(0, 0.5, 0, 0)])))
    for name, call in tries:
        answer = ask_agent(call)
        if answer.failed:
            text = answer.words.replace(str(getattr(closed, "id", "no id")), "#")
            _take(f"error/{name}/{answer.kind}", text, shown)


def _take_safely(name: str, answer: Answer, shown: dict[str, float]) -> None:
    """An answer, or the words with which the call failed. A value may fail while it is looked at."""
    taken = answer if answer.failed else ask_agent(lambda: _take(name, answer.value, shown))
    if taken.failed:
        _take(name, f"refused: {taken.words}", shown)


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

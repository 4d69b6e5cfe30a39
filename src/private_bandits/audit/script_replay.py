"""A replay: one world under a script, with releases that are known, and everything that it showed.

A call that fails ends no replay. That it failed, and with which words, is shown like an answer; then all that the
agent still shows is looked at, and the script goes on.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from private_bandits.agent import Agent, Decision, bandit_of
from private_bandits.audit.attempts import Answer, attempt
from private_bandits.audit.scenario import ADDRESS
from private_bandits.audit.script import Row, Script, ScriptMove
from private_bandits.audit.target import Target
from private_bandits.errors import NoiseFailed


@dataclass(frozen=True)
class Draw:
    """One call of a mechanism: what went in, what came out, and what was declared."""

    kind: str
    scale: float
    sensitivity: int
    totals: tuple[int, ...]
    answer: tuple[int, ...]


class ScriptedNoise:
    """Stands in for an agent's source of noise: keeps what goes in, and answers from a record or with known noise."""

    def __init__(self, answers: list[tuple[int, ...]] | None, seed: int) -> None:
        self.answers = answers
        self.draws: list[Draw] = []
        self.broken = False
        """Whether the next draw fails."""
        self._dice = random.Random(seed)  # noqa: S311  (not for protection)
        self._source: Any = None

    def watch(self, agent: Agent) -> None:
        """Take the place of the agent's source. A coin for its control arm falls alike in all worlds."""
        bandit = bandit_of(agent)
        self._source, bandit.door.noise = bandit.door.noise, self
        if bandit.coin is not None:
            bandit.coin = bandit.coin.with_seed(1)

    @property
    def secret(self) -> bool:
        """As the source that it stands for."""
        return bool(self._source.secret)

    def calibrate(self, kind: Any, level: float, sensitivity: int, dimension: int, number: int) -> Any:
        """The source's own calibration, with another draw."""
        return PatchedMechanism(self._source.calibrate(kind, level, sensitivity, dimension, number), self.answer)

    def answer(self, mechanism: Any, hidden: Any) -> list[int]:
        """Choose what this world is made to release."""
        if self.broken:
            self.broken = False
            raise NoiseFailed("the noise could not be drawn, as the script has it")
        i, totals = len(self.draws), hidden.reveal()
        if self.answers is None:
            found = tuple(t + round(mechanism.scale * self._dice.gauss(0, 1)) for t in totals)
        else:
            found = self.answers[i] if i < len(self.answers) else tuple(0 for _ in totals)
        self.draws.append(Draw(mechanism.kind, mechanism.scale, mechanism.sensitivity, tuple(totals), found))
        return list(found)


class PatchedMechanism:
    """A mechanism with another call."""

    def __init__(self, mechanism: Any, call: Callable[[Any, Any], Any]) -> None:
        self._mechanism = mechanism
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mechanism, name)

    def __call__(self, totals: Any) -> Any:
        """The other call, which is given the mechanism too."""
        return self._call(self._mechanism, totals)


@dataclass(frozen=True)
class Change:
    """One difference of the other world: in a decision, or in a row of a log.

    reward: as a share of the range. offered: instead of what the step offers. turn: how much further the action that
    the script forces is in the list. The last two only where contexts are private.
    """

    reward: float
    offered: Any = None
    turn: int = 0


Changes = Mapping[int, Change]
"""By the number of the decision, from 0; rows of a log are -1, -2, ..."""


class Shown(NamedTuple):
    """Something that the agent showed; where it is what a decision recommends, the number of that decision."""

    text: str
    decision: int | None = None


@dataclass
class Trace:
    """Everything that a replay showed, move by move, and everything that went through the door."""

    shown: list[Shown] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    """Who asked, decision by decision."""
    logged: list[int] = field(default_factory=list)
    """Whose reward it is, row by row of a log."""
    together: set[int] = field(default_factory=set)
    """Numbers of decisions that were asked for in one call, and so share what is offered."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The numbers of decisions, from 0, by their ids."""
    told: dict[int, float] = field(default_factory=dict)
    """Every reward told, as a share of the range, by the number of its decision, or of its row in a log."""
    taken: int = 0
    """Calls that told a reward and did not fail."""
    failure: str = ""
    """The first call that should have worked and failed, with its words."""
    rows: int | None = None
    """The length of the ledger, if it can be read in the end."""
    spent: float | None = None
    """The cost of the dearest reward as the ledger tells it, by the rows' own notion."""
    lasting: str = ""
    """The first thing published that a restart changed, if any."""

    def seen_by_others(self, hidden: Collection[int]) -> list[str]:
        """Leave out what these decisions recommend."""
        return [shown.text for shown in self.shown if shown.decision is None or shown.decision not in hidden]

    def person(self, number: int) -> int:
        """Whose decision, or whose row of a log, it is."""
        return self.asked[number] if number >= 0 else self.logged[-1 - number]


def replay(target: Target, script: Script, changes: Changes, answers: list[tuple[int, ...]] | None) -> Trace:
    """Run the script with some decisions changed."""
    tape, trace = ScriptedNoise(answers, seed=len(script)), Trace()
    restarts = any(move.kind == "restart" for move in script)
    with tempfile.TemporaryDirectory() if restarts else nullcontext() as folder, _same_dice():
        _Run(target, changes, trace, tape, Path(folder) / "agent.db" if folder else None).follow(script)
    return trace


@contextmanager
def _same_dice() -> Iterator[None]:
    """A policy with dice of its own should roll the same in both worlds."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  (the old generator as well)
    fresh = np.random.default_rng
    with mock.patch.object(np.random, "default_rng", lambda seed=None: fresh(1 if seed is None else seed)):
        yield


class _Run:
    """One agent that follows a script."""

    def __init__(self, target: Target, changes: Changes, trace: Trace, tape: ScriptedNoise, path: Path | None) -> None:
        self.target = target
        self.changes = changes
        self.trace = trace
        self.tape = tape
        self.path = path
        self.closed: Any = None
        """A decision that has its reward."""
        self.agent: Any = None

    def follow(self, script: Script) -> None:
        """Make an agent, follow the script, and look at everything in the end."""
        options: dict[str, Any] = {"path": self.path} if self.path else {}
        made = self._do("making an agent", lambda: self.target.make(**options))
        if made.failed:
            return
        self.agent = made.value
        self.tape.watch(self.agent)
        moves = {
            "ask": self._ask,
            "ask many": self._ask,
            "tell": self._tell,
            "batch": self._batch,
            "log": self._log,
            "give up": self._give_up,
            "no noise": self._break_noise,
            "restart": self._restart,
            "finish": self._finish,
        }
        try:
            for move in script:
                moves[move.kind](move)
                self._look()
            self._look_at_everything()
            ledger = attempt(lambda: (len(self.agent.ledger), self.agent.ledger.total))
            self.trace.rows, self.trace.spent = ledger.value or (None, None)
        finally:
            self.trace.draws = self.tape.draws
            attempt(lambda: self.agent.close())

    # Moves.

    def _ask(self, move: ScriptMove) -> None:
        many = move.count if move.kind == "ask many" else None
        change = self.changes.get(len(self.trace.asked), Change(0.0))
        asked = self._do("ask", lambda: _decisions(self.target.ask(self.agent, move.person, change.offered, many)))
        decisions = asked.value or []
        for decision in decisions:
            if len(decisions) > 1:
                self.trace.together.add(len(self.trace.asked))
            self.trace.numbers[decision.id] = len(self.trace.asked)
            self.trace.asked.append(move.person)
        self._recommended("ask ->", decisions)

    def _recommended(self, when: str, decisions: Iterable[Any]) -> None:
        """The id, which may tell nobody anything, and what is recommended."""
        for decision in decisions:
            number = self.trace.numbers.get(decision.id)
            self._show(f"{when} {decision.id}")
            self._show(f"{decision.action} {decision.arm}", number)

    def _waiting(self) -> list[Decision]:
        return attempt(lambda: _decisions(self.agent.open_decisions)).value or []

    def _tell(self, move: ScriptMove) -> None:
        waiting = self._waiting()
        if not waiting:
            return
        decision = waiting[move.which % len(waiting)]
        reward, played = self._reward(decision, move.reward, move.played)
        told = self._do("tell", lambda: f"{self.agent.tell(decision, reward, played=played)}")
        self._took(told, [decision])
        self._provoke("tell again", lambda: self.agent.tell(decision, reward))

    def _batch(self, move: ScriptMove) -> None:
        """Several rewards in one call; first with one among them that has to be refused, so that nothing changes."""
        waiting = self._waiting()
        count = min(len(waiting), len(move.rows))
        if not count:
            return
        first = move.which % len(waiting)
        decisions = (waiting[first:] + waiting[:first])[:count]
        items = []
        for decision, row in zip(decisions, move.rows, strict=False):
            reward, played = self._reward(decision, row.reward, row.played)
            items.append((decision, reward) if played is None else (decision, reward, played))
        spoiled = list(items)
        spoiled.insert(move.which % (count + 1), self._bad_item(move.which, items[0]))
        self._provoke("bad batch", lambda: self.agent.tell_many(spoiled))
        told = self._do("tell_many", lambda: f"{self.agent.tell_many(items)}")
        self._took(told, decisions)

    def _bad_item(self, which: int, first: tuple[Any, ...]) -> Any:
        """Something that a batch may not hold."""
        kinds = [
            (first[0], float("nan")),
            ("no such decision", first[1]),
            first,
            (self.closed or "nothing told yet", first[1]),
            (*first[:2], 10**6),
            first[:1],
        ]
        return kinds[which % len(kinds)]

    def _reward(self, decision: Any, share: float, played: int | None) -> tuple[float, int | None]:
        """The reward and the action that this world tells of the decision."""
        number = self.trace.numbers.get(decision.id)
        if number is None:  # of its own invention
            return self.target.reward(share), played
        self.trace.told[number] = share
        change = self.changes.get(number, Change(share))
        return self.target.reward(change.reward), None if played is None else (played + change.turn) % self.target.arms

    def _took(self, told: Answer, decisions: list[Any]) -> None:
        if not told.failed:
            self.trace.taken += 1
            self.closed = decisions[-1]

    def _log(self, move: ScriptMove) -> None:
        """Past rewards, at first with an arm that there is not, so that nothing changes."""
        rows: list[tuple[Any, ...]] = []
        for row in move.rows:
            self.trace.logged.append(row.person)
            number = -len(self.trace.logged)
            self.trace.told[number] = row.reward
            share = self.changes.get(number, Change(row.reward)).reward
            rows.append(self._log_row(row, share, len(rows)))
        spoiled = [*rows, (10**6, *rows[0][1:])]
        self._provoke("bad log", lambda: self.agent.warm_start(spoiled))
        if not self.target.supports_warm_start:
            self._provoke("log", lambda: self.agent.warm_start(rows))
            return
        told = self._do("warm_start", lambda: f"{self.agent.warm_start(rows)}")
        self.trace.taken += not told.failed

    def _log_row(self, row: Row, share: float, step: int) -> tuple[Any, ...]:
        return self.target.log_row(row.played or 0, share, row.person, step)

    def _give_up(self, move: ScriptMove) -> None:
        waiting = self._waiting()
        if waiting:
            self._do("give_up", lambda: f"{self.agent.give_up(waiting[move.which % len(waiting)])}")

    def _break_noise(self, move: ScriptMove) -> None:
        self.tape.broken = True

    def _finish(self, move: ScriptMove) -> None:
        """End the agent, and once more: where noise could not be drawn that releases the rest, and else nothing."""
        for _ in range(2):
            self._do("finish", lambda: f"{self.agent.finish()}")

    def _restart(self, move: ScriptMove) -> None:
        if self.path is None:
            return
        before, again = self._released(), self._released()
        self._do("close", self.agent.close)
        opened = self._do("open", lambda: self.target.open(self.agent, self.path))
        if opened.failed:
            return
        self.agent = opened.value
        self.tape.watch(self.agent)
        after = self._released()
        self._look_at_everything()
        for name in before.keys() & after.keys():  # what could be read both before and after
            if before[name] == again.get(name) != after[name] and not self.trace.lasting:
                self.trace.lasting = first_difference(before[name], after[name])

    # Looking.

    def _do(self, what: str, call: Callable[[], Any]) -> Answer:
        """A call that ought to work. If it fails, all that the agent still shows is looked at."""
        answer = attempt(call)
        if not answer.failed:
            if isinstance(answer.value, str):
                self._show(f"{what}: {answer}")
            return answer
        self._show(f"{what}: {answer}")
        if answer.kind != NoiseFailed.__name__ and not self.trace.failure:
            self.trace.failure = f"{what}: {answer.words}"
            self._look_at_everything()
        return answer

    def _provoke(self, what: str, call: Callable[[], Any]) -> None:
        """A call that ought to be refused, or a look that may be."""
        self._show(f"{what}: {attempt(lambda: f'{call()}')}")

    def _show(self, text: str, decision: int | None = None) -> None:
        self.trace.shown.append(Shown(self._scrub(text), decision))

    def _scrub(self, text: str) -> str:
        """Names that are random by design."""
        if self.agent is not None:
            text = text.replace(bandit_of(self.agent).settings.token, "#")
        if self.path is not None:
            text = text.replace(str(self.path.parent), "folder")
        return ADDRESS.sub("#", text)

    def _look(self) -> None:
        self._provoke("ledger", self._newest_release)
        self._provoke("estimates", lambda: self.agent.estimates())

    def _newest_release(self) -> str:
        rows = self.agent.ledger.rows
        return f"{len(rows)} releases; last {rows[-1:]}"

    def _look_at_everything(self) -> None:
        """Public attributes, estimates, guarantee, repr; and what errors say."""
        agent = self.agent
        if agent is None:
            return
        self._recommended("open:", self._waiting())
        for name in _attributes(type(agent)):
            self._provoke(name, partial(getattr, agent, name))
        looks: dict[str, Callable[[], Any]] = {
            "ledger": lambda: list(agent.ledger),
            "total": lambda: agent.ledger.total,
            "estimates": lambda: agent.estimates(),
            "verdict": lambda: agent.verdict(),
            "guarantee": lambda: repr(agent.guarantee()),
            "repr": lambda: repr(agent),
            "str": lambda: str(agent),
        }
        for what, call in (*looks.items(), *self._mistakes()):
            self._provoke(what, call)

    def _mistakes(self) -> list[tuple[str, Callable[[], Any]]]:
        agent, waiting = self.agent, self._waiting()
        opened = waiting[0] if waiting else "nothing is open"
        options = self.target.options_of_ask(agent, 0)
        return [
            ("unknown decision", lambda: agent.tell("no such decision", 0.5)),
            ("no number", lambda: agent.tell(opened, float("nan"))),
            ("no such arm", lambda: agent.tell(opened, 0.5, played=10**6)),
            ("unknown decision given up", lambda: agent.give_up("no such decision")),
            ("closed decision given up", lambda: agent.give_up(self.closed or "nothing told yet")),
            ("no decision asked for", lambda: agent.ask(0, **options)),
            ("no batch", lambda: agent.tell_many([(opened, 0.5), (opened, 0.5), "no pair"])),
            ("a log too late, or empty", lambda: agent.warm_start([] if not self.trace.asked else [(0, 0.5, "x")])),
        ]

    def _released(self) -> dict[str, str]:
        """Everything that a restart must not change, as far as it can be read."""
        agent = self.agent
        looks: dict[str, Callable[[], str]] = {
            "rows": lambda: "; ".join(map(str, agent.ledger)),
            "estimates": lambda: f"estimates {agent.estimates()}",
            "open": lambda: f"open {[decision.action for decision in agent.open_decisions]}",
        }
        answers = {name: attempt(look) for name, look in looks.items()}
        return {name: answer.value for name, answer in answers.items() if not answer.failed}


def _decisions(found: Any) -> list[Decision]:
    """Those in a list, or the one that it is."""
    return [one for one in ([found] if isinstance(found, Decision) else found) if isinstance(one, Decision)]


def _attributes(kind: type) -> tuple[str, ...]:
    """Public properties; open decisions and the ledger are looked at by themselves."""
    names = [n for n in dir(kind) if n[0] != "_" and isinstance(getattr(kind, n), property)]
    return tuple(n for n in names if n not in ("open_decisions", "ledger"))


def first_difference(one: str, other: str) -> str:
    """Both texts near the place where they part."""
    return f"{_around(one, other)} against {_around(other, one)}"


def _around(text: str, other: str) -> str:
    i = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    return "..." * (i > 40) + text[max(0, i - 40) : i + 40] + "..." * (i + 40 < len(text))

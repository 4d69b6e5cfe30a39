"""From inside: sensitivity, exactly.

Two worlds that differ in one reward are replayed under one script, and the second world is made to release what the
first one released. Then, as in the proof of docs/guarantees.md, part (c):

- everything published has to be the same, move by move: given the releases nothing else may depend on a reward;
  where contexts are private too (joint DP) the worlds differ in one person's context, reward and action played, and
  what that person is recommended is nobody else's business: it is left out, and nothing else is;
- at each release the two sums before the noise may differ by no more than was declared;
- the costs of those differences, added up over all releases, may not exceed the budget, nor what the ledger says.

There is no chance in it: what is found is a proof that the claim is broken.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from private_bandits.agent import Agent, Decision
from private_bandits.audit.evidence import ROUNDING, own_claim
from private_bandits.audit.scenario import ADDRESS
from private_bandits.audit.script import Script, mutated, random_script, short_scripts, steady_script
from private_bandits.audit.target import Target

MOVES = "something published moves though all releases are the same"
LATE, PATIENCE = 24, 6000
"""Rewards of one arm that random scripts have; and that are waited for at most."""
FAR = 1e6
"""A reward this many ranges too high must count as the highest."""


@dataclass(frozen=True)
class Draw:
    """One call of a mechanism: what went in, what came out, and what was declared."""

    kind: str
    scale: float
    sensitivity: int
    totals: tuple[int, ...]
    answer: tuple[int, ...]


class Tape:
    """Stands in for an agent's source of noise: keeps what goes in, and answers from a record or with known noise."""

    def __init__(self, answers: list[tuple[int, ...]] | None, seed: int) -> None:
        self.answers = answers
        self.draws: list[Draw] = []
        self._dice = random.Random(seed)  # noqa: S311  (not for protection)
        self._source: Any = None

    def watch(self, agent: Agent) -> None:
        """Take the place of the agent's source."""
        self._source = agent._door._noise
        agent._door._noise = self

    @property
    def secret(self) -> bool:
        """As the source that it stands for."""
        return bool(self._source.secret)

    def calibrate(self, kind: Any, level: float, sensitivity: int, dimension: int, number: int) -> Any:
        """The source's own calibration, with another draw."""
        return Instead(self._source.calibrate(kind, level, sensitivity, dimension, number), self.answer)

    def answer(self, mechanism: Any, hidden: Any) -> list[int]:
        """What this world is made to release."""
        i, totals = len(self.draws), hidden.reveal()
        if self.answers is None:
            found = tuple(t + round(mechanism.scale * self._dice.gauss(0, 1)) for t in totals)
        else:
            found = self.answers[i] if i < len(self.answers) else tuple(0 for _ in totals)
        self.draws.append(Draw(mechanism.kind, mechanism.scale, mechanism.sensitivity, tuple(totals), found))
        return list(found)


class Instead:
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
    """What is different about one decision in the other world.

    reward: as a share of the range. offered: instead of what the step offers. turn: how much further the action that
    the script forces is in the list. The last two only where contexts are private.
    """

    reward: float
    offered: Any = None
    turn: int = 0


Changes = Mapping[int, Change]
"""By the number of the decision, from 0."""


class Shown(NamedTuple):
    """Something that the agent showed; where it is what a decision recommends, the number of that decision."""

    text: str
    decision: int | None = None


@dataclass
class Trace:
    """What a replay showed, move by move, and what went through the door."""

    shown: list[Shown] = field(default_factory=list)
    draws: list[Draw] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    """Who asked, decision by decision."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Of decisions, from 0, by their ids."""
    told: dict[int, float] = field(default_factory=dict)
    """Every reward told, as a share of the range, by the number of its decision."""
    rows: int = 0
    spent: float = 0.0
    """What the ledger says that the dearest reward costs, by the rows' own notion."""
    lasting: str = ""
    """What a restart changed of what had been published, if anything."""

    def seen_by_others(self, hidden: Collection[int]) -> list[str]:
        """What was shown, without what these decisions recommend."""
        return [shown.text for shown in self.shown if shown.decision is None or shown.decision not in hidden]


def replay(
    target: Target,
    script: Script,
    changes: Changes,
    answers: list[tuple[int, ...]] | None,
) -> Trace:
    """Run the script with some decisions changed."""
    tape, trace = Tape(answers, seed=len(script)), Trace()
    with tempfile.TemporaryDirectory() as folder, _same_dice():
        path = Path(folder) / "agent.db" if any(m.kind == "restart" for m in script) else None
        options: dict[str, Any] = {"path": path} if path else {}
        agent = target.make(**options)
        tape.watch(agent)
        try:
            agent = _follow(agent, script, changes, trace, tape, target, path)
            _look(agent, trace, everything=True)
        finally:
            trace.draws, trace.rows, trace.spent = tape.draws, len(agent.ledger), agent.ledger.total
            agent.close()
    return trace


@contextmanager
def _same_dice() -> Iterator[None]:
    """A policy with dice of its own should roll the same in both worlds."""
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002  (the old generator as well)
    fresh = np.random.default_rng
    with mock.patch.object(np.random, "default_rng", lambda seed=None: fresh(1 if seed is None else seed)):
        yield


def _follow(
    agent: Agent,
    script: Script,
    changes: Changes,
    trace: Trace,
    tape: Tape,
    target: Target,
    path: Path | None,
) -> Agent:
    for move in script:
        waiting = agent.open_decisions
        if move.kind == "ask":
            _ask(agent, move.person, changes, trace, target)
        elif move.kind == "restart" and path is not None:
            agent = _restart(agent, path, tape, trace)
        elif waiting and move.kind == "give up":
            trace.shown.append(_error(agent, partial(agent.give_up, waiting[move.which % len(waiting)])))
        elif waiting and move.kind == "tell":
            decision = waiting[move.which % len(waiting)]
            number = trace.numbers[decision.id]
            change = changes.get(number, Change(move.reward))
            reward = target.low + change.reward * (target.high - target.low)
            played = None if move.played is None else (move.played + change.turn) % target.arms
            trace.told[number] = move.reward
            trace.shown.append(_error(agent, partial(agent.tell, decision, reward, played=played)))
            trace.shown.append(_error(agent, partial(agent.tell, decision, reward)))  # once more: refused
        _look(agent, trace, everything=False)
    return agent


def _ask(agent: Agent, person: int, changes: Changes, trace: Trace, target: Target) -> None:
    change = changes.get(len(trace.asked), Change(0.0))
    try:
        decision = target.ask(agent, person, change.offered)
    except Exception as error:
        if change.offered is None:
            raise
        trace.shown.append(Shown(f"ask -> {type(error).__name__}"))  # whether someone was refused is public
        decision = target.ask(agent, person)
    trace.numbers[decision.id] = len(trace.asked)
    trace.asked.append(person)
    trace.shown += _recommended(agent, "ask ->", decision, trace)


def _recommended(agent: Agent, when: str, decision: Decision, trace: Trace) -> list[Shown]:
    """The id, which may tell nobody anything, and what is recommended."""
    number = trace.numbers.get(decision.id)
    return [Shown(_scrub(agent, f"{when} {decision.id}")), Shown(f"{decision.action} {decision.arm}", number)]


def _restart(agent: Agent, path: Path, tape: Tape, trace: Trace) -> Agent:
    before, again = _released(agent), _released(agent)
    agent.close()
    agent = type(agent).open(path)
    tape.watch(agent)
    after = _released(agent)
    trace.shown += _published(agent, trace)
    if before == again != after and not trace.lasting:
        trace.lasting = _first_difference(before, after)
    return agent


def _look(agent: Agent, trace: Trace, everything: bool) -> None:
    rows = agent.ledger.rows
    trace.shown.append(Shown(f"estimates {agent.estimates()}; {len(rows)} releases; last {rows[-1:]}"))
    if everything:
        trace.shown.extend(_published(agent, trace))
        waiting = agent.open_decisions
        for attempt in (
            lambda: agent.tell("no such decision", 0.5),
            lambda: agent.tell(waiting[0], float("nan")),
            lambda: agent.tell(waiting[0], 0.5, played=10**6),
        ):
            trace.shown.append(_error(agent, attempt))


def _released(agent: Agent) -> list[str]:
    """What a restart must not change."""
    rows, waiting = list(agent.ledger), [decision.action for decision in agent.open_decisions]
    return [f"row {row}" for row in rows] + [f"estimates {agent.estimates()}", f"open {waiting}"]


def _published(agent: Agent, trace: Trace) -> list[Shown]:
    """Everything that the agent shows: its public attributes, estimates, guarantee, repr."""
    names = [n for n in dir(type(agent)) if n[0] != "_" and isinstance(getattr(type(agent), n), property)]
    names.remove("open_decisions")
    shown = [f"{n}: {list(agent.ledger) if n == 'ledger' else getattr(agent, n)}" for n in names]
    shown += [f"total {agent.ledger.total}", f"estimates {agent.estimates()}", repr(agent.guarantee())]
    waiting = [shown for decision in agent.open_decisions for shown in _recommended(agent, "open:", decision, trace)]
    return waiting + [Shown(_scrub(agent, text)) for text in (*shown, repr(agent), str(agent))]


def _error(agent: Agent, attempt: Callable[[], Any]) -> Shown:
    try:
        return Shown(_scrub(agent, f"returned {attempt()}"))
    except Exception as error:
        return Shown(_scrub(agent, f"error {type(error).__name__}: {error}"))


def _scrub(agent: Agent, text: str) -> str:
    """Names that are random by design."""
    return ADDRESS.sub("#", text.replace(agent._settings.token, "#"))


def _first_difference(one: list[str], other: list[str]) -> str:
    for a, b in zip(one, other, strict=False):
        if a != b:
            return f"{_around(a, b)} against {_around(b, a)}"
    return f"{len(one)} against {len(other)} things shown"


def _around(text: str, other: str) -> str:
    """The text near the place where the two part."""
    i = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    return "..." * (i > 40) + text[max(0, i - 40) : i + 40] + "..." * (i + 40 < len(text))


# The search.


@dataclass(frozen=True)
class Flaw:
    """A broken promise, with what was seen."""

    title: str
    evidence: str


@dataclass
class Sensitivity:
    """What the replays found. worst: the largest cost of one changed reward, as a share of the budget."""

    replays: int = 0
    worst: float = 0.0
    flaws: list[Flaw] = field(default_factory=list)
    blind: str = ""
    """Why the agent cannot be judged from inside, where that is so."""


def examine(
    target: Target, scripts: int, seed: int = 0, advance: Callable[[float], None] = lambda share: None
) -> Sensitivity:
    """Every short script, then random ones, then changes of those that cost most. Every reward in turn is changed.

    Where releases hold earlier episodes again, but late, a long one sees to it that some do.
    """
    found = Sensitivity()
    dice = random.Random(seed)  # noqa: S311  (chooses scripts)
    short = short_scripts(target.arms, most=25 * scripts)
    dice.shuffle(short)  # what is wrong shows up early
    half = [random_script(dice, target.arms, 40) for _ in range(scripts)]
    long = [random_script(dice, target.arms, 120) for _ in range(scripts)]
    lasting = [random_script(dice, target.arms, 25, restarts=True) for _ in range(max(3, scripts // 5))]
    plan: list[tuple[Target, Script, int]] = [(target, s, 99) for s in half[: scripts // 2]]
    plan += [(target, s, 6) for s in lasting if target.takes_path]
    plan += [(target, s, 99) for s in short] + [(target, s, 20) for s in long]
    plan += [(target.for_people, s, 99) for s in half[scripts // 2 :] if target.for_people]
    late = held_again_after(target)
    plan += [(target, steady_script(late), 5)] if late > LATE else []
    costly: list[tuple[float, int, Script]] = []
    for i, (one, script, most) in enumerate(plan):
        cost = _examine_script(one, script, most, dice, found)
        costly.append((cost, i, script))
        advance(0.7 * (i + 1) / len(plan))
        if found.flaws or found.blind:
            return found
    costly.sort(key=lambda item: (-item[0], -len(item[2])))
    for i in range(scripts):
        script = mutated(costly[i % max(1, len(costly) // 10)][2], dice, target.arms)
        if any(m.kind == "restart" for m in script):
            continue
        cost = _examine_script(target, script, 8, dice, found)
        costly.insert(0, (cost, i, script)) if cost > costly[0][0] else None
        advance(0.7 + 0.3 * (i + 1) / scripts)
        if found.flaws or found.blind:
            return found
    return found


def held_again_after(target: Target) -> int:
    """Rewards of one arm after which two of its releases hold an earlier episode again; 0 if that is never, or late."""
    agent = target.make()
    if agent.policy.factor is None:
        return 0
    for i in range(PATIENCE):
        agent.tell(target.ask(agent, i), (target.low, target.high)[i % 2], played=0)
        if sum(len(row.episodes) > 1 for row in agent._door.ledger.rows[-2:]) == 2:
            return i + 1
    return 0


def _examine_script(target: Target, script: Script, most: int, dice: random.Random, found: Sensitivity) -> float:
    base = replay(target, script, {}, None)
    answers = [d.answer for d in base.draws]
    found.replays += 1
    if not base.told:
        return 0.0
    if base.rows and not base.draws:
        found.blind = "its noise is not drawn where it could be watched"
        return 0.0
    if base.lasting:
        found.flaws.append(Flaw("what was published changed at a restart", base.lasting))
    if base.rows != len(base.draws):
        found.flaws.append(
            Flaw("one draw per release", f"noise was drawn {len(base.draws)} times for {base.rows} rows of the ledger")
        )
    if found.flaws:
        return 0.0
    worst = 0.0
    for change in _changes(target, base, most, dice):
        other = replay(target, script, change, answers)
        found.replays += 1
        worst = max(worst, _compare(target, base, other, change, found))
        if found.flaws:
            # Does anything differ between two replays of one world as well? Then the change was not what moved it.
            if replay(target, script, {}, answers).shown != base.shown:
                found.flaws = []
                found.blind = "it rolls dice of its own, so that worlds cannot be compared move by move"
            break
    found.worst = max(found.worst, worst)
    return worst


def _changes(target: Target, base: Trace, most: int, dice: random.Random) -> list[Changes]:
    """One decision at a time, and the first one told in every way; or all of one person's."""
    told = [base.told.get(i) for i in range(len(base.asked))]
    if target.private_contexts:
        others = {i: _other_people(target, i, share, dice) for i, share in enumerate(told)}
    else:
        others = {i: _other_rewards(share) for i, share in enumerate(told) if share is not None}
    if target.unit == "person":
        everyone = sorted({base.asked[i] for i in others})
        return [{i: others[i][0] for i in others if base.asked[i] == who} for who in everyone]
    found: list[Changes] = [{i: changes[0]} for i, changes in others.items()]
    found += [{i: change} for i in list(base.told)[:1] for change in others[i][1:]]
    dice.shuffle(found)
    return found[:most]


def _other_rewards(share: float) -> list[Change]:
    """From one end of the range to the other, or far beyond."""
    return [Change(0.0), Change(-FAR)] if share > 0.5 else [Change(1.0), Change(FAR)]


def _other_people(target: Target, number: int, share: float | None, dice: random.Random) -> list[Change]:
    """What someone else might have brought, in random order. Who told nothing may leave no trace at all."""
    assert target.offers is not None
    same = 0.0 if share is None else share
    opposite = 0.0 if same > 0.5 else 1.0
    furthest, mirrored, *rest = target.offers.instead(number)
    found = [Change(same, furthest), Change(opposite, mirrored), Change(opposite), Change(opposite, turn=1)]
    found += [Change(opposite, table) for table in rest]
    return found[: dice.randrange(2)] + dice.sample(found, len(found))  # the worst pair more often


def _compare(target: Target, base: Trace, other: Trace, changes: Changes, found: Sensitivity) -> float:
    """Add what is wrong; returns the cost of the change as a share of the budget."""
    what, many = ("person", "people") if target.private_contexts else ("reward", "rewards")
    where = f"{what} number {', '.join(str(i + 1) for i in changes)} of {len(base.asked)} changed"
    if [len(d.totals) for d in base.draws] != [len(d.totals) for d in other.draws]:
        found.flaws.append(
            Flaw(
                f"when a sum is released depends on {many}",
                f"{where}: {len(base.draws)} releases in one world, {len(other.draws)} in the other",
            )
        )
        return 0.0
    one, another = (t.seen_by_others(changes if target.private_contexts else ()) for t in (base, other))
    if one != another:
        text = _first_difference(one, another)
        found.flaws.append(Flaw(MOVES, f"{where}: {text}"))
    costs: list[tuple[Fraction, Fraction]] = []
    for i, (a, b) in enumerate(zip(base.draws, other.draws, strict=True)):
        moved = [abs(x - y) for x, y in zip(a.totals, b.totals, strict=True)]
        far, squared = sum(moved), sum(m * m for m in moved)
        too_far = far > a.sensitivity if a.kind == "laplace" else squared > a.sensitivity**2
        if too_far and target.unit == "reward":
            text = f"moved by {far if a.kind == 'laplace' else squared**0.5:.6g}, declared were {a.sensitivity}"
            text = f"{where}: the sum of release {i + 1} {text}"
            found.flaws.append(Flaw("a sum moves by more than was declared", text))
        if target.claim is not None:
            claims = (target.claim, own_claim(a.kind))
            costs.append((claims[0].cost(a.kind, a.scale, far, squared), claims[1].cost(a.kind, a.scale, far, squared)))
    if target.claim is None:
        return 0.0
    total, own = float(sum(cost for cost, _ in costs)), float(sum(cost for _, cost in costs))
    if own > base.spent * (1 + ROUNDING) and target.unit == "reward":
        text = f"{where}: over all releases it costs {own:.6g}, the ledger says {base.spent:.6g}"
        found.flaws.append(Flaw(f"one {what} costs more than the ledger says", text))
    share = total / target.claim.most
    if share > 1 + ROUNDING:
        text = f"{where}: over all releases it costs {total:.6g}, promised were {target.claim.most:.6g}"
        found.flaws.append(Flaw(f"one {what} costs more than was promised", text))
    return share

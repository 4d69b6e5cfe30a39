"""A forced transcript: what an adversary does to an agent of this package, move by move.

Asks, one or several at once; rewards told one by one or in batches, late, out of order, for another action or never;
people who come back; a log before the first ask; noise that cannot be drawn; restarts; the end. Two worlds get the
same script; only the value of the changed rewards differs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

KINDS = (*["ask"] * 6, *["ask many"] * 2, *["tell"] * 7, *["batch"] * 3, *["give up"] * 2)
SHARES = (0.0, 1.0, 0.0, 1.0, 0.5)
MOST_AT_ONCE = 4
"""Decisions asked for, and rewards told, in one call."""


class Row(NamedTuple):
    """A reward of a batch or of a log, as a share of the range. played: an arm, or None. person: whose it is."""

    reward: float
    played: int | None = None
    person: int = 0


@dataclass(frozen=True)
class ScriptMove:
    """One move of a script. kind: "ask", "ask many", "tell", "batch", "log", "give up", "no noise", "restart",
    "finish".

    which: of the open decisions, or for a batch the first of them; for a batch also how it is spoiled at first.
    reward: as a share of the range. played: an arm, or None for the recommended. person: who asks.
    count: how many are asked for at once. rows: of a batch, or of a log.
    """

    kind: str
    which: int = 0
    reward: float = 0.0
    played: int | None = None
    person: int = 0
    count: int = 1
    rows: tuple[Row, ...] = ()


Script = tuple[ScriptMove, ...]


def short_scripts(arms: int, most: int) -> list[Script]:
    """All short scripts: every order of plays and of lowest and highest rewards; one arm with halves as well.

    At most `most` of each of the two kinds.
    """
    every = _all_of([(arm, reward) for arm in range(arms) for reward in (0.0, 1.0)], most)
    return every + _all_of([(0, reward) for reward in (0.0, 0.5, 1.0)], most)


def _all_of(steps: list[tuple[int, float]], most: int) -> list[Script]:
    length = int(math.log(most + 0.5, len(steps)))
    return [
        tuple(move for arm, reward in moves for move in (ScriptMove("ask"), ScriptMove("tell", 0, reward, arm)))
        for moves in product(steps, repeat=length)
    ]


def finished(script: Script) -> Script:
    """The script, with the agent finished after it."""
    return (*script, ScriptMove("finish"))


def steady_script(length: int) -> Script:
    """One arm, one reward after the other, low and high in turn: for agents that release rarely."""
    return tuple(move for i in range(length) for move in (ScriptMove("ask"), ScriptMove("tell", 0, float(i % 2), 0)))


def restarted_script(restarts: int) -> Script:
    """One arm; after one reward, then after two at once, and so on in turn, a restart. A decision is always open."""
    moves = [ScriptMove("ask")]
    for i in range(restarts):
        rows = (Row(1.0, 0), Row(0.0, 0))
        moves += [
            ScriptMove("ask many", count=2),
            ScriptMove("batch", rows=rows) if i % 2 else ScriptMove("tell", 0, 1.0, 0),
        ]
        moves.append(ScriptMove("restart"))
    return (*moves, ScriptMove("batch", rows=(Row(1.0, 0), Row(1.0, 0))))


def logged_scripts(arms: int) -> list[Script]:
    """Logs of one reward, and of people with more than they may tell; then more rewards of the same people."""
    other = arms - 1
    few = (Row(1.0, 0, 0),)
    many = (Row(0.0, 0, 0), Row(1.0, 0, 0), Row(1.0, other, 0), Row(1.0, other, 1))
    later = [move for i in range(4) for move in (ScriptMove("ask", person=i // 2), ScriptMove("tell", 0, 1.0, 0))]
    return [(ScriptMove("log", rows=few), *later), (ScriptMove("log", rows=many), *later)]


def crowded_script(rounds: int) -> Script:
    """Two people who ask for two decisions at once, and tell one of them: more and more are open."""
    pairs = [(ScriptMove("ask many", person=i % 2, count=2), ScriptMove("tell", 1, 1.0, 0)) for i in range(rounds)]
    return tuple(move for pair in pairs for move in pair)


def random_script(dice: random.Random, arms: int, length: int, restarts: bool = False, log: bool = False) -> Script:
    """Random moves. In some scripts all rewards are high, or low, or go to two arms: long episodes, large sums.

    In each, noise cannot be drawn once. log: the agent starts from one.
    """
    shares = dice.choice((SHARES, SHARES, (1.0,), (0.0,), (0.3, 0.9)))
    favoured: list[int | None] = [*dice.sample(range(arms), min(arms, dice.choice((1, 2, 2, arms))))]
    plays = dice.choice(([None], favoured, [None, *favoured]))
    moves = [_random_move(dice, plays, shares) for _ in range(length)]
    moves.insert(dice.randrange(len(moves) + 1), ScriptMove("no noise"))
    if restarts:
        for _ in range(3):
            moves.insert(dice.randrange(len(moves) + 1), ScriptMove("restart"))
    return (*([_random_log(dice, arms, SHARES)] if log else []), ScriptMove("ask"), *moves)


def _random_move(dice: random.Random, plays: Sequence[int | None], shares: Sequence[float]) -> ScriptMove:
    kind = dice.choice(KINDS)
    several = dice.randrange(2, MOST_AT_ONCE + 1)
    rows = tuple(Row(dice.choice(shares), dice.choice(plays)) for _ in range(several)) if kind == "batch" else ()
    which, reward, played, person = dice.randrange(8), dice.choice(shares), dice.choice(plays), dice.randrange(4)
    return ScriptMove(kind, which, reward, played, person, several if kind == "ask many" else 1, rows)


def _random_log(dice: random.Random, arms: int, shares: Sequence[float]) -> ScriptMove:
    """A few rewards of a few arms, of two people who come back later."""
    rows = [Row(dice.choice(shares), dice.randrange(arms), dice.randrange(2)) for _ in range(dice.randrange(3, 8))]
    return ScriptMove("log", rows=tuple(rows))


def mutated(script: Script, dice: random.Random, arms: int) -> Script:
    """The script with a few moves changed, and now and then a stretch repeated. The end stays where it is."""
    if script[-1].kind == "finish":
        return finished(mutated(script[:-1], dice, arms))
    moves = list(script)
    for _ in range(dice.randrange(1, 4)):
        i = dice.randrange(len(moves))
        if moves[i].kind not in ("restart", "log"):
            moves[i] = _random_move(dice, [None, *range(arms)], SHARES)
    if dice.random() < 0.3:
        a = dice.randrange(len(moves))
        moves[a:a] = moves[a : a + 6]
    return tuple(moves[:120])

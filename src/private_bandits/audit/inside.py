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
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from private_bandits.audit.attempts import attempt
from private_bandits.audit.evidence import ROUNDING, own_claim
from private_bandits.audit.script import (
    Script,
    ScriptMove,
    crowded_script,
    finished,
    logged_scripts,
    mutated,
    random_script,
    restarted_script,
    short_scripts,
    steady_script,
)
from private_bandits.audit.script_replay import Change, Changes, Trace, first_difference, replay
from private_bandits.audit.target import Target

MOVES = "something published moves though all releases are the same"
LATE, PATIENCE = 24, 6000
"""Rewards of one arm that random scripts have; and that are waited for at most."""
FAR = 1e6
"""A reward this many ranges too high must count as the highest."""


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
    scripts: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """In how many scripts a call failed that should have worked, by the words of the first such call."""
    taken: int = 0
    """Calls that told a reward and worked."""
    watched: bool = False
    """Whether any noise was drawn where it could be watched."""

    @property
    def over(self) -> bool:
        """Whether there is nothing more to find."""
        return bool(self.flaws or self.blind)


class Step(NamedTuple):
    """A script to try. most: changes of it that are tried."""

    target: Target
    script: Script
    most: int


def examine(
    target: Target, scripts: int, seed: int = 0, advance: Callable[[float], None] = lambda share: None
) -> Sensitivity:
    """Every short script, then random ones, then changes of those that cost most. Every reward in turn is changed.

    Where releases hold earlier episodes again, but late, a long one sees to it that some do. An agent of which every
    call fails cannot be judged.
    """
    found = Sensitivity()
    dice = random.Random(seed)  # noqa: S311  (chooses scripts)
    costly = _try_plan(_plan(target, scripts, dice), dice, found, lambda x: advance(0.7 * x))
    for i in range(0 if found.over else scripts):
        script = mutated(costly[i % max(1, len(costly) // 10)][2], dice, target.arms)
        if any(m.kind == "restart" for m in script):
            continue
        cost = _examine_script(Step(target, script, 8), dice, found)
        costly.insert(0, (cost, i, script)) if cost > costly[0][0] else None
        advance(0.7 + 0.3 * (i + 1) / scripts)
        if found.over:
            break
    if not found.taken and not found.flaws:
        why = found.failed.most_common(1)
        found.blind = f"it failed whenever it was used ({why[0][0] if why else 'no reward could be told'})"
    return found


def _plan(target: Target, scripts: int, dice: random.Random) -> list[Step]:
    """Every second random script begins with a log, and some end with the agent finished.

    Agents with other options share the scripts of middle length.
    """
    short = short_scripts(target.arms, most=25 * scripts)
    dice.shuffle(short)  # what is wrong shows up early
    half = [random_script(dice, target.arms, 32, log=i % 2 == 1) for i in range(scripts)]
    long = [random_script(dice, target.arms, 80, log=i % 2 == 0) for i in range(scripts)]
    count = max(1 if scripts < 3 else 2, scripts // 5)
    lasting = [random_script(dice, target.arms, 25, restarts=True, log=i % 2 == 1) for i in range(count)]
    plan = [Step(target, finished(s) if i % 2 else s, 99) for i, s in enumerate(half[: scripts // 2])]
    if target.takes_path:
        last = (*finished(restarted_script(4)), ScriptMove("restart"))
        plan += [Step(target, last, 9), *(Step(target, s, 6) for s in lasting)]
    logged = [
        Step(one, s, 99) for one in (target, *target.also) if one.supports_warm_start for s in logged_scripts(one.arms)
    ]
    plan += logged + [Step(one, finished(crowded_script(6)), 99) for one in (target, *target.also)]
    plan += [Step(target, s, 99) for s in short] + [Step(target, s, 16) for s in long]
    plan += [Step(other, s, 20) for other in target.also for s in half[scripts // 2 :]]
    late = held_again_after(target)
    return plan + ([Step(target, steady_script(late), 5)] if late > LATE else [])


def _try_plan(
    plan: list[Step], dice: random.Random, found: Sensitivity, advance: Callable[[float], None]
) -> list[tuple[float, int, Script]]:
    """The scripts with what they cost, dearest first."""
    costly: list[tuple[float, int, Script]] = []
    for i, step in enumerate(plan):
        costly.append((_examine_script(step, dice, found), i, step.script))
        advance((i + 1) / len(plan))
        if found.over:
            break
    costly.sort(key=lambda item: (-item[0], -len(item[2])))
    return costly


def held_again_after(target: Target) -> int:
    """Rewards of one arm after which two of its releases hold an earlier episode again; 0 if that is never, or late."""
    return attempt(lambda: _wait_for_held_again(target)).value or 0


def _wait_for_held_again(target: Target) -> int:
    agent = target.make()
    if agent.policy.factor is None:
        return 0
    for i in range(PATIENCE):
        agent.tell(target.ask(agent, i), (target.low, target.high)[i % 2], played=0)
        if sum(len(row.episodes) > 1 for row in agent.ledger[-2:]) == 2:
            return i + 1
    return 0


def _examine_script(step: Step, dice: random.Random, found: Sensitivity) -> float:
    target, script, most = step
    base = replay(target, script, {}, None)
    answers = [d.answer for d in base.draws]
    found.replays += 1
    found.scripts += 1
    found.taken += base.taken
    found.watched = found.watched or bool(base.draws)
    if base.failure:
        found.failed[base.failure] += 1
    if not base.told:
        return 0.0
    if base.rows and not found.watched:
        found.blind = "its noise is not drawn where it could be watched"
        return 0.0
    if base.lasting:
        found.flaws.append(Flaw("what was published changed at a restart", base.lasting))
    if base.rows is not None and base.rows != len(base.draws):
        found.flaws.append(
            Flaw("one draw per release", f"noise was drawn {len(base.draws)} times for {base.rows} rows of the ledger")
        )
    if found.flaws:
        return 0.0
    worst = 0.0
    for change in changes_of(target, base, most, dice):
        other = replay(target, script, change, answers)
        found.replays += 1
        worst = max(worst, compare(target, base, other, change, found))
        if found.flaws:
            # Does anything differ between two replays of one world as well? Then the change was not what moved it.
            if replay(target, script, {}, answers).shown != base.shown:
                found.flaws = []
                found.blind = "it rolls dice of its own, so that worlds cannot be compared move by move"
            break
    found.worst = max(found.worst, worst)
    return worst


def changes_of(target: Target, base: Trace, most: int, dice: random.Random) -> list[Changes]:
    """One decision at a time, or one row of a log, and the first one told in every way; or all of one person's."""
    others = {number: _other_rewards(share, logged=number < 0) for number, share in base.told.items()}
    if target.private_contexts:
        others |= {number: _other_people(target, number, base, dice) for number in range(len(base.asked))}
    if target.unit == "person":
        everyone = sorted({base.person(number) for number in others})
        every = [_all_of_one(base, [i for i in others if base.person(i) == who], others) for who in everyone]
        return [change for changes in every for change in changes]
    found: list[Changes] = [{i: changes[0]} for i, changes in others.items()]
    found += [{i: change} for i in list(base.told)[:1] for change in others[i][1:]]
    dice.shuffle(found)
    return found[:most]


def _all_of_one(base: Trace, own: list[int], others: Mapping[int, list[Change]]) -> list[Changes]:
    """Everything of one person changed: each as if alone, and all rewards to the same end, where changes add up."""
    ends = [{i: replace(others[i][0], reward=end) for i in own} for end in (0.0, 1.0)]
    moved = [changes for changes in ends if any(base.told.get(i) != changes[i].reward for i in own)]
    return [{i: others[i][0] for i in own}, *moved]


def _other_rewards(share: float, logged: bool) -> list[Change]:
    """From one end of the range to the other, or far beyond; not in a log, which may be refused for that."""
    found = [Change(0.0), Change(-FAR)] if share > 0.5 else [Change(1.0), Change(FAR)]
    return found[:1] if logged else found


def _other_people(target: Target, number: int, base: Trace, dice: random.Random) -> list[Change]:
    """List what someone else might have brought, in random order. Who told nothing may leave no trace at all.

    Decisions that were asked for at once share what is offered: of one of them, only the reward and the action differ.
    """
    assert target.offers is not None
    same = base.told.get(number, 0.0)
    opposite = 0.0 if same > 0.5 else 1.0
    if number in base.together:
        return dice.sample([Change(opposite), Change(opposite, turn=1)], 2)
    furthest, mirrored, *rest = target.offers.instead(number)
    found = [Change(same, furthest), Change(opposite, mirrored), Change(opposite), Change(opposite, turn=1)]
    found += [Change(opposite, table) for table in rest]
    return found[: dice.randrange(2)] + dice.sample(found, len(found))  # the worst pair more often


def compare(target: Target, base: Trace, other: Trace, changes: Changes, found: Sensitivity) -> float:
    """Add what is wrong; returns the cost of the change as a share of the budget."""
    what, many = ("person", "people") if target.private_contexts else ("reward", "rewards")
    where = _where(what, base, changes)
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
        text = _first_of_all_differences(one, another)
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
    if base.spent is not None and own > base.spent * (1 + ROUNDING) and target.unit == "reward":
        text = f"{where}: over all releases it costs {own:.6g}, the ledger says {base.spent:.6g}"
        found.flaws.append(Flaw(f"one {what} costs more than the ledger says", text))
    share = total / target.claim.most
    if share > 1 + ROUNDING:
        text = f"{where}: over all releases it costs {total:.6g}, promised were {target.claim.most:.6g}"
        found.flaws.append(Flaw(f"one {what} costs more than was promised", text))
    return share


def _where(what: str, base: Trace, changes: Changes) -> str:
    """Which ones were changed."""
    asked = [str(i + 1) for i in changes if i >= 0]
    logged = [str(-i) for i in changes if i < 0]
    parts = [f"{what} number {', '.join(asked)} of {len(base.asked)}"] if asked else []
    parts += [f"number {', '.join(logged)} of {len(base.logged)} logged ones"] if logged else []
    return f"{' and '.join(parts)} changed"


def _first_of_all_differences(one: list[str], other: list[str]) -> str:
    for a, b in zip(one, other, strict=False):
        if a != b:
            return first_difference(a, b)
    return f"{len(one)} against {len(other)} things shown"

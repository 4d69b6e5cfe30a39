"""Plans a trial whose actions change from person to person: what a dimension, a budget and so many people can learn."""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.budget import Budget, NoPrivacy, zCDP
from private_bandits.checks import check_positive, large_number, whole_number
from private_bandits.environments import Contextual
from private_bandits.errors import InvalidInput
from private_bandits.guarantee import guessed_right
from private_bandits.instances import contextual_instance, policy_named
from private_bandits.loading import require
from private_bandits.plain_data import json_numbers

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 10
"""Runs go on for so many times the people that there are."""
POINTS, DRAWS = 120, 20_000
"""Numbers of people looked at, and people whose actions say what playing at random earns."""
HALF, MOST = 0.5, 0.8


@dataclass(frozen=True)
class ContextualPlanRow:
    """What is to be expected of one budget.

    share: of what the best choices earn over random ones, what the policy earns over them, on average over all people.
    share_stderr: what the simulation adds to it. people_half, people_most: people for a share of 50% and 80%; None:
    more than `ContextualPlan.limit`.
    """

    policy: str
    rho: float
    guessed_right: float
    share: float
    share_stderr: float
    people_half: int | None
    people_most: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data; infinity as the text "inf"."""
        return json_numbers(asdict(self))


@dataclass(frozen=True)
class ContextualPlan:
    """A plan for actions that change, by simulation: how much of what can be earned each budget earns.

    per_person: what the best choices earn over random ones, for each person, of rewards of +1 and -1.
    """

    dimension: int
    arms: int
    people: int
    private_contexts: bool
    runs: int
    seed: int
    limit: int
    per_person: float
    rows: tuple[ContextualPlanRow, ...]
    seconds: float = field(repr=False, compare=False)

    @property
    def note(self) -> str:
        """What was simulated, in words."""
        private = "contexts and rewards are private (joint DP)" if self.private_contexts else "only rewards are private"
        return (
            f"{self.people:,} people, {self.arms} actions in dimension {self.dimension} for each of them; {private}. "
            f"Assumed: actions are drawn anew for each person, from N((1, ..., 1)/sqrt(d), I/10), scaled into the unit "
            f"ball; rewards are +1 and -1, with a mean that is linear in the action, by a direction from the seed. "
            f"The best choices earn {self.per_person:.3f} more for each person than random ones. {self.runs:,} runs."
        )

    @cached_property
    def advice(self) -> str:
        """Which rho to take, and why, in words."""
        private = [row for row in self.rows if math.isfinite(row.rho)]
        enough = [row for row in private if row.share >= HALF]
        if enough:
            row = min(enough, key=lambda found: found.rho)
            return (
                f"Take rho = {row.rho:g}: it is the smallest of these with which {self.people:,} people get at least "
                f"half of what could be gained over random choices: {100 * row.share:.0f}%."
            )
        reached = [row for row in private if row.people_half is not None]
        words = f"With none of these budgets do {self.people:,} people get half of what could be gained."
        if not reached:
            return f"{words} Nor would {self.limit:,}: plan for fewer features, or for a larger rho."
        needed = "; ".join(f"{row.people_half:,} with rho = {row.rho:g}" for row in reached)
        return f"{words} People who would be enough: {needed}. Fewer features need fewer people."

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, as `Agent(plan=...)` takes it."""
        names = ("dimension", "arms", "people", "private_contexts", "runs", "seed", "limit", "per_person")
        found = {name: getattr(self, name) for name in names}
        return found | {"advice": self.advice, "note": self.note, "rows": [row.to_dict() for row in self.rows]}

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a DataFrame."""
        require("a frame of a plan", "frames")
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def __str__(self) -> str:
        heads = ("policy", "rho", "guess", "share", "+-", "people 50%", "people 80%")
        lines = [heads, *(self._cells(row) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
        table = ["  ".join(part.rjust(width) for part, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([*textwrap.wrap(self.note, 79), "", *table, "", *textwrap.wrap(self.advice, 79)])

    def _cells(self, row: ContextualPlanRow) -> Sequence[str]:
        private = math.isfinite(row.rho)
        needed = (f">{self.limit:,}" if n is None else f"{n:,}" for n in (row.people_half, row.people_most))
        guess = f"{100 * row.guessed_right:.1f}%" if private else "-"
        shares = (f"{100 * row.share:.1f}%", f"{100 * row.share_stderr:.1f}%")
        return (row.policy, f"{row.rho:.4g}" if private else "none", guess, *shares, *needed)


def plan_contextual(
    dimension: int,
    arms: int = 10,
    people: float = 10_000,
    *,
    rho: Sequence[float] = (0.1, 1.0, 10.0),
    private_contexts: bool = False,
    runs: float = 20,
    seed: int = 0,
    progress: bool = True,
) -> ContextualPlan:
    """Return how much a dimension, a budget and so many people can learn, where actions change from person to person.

    AdaC-OFUL is simulated; with private contexts AdaC-OFUL for joint DP. `ContextualPlan.note` says what is assumed of
    actions and rewards: yours will differ, so simulate on a table of your own (`Labelled`) if you have one. It needs
    numba.

    Args:
        dimension: Of the actions: features.
        arms: Actions for each person.
        people: Who will come.
        rho: zCDP budgets. A twin without privacy is always there to compare with.
        private_contexts: Whether contexts are private too.
        runs: Simulated trials for each budget.
        seed: Of the simulation, and of what is learned.
        progress: Whether to show a bar on a terminal.
    """
    require("a plan with contexts", "fast")
    from private_bandits.simulation import simulate

    dimension, arms = whole_number("dimension", dimension), whole_number("arms", arms, least=2)
    people, runs = large_number("people", people, most=1e7), large_number("runs", runs, least=2)
    seed = large_number("seed", seed, least=0)
    if type(private_contexts) is not bool:
        raise InvalidInput(f"private_contexts must be True or False, got {private_contexts!r}")
    levels = [rho] if isinstance(rho, (int, float)) else list(rho)
    private = sorted({check_positive("rho", level) for level in levels if level != math.inf})
    budgets: list[Budget] = [*map(zCDP, private), NoPrivacy()]
    world, limit = contextual_instance(seed, arms=arms, dimension=dimension), LONGEST * people
    name = "adac-oful-private" if private_contexts else "adac-oful"
    options = {"dimension": dimension, "arms": arms, "horizon": limit, "delta": 1e-3}
    policies = {str(budget): policy_named(name, "contextual", budget, options) for budget in budgets}
    axis = np.unique([*np.geomspace(10, limit, POINTS).round(), people]).astype(int)
    axis = axis[axis <= limit]
    started = time.perf_counter()
    result = simulate(policies, world, limit, runs, seed, axis.tolist(), progress=progress)
    gain = gain_over_random(world, seed)
    rows = []
    for budget in budgets:
        shares = 1.0 - result.curves[str(budget)] / (result.checkpoints * gain)
        now = shares[:, np.searchsorted(result.checkpoints, people)]
        error = float(now.std(ddof=1) / math.sqrt(runs))
        level = budget.level
        needed = (_reached(result.checkpoints, shares.mean(axis=0), part) for part in (HALF, MOST))
        rows.append(ContextualPlanRow(name, level, guessed_right(budget, level), float(now.mean()), error, *needed))
    seconds = time.perf_counter() - started
    return ContextualPlan(dimension, arms, people, private_contexts, runs, seed, limit, gain, tuple(rows), seconds)


def gain_over_random(world: Contextual, seed: int) -> float:
    """Return what the best choices earn over random ones, for each person."""
    generator, theta = np.random.default_rng(seed), np.array(world.theta)
    means = np.array([world.draw_actions(generator) @ theta for _ in range(DRAWS)])
    return float((means.max(axis=1) - means.mean(axis=1)).mean())


def _reached(people: Any, shares: Floats, part: float) -> int | None:
    """Return after how many people the share stays at the part or above; None: not within these."""
    below = np.flatnonzero(shares < part)
    first = 0 if not len(below) else int(below[-1]) + 1
    return None if first == len(shares) else int(people[first])

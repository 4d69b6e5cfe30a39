"""simulate(): many runs of several policies on one environment, and the table that comes out."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.checks import check_probability, large_number
from private_bandits.environments import Contextual, FiniteEnvironment
from private_bandits.errors import InvalidInput, MissingExtra
from private_bandits.labelled import Labelled
from private_bandits.loading import require
from private_bandits.offline.replay import Replay
from private_bandits.plain_data import csv_text, json_number
from private_bandits.policies import Policy
from private_bandits.progress import Report
from private_bandits.progress import progress as progress_bar
from private_bandits.simulation import in_words
from private_bandits.simulation.arrivals import PROMPT, Arrivals, world_with
from private_bandits.simulation.curve_panels import PAGE_NEEDS, PICTURE_NEEDS, check_folder, check_picture_path
from private_bandits.simulation.engines import Engine, engine_for
from private_bandits.simulation.verdicts import Verdicts
from private_bandits.simulation.workers import compute

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Environment = FiniteEnvironment | Contextual | Labelled
"""What policies can be simulated on."""


@dataclass(frozen=True)
class Simulation:
    """Regrets of every policy: `curves[name]` is [run, checkpoint], `final[name]` the regret at the horizon.

    arrivals: when rewards came. Tables and plain data hold its delay and missing where rewards were not prompt.

    verdicts: the first verdict of every run, by policy, where they were looked for. Tables and plain data have figures
    of them.

    No privacy holds for simulated runs: their noise comes from a seed.
    """

    policies: Mapping[str, Policy[Any]]
    environment: Environment
    horizon: int
    runs: int
    seed: int
    checkpoints: Integers
    curves: Mapping[str, Floats]
    seconds: float
    arrivals: Arrivals = PROMPT
    verdicts: Mapping[str, Verdicts] = field(default_factory=dict)

    @property
    def final(self) -> dict[str, Floats]:
        """Regret of every run at the horizon."""
        return {name: curve[:, -1] for name, curve in self.curves.items()}

    def share_right(self) -> dict[str, Floats]:
        """Return which share of the recommendations was right up to each checkpoint, [run, checkpoint].

        Only on a labelled table, where a recommendation is right or wrong; the last column is the overall share.
        """
        if not self.labelled:
            kind = type(self.environment).__name__
            raise InvalidInput(
                f"recommendations are right or wrong on a labelled table only, the environment is {kind}"
            )
        return {name: 1 - curve / self.checkpoints for name, curve in self.curves.items()}

    def summary(self) -> list[dict[str, Any]]:
        """Return a row per policy: regret at the horizon, its mean with its standard error, quantiles, and largest.

        On a labelled table also the share of right recommendations, and that of the best fixed arm.
        """
        return [
            {"name": name, **_describe(policy), **self._figures(self.final[name], self.horizon)}
            | {"horizon": self.horizon, "runs": self.runs, **self.arrivals.to_dict()}
            | (self.verdicts[name].figures() if name in self.verdicts else {})
            for name, policy in self.policies.items()
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per policy and checkpoint, with the same figures."""
        return [
            {"name": name, **_describe(policy), "step": int(step), **self._figures(self.curves[name][:, i], step)}
            | {"runs": self.runs, "seed": self.seed, **self.arrivals.to_dict()}
            for name, policy in self.policies.items()
            for i, step in enumerate(self.checkpoints)
        ]

    def _figures(self, regrets: Floats, step: int) -> dict[str, float | None]:
        found = regret_figures(regrets)
        return found | share_figures(found, int(step), self.environment) if self.labelled else found

    @property
    def labelled(self) -> bool:
        """Whether people come from a labelled table, where a recommendation is right or wrong."""
        return isinstance(self.environment, Labelled)

    def to_frame(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        require("a frame of results", "frames")
        import pandas as pd  # here: half a second that the command line does not need

        return pd.DataFrame(self.rows())

    def to_csv(self, path: str | Path) -> None:
        """The rows as a CSV file."""
        Path(path).write_text(csv_text(self.rows()), encoding="utf-8", newline="")

    @property
    def _contextual(self) -> bool:
        return _is_contextual(self.environment)

    @property
    def note(self) -> str:
        """What does not hold for these runs."""
        text = "simulated with seeded noise: no privacy holds for these runs"
        if not getattr(self.environment, "bounded", True):
            leaving = "rewards and contexts leave the bounds" if self._contextual else "rewards leave the range"
            text += f"; {leaving} that the noise is calibrated to, so no guarantee would hold live either"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        settings = {name: policy.to_dict() for name, policy in self.policies.items()}
        return {
            "results": self.summary(),
            "seconds": self.seconds,
            "environment": str(self.environment),
            **({"table": self.environment.to_dict()} if isinstance(self.environment, Labelled) else {}),
            "seed": self.seed,
            **self.arrivals.to_dict(),
            "policies": settings,
            "note": self.note,
        }

    def plot(self, path: str | Path | None = None) -> Figure:
        """Return a picture: a line with a band for each policy; below it verdicts, where they were looked for.

        Lines are mean regrets over steps, or shares of right recommendations on a labelled table. Bands are two
        standard errors on both sides. Notebooks show the figure.

        Args:
            path: A file to write the picture to as well; its ending says how: .png, .svg or .pdf.

        Raises:
            MissingExtra: matplotlib is not installed.
            InvalidInput: The path has another ending, or its folder does not exist.
        """
        require(*PICTURE_NEEDS)
        if path is not None:
            check_picture_path(path)
        from private_bandits.simulation import curve_figure

        figure = curve_figure.draw(self)
        if path is not None:
            curve_figure.save(figure, path)
        return figure

    def report(self, path: str | Path) -> Path:
        """Write one HTML page with the picture, the figures at the end and the settings, and return its path.

        The page needs no network. It is written over a file of the same name.

        Raises:
            MissingExtra: matplotlib or jinja2 is not installed.
            InvalidInput: The folder does not exist.
        """
        require(*PAGE_NEEDS)
        check_folder(path)
        from private_bandits.simulation import result_page

        target = Path(path)
        target.write_text(result_page.page(self), encoding="utf-8", newline="\n")
        return target

    def _repr_html_(self) -> str | None:
        """Return a table and the picture for a notebook; None where they cannot be drawn."""
        try:
            require(*PAGE_NEEDS)
        except MissingExtra:
            return None
        from private_bandits.simulation import result_page

        return result_page.in_a_notebook(self)

    def __repr__(self) -> str:
        return in_words.in_a_line(self)

    def __str__(self) -> str:
        return in_words.in_lines(self)


def simulate(
    policies: Mapping[str, Policy[Any]],
    environment: Environment,
    horizon: float = 10**7,
    runs: float = 100,
    seed: int = 0,
    checkpoints: Sequence[int] | None = None,
    processes: int = 1,
    progress: bool = True,
    *,
    delay: float | str = 0,
    missing: float = 0.0,
    verdict: float | None = None,
) -> Simulation:
    """Regret of each policy over many runs, exact in distribution.

    checkpoints: steps at which regret is recorded; by default 50 of them, evenly spaced in log scale. The last
    is always the horizon. The numbers of a policy depend on the seed and on the policy, environment, horizon
    and runs, not on the other policies or on the number of processes. In a contextual environment all policies of a
    run see the same contexts; what is compiled for it is spread over threads instead of processes, and is compiled
    before the clock starts. A contextual policy of your own is played one step at a time, and so is every policy on a
    labelled table (`Labelled`): some thousand a second.

    delay: how many later decisions are made before a reward is told: 3 weeks at 20 people a week are 60.
    "geometric:100" is a random delay with that mean, of each reward's own. missing: the probability that a reward never
    comes, whatever it is. Its decision is given up when the reward would have been due. Regret counts every decision.
    Both are for finite arms; with either of them every decision is played: for AdaC-IMED, AdaC-TopTwo, AdaC-Halving and
    AdaC-UCB of all runs at once, for other policies by an `Agent`, a hundred thousand a second at most.

    verdict: the delta of verdicts that are looked for after every release, for finite arms: `Simulation.verdicts` says
    when the first one of each run fell, and on which arm. Runs go on to the horizon.

    >>> import private_bandits as pb
    >>> result = pb.simulate({"private": pb.AdaCUCB(2, pb.zCDP(0.1), beta=1)}, pb.Bernoulli([0.9, 0.1]),
    ...                      horizon=10**6, runs=10)
    >>> result.final["private"].shape
    (10,)
    """
    horizon, runs = large_number("horizon", horizon), large_number("runs", runs)
    seed, processes = large_number("seed", seed, least=0), large_number("processes", processes)
    points, arrivals = _checkpoints(checkpoints, horizon), Arrivals.of(delay, missing)
    if verdict is not None:
        check_probability("verdict", verdict)
    tasks = tasks_for(policies, environment, horizon, points, seed, arrivals, verdict)
    for task in tasks:
        task.prepare()
    started = time.perf_counter()
    jobs = [(task, block) for task in tasks for block in task.blocks(runs)]
    weights = np.array([len(task.policies) * size for task, (_, size) in jobs]) / (len(policies) * runs)
    found: dict[int, Floats] = {}
    with (
        progress_bar("simulating", enabled=progress) as report,
        closing(compute(jobs, processes, lambda shares: report(float(weights @ shares)))) as finished,
    ):
        found.update(finished)
    parts: dict[str, list[Floats]] = {name: [] for name in policies}
    for i, (task, _) in enumerate(jobs):
        for name, rows in zip(task.policies, found[i], strict=True):
            parts[name].append(rows)
    curves = {name: np.concatenate(rows) for name, rows in parts.items()}
    seconds = time.perf_counter() - started
    verdicts = {}
    if verdict is not None:
        first, means = len(points), np.asarray(environment.means)  # type: ignore[union-attr]
        verdicts = {name: Verdicts.of(verdict, rows[:, first:], means) for name, rows in curves.items()}
        curves = {name: rows[:, :first] for name, rows in curves.items()}
    return Simulation(dict(policies), environment, horizon, runs, seed, points, curves, seconds, arrivals, verdicts)


def tasks_for(
    policies: Mapping[str, Policy[Any]],
    environment: Environment,
    horizon: int,
    checkpoints: Integers,
    seed: int,
    arrivals: Arrivals = PROMPT,
    verdict: float | None = None,
) -> list[Task]:
    """The simulation as tasks, one for each group of policies that an engine simulates together."""
    _check_policies(policies, environment)
    world = world_with(arrivals, verdict, environment, policies)
    groups: dict[Hashable, dict[str, Policy[Any]]] = {}
    for name, policy in policies.items():
        groups.setdefault(engine_for(policy, world).group_of(policy), {})[name] = policy
    return [Task(group, world, horizon, checkpoints, seed) for group in groups.values()]


Block = tuple[int, int]
"""The number of a block of runs, and how many runs are in it."""


@dataclass(frozen=True)
class Task:
    """Policies that one engine simulates together.

    A block of runs is a pure function of the settings, whoever computes it.

    What a policy's regrets are does not depend on the other policies.
    """

    policies: Mapping[str, Policy[Any]]
    environment: Any
    horizon: int
    checkpoints: Integers
    seed: int

    @cached_property
    def engine(self) -> Engine:
        """The engine that all of them have."""
        return engine_for(next(iter(self.policies.values())), self.environment)

    @property
    def runs_in_threads(self) -> bool:
        """Whether it may run beside others in threads."""
        return self.engine.in_threads

    def only(self, names: Sequence[str]) -> Task:
        """The same with some of the policies."""
        return replace(self, policies={name: self.policies[name] for name in names})

    def blocks(self, runs: int) -> list[Block]:
        """Number and size of each."""
        size = self.engine.block_size(self.horizon)
        return [(b, min(size, runs - b * size)) for b in range(math.ceil(runs / size))]

    def seconds(self, runs: int) -> float:
        """How long runs of all policies take, about."""
        return len(self.policies) * self.engine.seconds_for(runs, self.horizon)

    def prepare(self) -> None:
        """Do what is not to be timed."""
        self.engine.prepare(list(self.policies.values()), self.environment)

    def __call__(self, block: Block, report: Report = lambda part: None) -> Floats:
        """The regrets of a block, [policy, run, checkpoint]."""
        group = list(self.policies.values())
        return self.engine.regret_curves(
            group, self.environment, self.horizon, block, self.checkpoints, self.seed, report
        )


def _check_policies(policies: Mapping[str, Policy[Any]], environment: Environment) -> None:
    if not isinstance(policies, Mapping) or not policies:
        raise InvalidInput('policies must name at least one policy, as in {"private": AdaCUCB(...)}')
    if isinstance(environment, Replay):
        raise InvalidInput("regret is not known on a log: use Replay(...).run(policy), which estimates the mean reward")
    if not _is_contextual(environment) and not hasattr(environment, "reward_sums"):
        raise InvalidInput(f"environment must be one such as Bernoulli(...), got {type(environment).__name__}")
    for name, policy in policies.items():
        if not isinstance(policy, Policy):
            raise InvalidInput(f"policy {name!r} must be a policy such as AdaCUCB(...), got {type(policy).__name__}")
        setting = getattr(policy, "setting", "finite")
        if (setting == "contextual") != _is_contextual(environment):
            raise InvalidInput(
                f"policy {name!r} is for the {setting} setting, the environment is {type(environment).__name__}"
            )
        if _is_contextual(environment):
            _check_dimension(name, policy, environment)
        else:
            _check_arms(name, policy, environment)


def _check_arms(name: str, policy: Policy[Any], environment: Any) -> None:
    if len(policy.arm_names) != len(environment.means):
        raise InvalidInput(
            f"policy {name!r} has {len(policy.arm_names)} arms, the environment has {len(environment.means)}"
        )
    own, theirs = getattr(policy, "actions", None), getattr(environment, "actions", None)
    if own is not None and theirs is not None and own != theirs:
        raise InvalidInput(f"policy {name!r} was made for other actions than the environment has")


def _is_contextual(environment: Any) -> bool:
    return isinstance(environment, (Contextual, Labelled))


def _check_dimension(name: str, policy: Any, environment: Any) -> None:
    if policy.dimension != environment.dimension:
        raise InvalidInput(
            f"policy {name!r} is for actions in dimension {policy.dimension}, the environment's have "
            f"{environment.dimension}"
        )
    if environment.scaled and policy.context_norm < 1:
        raise InvalidInput(
            f"policy {name!r} declares actions of length {policy.context_norm} at most, the environment's have up to 1"
        )
    arms = getattr(policy, "arms", 0)  # 0: any number of them
    if arms and arms != environment.arms:
        raise InvalidInput(
            f"policy {name!r} is for {arms} actions at every step, the environment has {environment.arms}"
        )


def log_checkpoints(horizon: int) -> Integers:
    """50 steps up to the horizon, or fewer, evenly spaced in log scale."""
    return np.unique(np.geomspace(1, horizon, 50).round().astype(np.int64))


def _checkpoints(given: Sequence[int] | None, horizon: int) -> Integers:
    if given is None:
        return log_checkpoints(horizon)
    points = np.unique([*(large_number("a checkpoint", step) for step in given), horizon])
    if points[-1] > horizon:
        raise InvalidInput(f"checkpoints must not exceed the horizon of {horizon}, got {points[-1]}")
    return points.astype(np.int64)


def regret_figures(values: Floats) -> dict[str, float | None]:
    """Return mean, standard error, 95% and 99% quantile and the largest of the regrets of runs.

    >>> regret_figures(np.array([1.0, 3.0]))["regret_max"]
    3.0
    """
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else None
    p95, p99 = (float(part) for part in np.quantile(values, (0.95, 0.99)))
    tail = {"regret_p95": p95, "regret_p99": p99, "regret_max": float(values.max())}
    return {"regret_mean": float(values.mean()), "regret_stderr": error, **tail}


def share_figures(regrets: Mapping[str, Any], step: int, table: Any) -> dict[str, float | None]:
    """Return the share of right recommendations up to a step, its standard error, and what is right without learning.

    regrets: what `regret_figures` returns, where regret is the number of wrong recommendations.
    """
    error = regrets["regret_stderr"]
    return {
        "share_right": 1 - regrets["regret_mean"] / step,
        "share_right_stderr": None if error is None else error / step,
        "best_fixed_arm": table.best_fixed_share,
        "guessing": table.guessing_share,
    }


def _describe(policy: Policy[Any]) -> dict[str, Any]:
    rho = policy.budget.implied_rho
    return {
        "policy": policy.name,
        "variant": getattr(policy, "variant", None),
        "rho": json_number(rho),
        "budget": str(policy.budget),
    }

"""The study behind AdaC-IMED's defaults: means and tails of its regret, by index, beta, opening, growth and decay.

    python benchmarks/imed.py [--runs 2000] [--only forms,settings]

Against another version, such as 0.8.0, whose AdaC-UCB has variant="tight": run the first line where that is installed.

    python benchmarks/imed.py --write rival.npz
    python benchmarks/imed.py --against rival.npz

Seeds are fixed: the same version prints the same numbers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unittest import mock

import numpy as np

import private_bandits as pb

RHOS = (0.001, 0.01, 0.1, 1.0, 10.0)
HORIZONS = (10**5, 10**6, 10**7)
SEED = 11
INSTANCES: dict[str, list[float]] = {
    "the paper's": [0.75, 0.625, 0.5, 0.375, 0.25],
    "2, near tie": [0.5, 0.49],
    "2, close": [0.55, 0.5],
    "2, medium gap": [0.75, 0.25],
    "2, large gap": [0.9, 0.1],
    "2, near 0": [0.02, 0.01],
    "2, low": [0.05, 0.01],
    "2, near 1": [0.99, 0.97],
    "3, near 1": [0.999, 0.95, 0.9],
    "5, ties": [0.6, 0.6, 0.6, 0.5, 0.5],
    "5, one good": [0.9, 0.5, 0.5, 0.5, 0.5],
    "5, large gaps": [0.9, 0.1, 0.1, 0.1, 0.1],
    "10, in steps": np.linspace(0.2, 0.8, 10).tolist(),
    "10, low": [0.1, 0.08, 0.06, 0.05, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01],
    "30, one good": [0.8] + [0.5] * 29,
    "30, in steps": np.linspace(0.1, 0.9, 30).tolist(),
}
FEW = ("the paper's", "2, close", "2, medium gap", "2, large gap", "2, near 0", "2, low", "2, near 1", "5, one good")
"""Where settings differ most, and that are simulated quickly."""

Regrets = dict[str, Any]
"""By case, the regret of every run."""


def cases(names: Any = tuple(INSTANCES), horizons: Any = HORIZONS) -> Iterator[tuple[str, list[float], int]]:
    """Name, means and horizon of each."""
    for name in names:
        for horizon in horizons:
            yield f"{name}, T = {horizon:.0e}", INSTANCES[name], horizon


def write_rival(path: str, runs: int) -> None:
    """Regrets of the tight AdaC-UCB of the version that is installed, 0.8 or earlier."""
    found: Regrets = {}
    for name, means, horizon in cases():
        policies = {str(rho): pb.AdaCUCB(len(means), pb.zCDP(rho), beta=1.0, variant="tight") for rho in RHOS}
        final = pb.simulate(policies, pb.Bernoulli(means), horizon, runs=runs, seed=SEED).final
        found |= {f"{name}, rho = {rho:g}": final[str(rho)] for rho in RHOS}
    np.savez_compressed(path, **found)


@dataclass(frozen=True)
class Setting:
    """One way to choose what is to be chosen. doubt: of the discount on small costs; 0: none."""

    beta: float = 1.0
    growth: float = 1.25
    opening: float = 7.5
    decay: float = 1.5
    doubt: float = 3.0
    upper_bounds: bool = False


DEFAULT = Setting()


def regrets(setting: Setting, runs: int, names: Any = tuple(INSTANCES), horizons: Any = HORIZONS) -> Regrets:
    """Regrets of AdaC-IMED with this setting."""
    from private_bandits.policies import imed_index
    from private_bandits.policies.geometric import GeometricMemory
    from private_bandits.simulation import imed

    class Tuned(pb.AdaCIMED):
        @cached_property
        def memory(self) -> GeometricMemory:
            return GeometricMemory.for_budget(self.budget, self.growth, setting.opening, setting.decay)

    class UpperBounds(imed.ImedRuns):
        """The KL-UCB+ form: the arm whose mean may be largest, at a cost of at most beta log(t/N)."""

        def choose(self) -> Any:
            low, high = self.means.clip(0.0, 1.0), np.ones_like(self.means)
            allowed = self.beta * (np.log(self.time + 1.0) - self.logs)
            for _ in range(20):
                middle = 0.5 * (low + high)
                cost = imed_index.costs(self.means, middle, self.rewards, self.noise)
                fits = imed_index.all_discounted(cost) <= allowed
                low, high = np.where(fits, middle, low), np.where(fits, high, middle)
            return low.argmax(axis=0)

    kind = UpperBounds if setting.upper_bounds else imed.ImedRuns
    found: Regrets = {}
    with (
        mock.patch.object(imed_index, "DOUBT", setting.doubt or 1e-12),
        mock.patch.object(imed, "ImedRuns", kind),
    ):
        for name, means, horizon in cases(names, horizons):
            policies = [Tuned(len(means), pb.zCDP(rho), beta=setting.beta, growth=setting.growth) for rho in RHOS]
            generators = [np.random.default_rng([SEED, i]) for i in range(len(RHOS))]
            end = np.array([horizon])
            curves = imed.regret_curves(
                policies, pb.Bernoulli(means), horizon, runs, end, generators, lambda part: None
            )
            found |= {f"{name}, rho = {rho:g}": curves[i, :, -1] for i, rho in enumerate(RHOS)}
    return found


def openings(means: list[float], rho: float) -> float:
    """Regret of the tight AdaC-UCB's first two releases of each arm."""
    first = 2 ** round(np.log2(max(1.0, 7.5 / np.sqrt(2 * rho))))
    return float((max(means) - np.array(means)).sum() * first)


def against(path: str, runs: int) -> None:
    """Print AdaC-IMED's regret beside that in a file."""
    ours, theirs = regrets(DEFAULT, runs), np.load(path)
    rows = []
    print(f"{'case':42} {'tight':>9} {'IMED':>9} {'ratio':>6} {'99%':>6} {'above 10 means, of 1000':>24}")
    for name, means, horizon in cases():
        for rho in RHOS:
            case = f"{name}, rho = {rho:g}"
            mine, other = ours[case], theirs[case]
            uniform = horizon * (max(means) - np.mean(means))
            inside = 2 * openings(means, rho) < other.mean() < uniform / 4
            ratio, high = mine.mean() / other.mean(), np.quantile(mine, 0.99) / np.quantile(other, 0.99)
            beyond = 1000 * (mine > 10 * mine.mean()).mean()
            rows.append((inside, ratio, high, beyond))
            print(
                f"{case:42} {other.mean():9.1f} {mine.mean():9.1f} {ratio:6.2f} {high:6.2f} {beyond:24.1f}"
                + ("" if inside else "   openings or horizon decide")
            )
    table = np.array(rows, float)
    inside = table[:, 0] > 0
    print(
        f"{inside.sum()} cases: ratio {table[inside, 1].mean():.3f} on average, {table[inside, 1].max():.3f} at most; "
        f"99% quantile {table[inside, 2].max():.2f} at most. Others: {table[~inside, 1].max():.3f} at most. "
        f"Above 10 means: {table[:, 3].max():.1f} of 1000 at most"
    )


def compare(title: str, settings: dict[str, Setting], runs: int, base: Regrets) -> None:
    """Print means, quantiles and tails of several settings beside the default's."""
    print(f"\n{title}\n{'':34} {'mean':>7} {'largest':>8} {'99%':>7} {'above 10 means':>15} {'largest/mean':>13}")
    for name, setting in settings.items():
        started = time.perf_counter()
        fewer = runs // 5 if setting.upper_bounds else runs  # a search in a search
        found = base if setting == DEFAULT else regrets(setting, fewer, FEW, (10**5, 10**7))
        ratios = np.array([found[case].mean() / base[case].mean() for case in base])
        high = np.array([np.quantile(found[case], 0.99) / np.quantile(base[case], 0.99) for case in base])
        beyond = max(1000 * (found[case] > 10 * found[case].mean()).mean() for case in base)
        largest = max(found[case].max() / found[case].mean() for case in base)
        print(
            f"{name:34} {ratios.mean():7.3f} {ratios.max():8.2f} {high.mean():7.2f} {beyond:15.1f} {largest:13.0f}"
            f"   ({time.perf_counter() - started:.0f} s)",
            flush=True,
        )


def main() -> None:
    """Parse, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", default="forms,settings")
    parser.add_argument("--write")
    parser.add_argument("--against")
    options = parser.parse_args()
    if options.write:
        return write_rival(options.write, options.runs)
    if options.against:
        return against(options.against, options.runs)
    print("relative to the default on the same cases: mean regret, the largest of these, the mean of 99% quantiles;")
    print("runs of 1000 above 10 times their mean, and the largest run over the mean, on the worst case")
    base = regrets(DEFAULT, options.runs, FEW, (10**5, 10**7))
    if "forms" in options.only:
        forms = {f"IMED, discounted, beta = {beta:g}": Setting(beta) for beta in (0.8, 1.0, 1.1, 1.2, 1.5, 2.0)}
        forms |= {f"IMED, beta = {beta:g}": Setting(beta, doubt=0) for beta in (1.0, 1.1, 1.2, 1.3)}
        forms |= {"KL-UCB+, discounted, beta = 1": Setting(upper_bounds=True)}
        forms |= {"KL-UCB+, beta = 1": Setting(doubt=0, upper_bounds=True)}
        compare("the form of the index, the discount and beta", forms, options.runs, base)
    if "settings" in options.only:
        settings = {f"opening {opening:g}": Setting(opening=opening) for opening in (3.5, 5.0, 7.5, 10.0, 15.0)}
        settings |= {f"growth {growth:g}": Setting(growth=growth) for growth in (1.15, 1.2, 1.35, 1.5, 2.0)}
        settings |= {f"decay {decay:g}": Setting(decay=decay) for decay in (1.0, 2.0)}
        settings |= {f"doubt {doubt:g}": Setting(doubt=doubt) for doubt in (2.0, 4.0, 6.0)}
        compare("opening, growth and decay", settings, options.runs, base)
    return None


if __name__ == "__main__":
    main()

"""The contextual engine beside numpy drawing its contexts alone, measured in turns in one run.

python benchmarks/contextual.py
"""

from __future__ import annotations

import resource
import time

import numpy as np

import private_bandits as pb
from private_bandits.budget import Budget

ARMS, DIMENSION = 10, 3
HORIZON, ROUNDS = 10**6, 8


def numpy_seconds(steps: int) -> float:
    """Seconds that numpy takes for the normals of so many steps, with the fastest of its generators."""
    generator = np.random.Generator(np.random.SFC64(0))
    block = np.empty(ARMS * DIMENSION * 1000, np.float32)  # stays in the cache
    started = time.perf_counter()
    for _ in range(steps // 1000):
        generator.standard_normal(dtype=np.float32, out=block)
    return time.perf_counter() - started


def main() -> None:
    """Print the comparison."""
    budgets: list[Budget] = [*(pb.zCDP(10.0**k) for k in range(-3, 3)), pb.NoPrivacy()]
    policies = {str(b): pb.AdaCOFUL(dimension=DIMENSION, budget=b, horizon=HORIZON, variant="paper") for b in budgets}
    for setting in ("paper", "strict"):
        environment = pb.Contextual(DIMENSION, ARMS, [0.6, 0.48, 0.64], setting)
        engine, alone = [], []
        for seed in range(ROUNDS):
            engine.append(pb.simulate(policies, environment, HORIZON, 1, seed, progress=False).seconds)
            alone.append(numpy_seconds(HORIZON))
        ratios = [e / a for e, a in zip(engine, alone, strict=True)]
        print(
            f"{setting}: {min(engine) / HORIZON * 1e9:.0f} ns a step of {len(policies)} policies, "
            f"numpy's contexts alone {min(alone) / HORIZON * 1e9:.0f} ns: ratio {min(engine) / min(alone):.2f} "
            f"(in turns, from {min(ratios):.2f} to {max(ratios):.2f}); "
            f"{min(engine) / HORIZON * 1e9 / len(policies):.0f} ns a step and policy"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory: {memory:,.0f} MiB at most, with the compiler")


if __name__ == "__main__":
    main()

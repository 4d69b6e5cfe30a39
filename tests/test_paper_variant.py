"""variant="paper" gives the numbers that it gave before there was another variant: paper_variant.json has them.

Simulations are seeded by repr(policy), so that a parameter which shows there would change every published number.

Where contexts are scaled to length one, the actions of the first episode differ in rounding errors alone, and by those
the best one is chosen. So compiled simulations are compared in machine code for the plainest processor of their kind.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.policies import Policy

DIGITS = 1e-12
"""By how much numbers may differ, relatively: other processors and libraries may round the last digit otherwise."""
RECORDED = json.loads((Path(__file__).parent / "paper_variant.json").read_text())
ACTIONS = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.6, 0.8, 0.0], [0.0, 0.6, -0.8], [-0.48, 0.6, 0.64]]
THETA = [0.6, 0.48, 0.63]
BUDGETS: dict[str, Budget] = {
    "0.001": pb.zCDP(0.001),
    "0.1": pb.zCDP(0.1),
    "10": pb.zCDP(10),
    "(1, 1e-6)": pb.ApproxDP(1, 1e-6),
    "none": pb.NoPrivacy(),
}
SIMULATED: dict[str, tuple[Any, float, Any]] = {
    "finite": (pb.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25]), 1e6, lambda b: pb.AdaCUCB(5, b, beta=1, variant="paper")),
    "finite, beta = 3.1": (pb.Bernoulli([0.6, 0.5]), 1e5, lambda b: pb.AdaCUCB(2, b, variant="paper")),
    "linear": (pb.Linear(ACTIONS, THETA), 1e6, lambda b: pb.AdaCGOPE(ACTIONS, b, variant="paper")),
    "linear, as printed": (
        pb.Linear(ACTIONS, THETA, "gaussian"),
        1e5,
        lambda b: pb.AdaCGOPE(ACTIONS, b, delta=0.5, variant="paper", phase_length="own", phase_factor=0.02),
    ),
    "contextual": (
        pb.Contextual(3, 10, THETA),
        3000,
        lambda b: pb.AdaCOFUL(3, b, horizon=3000, regulariser=1.0, variant="paper"),
    ),
    "contextual, as printed": (
        pb.Contextual(2, 5, [0.6, 0.8], "paper"),
        3000,
        lambda b: pb.AdaCOFUL(2, b, horizon=3000, variant="paper"),
    ),
}
AGENTS: dict[str, tuple[Policy[Any], tuple[float, float]]] = {
    "finite": (pb.AdaCUCB(3, pb.zCDP(0.1), beta=1, variant="paper"), (0.0, 1.0)),
    "linear": (pb.AdaCGOPE(ACTIONS[:3], pb.zCDP(0.5), delta=0.5, variant="paper", phase_factor=0.02), (-1.0, 1.0)),
    "contextual": (pb.AdaCOFUL(3, pb.zCDP(0.5), horizon=300, variant="paper"), (-1.0, 1.0)),
}


def simulated(name: str) -> dict[str, list[float]]:
    """Three runs of each budget: the regret halfway (in log scale) and at the end."""
    world, horizon, make = SIMULATED[name]
    policies = {label: make(budget) for label, budget in BUDGETS.items()}
    result = pb.simulate(policies, world, horizon, runs=3, seed=11, progress=False)
    half = len(result.checkpoints) // 2
    return {label: curves[:, [half, -1]].ravel().tolist() for label, curves in result.curves.items()}


def published(name: str) -> dict[str, Any]:
    """All that a seeded agent published in 300 steps."""
    policy, reward_range = AGENTS[name]
    agent, chance, played = pb.Agent(policy, reward_range, seed=5), random.Random(7), []
    for _ in range(300):
        offered = [[chance.uniform(-0.5, 0.5) for _ in range(3)] for _ in range(4)]
        decision = agent.ask(actions=offered) if policy.setting == "contextual" else agent.ask()
        played.append(decision.action)
        agent.tell(decision, chance.uniform(*reward_range))
    rows = [[row.key, row.count, row.noise_sd, row.sensitivity, row.calibrated, *row.values] for row in agent.ledger]
    return {"actions": "".join(map(str, played)), "rows": rows}


COMPILED = [name for name, (world, *_) in SIMULATED.items() if isinstance(world, pb.Contextual)]
ELSEWHERE = f"""
import json
from tests.test_paper_variant import simulated
print(json.dumps({{name: simulated(name) for name in {COMPILED}}}))
"""


def test_compiled_simulations_are_as_they_were(tmp_path: Path) -> None:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("recorded in machine code of another kind of processor")
    plain = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    plain["NUMBA_OPT"] = "1"  # takes two thirds of the time; numbers were recorded at 3 and are the same
    root = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=root, env=plain, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for name in COMPILED:
        compare(name, found[name])


@pytest.mark.parametrize("name", [name for name in SIMULATED if name not in COMPILED])
def test_simulations_are_as_they_were(name: str) -> None:
    compare(name, simulated(name))


def compare(name: str, found: dict[str, list[float]]) -> None:
    for label, regrets in RECORDED["simulated"][name].items():
        np.testing.assert_allclose(found[label], regrets, rtol=DIGITS, atol=0, err_msg=f"{name}, {label}")


@pytest.mark.parametrize("name", AGENTS)
def test_agents_publish_what_they_did(name: str) -> None:
    found, recorded = published(name), RECORDED["published"][name]
    assert found["actions"] == recorded["actions"]
    assert len(recorded["rows"]) >= 3
    assert math.fsum(row[1] for row in recorded["rows"]) <= 300
    for row, before in zip(found["rows"], recorded["rows"], strict=True):
        np.testing.assert_allclose(row, before, rtol=DIGITS, atol=0)

"""Policies on a labelled table, against live agents on the same rows."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.policies import POLICIES, Policy
from private_bandits.simulation import labelled_steps
from private_bandits.simulation.labelled_steps import drawn_rows
from private_bandits.simulation.seeds import Seeds

NAMES = [name for name, cls in sorted(POLICIES.items()) if cls.setting == "contextual"]


def made_table(rows: int = 120, noise: float = 0.3) -> pb.Labelled:
    """Three kinds of people, which two numbers and a text tell apart well."""
    generator = np.random.default_rng(3)
    kinds = generator.integers(3, size=rows)
    near = np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])[kinds] + noise * generator.normal(size=(rows, 2))
    texts = np.where(generator.random(rows) < 0.9, kinds, 0)
    return pb.Labelled({"x": near[:, 0], "y": near[:, 1], "z": [f"z{i}" for i in texts], "kind": kinds}, "kind")


TABLE = made_table()


def made(name: str, budget: Any, horizon: int = 300) -> Policy[Any]:
    options = {"arms": TABLE.arms} if name == "linpriv" else {}
    return POLICIES[name](dimension=TABLE.dimension, budget=budget, horizon=horizon, **options)  # type: ignore[call-arg]


@dataclass(frozen=True)
class Own(pb.AdaCOFUL):
    """A policy of a user's own."""


@pytest.mark.parametrize("name", NAMES)
def test_same_decisions_as_a_live_agent_without_privacy(name: str) -> None:
    policy, steps = made(name, pb.NoPrivacy()), 300
    agent = pb.Agent(policy, reward_range=(0, 1))
    wrong = []
    for row in drawn_rows(TABLE, steps, Seeds(7, 0), run=1):
        decision = agent.ask(actions=TABLE.actions(row))
        reward = TABLE.reward(row, decision.action)
        agent.tell(decision, reward)
        wrong.append(1 - reward)
    result = pb.simulate({"it": policy}, TABLE, steps, runs=2, seed=7, checkpoints=range(1, steps + 1))
    np.testing.assert_array_equal(result.curves["it"][1], np.cumsum(wrong))
    assert 0 < sum(wrong) < 250


def test_rows_are_drawn_evenly_and_runs_differ() -> None:
    rows = drawn_rows(TABLE, 12_000, Seeds(0, 0), 0)
    counts = np.bincount(rows, minlength=TABLE.rows)
    assert abs(counts - 100).max() < 5 * np.sqrt(100)
    assert (rows != drawn_rows(TABLE, 12_000, Seeds(0, 0), 1)).any()


def test_the_share_right_and_what_is_right_without_learning() -> None:
    policies = {"private": made("adac-oful", pb.zCDP(1.0), 3000), "none": made("adac-oful", pb.NoPrivacy(), 3000)}
    result = pb.simulate(policies, TABLE, 3000, runs=3, checkpoints=[500])
    shares = result.share_right()
    np.testing.assert_allclose(shares["none"][:, -1], 1 - result.final["none"] / 3000)
    assert shares["none"].shape == (3, 2)
    assert TABLE.best_fixed_share + 0.1 < shares["private"][:, -1].mean() < shares["none"][:, -1].mean()
    row = result.summary()[0]
    assert row["share_right"] == pytest.approx(shares["private"][:, -1].mean())
    assert row["share_right_stderr"] == pytest.approx(shares["private"][:, -1].std(ddof=1) / np.sqrt(3))
    assert row["best_fixed_arm"] == TABLE.best_fixed_share
    frame = result.to_frame()
    early = frame[(frame["name"] == "private") & (frame["step"] == 500)]
    assert float(early["share_right"].iloc[0]) == pytest.approx(shares["private"][:, 0].mean())
    assert result.to_dict()["table"]["rows"] == 120
    assert result.note == "simulated with seeded noise: no privacy holds for these runs"


def test_numbers_do_not_depend_on_processes_or_other_policies() -> None:
    policies = {"a": made("adac-oful", pb.zCDP(1.0)), "b": made("adac-oful-private", pb.zCDP(1.0))}
    alone = pb.simulate({"a": policies["a"]}, TABLE, 6000, runs=2)
    both = pb.simulate(policies, TABLE, 6000, runs=2, processes=2)
    np.testing.assert_array_equal(alone.curves["a"], both.curves["a"])
    assert len(set(alone.final["a"])) == 2


def test_stretches_of_any_length_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = {"own": Own(TABLE.dimension, pb.zCDP(1.0), horizon=300)}
    whole = pb.simulate(policies, TABLE, 300, runs=1)
    monkeypatch.setattr(labelled_steps, "LONGEST", 37)
    np.testing.assert_array_equal(whole.curves["own"], pb.simulate(policies, TABLE, 300, runs=1).curves["own"])


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match=f"the environment's have {TABLE.dimension}"):
        pb.simulate({"a": pb.AdaCOFUL(3, pb.zCDP(1.0))}, TABLE, 100)
    with pytest.raises(InvalidInput, match=r"of length 0\.5 at most"):
        pb.simulate({"a": pb.AdaCOFUL(TABLE.dimension, pb.zCDP(1.0), context_norm=0.5)}, TABLE, 100)
    with pytest.raises(InvalidInput, match="the environment has 3"):
        pb.simulate({"a": pb.LinPriv(TABLE.dimension, pb.zCDP(1.0), arms=4)}, TABLE, 100)
    with pytest.raises(InvalidInput, match="for the finite setting, the environment is Labelled"):
        pb.simulate({"a": pb.AdaCUCB(3, pb.zCDP(1.0))}, TABLE, 100)
    with pytest.raises(InvalidInput, match="on a labelled table only, the environment is Bernoulli"):
        pb.simulate({"a": pb.AdaCUCB(2, pb.zCDP(1.0))}, pb.Bernoulli([0.5, 0.6]), 100, 1).share_right()


def test_no_extra_is_needed(tmp_path: Path) -> None:
    """Neither pandas nor compiled code."""
    (tmp_path / "t.csv").write_text("x,kind\n" + "".join(f"{i % 7},{'ab'[i % 7 > 3]}\n" for i in range(50)))
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'numba', 'scipy']))\n"
        "import private_bandits as pb\n"
        "world = pb.Labelled('t.csv', 'kind')\n"
        "policy = pb.AdaCOFUL(world.dimension, pb.NoPrivacy(), horizon=500)\n"
        "print(pb.simulate({'a': policy}, world, 500, 1, progress=False).share_right()['a'][0, -1])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0.8

"""simulate(): what comes out, what it depends on, what it refuses."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.simulation import engines
from private_bandits.simulation.engines import (
    CONTEXTS_ONE_BY_ONE,
    DOUBLING,
    ELIMINATION,
    ONE_BY_ONE,
    SERVED,
    engine_for,
)
from tests.support import EVERY_POLICY

ENVIRONMENT = pb.Bernoulli([0.8, 0.6, 0.3])


def policy(rho: float) -> pb.AdaCUCB:
    return pb.AdaCUCB(3, pb.zCDP(rho), beta=1)


def test_numbers_do_not_depend_on_the_other_policies_or_their_order() -> None:
    alone = pb.simulate({"a": policy(1)}, ENVIRONMENT, 10**5, runs=7, seed=2)
    among = pb.simulate({"b": policy(2), "c": policy(0.1), "a": policy(1)}, ENVIRONMENT, 10**5, runs=7, seed=2)
    np.testing.assert_array_equal(alone.curves["a"], among.curves["a"])


def test_numbers_do_not_depend_on_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BLOCK", 5)
    one = pb.simulate({"a": policy(1), "b": policy(2)}, ENVIRONMENT, 10**4, runs=12, seed=2, processes=1)
    two = pb.simulate({"a": policy(1), "b": policy(2)}, ENVIRONMENT, 10**4, runs=12, seed=2, processes=2)
    for name in ("a", "b"):
        np.testing.assert_array_equal(one.curves[name], two.curves[name])
    assert one.curves["a"].shape[0] == 12


def test_seeds_and_policies_have_streams_of_their_own() -> None:
    first = pb.simulate({"a": policy(1)}, ENVIRONMENT, 10**4, runs=20, seed=0).final["a"]
    second = pb.simulate({"a": policy(1)}, ENVIRONMENT, 10**4, runs=20, seed=1).final["a"]
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, pb.simulate({"a": policy(1)}, ENVIRONMENT, 10**4, runs=20, seed=0).final["a"])


def test_regret_is_exact_at_checkpoints() -> None:
    coarse = pb.simulate({"a": policy(1)}, ENVIRONMENT, 1000, runs=3, checkpoints=[10, 333])
    fine = pb.simulate({"a": policy(1)}, ENVIRONMENT, 1000, runs=3, checkpoints=range(1, 1001))
    assert coarse.checkpoints.tolist() == [10, 333, 1000]
    np.testing.assert_allclose(coarse.curves["a"], fine.curves["a"][:, [9, 332, 999]])
    assert pb.simulate({"a": policy(1)}, ENVIRONMENT, 10**7, runs=1).checkpoints[-1] == 10**7


def test_results_as_frame_csv_and_json(tmp_path: Path) -> None:
    result = pb.simulate({"a": policy(1), "twin": pb.AdaCUCB(3, pb.NoPrivacy())}, ENVIRONMENT, 1000, runs=3)
    frame = result.to_frame()
    assert len(frame) == 2 * len(result.checkpoints)
    last = frame[(frame["name"] == "a") & (frame["step"] == 1000)].iloc[0]
    final = result.final["a"]
    assert last["regret_mean"] == pytest.approx(final.mean())
    figures = [last[name] for name in ("regret_p95", "regret_p99", "regret_max")]
    assert figures == pytest.approx([np.quantile(final, 0.95), np.quantile(final, 0.99), final.max()])
    assert [result.summary()[0][name] for name in ("regret_p95", "regret_p99", "regret_max")] == figures
    result.to_csv(tmp_path / "out.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    assert len(rows) == len(frame)
    assert rows[-1]["rho"] == "inf"
    assert float(rows[-1]["regret_max"]) == result.final["twin"].max()
    data = json.loads(json.dumps(result.to_dict()))
    assert {"policy", "variant", "rho", "regret_mean", "regret_stderr", "horizon", "runs"} <= set(data["results"][0])
    assert [row["rho"] for row in data["results"]] == [1.0, "inf"]


def test_one_run_has_no_standard_error() -> None:
    assert pb.simulate({"a": policy(1)}, ENVIRONMENT, 100, runs=1).summary()[0]["regret_stderr"] is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"horizon": 0}, "horizon"),
        ({"horizon": 1.5}, "horizon"),
        ({"horizon": float("inf")}, "horizon"),
        ({"runs": 0}, "runs"),
        ({"runs": True}, "runs"),
        ({"seed": -1}, "seed"),
        ({"processes": 0}, "processes"),
        ({"policies": {}}, "at least one policy"),
        ({"policies": {"a": "adac-ucb"}}, "must be a policy"),
        ({"policies": {"a": pb.AdaCUCB(2, pb.zCDP(1))}}, "2 arms"),
        ({"checkpoints": [10, 2000]}, "2000"),
        ({"checkpoints": [0]}, "checkpoint"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], text: str) -> None:
    arguments = {"policies": {"a": policy(1)}, "environment": ENVIRONMENT, "horizon": 1000, "runs": 2} | change
    with pytest.raises(InvalidInput, match=text):
        pb.simulate(**arguments)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Stubborn(pb.AdaCUCB):
    """A user's policy that no fast engine knows."""

    name: ClassVar[str] = ""

    def due(self, state: Any, key: int, count: int, arrived: Any) -> bool:
        return super().due(state, key, count, arrived)


def test_a_policy_without_a_fast_engine_is_run_step_by_step() -> None:
    mixed = pb.simulate({"a": Stubborn(3, pb.zCDP(1)), "b": policy(1)}, ENVIRONMENT, 200, runs=2)
    alone = pb.simulate({"b": policy(1)}, ENVIRONMENT, 200, runs=2)
    assert mixed.final["a"].shape == (2,)
    np.testing.assert_array_equal(mixed.curves["b"], alone.curves["b"])


# Engines.


def test_every_policy_shipped_has_a_fast_engine_and_every_engine_its_module() -> None:
    for one in EVERY_POLICY:
        found = engine_for(one)
        assert found not in (ONE_BY_ONE, CONTEXTS_ONE_BY_ONE)
        assert found.shares_contexts is (one.setting == "contextual")
    for engine in {served.engine for served in SERVED.values()} | {ONE_BY_ONE, CONTEXTS_ONE_BY_ONE}:
        assert callable(engine.load().regret_curves)
        assert engine.seconds_for(3, 100) > 0


def test_a_subclass_is_simulated_by_an_engine_that_sees_what_it_changes() -> None:
    class Mixin:
        def due(self, *arguments: Any) -> bool:
            return bool(super().due(*arguments))  # type: ignore[misc]

    class Mixed(Mixin, pb.AdaPUCB):
        name = ""

    class Later(Mixed):
        name = ""

    class Renamed(pb.DPSE):
        name = ""

    expected = {Mixed: ONE_BY_ONE, Later: ONE_BY_ONE, Renamed: ELIMINATION, pb.AdaPUCB: DOUBLING}
    assert {kind: engine_for(kind(2, pb.PureDP(1))) for kind in expected} == expected

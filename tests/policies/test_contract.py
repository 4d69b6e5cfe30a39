"""What every policy has to keep, found automatically: a new policy is tested the day it is written."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any
from unittest import mock

import pytest

import private_bandits as pb
from private_bandits import testing
from private_bandits.agent import bandit_of
from private_bandits.policies import Policy
from private_bandits.policies.base import plain_copy
from private_bandits.testing import SCRIPTS, PolicyRules, interact
from tests.support import EVERY_POLICY, EXAMPLE_BUDGETS, ONE_OF_EACH_NOISE, OTHER_BUDGETS, OTHER_VARIANTS, policy_id


class TestEveryPolicy(PolicyRules):
    """The audit of the same policies is in tests/audit/test_inside.py."""

    policies = ONE_OF_EACH_NOISE

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Two thirds of the scripts belong to the full counts."""
        few = len(SCRIPTS) // 3
        scripts = [*SCRIPTS[:few], *(pytest.param(seed, marks=pytest.mark.full) for seed in SCRIPTS[few:])]
        with mock.patch.object(testing, "SCRIPTS", scripts):
            super().pytest_generate_tests(metafunc)

    def test_refused_budgets_point_to_a_policy_that_serves_them(self, policy: Policy[Any]) -> None:
        served = {
            notion for other in EVERY_POLICY if other.setting == policy.setting for notion in other.supported_budgets
        }
        for notion, budget in EXAMPLE_BUDGETS.items():
            if notion not in policy.supported_budgets:
                with pytest.raises(pb.errors.UnsupportedBudget) as refused:
                    policy.with_budget(budget)
                if notion not in served:
                    continue
                pointed = str(refused.value).split(" use ")[1].split(",")[0]
                assert notion in getattr(pb, pointed).supported_budgets

    def test_rewards_enter_the_sum_of_their_arm(self, policy: Policy[Any]) -> None:
        if policy.arm_names:
            transcript = interact(pb.Agent(policy, seed=5), steps=150, script_seed=6)
            for entry, (played, _) in zip(transcript.entries, transcript.plays, strict=True):
                assert entry is None or entry == (played, (1,))
                assert entry is not None or not isinstance(policy, pb.IndexPolicy)  # an index drops no reward


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=policy_id)
def test_a_state_is_dumped_as_a_copy_that_the_standard_library_would_make(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy, seed=1)
    interact(agent, steps=60, script_seed=2)
    state = bandit_of(agent).public.policy
    assert repr(plain_copy(state)) == repr(asdict(state))  # of arrays, == is none
    shown = agent.learned
    for name, value in shown.items():
        if isinstance(value, list):
            assert value is not getattr(state, name, None)


class TestOtherVariants(TestEveryPolicy):
    """The same with every other variant."""

    policies = OTHER_VARIANTS


@pytest.mark.full
class TestOtherBudgets(TestEveryPolicy):
    """The same with every other budget."""

    policies = OTHER_BUDGETS


@pytest.mark.parametrize("make", [pb.AdaCUCB, pb.AdaCGOPE, pb.AdaCOFUL])
def test_there_is_no_default_promise(make: Any) -> None:
    first = {pb.AdaCUCB: 3, pb.AdaCGOPE: [[1.0, 0.0], [0.0, 1.0]], pb.AdaCOFUL: 2}[make]
    with pytest.raises(pb.errors.InvalidInput, match=r"such as budget=zCDP\(0\.1\)"):
        make(first)
    with pytest.raises(pb.errors.InvalidInput, match=rf"{make.__name__} needs a budget such as zCDP\(0\.1\), got None"):
        make(first, None)

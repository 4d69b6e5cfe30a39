"""Policies as files hold them, of this version and of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from private_bandits.budget import BUDGETS
from private_bandits.errors import InvalidInput
from private_bandits.policies.adac_ucb import AdaCUCB
from private_bandits.policies.base import POLICIES, Policy
from private_bandits.policies.legacy import TightAdaCUCB


def policy_from_dict(data: Mapping[str, Any]) -> Policy[Any]:
    """The policy that to_dict wrote, in this version or an earlier one."""
    parameters = dict(data)
    name = parameters.pop("policy")
    if name not in POLICIES:
        raise InvalidInput(f"policy {name!r} is not known: import the module that defines it first")
    budget = dict(parameters.pop("budget"))
    kind = budget.pop("kind")
    was_tight = name == AdaCUCB.name and parameters.get("variant") == "tight"
    cls: Any = TightAdaCUCB if was_tight else POLICIES[name]
    # Files of earlier versions hold parameters that are none any more, with the only value that they could have.
    fixed = {f.name: parameters.pop(f.name) for f in fields(cls) if not f.init and f.name in parameters}
    policy: Policy[Any] = cls(**{**cls.formerly, **parameters}, budget=BUDGETS[kind](**budget))
    for parameter, value in fixed.items():
        if getattr(policy, parameter) != value:
            raise InvalidInput(f"{parameter} is no parameter of the policy {name!r}, got {value!r}")
    return policy

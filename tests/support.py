"""Shared by the tests: budgets and policies found automatically, and random interactions that replay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from private_bandits.audit.offers import OFFERED
from private_bandits.audit.target import EXAMPLES as EXAMPLE_BUDGETS
from private_bandits.budget import BUDGETS
from private_bandits.ledger import Ledger
from private_bandits.policies import POLICIES, Policy
from private_bandits.storage.rows import LedgerRows
from private_bandits.testing import Transcript, examples_of, holds, interact, offered, policy_id

__all__ = [
    "EVERY_POLICY",
    "EXAMPLE_BUDGETS",
    "OFFERED",
    "ONE_OF_EACH_NOISE",
    "OTHER_BUDGETS",
    "OTHER_VARIANTS",
    "SELDOM",
    "Transcript",
    "holds",
    "interact",
    "offered",
    "policy_id",
    "read_ledger",
]

SELDOM = 1e-10
"""How often an audit in a test may accuse a right agent, at most: noise is live, and dozens of them are audited."""

assert set(EXAMPLE_BUDGETS) == set(BUDGETS), "a new kind of budget needs an example"

EVERY_POLICY: list[Policy[Any]] = examples_of(
    cls
    for _, cls in sorted(POLICIES.items())
    if cls.__module__.startswith("private_bandits.")  # not what a test made up
)
ONE_OF_EACH_NOISE = list({(policy.name, policy.budget.noise): policy for policy in reversed(EVERY_POLICY)}.values())
"""Budgets of one kind of noise differ in nothing but the level."""
OTHER_BUDGETS = [policy for policy in EVERY_POLICY if policy not in ONE_OF_EACH_NOISE]
OTHER_VARIANTS = [
    replace(policy, variant=variant)
    for policy in ONE_OF_EACH_NOISE
    for variant in policy.variants
    if len(policy.variants) > 1 and variant != policy.variant
]
"""Those that are not the default."""


def read_ledger(texts: Iterable[str]) -> Ledger:
    """Return the ledger whose rows a file of an earlier version holds as these texts."""
    return Ledger(LedgerRows().read(enumerate(texts, 1), opening=""))

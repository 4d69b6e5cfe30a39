"""One algorithm a file. A policy sees actions and releases, never a reward."""

from private_bandits.policies.adac_ucb import AdaCUCB
from private_bandits.policies.adap_ucb import AdaPUCB
from private_bandits.policies.base import POLICIES, Estimate, Policy, policy_from_dict

__all__ = ["POLICIES", "AdaCUCB", "AdaPUCB", "Estimate", "Policy", "policy_from_dict"]

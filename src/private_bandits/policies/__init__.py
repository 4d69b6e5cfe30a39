"""One algorithm a file. A policy sees actions and releases, never a reward."""

from private_bandits.policies.adac_gope import AdaCGOPE, AdaCGOPEEnd, AdaCGOPEVar
from private_bandits.policies.adac_halving import AdaCHalving
from private_bandits.policies.adac_imed import AdaCIMED
from private_bandits.policies.adac_oful import AdaCOFUL
from private_bandits.policies.adac_oful_private import AdaCOFULPrivate
from private_bandits.policies.adac_top_two import AdaCTopTwo
from private_bandits.policies.adac_ucb import AdaCUCB
from private_bandits.policies.adap_ucb import AdaPUCB
from private_bandits.policies.base import (
    POLICIES,
    Combination,
    Estimate,
    FiniteArmsPolicy,
    Offer,
    Policy,
    Prediction,
)
from private_bandits.policies.doubling import IndexPolicy
from private_bandits.policies.dp_imed import DPIMED
from private_bandits.policies.dp_klucb import DPKLUCB
from private_bandits.policies.dp_se import DPSE
from private_bandits.policies.linpriv import LinPriv, LinPrivShared
from private_bandits.policies.shariff_sheffet import ShariffSheffet
from private_bandits.policies.small_support import HannaGOPE, LiGOPE
from private_bandits.policies.stored import policy_from_dict
from private_bandits.policies.tree_ucb import TreeUCB

__all__ = [
    "DPIMED",
    "DPKLUCB",
    "DPSE",
    "POLICIES",
    "AdaCGOPE",
    "AdaCGOPEEnd",
    "AdaCGOPEVar",
    "AdaCHalving",
    "AdaCIMED",
    "AdaCOFUL",
    "AdaCOFULPrivate",
    "AdaCTopTwo",
    "AdaCUCB",
    "AdaPUCB",
    "Combination",
    "Estimate",
    "FiniteArmsPolicy",
    "HannaGOPE",
    "IndexPolicy",
    "LiGOPE",
    "LinPriv",
    "LinPrivShared",
    "Offer",
    "Policy",
    "Prediction",
    "ShariffSheffet",
    "TreeUCB",
    "policy_from_dict",
]

"""Bandit learning from people's feedback that gives no one person's feedback away.

>>> import private_bandits as pb
>>> agent = pb.Agent(pb.AdaCUCB(n_arms=3, budget=pb.zCDP(0.1)), reward_range=(0, 1))
>>> for patient in range(100):
...     decision = agent.ask()
...     agent.tell(decision, reward=1.0 if decision.action == 2 else 0.0)
>>> agent.guarantee().promised
0.1
"""

from private_bandits import errors
from private_bandits.agent import Agent, Decision
from private_bandits.budget import ApproxDP, NoPrivacy, PureDP, RenyiDP, zCDP
from private_bandits.client import Client
from private_bandits.design.optimal import Design, optimal_design, small_design
from private_bandits.environments import Bernoulli, Contextual, Linear
from private_bandits.features import Features
from private_bandits.guarantee import Guarantee
from private_bandits.labelled import Labelled
from private_bandits.ledger import Ledger, Release
from private_bandits.offline.replay import Replay, ReplayResult
from private_bandits.policies import (
    DPIMED,
    DPKLUCB,
    DPSE,
    AdaCGOPE,
    AdaCGOPEEnd,
    AdaCGOPEVar,
    AdaCHalving,
    AdaCIMED,
    AdaCOFUL,
    AdaCOFULPrivate,
    AdaCTopTwo,
    AdaCUCB,
    AdaPUCB,
    Estimate,
    HannaGOPE,
    IndexPolicy,
    LiGOPE,
    LinPriv,
    LinPrivShared,
    Prediction,
    ShariffSheffet,
    TreeUCB,
)
from private_bandits.simulation import Simulation, simulate
from private_bandits.statement import Statement
from private_bandits.trial.plan import plan
from private_bandits.trial.plan_contextual import ContextualPlan, plan_contextual
from private_bandits.trial.planned import Plan
from private_bandits.verdict import Verdict
from private_bandits.version import __version__

__all__ = [
    "DPIMED",
    "DPKLUCB",
    "DPSE",
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
    "Agent",
    "ApproxDP",
    "Bernoulli",
    "Client",
    "Contextual",
    "ContextualPlan",
    "Decision",
    "Design",
    "Estimate",
    "Features",
    "Guarantee",
    "HannaGOPE",
    "IndexPolicy",
    "Labelled",
    "Ledger",
    "LiGOPE",
    "LinPriv",
    "LinPrivShared",
    "Linear",
    "NoPrivacy",
    "Plan",
    "Prediction",
    "PureDP",
    "Release",
    "RenyiDP",
    "Replay",
    "ReplayResult",
    "ShariffSheffet",
    "Simulation",
    "Statement",
    "TreeUCB",
    "Verdict",
    "__version__",
    "errors",
    "optimal_design",
    "plan",
    "plan_contextual",
    "simulate",
    "small_design",
    "zCDP",
]

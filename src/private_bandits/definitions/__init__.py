"""Exact answers to "how private is this small policy?", under every definition of the paper and a stronger one."""

from private_bandits.definitions.analysis import Analysis, Result, analyse, delta_at, epsilon_at, rho_of
from private_bandits.definitions.cost import Cost, cost
from private_bandits.definitions.definitions_report import as_json, as_table, as_text, in_words
from private_bandits.definitions.histories import Histories, InvalidPolicy, PolicyFileMissing, TooLarge
from private_bandits.definitions.models import MODELS, Model
from private_bandits.definitions.policy import SmallPolicy
from private_bandits.definitions.policy_files import adaptive_gap, counterexample, find, from_json, load, to_dict
from private_bandits.definitions.reductions import compose_with_adversary, distribution, list_to_table, table_to_list
from private_bandits.definitions.rho import Bracket
from private_bandits.definitions.worst import Adversary, Move, Seen, WorstCase

__all__ = [
    "MODELS",
    "Adversary",
    "Analysis",
    "Bracket",
    "Cost",
    "Histories",
    "InvalidPolicy",
    "Model",
    "Move",
    "PolicyFileMissing",
    "Result",
    "Seen",
    "SmallPolicy",
    "TooLarge",
    "WorstCase",
    "adaptive_gap",
    "analyse",
    "as_json",
    "as_table",
    "as_text",
    "compose_with_adversary",
    "cost",
    "counterexample",
    "delta_at",
    "distribution",
    "epsilon_at",
    "find",
    "from_json",
    "in_words",
    "list_to_table",
    "load",
    "rho_of",
    "table_to_list",
    "to_dict",
]

"""The ledger: an append-only record of releases, hash-chained, and the totals that follow from it.

A release and its row are one object (rows.py), so there are as many rows as releases. The rows are in a store
(storage/). A door needs no row of the past, only the `Account`: how many there were, what they cost, and the hash of
the last one, which the next one holds (chain.py). people.py finds the person whom the releases cost most, and
verification.py checks a ledger from its texts alone.
"""

from private_bandits.ledger.account import Account
from private_bandits.ledger.ledger import FEW, Ledger
from private_bandits.ledger.rows import Part, Release, label_span, rewards_in

__all__ = ["FEW", "Account", "Ledger", "Part", "Release", "label_span", "rewards_in"]

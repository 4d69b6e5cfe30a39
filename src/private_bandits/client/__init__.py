"""The client: a bandit of the service, with the verbs of an agent.

A call is one request (calls.py), sent with the key of a role that may make it (keys.py) over one of a few connections
(connection.py), again where that is safe (calling.py). Problems become this package's own errors (refusals.py).
"""

from private_bandits.client.bandit import ServedBandit
from private_bandits.client.client import BanditLine, Client

__all__ = ["BanditLine", "Client", "ServedBandit"]

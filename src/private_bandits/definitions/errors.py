"""What can be wrong with a small policy or with a question about it."""

from __future__ import annotations

from private_bandits.errors import InvalidInput


class InvalidPolicy(InvalidInput):
    """A policy whose numbers or histories are not what they have to be."""


class PolicyFileMissing(InvalidPolicy, FileNotFoundError):
    """No file stands at the path of a policy."""


class TooLarge(InvalidInput):
    """More worlds than can be gone through; raised before any memory is taken."""

"""Gives out a control arm by a coin: nobody can foresee who gets it, and no reward moves the coin."""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from private_bandits.checks import check_probability
from private_bandits.errors import InvalidInput
from private_bandits.policies import Policy

DEFAULT_SHARE = 0.2
"""The share of decisions that play the control where no other was asked for."""

_BITS = 53
"""Random bits of a toss. The probability of the control is the share, rounded up to a multiple of 2^-53."""


class ControlCoin:
    """A coin that says of each decision whether it plays the control arm.

    Without a seed every toss comes from the operating system's randomness: nobody can foresee it, and no state or file
    tells of it. With a seed a toss is a function of the seed and the number of the decision alone, for tests and
    studies: it takes nothing from the noise, and does not depend on how often the agent was resumed.

    >>> coin = ControlCoin(action=0, share=0.2, seed=1)
    >>> [number for number in range(1, 21) if coin.gives_control(number)]
    [6, 11, 13, 19]
    """

    def __init__(self, action: int, share: float, seed: int | None) -> None:
        """Take over what the coin decides about.

        Args:
            action: The index of the control arm.
            share: The probability with which a decision plays it.
            seed: None: the operating system's randomness.
        """
        self.action = action
        self._share = share
        self._below: int = math.ceil(share * 2**_BITS)  # exact: a product with a power of two
        self._seed = seed

    def gives_control(self, number: int) -> bool:
        """Toss the coin for a decision, by its number. Returns whether the decision plays the control arm."""
        return self._toss(number) < self._below

    def _toss(self, number: int) -> int:
        if self._seed is None:
            return secrets.randbits(_BITS)
        digest = hashlib.blake2b(f"{self._seed}/{number}".encode(), digest_size=8, person=b"control coin").digest()
        return int.from_bytes(digest, "big") >> 64 - _BITS

    def with_seed(self, seed: int) -> ControlCoin:
        """Return a coin of the same share that is foreseeable: two worlds of an audit have to toss alike."""
        return ControlCoin(self.action, self._share, seed)


def checked_control(policy: Policy[Any], control: Any, share: Any) -> tuple[str | None, float | None]:
    """Return the name of the control arm and its share; None and None where there is no control.

    Args:
        policy: Of the agent.
        control: An arm's name or index, or None.
        share: The probability with which a decision plays it; None: `DEFAULT_SHARE`.
    """
    if control is None:
        if share is not None:
            raise InvalidInput(f"control_share={share!r} needs control, the arm that the coin gives out")
        return None, None
    names = policy.arm_names
    if not names or type(policy).offer is not Policy.offer:
        raise InvalidInput(
            f"control needs a policy with the same arms at every step, and those of {type(policy).__name__} change: "
            "leave control out"
        )
    if len(names) < 2:
        raise InvalidInput("control needs an arm besides it to be compared with, and the policy has one arm")
    return _named(control, names), check_probability("control_share", DEFAULT_SHARE if share is None else share)


def _named(control: Any, names: tuple[str, ...]) -> str:
    """Return the name of an arm that was given by its name or its index."""
    known: Sequence[Any] = names
    if isinstance(control, Integral) and not isinstance(control, bool):
        known = range(len(names))
    if control not in known:
        raise InvalidInput(f"control must be one of the arms {list(names)}, or the index of one, got {control!r}")
    return names[known.index(control)]

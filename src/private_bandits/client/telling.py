"""Tells many rewards, in pages. What was refused for now is sent again, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from private_bandits.client.calling import Caller, Patience
from private_bandits.client.calls import BANDIT, Call
from private_bandits.client.refusals import TAKEN, closed, is_for_now, is_unknown, refusal_of
from private_bandits.client.sending import PAGE
from private_bandits.errors import PrivateBanditsError

Item = Mapping[str, Any]
Refusals = dict[int, PrivateBanditsError]
"""Errors of items, by their places."""


def tell_all(caller: Caller, bandit: str, items: Sequence[Item]) -> None:
    """Tell rewards. Where some are refused, the others are taken, and the error of the first is raised.

    Args:
        caller: Makes the calls.
        bandit: The name of the bandit.
        items: Rewards as they are sent.
    """
    refused: Refusals = {}
    for first in range(0, len(items), PAGE):
        try:
            found = _Page(caller, bandit, items[first : first + PAGE]).tell()
        except PrivateBanditsError as error:
            error.add_note(f"the first {first} of {len(items)} rewards were told before; of the rest some may be")
            raise
        refused |= {first + place: error for place, error in found.items()}
    if refused:
        place = min(refused)
        others = f"{len(refused)} of the {len(items)} were refused, and all others were told"
        refused[place].add_note(f"this is number {place + 1} of the batch: {others}")
        raise refused[place]


class _Page:
    """Rewards of one request, which may take several."""

    def __init__(self, caller: Caller, bandit: str, items: Sequence[Item]) -> None:
        self._caller, self._bandit, self._items = caller, bandit, items
        self._patience = Patience(caller.seconds)
        self._unknown: set[int] = set()  # what an earlier request may have told

    def tell(self) -> Refusals:
        """Tell them, and return those that were refused."""
        refused: Refusals = {}
        waiting = list(range(len(self._items)))
        while waiting:
            later: Refusals = {}
            for place, outcome in zip(waiting, self._outcomes(waiting), strict=True):
                problem = outcome["problem"]
                if problem is None:
                    self._take(place, outcome["outcome"], refused)
                    continue
                if is_unknown(problem):
                    self._unknown.add(place)
                found = later if is_for_now(problem) else refused
                found[place] = refusal_of(problem, self._call([place]))
            if later and not self._patience.rest(1.0):
                return refused | later
            waiting = list(later)
        return refused

    def _take(self, place: int, outcome: str, refused: Refusals) -> None:
        told = outcome in TAKEN or (outcome == "already_recorded" and place in self._unknown)
        if not told:
            refused[place] = closed(self._items[place]["decision"], outcome)

    def _outcomes(self, places: Sequence[int]) -> list[Any]:
        done = self._caller.make(self._call(places), self._patience)
        if done.repeated:
            self._unknown.update(places)
        return self._caller.read(done, lambda data: _of_all(data["outcomes"], len(places)))

    def _call(self, places: Sequence[int]) -> Call:
        body = {"items": [self._items[place] for place in places]}
        return Call("POST", f"{BANDIT}/rewards", bandit=self._bandit, body=body)


def _of_all(outcomes: list[Any], count: int) -> list[Any]:
    if len(outcomes) != count:
        raise ValueError("an outcome is missing")
    return outcomes

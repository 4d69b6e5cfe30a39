"""Open decisions of each arm, and the arm that comes first by them, found without a look at every arm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace

Key = Callable[[int], float | None]
"""The number by which an arm is compared; None: the arm is out, for good."""


class Waiting(list[int]):
    """How many decisions of each arm are open. Whoever makes a number smaller adds the arm to `fallen`, before it does.

    >>> waiting = Waiting(3)
    >>> waiting[0] += 1
    >>> waiting, foremost(waiting, waiting, 0, lambda: range(3), waiting.__getitem__)
    ([1, 0, 0], (0, 1))
    """

    def __init__(self, arms: int) -> None:
        super().__init__([0] * arms)
        self.fallen: set[int] = set()
        self._order: _Order | None = None

    def foremost(
        self, owner: object, level: int, arms: Callable[[], Iterable[int]], key: Key
    ) -> tuple[float, int] | None:
        """Find the arm of the least key. What was found for the same owner and level before is used again."""
        order, self._order = self._order, None  # an interrupt below leaves no order, rather than half of one
        if order is None or order.owner is not owner or order.level != level or order.is_long:
            self.fallen.clear()
            order = _Order(owner, level, arms(), key)
        elif self.fallen:
            order.fall(self.fallen, key)
            self.fallen.clear()
        found = order.first(key)
        self._order = order
        return found


class _Order:
    """Arms by their keys, the least on top. It learns that a key grew when the arm comes to the top."""

    def __init__(self, owner: object, level: int, arms: Iterable[int], key: Key) -> None:
        self.owner, self.level = owner, level
        found = [(key(arm), arm) for arm in arms]
        self._heap = [(value, arm) for value, arm in found if value is not None]
        self._noted = {arm: value for value, arm in self._heap}
        heapify(self._heap)

    @property
    def is_long(self) -> bool:
        """Whether it holds too many entries that are out of date."""
        return len(self._heap) > 2 * len(self._noted) + 64

    def fall(self, arms: Iterable[int], key: Key) -> None:
        """Note smaller keys of these arms. The entry with the larger one stays, and is dropped when it is on top."""
        for arm in arms:
            before, value = self._noted.get(arm), key(arm)
            if before is not None and value is not None and value < before:
                self._noted[arm] = value
                heappush(self._heap, (value, arm))

    def first(self, key: Key) -> tuple[float, int] | None:
        """The least key and its arm, the first arm of several; None if all arms are out."""
        heap, noted = self._heap, self._noted
        while heap:
            value, arm = heap[0]
            if noted.get(arm) != value:
                heappop(heap)
                continue
            now = key(arm)
            if now == value:
                return value, arm
            if now is None:
                heappop(heap)
                del noted[arm]
            else:
                noted[arm] = now
                heapreplace(heap, (now, arm))
        return None


def foremost(
    waiting: Sequence[int], owner: object, level: int, arms: Callable[[], Iterable[int]], key: Key
) -> tuple[float, int] | None:
    """Return the least key of the arms and the first arm that has it; None if all arms are out.

    With the open decisions of an agent (`Waiting`) this takes time for the arms that changed, and not for all. There,
    while owner and level are the same, a key may fall only if the arm's open decisions do, and no arm may join.
    """
    if isinstance(waiting, Waiting):
        return waiting.foremost(owner, level, arms, key)
    found = ((key(arm), arm) for arm in arms())
    return min(((value, arm) for value, arm in found if value is not None), default=None)

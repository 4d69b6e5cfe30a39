"""The hot and the cold state of a bandit as their rows hold them, and what becomes of them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row

from private_bandits.ledger import Account, Release
from private_bandits.ledger.chain import digest
from private_bandits.mechanism.episode import Episode
from private_bandits.state import Endings, PublicState

ACTIVE = "active"
"""The status of a bandit that makes decisions and takes rewards."""

Kept = tuple[int, str, str]
"""Number, label and text of an earlier sum that later releases hold again."""


@dataclass(frozen=True, repr=False)
class HotRow:
    """What every batch may change. Private: it holds the open sums.

    Args:
        version: Counts the writes.
        status: Whether the bandit runs.
        failed: How its policy failed, if it did.
        incarnation: 64 random bits that ids of decisions begin with.
        generation: Counts incarnations.
        asked: The number of decisions made.
        open: The number of decisions that are open.
        waiting: Open decisions by action, as JSON.
        ended: How decisions ended, as JSON.
        arrivals: What arrived since the policy's state was stored, as JSON.
        sums: The open sums by key, each as JSON.
        releases: The number of rows of the ledger.
        head: The hash of the last of them.
    """

    version: int
    status: str
    failed: str | None
    incarnation: str
    generation: int
    asked: int
    open: int
    waiting: str
    ended: str
    arrivals: str | None
    sums: Mapping[int, str]
    releases: int
    head: str

    @classmethod
    def first(cls, arms: int, head: str) -> HotRow:
        """Return the state of a new bandit. arms: how many fixed arms it has. head: the hash of its opening."""
        return cls(
            version=1,
            status=ACTIVE,
            failed=None,
            incarnation=secrets.token_hex(8),
            generation=1,
            asked=0,
            open=0,
            waiting=json.dumps([0] * arms),
            ended=json.dumps(vars(Endings())),
            arrivals=None,
            sums={},
            releases=0,
            head=head,
        )

    @classmethod
    def of(cls, row: Row[Any]) -> HotRow:
        """Return what a row holds."""
        values = {name: getattr(row, name) for name in cls.__dataclass_fields__}
        lines = (line.split(" ", 1) for line in row.sums.splitlines())
        return cls(**values | {"sums": {int(key): text for key, text in lines}})

    def columns(self) -> dict[str, Any]:
        """Return the values of the row's columns."""
        sums = "\n".join(f"{key} {text}" for key, text in self.sums.items())
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"sums": sums}

    def changed(self, **values: Any) -> HotRow:
        """Return the row with other values."""
        return replace(self, **values)

    def after(
        self, public: PublicState, still_open: int, summed: Iterable[Episode], released: Sequence[Release]
    ) -> HotRow:
        """Return the row that follows, one version later."""
        return replace(
            self,
            version=self.version + 1,
            asked=public.asked,
            open=still_open,
            waiting=json.dumps(public.waiting),
            ended=json.dumps(vars(public.ended)),
            sums=dict(self.sums) | {episode.key: json.dumps(episode.dump()) for episode in summed},
            releases=self.releases + len(released),
            head=digest(released[-1].text) if released else self.head,
        )


@dataclass(frozen=True, repr=False)
class ColdRow:
    """What releases change. Private: it holds sums.

    Args:
        releases: After how many releases this is.
        learned: How many of them the policy's state has learned.
        policy: The policy's state, as JSON.
        kept: The sums that later releases hold again, by key.
        account: The account of the ledger, as JSON.
    """

    releases: int
    learned: int
    policy: str
    kept: Mapping[int, Sequence[Kept]]
    account: str

    @classmethod
    def of(cls, row: Row[Any]) -> ColdRow:
        """Return what a row holds."""
        kept = {int(key): [tuple(one) for one in sums] for key, sums in json.loads(row.kept).items()}
        return cls(row.releases, row.learned, row.policy, kept, row.account)

    def columns(self) -> dict[str, Any]:
        """Return the values of the row's columns."""
        return {
            "releases": self.releases,
            "learned": self.learned,
            "policy": self.policy,
            "kept": json.dumps(self.kept),
            "account": self.account,
        }

    def kept_rows(self) -> Iterator[tuple[int, int, str, str]]:
        """Return the earlier sums, each after the key that it belongs to."""
        for key, sums in self.kept.items():
            for number, label, text in sums:
                yield key, number, label, text

    def learning(self, learned: int, policy: str) -> ColdRow:
        """Return the row with another state of the policy."""
        return replace(self, learned=learned, policy=policy)

    def after(self, opening: str, summed: Mapping[int, Episode], released: Sequence[Release]) -> ColdRow:
        """Return the row after releases. summed: the sums that follow them, by key."""
        if not released:
            return self
        account = Account.restored(json.loads(self.account), opening)
        kept = dict(self.kept)
        for row in released:
            account.charge(row)
            for key in row.keys:
                kept[key] = kept_of(summed[key])
        return replace(self, releases=len(account), kept=kept, account=json.dumps(account.dump()))


def kept_of(episode: Episode) -> list[Kept]:
    """Return the earlier sums that releases of an open sum hold again."""
    return [(part.number, part.label, json.dumps(part.dump())) for part in episode.kept]

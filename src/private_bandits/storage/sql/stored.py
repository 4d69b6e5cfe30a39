"""A bandit as a database holds it: read, and made into the state that goes on."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.sql.base import Executable

from private_bandits.errors import BanditExists, InvalidInput, UnknownBandit
from private_bandits.ledger import Account, Release
from private_bandits.policies.waiting import Waiting
from private_bandits.state import PrivateState, PublicState, Settings
from private_bandits.storage.formats import refuse_damage
from private_bandits.storage.parsing import OpenEpisode, load_endings, load_settings, load_sums
from private_bandits.storage.sql.database import Database, Rows, Transaction
from private_bandits.storage.sql.schema import bandits, cold, hot, releases
from private_bandits.storage.sql.state_rows import ColdRow, HotRow
from private_bandits.storage.sql.store import Fixed, SqlStore

LONGEST_NAME = 100
PAGE = 1000
"""Rows of a ledger that are read at a time."""


def create_bandit(database: Database, name: str, settings: Settings, state: str, opening: str) -> SqlStore:
    """Write a new bandit into a database, and return its store.

    Args:
        database: The database.
        name: The name of the bandit: a text that is in the database once.
        settings: The settings of the bandit.
        state: The state of its policy, as JSON.
        opening: The text that the chain of its ledger begins with.

    Raises:
        BanditExists: There is one of this name.
    """
    account = Account(opening=opening)
    fixed = new_fixed(name, settings, opening)
    first = HotRow.first(len(settings.policy.arm_names), account.last_hash)
    learned = ColdRow(0, 0, state, {}, json.dumps(account.dump()))
    with database.transaction() as work:
        number = add_bandit(work, fixed, first, learned)
        work.commit()
    return SqlStore(database, replace(fixed, number=number), first, learned)


def new_fixed(name: str, settings: Settings, opening: str, moved_in: Mapping[int, int] | None = None) -> Fixed:
    """Return what is fixed of a bandit that has no number yet."""
    return Fixed(0, check_name(name), settings, opening, secrets.token_bytes(32), moved_in or {})


def add_bandit(work: Transaction, fixed: Fixed, first: HotRow, learned: ColdRow) -> int:
    """Insert the rows of a new bandit. Returns its number."""
    if work.rows(select(bandits.c.id).where(bandits.c.name == fixed.name)):
        raise BanditExists(f"the database has a bandit named {fixed.name!r} already: choose another name")
    now = time.time_ns() // 1000
    row = {
        "name": fixed.name,
        "settings": json.dumps(fixed.settings.to_dict()),
        "opening": fixed.opening,
        "id_key": fixed.id_key.hex(),
        "moved_in": json.dumps(fixed.moved_in) if fixed.moved_in else None,
        "created": now,
    }
    number = int(work.rows(insert(bandits).values(row).returning(bandits.c.id))[0][0])
    work.run(insert(hot).values(bandit=number, now=now, **first.columns()))
    work.run(insert(cold).values(bandit=number, **learned.columns()))
    return number


def check_name(name: str) -> str:
    """Return a bandit's name. Refuses what is no text of letters, digits, dots, hyphens and underscores."""
    fit = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name[0] not in ".-"
    if not fit or not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
        raise InvalidInput(
            f"a bandit's name is of up to {LONGEST_NAME} letters, digits, dots, hyphens and underscores, and begins "
            f"with none of the marks but an underscore, got {name!r}"
        )
    return name


def find_bandit(work: Transaction, name: str) -> Fixed:
    """Read what is fixed of a bandit, by its name.

    Raises:
        UnknownBandit: There is none of this name.
        AgentFileInvalid: Its settings are damaged, or of a policy that is not known here.
    """
    found = work.rows(select(bandits).where(bandits.c.name == name))
    if not found:
        raise UnknownBandit(f"the database has no bandit named {name!r}")
    row = found[0]
    settings = refuse_damage(f"the bandit {name}", lambda: load_settings(row.settings))
    moved_in = {int(generation): last for generation, last in json.loads(row.moved_in or "{}").items()}
    return Fixed(row.id, name, settings, row.opening, bytes.fromhex(row.id_key), moved_in)


def change_standing(database: Database, bandit: int, **values: str | None) -> None:
    """Write whether a bandit runs (`status`), or how its policy failed (`failed`). Its next batch sees it."""
    with database.transaction() as work:
        version = work.lock(bandit).version
        work.run(update(hot).where(hot.c.bandit == bandit).values(version=version + 1, now=work.now, **values))
        work.commit()


class StoredInDatabase:
    """The bandit in a database (`StoredBandit` of storage/contract.py), as it stands at one moment.

    Args:
        database: The database.
        fixed: The bandit.
        work: The transaction to read in; None: one that writes nothing.
        known: Cold state that was read before. It is used again where nothing was released or learned since.
    """

    checked = False  # a database vouches for its pages, and nothing for its rows

    def __init__(
        self, database: Database, fixed: Fixed, work: Transaction | None = None, known: ColdRow | None = None
    ) -> None:
        self.settings, self.opening = fixed.settings, fixed.opening
        self._database, self._fixed = database, fixed
        if work is not None:
            self._hot, self._cold = self._read(work, known)
        else:
            with database.reading() as reader:
                self._hot, self._cold = self._read(reader, known)

    def _read(self, work: Transaction, known: ColdRow | None) -> tuple[HotRow, ColdRow]:
        number = self._fixed.number
        both = select(hot, cold.c.learned).join(cold, cold.c.bandit == hot.c.bandit)
        row = work.rows(both.where(hot.c.bandit == number))[0]
        found = refuse_damage(self._place, lambda: HotRow.of(row))
        if known is not None and (known.learned, known.releases) == (row.learned, found.releases):
            return found, known
        stored = work.rows(select(cold).where(cold.c.bandit == number))[0]
        return found, refuse_damage(self._place, lambda: ColdRow.of(stored))

    @property
    def _place(self) -> str:
        return f"the bandit {self._fixed.name}"

    @property
    def rows(self) -> int:
        """How many releases it has."""
        return self._hot.releases

    @property
    def account(self) -> Account:
        """The account of its ledger, which is stored, so that the ledger need not be read."""
        return refuse_damage(self._place, lambda: Account.restored(json.loads(self._cold.account), self.opening))

    def releases(self, opening: str) -> Iterator[Release]:
        """Read the rows of its ledger, oldest first."""
        for first in range(1, self.rows + 1, PAGE):
            number = releases.c.number
            query = select(releases.c.row).where(releases.c.bandit == self._fixed.number)
            for row in self._look(query.where(number.between(first, first + PAGE - 1)).order_by(number)):
                yield Release.from_text(row[0])

    def _look(self, query: Executable) -> Rows:
        with self._database.reading() as reader:
            return reader.rows(query)

    @property
    def policy_state(self) -> dict[str, Any]:
        """The policy's state as it was stored last."""
        return dict(json.loads(self._cold.policy) | json.loads(self._hot.arrivals or "{}"))

    @property
    def learned(self) -> int:
        """How many releases that state has learned."""
        return self._cold.learned

    def load(self, open_episode: OpenEpisode) -> tuple[PublicState, PrivateState]:
        """Return its state, but for the policy's."""
        return refuse_damage(self._place, lambda: self._load(open_episode))

    def _load(self, open_episode: OpenEpisode) -> tuple[PublicState, PrivateState]:
        found = self._hot
        waiting = Waiting(len(self.settings.policy.arm_names))
        waiting[:] = json.loads(found.waiting)
        public = PublicState(
            policy=None,
            waiting=waiting,
            asked=found.asked,
            generation=found.generation,
            ended=load_endings(found.ended, found.asked, found.open),
        )
        return public, PrivateState(load_sums(found.sums.items(), self._cold.kept_rows(), open_episode))

    def check(self, check: Callable[[], object]) -> None:
        """Run a check of what was read."""
        refuse_damage(self._place, check)

    def take_over(self) -> SqlStore:
        """Return the store that goes on, as long as no other worker changes the bandit. Nothing is written."""
        return SqlStore(self._database, self._fixed, self._hot, self._cold)

    def close(self) -> None:
        """Nothing is held."""

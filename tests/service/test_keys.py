"""API keys: shown once, stored as hashes, revoked for good."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import private_bandits as pb
from private_bandits.errors import InvalidInput, UnknownBandit
from private_bandits.service.creating import create
from private_bandits.service.keys import ROLES, create_key, list_keys, revoke_key, who_has
from private_bandits.storage.sql.schema import keys
from tests.databases import KINDS, opened


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_is_made_found_and_revoked(kind: str, tmp_path: Path) -> None:
    database = opened(kind, tmp_path)
    create(database, "trial", pb.AdaCUCB(n_arms=2, budget=pb.zCDP(1.0)), give_up_after=None)
    made = [create_key(database, f"{role}'s", role) for role in ROLES]
    own = create_key(database, "ward 3", "tell", "trial")
    assert list_keys(database) == [new.key for new in (*made, own)]
    assert own.key.bandit == "trial"
    assert len({new.secret for new in (*made, own)}) == 7
    assert all(who_has(database, new.secret) == new.key for new in (*made, own))
    revoked = revoke_key(database, own.key.number)
    assert revoked.revoked is not None
    assert revoke_key(database, own.key.number) == revoked
    assert who_has(database, own.secret) is None
    assert who_has(database, made[0].secret) == made[0].key
    assert list_keys(database)[-1] == revoked
    for secret in ("", own.secret[:-1], own.secret + "x", "é\ud800"):
        assert who_has(database, secret) is None
    with pytest.raises(InvalidInput, match="no key of number 99"):
        revoke_key(database, 99)


@pytest.mark.parametrize("kind", KINDS)
def test_only_a_hash_is_stored_and_nothing_shows_a_key(kind: str, tmp_path: Path) -> None:
    database = opened(kind, tmp_path)
    new = create_key(database, "ann", "ask")
    assert len(new.secret) >= 3 + 43
    assert new.secret not in repr(new)
    with database.reading() as work:
        (row,) = work.rows(sa.select(keys))
    assert new.secret not in str(row)
    assert row.hash == hashlib.sha256(new.secret.encode()).hexdigest()


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    database = opened("sqlite", tmp_path)
    wrong: list[tuple[Any, ...]] = [("", "ask"), (" ", "ask"), ("x" * 101, "ask"), ("a\nb", "ask"), (7, "ask")]
    wrong += [("ann", "everything"), ("ann", "admin", "trial")]
    for arguments in wrong:
        with pytest.raises(InvalidInput):
            create_key(database, *arguments)
    with pytest.raises(UnknownBandit):
        create_key(database, "ann", "ask", "trial")
    assert list_keys(database) == []

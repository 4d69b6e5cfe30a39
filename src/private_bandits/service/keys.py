"""API keys: 256 random bits, shown once, stored as a hash. Each has one role, and no role contains another."""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

from private_bandits.errors import InvalidInput
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.keys import ApiKey, add_key, all_keys, end_key, key_of_hash

__all__ = ["ROLES", "ApiKey", "NewKey", "create_key", "list_keys", "revoke_key", "who_has"]

ROLES = {
    "ask": "makes decisions",
    "tell": "tells rewards, and reads nothing",
    "observe": "sees releases, estimates and verdicts",
    "operate": "creates, pauses, finishes and closes bandits",
    "audit": "reads the ledger and what was done",
    "admin": "makes, lists and revokes keys",
}
"""The roles that a key may have, and what each of them may do."""

PREFIX = "pb_"
"""Keys begin with it, so that scanners of code find those that were left there."""
SECRET_BYTES = 32
LONGEST_NAME = 100


class NewKey(NamedTuple):
    """A key that was just made, and the text that its owner keeps. It is shown this once."""

    key: ApiKey
    secret: str

    def __repr__(self) -> str:
        return f"NewKey({self.key}, secret hidden)"


def create_key(database: Database, name: str, role: str, bandit: str | None = None) -> NewKey:
    """Make a new key.

    Args:
        database: The database.
        name: For people: whose key it is.
        role: What it may do, one of `ROLES`.
        bandit: The name of the bandit that it is for; None: all of them.

    Raises:
        InvalidInput: The name or the role is none.
        UnknownBandit: There is no such bandit.
    """
    if not isinstance(name, str) or not 0 < len(name.strip()) <= LONGEST_NAME or not name.isprintable():
        raise InvalidInput(f"a key's name is a text of 1 to {LONGEST_NAME} characters, got {name!r}")
    if role not in ROLES:
        raise InvalidInput(f"role must be one of {', '.join(ROLES)}, got {role!r}")
    if role == "admin" and bandit is not None:
        raise InvalidInput("an admin's key is for all bandits: leave the bandit out")
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    return NewKey(add_key(database, name, role, bandit, _hashed(secret)), secret)


def list_keys(database: Database) -> list[ApiKey]:
    """Return all keys, oldest first, the revoked ones too."""
    return all_keys(database)


def revoke_key(database: Database, number: int) -> ApiKey:
    """Revoke a key by its number. Whoever comes with it is refused from now on.

    Raises:
        InvalidInput: There is no key of this number.
    """
    return end_key(database, number)


def who_has(database: Database, secret: str) -> ApiKey | None:
    """Return what is known of a key, by the text that its owner keeps; None: it is none, or was revoked."""
    return key_of_hash(database, _hashed(secret))


def _hashed(secret: str) -> str:
    """Return the hash of a key. Of 256 random bits nobody finds them by trying."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()

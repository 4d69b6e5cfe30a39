"""Reads and checks what is in an agent's file, whatever version wrote it.

Format 1: versions 0.1 to 0.3. Format 2: up to 0.7, with actions that change. Format 3: 0.8, with earlier sums and
arrivals in places of their own. Format 4: with checksums, and with the number of releases that the policy has learned.
Format 5: with how decisions ended, and decisions that can be checked without reading each. Format 6: with a ledger that
is hash-chained, and with the episodes that people's rewards are in.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from private_bandits.errors import AgentBusy, AgentClosed, AgentFileInvalid
from private_bandits.mechanism.episode import label_of
from private_bandits.storage.damage import ROW, Hidden, checksum, database_failure, texts
from private_bandits.storage.decisions import COLUMNS, FINGERPRINT, checked_rows
from private_bandits.storage.ownership import PRESENCE

FORMAT = 6
CHECKED = 4
"""From this format on files have checksums, settings of their own, and a note of whether their log is needed."""
LOOKED_UP = 5
"""From this format on decisions and people are looked up one by one, and files say how decisions ended."""
CHAINED = 6
"""From this format on the ledger is hash-chained."""

MOVED = 1000
"""Is added to the format of a file whose agent moved into a database, so that no version goes on with it."""
MOVED_TABLE = (
    "CREATE TABLE IF NOT EXISTS moved (bandit TEXT NOT NULL, database TEXT NOT NULL, done INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL)"
)

NEW_TABLES = (
    "CREATE TABLE chain (opening TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE places (person TEXT PRIMARY KEY, episodes TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID",
)
"""Tables that format 5 did not have."""

SCHEMA = (
    "CREATE TABLE settings (text TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE policy (learned INTEGER NOT NULL, text TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE agent (asked INTEGER NOT NULL, generation INTEGER NOT NULL, arrivals TEXT, ended TEXT NOT NULL,"
    " total INTEGER NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE generations (generation INTEGER PRIMARY KEY, asked INTEGER NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE closed (number INTEGER PRIMARY KEY, ending TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE decisions (number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, action INTEGER NOT NULL,"
    " person TEXT, offered TEXT, checksum INTEGER NOT NULL)",
    "CREATE TABLE episodes (key INTEGER PRIMARY KEY, private TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE kept (key INTEGER NOT NULL, number INTEGER NOT NULL, label TEXT NOT NULL, private TEXT NOT NULL,"
    " checksum INTEGER NOT NULL, PRIMARY KEY (key, label)) WITHOUT ROWID",
    "CREATE TABLE ledger (number INTEGER PRIMARY KEY, release TEXT NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE people (person TEXT PRIMARY KEY, rewards INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID",
    *NEW_TABLES,
    PRESENCE,
)
TIMES = "CREATE TABLE times (time INTEGER PRIMARY KEY, number INTEGER NOT NULL, checksum INTEGER NOT NULL)"
"""The times of decisions, in files of agents that give them up after a time. Other files have no such table."""
COUNTED = {
    **dict.fromkeys(("decisions", "episodes", "kept", "ledger", "people"), CHECKED),
    **dict.fromkeys(("closed", "generations"), LOOKED_UP),
    "places": CHAINED,
}
"""Tables whose checksums the total in `agent` is of, and since which format. The others have one row each."""

NO_AGENT = "is not an agent's file: name one that Agent(policy, path=...) made"
RESTORE = ". Restore a backup only if nothing was released after it was made: it would be released anew"

Row = tuple[Any, ...]
T = TypeVar("T")


class Moved(NamedTuple):
    """Where the agent of a file moved.

    bandit: its name there. database: which database that is. done: whether it is there, or perhaps not yet.
    """

    bandit: str
    database: str
    done: bool


@dataclass(frozen=True)
class Contents:
    """Everything that a file holds, but for its ledger. Its private parts are hidden.

    The releases of its ledger are read by themselves (reading.stored_releases).

    releases: how many there are. learned: how many of them the policy's state has learned. ended: how decisions ended,
    as JSON. decisions, people: of older formats; in this one they are looked up one by one. open, waiting: how many
    decisions are open, in all and by action. texts: how many of them name a person, and how many have actions of their
    own. times: by which time decisions up to a number were made, if the file has such a table. oldest: the number of
    the oldest decision that is open, or of the next one. with_log: whether it was read with its log. opening: what the
    chain of the ledger begins with, if it has one. moved: where its agent moved, if it did.
    """

    version: int

    settings: str
    policy: str
    arrivals: str | None
    learned: int
    releases: int
    asked: int
    generation: int
    total: int
    ended: str
    open: int
    texts: tuple[int, int]
    waiting: list[Row]
    decisions: Hidden[list[Row]]
    episodes: Hidden[list[Row]]
    kept: Hidden[list[Row]]
    people: Hidden[list[Row]]
    times: list[Row] | None = None
    oldest: int = 0
    opening: str | None = None
    with_log: bool = True
    moved: Moved | None = None

    @property
    def checked(self) -> bool:
        """Whether everything had checksums."""
        return self.version >= CHECKED


def refuse_damage(path: str, read: Callable[[], T]) -> T:
    """Return what `read` returns. Whatever goes wrong there is told in fixed words, after the path.

    The exceptions of databases and of JSON, and the frames that they come from, hold stored texts: a sum, a context.
    So none of them is passed on, not even as the context of the refusal.
    """
    refusal: BaseException
    try:
        return read()
    except AgentFileInvalid as error:
        remedy = RESTORE if str(error).startswith("is damaged") else ""
        refusal = AgentFileInvalid(f"{path} {error}{remedy}")
    except (AgentBusy, AgentClosed) as error:
        refusal = error.with_traceback(None)
    except sqlite3.Error as error:
        no_database = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB
        trouble = f"cannot be opened: {database_failure(error)}{RESTORE}"
        refusal = AgentFileInvalid(f"{path} {NO_AGENT if no_database else trouble}")
    except Exception:
        refusal = AgentFileInvalid(f"{path} is damaged: it cannot be read{RESTORE}")
    except BaseException as interrupt:
        interrupt.__context__ = interrupt.__cause__ = None
        refusal = interrupt.with_traceback(None)
    raise refusal


def read_contents(connection: sqlite3.Connection) -> Contents:
    """Read and check everything. Changes nothing."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == MOVED + FORMAT:
        bandit, database, done = _only(_rows(connection, "moved", "bandit, database, done"))
        return replace(_read_intact(connection, FORMAT), moved=Moved(bandit, database, bool(done)))
    return _read_intact(connection, version)


def _read_intact(connection: sqlite3.Connection, version: int) -> Contents:
    """Read a file of a format, once its pages fit together."""
    if version not in range(1, FORMAT + 1):
        raise AgentFileInvalid(f"has format {version}, this version reads formats 1 to {FORMAT}")
    if connection.execute("PRAGMA quick_check(1)").fetchone() != (b"ok",):
        raise AgentFileInvalid("is damaged: its pages do not fit together")
    return _read_checked(connection, version) if version >= CHECKED else _read_older(connection, version)


def _read_checked(connection: sqlite3.Connection, version: int) -> Contents:
    """Read formats 4 to 6, which have checksums."""
    current = version >= LOOKED_UP
    _check_types(connection)
    (settings,) = _only(_rows(connection, "settings", "text"))
    learned, policy = _only(_rows(connection, "policy", "learned, text"))
    agent = _only(list(texts(connection.execute("SELECT * FROM agent"))))
    opening: str | None = None
    if version >= CHAINED:
        (opening,) = _only(_rows(connection, "chain", "opening"))
    fixed = fixed_checksums(settings, (learned, policy), opening)
    if agent[-1] != agent_checksum(agent[:-1], fixed):
        raise AgentFileInvalid("is damaged: the row of agent does not have its checksum")
    asked, generation, arrivals, *ended, total, _ = agent
    looked_up = {"people": "person, rewards", "closed": "number, ending", "places": "person, episodes"}
    looked_up = {table: columns for table, columns in looked_up.items() if COUNTED[table] <= version}
    for table, columns in looked_up.items():
        query = f"SELECT {columns}, checksum FROM {table}"  # noqa: S608
        before: Any = None
        for key, _ in checked_rows(table, connection.execute(query)):
            if before is not None and key <= before:  # a row out of order would not be found when it is looked up
                raise AgentFileInvalid(f"is damaged: the rows of {table} are out of order")
            before = key  # looked up one by one later, and checked now
    timed = bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'times'").fetchall())
    _check_total(connection, total, version, timed)
    decisions = f"SELECT {COLUMNS}, checksum FROM decisions ORDER BY number"  # noqa: S608
    return Contents(
        version=version,
        settings=settings,
        policy=policy,
        arrivals=arrivals,
        learned=learned,
        releases=connection.execute("SELECT count(*) FROM ledger").fetchone()[0],
        asked=asked,
        generation=generation,
        total=total,
        ended=ended[0] if current else "",
        open=connection.execute("SELECT count(*) FROM decisions").fetchone()[0],
        texts=connection.execute("SELECT count(person), count(offered) FROM decisions").fetchone(),
        waiting=_waiting(connection, asked, generation) if current else [],
        decisions=Hidden([] if current else list(checked_rows("decisions", connection.execute(decisions)))),
        episodes=Hidden(_rows(connection, "episodes", "key, private", "key")),
        kept=Hidden(_rows(connection, "kept", "key, number, label, private", "key, number")),
        people=Hidden([] if current else _rows(connection, "people", "person, rewards", "person")),
        times=_rows(connection, "times", "time, number", "time") if timed else None,
        oldest=connection.execute("SELECT coalesce(min(number), ? + 1) FROM decisions", (asked,)).fetchone()[0],
        opening=opening,
    )


def _check_types(connection: sqlite3.Connection) -> None:
    """Refuse columns of another type than they were made with: a text that became bytes is found by no look-up."""
    tables = [name.decode() for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        kinds = {name.decode(): kind.decode().lower() for _, name, kind, *_ in _table_info(connection, table)}
        other = " OR ".join(f"typeof({name}) NOT IN ('{kind}', 'null')" for name, kind in kinds.items())
        if connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE {other})").fetchone()[0]:  # noqa: S608
            raise AgentFileInvalid(f"is damaged: a column of {table} is of another type")


def _table_info(connection: sqlite3.Connection, table: str) -> list[Row]:
    return connection.execute(f"PRAGMA table_info({table})").fetchall()


def _check_total(connection: sqlite3.Connection, total: int, version: int, timed: bool) -> None:
    """Refuse a file in which rows are missing, or from another time. timed: whether it has times of decisions."""
    found = 0
    for table in [name for name, since in COUNTED.items() if since <= version] + ["times"] * timed:
        own = FINGERPRINT if version >= LOOKED_UP and table == "decisions" else "0"
        query = f"SELECT coalesce(sum(checksum + {ROW} + {own}), 0) FROM {table}"  # noqa: S608
        found += connection.execute(query).fetchone()[0]
    if found != total:
        raise AgentFileInvalid("is damaged: rows are missing, or from another time")


def _waiting(connection: sqlite3.Connection, asked: int, generation: int) -> list[Row]:
    """Return how many decisions are open, by action. Their numbers have a fingerprint; texts are read one by one."""
    wrong = connection.execute(
        "SELECT count(*) FROM decisions WHERE typeof(number) || typeof(generation) || typeof(action) <> ?"
        " OR number NOT BETWEEN 1 AND ? OR generation NOT BETWEEN 1 AND ? OR action < 0",
        ("integer" * 3, asked, generation),
    ).fetchone()[0]
    if wrong:
        raise AgentFileInvalid("is damaged: a column holds what no agent writes")
    with_texts = f"SELECT {COLUMNS}, checksum FROM decisions WHERE coalesce(person, offered) IS NOT NULL"  # noqa: S608
    for _ in checked_rows("decisions", connection.execute(with_texts)):
        pass  # looked up one by one later, and checked now
    return connection.execute("SELECT action, count(*) FROM decisions GROUP BY action").fetchall()


def agent_checksum(columns: Row, others: tuple[int, ...]) -> int:
    """Return the checksum of the row of agent.

    others: `fixed_checksums`. With them nothing of another agent's file fits, as its salt is another.
    """
    return checksum("agent", *columns, *others)


def fixed_checksums(settings: str, policy: tuple[int, str], opening: str | None) -> tuple[int, ...]:
    """Return the checksums of what the file has one row of: settings, policy, and what its chain begins with."""
    found = checksum("settings", settings), checksum("policy", *policy)
    return found if opening is None else (*found, checksum("chain", opening))


def _rows(connection: sqlite3.Connection, table: str, columns: str, order: str = "rowid") -> list[Row]:
    """Return all rows, each with the checksum that it says; the checksum itself is left out."""
    query = f"SELECT {columns}, checksum FROM {table} ORDER BY {order}"  # noqa: S608
    return list(checked_rows(table, connection.execute(query)))


def _texts(rows: Iterable[Row]) -> list[Row]:
    return list(texts(rows))


def _only(rows: list[Row]) -> Row:
    if len(rows) != 1:
        raise AgentFileInvalid("is damaged: it holds no agent, or several")
    return rows[0]


def _read_older(connection: sqlite3.Connection, version: int) -> Contents:
    """Read formats 1 to 3, which have no checksums."""
    execute = connection.execute
    arrivals = "arrivals" if version > 2 else "NULL"
    offered = "offered" if version > 1 else "NULL"
    settings, policy, asked, generation, arrived = _only(
        _texts(execute(f"SELECT settings, policy, asked, generation, {arrivals} FROM agent"))  # noqa: S608
    )
    decisions = f"SELECT number, generation, action, person, {offered} FROM decisions ORDER BY number"  # noqa: S608
    episodes = _texts(execute("SELECT key, private FROM episodes ORDER BY key"))
    if version > 2:
        kept = _texts(execute("SELECT key, number, label, private FROM kept ORDER BY key, number"))
    else:
        episodes, kept = _apart(episodes)
    rows = _texts(execute(decisions))
    releases = execute("SELECT count(*) FROM ledger").fetchone()[0]
    found = Contents(
        version=version,
        settings=settings,
        policy=policy,
        arrivals=arrived,
        learned=releases,
        releases=releases,
        asked=asked,
        generation=generation,
        total=0,
        ended="",
        open=len(rows),
        texts=(sum(row[3] is not None for row in rows), sum(row[4] is not None for row in rows)),
        waiting=[],
        decisions=Hidden(rows),
        episodes=Hidden(episodes),
        kept=Hidden(kept),
        people=Hidden(_texts(execute("SELECT person, rewards FROM people ORDER BY person"))),
    )
    _check_older(found)
    return found


def _apart(rows: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Take earlier sums out of the records of the open ones, where formats 1 and 2 had them."""
    episodes: list[Row] = []
    kept: list[Row] = []
    for key, text in rows:
        record = json.loads(text)
        for part in record.pop("kept", ()):
            number = part["number"]
            label = label_of(key, part.get("first", number), number)
            kept.append((key, number, label, json.dumps(part)))
        episodes.append((key, json.dumps(record)))
    return episodes, kept


def _check_older(found: Contents) -> None:
    """Refuse columns of other types or values than an agent writes."""
    records = [*found.episodes.value, *found.kept.value]
    words = [found.settings, found.policy, *(row[-1] for row in records)]
    words += [row[2] for row in found.kept.value] + [person for person, _ in found.people.value]
    counts = [found.asked, found.generation, *(rewards for _, rewards in found.people.value)]
    numbers = [number for number, *_ in found.decisions.value]
    for number, generation, action, person, offered in found.decisions.value:
        words += [text for text in (person, offered) if text is not None]
        counts += [number - 1, action, generation - 1, found.generation - generation]
    fit = all(type(text) is str and text.isascii() for text in words) and all(type(n) is int and n >= 0 for n in counts)
    if not (fit and found.generation >= 1 and max(numbers, default=0) <= found.asked):
        raise AgentFileInvalid("is damaged: a column holds what no agent writes")

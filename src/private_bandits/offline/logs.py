"""Logs of past plays, read and checked: what a replay (environments.py) and a warm start (agent.py) begin with.

A log is a CSV file, a table with named columns, or a list of tuples. No error repeats a reward.
"""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from private_bandits.errors import InvalidInput
from private_bandits.mechanism.rewards import RewardRange

Column = str | Sequence[str]
"""The name of a column; or several, whose values make a vector."""


@dataclass(frozen=True, repr=False)
class Log:
    """The columns of a log by what they are for, with no value missing. Its repr shows none of them.

    >>> log = read_log([("A", 1.0), ("B", 0.0)], {"arm": "arm", "reward": "reward"}, required=["arm", "reward"])
    >>> log
    Log(2 rows of arm, reward)
    >>> log.rewards(RewardRange(0, 1)), log.actions(["B", "A"])
    ([1.0, 0.0], [1, 0])
    """

    columns: Mapping[str, list[Any]]
    rows: int

    def __repr__(self) -> str:
        return f"Log({self.rows} rows of {', '.join(self.columns)})"

    def part(self, first: int, last: int) -> Log:
        """Return the rows from `first` on, without `last`, counted from 0."""
        return Log({name: values[first:last] for name, values in self.columns.items()}, last - first)

    def told_rewards(self) -> list[float]:
        """Rewards as numbers, whatever their range: as they were told to an agent, which clips them."""
        return self._numbers("reward")

    def rewards(self, bounds: RewardRange) -> list[float]:
        """Rewards as numbers. Refused outside of the range: then the log is in another unit."""
        found = self.told_rewards()
        for row, reward in enumerate(found):
            if not bounds.low <= reward <= bounds.high:
                raise InvalidInput(
                    f"the reward in {_place(row)} lies outside reward_range ({bounds.low:g}, {bounds.high:g}): a log "
                    "is not clipped, as it may be in another unit; convert it, or declare the range that is possible"
                )
        return found

    def probabilities(self) -> list[float] | None:
        """With which each logged arm was chosen; None where the log does not say."""
        if "probability" not in self.columns:
            return None
        found = self._numbers("probability")
        for row, probability in enumerate(found):
            if not 0 < probability <= 1:
                raise InvalidInput(f"the probability in {_place(row)} must be above 0 and at most 1")
        return found

    def people(self) -> list[str]:
        """Who each reward is of."""
        return [*map(as_text, self.columns["person"])]

    def arm_names(self) -> tuple[str, ...]:
        """Every arm as a text, in the order in which they come first."""
        return tuple(dict.fromkeys(map(as_text, self.columns["arm"])))

    def actions(self, names: Sequence[str]) -> list[int]:
        """The arms by index. They are names; or, where not all of them are, all are indices."""
        index = {name: i for i, name in enumerate(names)}
        found = [index.get(as_text(arm), -1) for arm in self.columns["arm"]]
        if -1 in found:
            indices = [_whole(arm) for arm in self.columns["arm"]]
            if not all(0 <= i < len(names) for i in indices):
                raise InvalidInput(
                    f"the arm in {_place(found.index(-1))} is unknown: it must be one of {list(names)}, or every arm "
                    f"of the log an index from 0 to {len(names) - 1}"
                )
            return indices
        return found

    def tables(self) -> list[Any]:
        """What there was to choose from in each row; a text, as in a CSV file, is read as JSON."""
        return [_table(row, cell) for row, cell in enumerate(self.columns["actions"])]

    def chosen(self, tables: Sequence[Any]) -> list[int]:
        """The arm of each row as an index of its table."""
        found = [_whole(arm) for arm in self.columns["arm"]]
        for row, (index, table) in enumerate(zip(found, tables, strict=True)):
            if not 0 <= index < len(table):
                raise InvalidInput(
                    f"the arm in {_place(row)} must be an index from 0 to {len(table) - 1} of its actions"
                )
        return found

    def _numbers(self, role: str) -> list[float]:
        return [_number(role, row, value) for row, value in enumerate(self.columns[role])]


def read_log(source: Any, roles: Mapping[str, Column], required: Sequence[str]) -> Log:
    """The columns that have a role, from a CSV file, a table or tuples. Those not required may not be there.

    source: a path; a table such as a DataFrame or a dict of lists; or tuples with values in the order of the roles.
    roles: for each role the name of its column.
    """
    columns = _read(source, roles, len(required))
    found: dict[str, list[Any]] = {}
    for role, names in roles.items():
        wanted = [names] if isinstance(names, str) else list(names)
        missing = [name for name in wanted if name not in columns]
        if missing and role in required:
            raise InvalidInput(f"the log has no column {missing[0]!r}: {described(columns)}")
        if not missing:
            parts = [_complete(name, columns[name]) for name in wanted]
            found[role] = parts[0] if isinstance(names, str) else list(zip(*parts, strict=True))
    lengths = {len(column) for column in found.values()}
    if len(lengths) != 1:
        raise InvalidInput(f"the columns of the log must be of one length, got {sorted(lengths)}")
    rows = lengths.pop()
    if not rows:
        raise InvalidInput("the log is empty: it needs at least one row")
    return Log(found, rows)


def _read(source: Any, roles: Mapping[str, Column], least: int) -> Mapping[str, Iterable[Any]]:
    """All columns by name."""
    columns = read_columns(source)
    return _read_tuples(source, roles, least) if columns is None else columns


def read_columns(source: Any) -> Mapping[str, Iterable[Any]] | None:
    """All columns by name, of a CSV file or a table with named columns; None for anything else."""
    if isinstance(source, (str, os.PathLike)):
        if "\n" in str(source):
            raise InvalidInput("a table that is a text must be the path of a CSV file, got one of several lines")
        return _read_csv(Path(source))
    if not isinstance(source, Mapping) and not hasattr(source, "columns"):
        return None
    names = list(source if isinstance(source, Mapping) else source.columns)
    if len(set(names)) < len(names):
        raise InvalidInput("the table has two columns of one name")
    return {name: source[name] for name in names}


def _read_tuples(source: Any, roles: Mapping[str, Column], least: int) -> Mapping[str, Iterable[Any]]:
    rows = [tuple(row) if isinstance(row, (tuple, list)) else () for row in source] if _is_iterable(source) else [()]
    if not rows:
        raise InvalidInput("the log is empty: it needs at least one row")
    width = len(rows[0])
    if len(set(map(len, rows))) > 1 or not least <= width <= len(roles):
        raise InvalidInput(
            f"a log is a CSV file, a table, or tuples of ({', '.join(roles)}), at least the first {least} and in "
            f"every row as many; got a {type(source).__name__} of something else"
        )
    names = [name for name in list(roles.values())[:width] if isinstance(name, str)]
    if len(names) < width:
        raise InvalidInput("several columns make a vector only in a table: a tuple holds the vector as one value")
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def _is_iterable(source: Any) -> bool:
    return hasattr(source, "__iter__") or hasattr(source, "__getitem__")


def _read_csv(path: Path) -> Mapping[str, Iterable[Any]]:
    """Every value as a text. Only what is empty is missing: an arm may be called "None"."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = [row for row in csv.reader(file, strict=True) if row] or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        problem = type(error).__name__
    else:
        problem = ""
    if problem:  # told here: the exception may repeat what is in the file
        raise InvalidInput(f"{path} is not a CSV file in UTF-8 ({problem})")
    if len(set(header)) < len(header):
        raise InvalidInput(f"{path} has two columns of one name")
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise InvalidInput(f"{path} has {len(header)} columns, got {len(row)} values in {_place(number)}")
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


def described(names: Iterable[Any]) -> str:
    """What columns there are. Without a line of names the first rewards would stand here."""
    if any(character.isdigit() for name in names for character in str(name)):
        return "the names have digits in them; is the line of names missing, or the separator not a comma?"
    return f"it has {list(names)}"


def _complete(name: str, column: Iterable[Any]) -> list[Any]:
    values = list(column)
    for row, value in enumerate(values):
        if is_missing(value):
            raise InvalidInput(f"the value of {name!r} in {_place(row)} is missing: every row needs one")
    return values


def is_missing(value: Any) -> bool:
    """Whether a table has no value there: an empty text, None, or one of the ways to write NaN."""
    if isinstance(value, str):
        return not value.strip()
    if isinstance(value, Real):
        return bool(value != value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _as_float(value: Any) -> float | None:
    try:
        return float(value)
    except OverflowError:  # a whole number beyond any float, and so outside of any range
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def _number(role: str, row: int, value: Any) -> float:
    number = _as_float(value)
    if number is None or number != number:
        raise InvalidInput(f"the {role} in {_place(row)} is not a number, got a value of type {type(value).__name__}")
    return number


def as_text(value: Any) -> str:
    """A name. A whole number that came as a float is the same name."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return str(int(value)) if is_number and float(value).is_integer() else str(value)


def _whole(value: Any) -> int:
    """The index that it is; -1 for everything else."""
    text = as_text(value)
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def _table(row: int, cell: Any) -> Any:
    found = cell
    if isinstance(cell, str):
        try:
            found = json.loads(cell)
        except ValueError:
            found = None
    if not hasattr(found, "__len__") or isinstance(found, (str, Mapping)):
        raise InvalidInput(f"the actions in {_place(row)} must be a table, a row for each action, as lists or as JSON")
    return found


def _place(row: int) -> str:
    return f"row {row} (the first is 0)"

"""A labelled table as a contextual bandit: what privacy would cost on data like one's own, before a trial begins."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats, Integers
from private_bandits.checks import check_positive, whole_number
from private_bandits.errors import InvalidInput
from private_bandits.features import Features
from private_bandits.offline.logs import as_text, described, is_missing, read_columns

CUT = 1.0
"""Standard deviations at which numbers are cut. Noise is for the bound: a wider one drowns most people's numbers.
docs/real-data.md has the shares for other cuts, on the three tables that it was chosen on."""
MOST_STRAYS = 0.2
"""Of the values of a column may be no numbers, for it to be one of numbers that has to be mended."""
MOST_CATEGORIES = 50
"""Of one column."""
MOST_DIMENSIONS = 2000
"""Of the actions: V has the square of it."""
NO_NUMBERS = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
"""Texts that stand for a missing value among numbers."""
Flags = NDArray[np.bool_]


class Labelled:
    """People drawn from a labelled table: a step shows a row without its label; the arm of that label pays 1, others 0.

    The arms are the labels that occur. At each step a row is drawn at random, with replacement, and its actions are
    those of `private_bandits.features.Features`: the row's numbers and a constant, for each arm with coefficients of
    its own. Regret is the number of wrong recommendations.

    - A column of numbers is standardised, cut at `cut` standard deviations and divided by that: it lies in [-1, 1].
    - A column of texts, of booleans or of pandas' categories becomes a column of 0 and 1 for each category, or one in
      all where there are two.
    - components: of all columns, standardised, only so many principal components are kept, each standardised and cut
      in the same way. d is the number of labels times (components + 1), and privacy asks for more people with each.
    - Rows with a missing value are left out, and so are columns that are empty or never change: see `left_out`.

    Mean and deviation are those of the table. This is for a study of a table that you may see. Live, bounds and
    scales are chosen from public knowledge before the first person comes.

    table: a DataFrame, a dict of columns, the path of a CSV file, or an array with a row a person. label: the name of
    the column of labels; or, beside an array, the labels themselves.

    >>> import private_bandits as pb
    >>> table = {"age": [20, 30, 40, 70], "smokes": ["no", "yes", "no", "yes"], "helped_by": ["A", "B", "A", "B"]}
    >>> pb.Labelled(table, label="helped_by")
    Labelled(rows=4, labels=2, columns=2, dimension=6)
    """

    reward_range = (0.0, 1.0)
    bounded = True
    scaled = True

    def __init__(self, table: Any, label: Any, components: int | None = None, cut: float = CUT) -> None:
        self.cut = check_positive("cut", cut)
        columns, answers = _columns_and_answers(table, label)
        cleaned = _cleaned(columns, answers)
        self.rows = len(cleaned.answers)
        self.rows_left_out = len(answers) - self.rows
        self.columns_left_out = cleaned.columns_left_out
        self.labels = _labels(cleaned.answers)
        place = {name: i for i, name in enumerate(self.labels)}
        self.answers: Integers = np.array([place[name] for name in cleaned.answers], np.int64)
        names, self.contexts = _contexts(cleaned.columns, components, self.cut)
        size = len(self.labels) * (len(names) + 1)
        if size > MOST_DIMENSIONS:
            raise InvalidInput(
                f"actions would have {size:,} numbers ({len(self.labels)} labels times {len(names)} columns and a "
                f"constant), and at most {MOST_DIMENSIONS:,} are possible: use components, or fewer columns"
            )
        self.features = Features(context=list(names), arms=list(self.labels), bounds=1.0)

    @property
    def arms(self) -> int:
        """K, the number of labels."""
        return len(self.labels)

    @property
    def dimension(self) -> int:
        """d, of the actions."""
        return self.features.dimension

    @property
    def context_norm(self) -> float:
        """What to declare to a policy: no action is longer."""
        return self.features.context_norm

    @cached_property
    def best_fixed_share(self) -> float:
        """The share of rows with the most common label: what is right if everyone is recommended that one."""
        return float(np.bincount(self.answers).max() / self.rows)

    @property
    def guessing_share(self) -> float:
        """The share that is right by guessing, each label with the same probability."""
        return 1 / self.arms

    @property
    def left_out(self) -> str:
        """What was left out of the table, in words; empty if nothing was."""
        noun = "row" if self.rows_left_out == 1 else "rows"
        rows = f"{self.rows_left_out:,} {noun} with missing values" if self.rows_left_out else ""
        columns = f"columns that never change: {', '.join(self.columns_left_out)}" if self.columns_left_out else ""
        return "; ".join(filter(None, (rows, columns)))

    def draw_rows(self, generator: np.random.Generator, count: int) -> Integers:
        """Return the numbers of rows drawn at random, with replacement."""
        return generator.integers(self.rows, size=count)

    def actions(self, row: int) -> Floats:
        """Return what there is to choose from for a row, an action a label: for `agent.ask(actions=...)`."""
        return self.features(self.contexts[row])

    def reward(self, row: int, arm: int) -> float:
        """Return 1 for the arm that is the label of the row, else 0."""
        return float(self.answers[row] == arm)

    def reward_of(self, mean: float, chance: float) -> float:
        """Return the mean: a row has one label, and no chance is in it."""
        return mean

    @cached_property
    def digest(self) -> str:
        """A short text that differs where the rows or their labels do."""
        parts = (self.contexts.tobytes(), self.answers.tobytes(), repr(self.features).encode())
        return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return what it is as plain data, without the rows."""
        return {
            "rows": self.rows,
            "labels": list(self.labels),
            "columns": list(self.features.context),
            "dimension": self.dimension,
            "cut": self.cut,
            "rows_left_out": self.rows_left_out,
            "columns_left_out": list(self.columns_left_out),
            "digest": self.digest,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labelled) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        sizes = f"rows={self.rows}, labels={self.arms}, columns={len(self.features.context)}"
        return f"Labelled({sizes}, dimension={self.dimension})"


@dataclass(frozen=True)
class _Numbers:
    """A column of numbers; NaN where one is missing."""

    values: Floats

    @property
    def missing(self) -> Flags:
        return np.isnan(self.values)

    def only(self, kept: Flags) -> _Numbers:
        return _Numbers(self.values[kept])

    @property
    def changes(self) -> bool:
        return bool(np.ptp(self.values) > 1e-12 * np.abs(self.values).max())

    def encoded(self, name: str) -> dict[str, Floats]:
        return {name: self.values}

    def scaled(self, name: str, cut: float) -> dict[str, Floats]:
        return {name: _cut(self.values, cut)}


@dataclass(frozen=True)
class _Categories:
    """A column of texts; None where one is missing."""

    values: NDArray[Any]

    @property
    def missing(self) -> Flags:
        return np.array([value is None for value in self.values], bool)

    def only(self, kept: Flags) -> _Categories:
        return _Categories(self.values[kept])

    @property
    def changes(self) -> bool:
        return len(set(self.values)) > 1

    def encoded(self, name: str) -> dict[str, Floats]:
        found = sorted(set(self.values))
        if len(found) > MOST_CATEGORIES:
            raise InvalidInput(
                f"column {name!r} has {len(found):,} different values that are no numbers, and at most "
                f"{MOST_CATEGORIES} are possible: leave it out, make numbers of it, or put values together"
            )
        told = found[1:] if len(found) == 2 else found  # what is not the one is the other
        return {f"{name}={value}": (self.values == value).astype(float) for value in told}

    def scaled(self, name: str, cut: float) -> dict[str, Floats]:
        return self.encoded(name)


_Column = _Numbers | _Categories


@dataclass(frozen=True)
class _Cleaned:
    """Columns that change, and labels, of rows in which nothing is missing."""

    columns: Mapping[str, _Column]
    answers: Sequence[str]
    columns_left_out: tuple[str, ...]


def _columns_and_answers(table: Any, label: Any) -> tuple[dict[str, _Column], list[str | None]]:
    """Return all columns but the label's, and the labels as texts; None where one is missing."""
    columns = _read(table, label)
    if isinstance(label, str):
        if label not in columns:
            raise InvalidInput(f"the table has no column {label!r}: {described(columns)}")
        labels = columns[label]
        columns = {name: values for name, values in columns.items() if name != label}
    else:
        labels = label
    answers = [None if is_missing(value) else as_text(value).strip() for value in labels]
    found = {str(name): _column(str(name), values) for name, values in columns.items()}
    lengths = {len(answers), *(len(column.values) for column in found.values())}
    if len(lengths) > 1:
        raise InvalidInput(f"columns and labels must be of one length, got {sorted(lengths)}")
    if not answers:
        raise InvalidInput("the table is empty: it needs at least one row")
    return found, answers


def _read(table: Any, label: Any) -> Mapping[Any, Iterable[Any]]:
    """All columns by name."""
    columns = _read_file(table) if isinstance(table, (str, os.PathLike)) else read_columns(table)
    if columns is not None:
        if not isinstance(label, str) and not _is_sequence(label):
            raise InvalidInput(f"label must be the name of a column, which is a text, got {label!r}")
        return columns
    try:
        array = np.asarray(table)
    except ValueError:
        array = np.empty(0)
    if array.ndim != 2 or isinstance(label, str) or not _is_sequence(label):
        raise InvalidInput(
            "the table must be a DataFrame, a dict of columns or the path of a CSV file, with the name of the column "
            f"of labels; or an array with a row a person, with an array of labels; got {type(table).__name__}"
        )
    return {f"x{i}": array[:, i] for i in range(array.shape[1])}


def _read_file(path: str | os.PathLike[str]) -> Mapping[str, Iterable[Any]]:
    try:
        found = read_columns(Path(path))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    assert found is not None
    return found


def _is_sequence(given: Any) -> bool:
    return hasattr(given, "__len__") and not isinstance(given, (str, Mapping))


def _column(name: str, values: Iterable[Any]) -> _Column:
    """Numbers, unless a value is none or pandas says that they are categories."""
    kind = getattr(values, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "iuf":  # what most columns are, in a hundredth of the time
        numbers = np.asarray(values, float)
        return _Numbers(np.where(np.isfinite(numbers), numbers, math.nan))
    kept = list(values)
    found = None if str(kind) == "category" else _numbers(kept)
    if found is not None:
        return _Numbers(found)
    texts = [None if is_missing(value) else as_text(value).strip() for value in kept]
    if str(kind) != "category":
        _refuse_strays(name, texts)
    return _Categories(np.array(texts, object))


def _refuse_strays(name: str, texts: Sequence[str | None]) -> None:
    """Refuse a column of numbers with a few texts among them: each number would become a category."""
    strays = [i for i, text in enumerate(texts) if text is not None and _numbers([text]) is None]
    if strays and len(strays) < MOST_STRAYS * (len(texts) - texts.count(None)):
        raise InvalidInput(
            f"column {name!r} holds numbers and {len(strays):,} texts that are none, the first in row {strays[0]:,} "
            "(the first is 0): mend them or leave the cells empty; or, if they are categories, make texts of all"
        )


def _numbers(values: Sequence[Any]) -> Floats | None:
    """Return the values as floats, NaN where one is missing or infinite; None if one is no number."""
    found = np.full(len(values), math.nan)
    for i, value in enumerate(values):
        if is_missing(value) or (isinstance(value, str) and value.strip().lower() in NO_NUMBERS):
            continue
        if isinstance(value, (bool, np.bool_)):
            return None
        try:
            found[i] = float(value)
        except OverflowError:
            continue
        except (TypeError, ValueError):
            return None
    found[~np.isfinite(found)] = math.nan
    return found


def _cleaned(columns: Mapping[str, _Column], answers: Sequence[str | None]) -> _Cleaned:
    """Leave out empty columns, then rows in which something is missing, then columns that no longer change."""
    filled = {name: column for name, column in columns.items() if not column.missing.all()}
    absent = {name: column.missing for name, column in filled.items()}
    unlabelled = np.array([answer is None for answer in answers], bool)
    kept = ~np.logical_or.reduce([unlabelled, *absent.values()])
    if not kept.any():
        worst = max(absent, key=lambda name: int(absent[name].sum()), default="")
        hint = f"; column {worst!r} lacks most: leave it out" if absent and absent[worst].any() else ""
        raise InvalidInput(f"no row of the table is complete{hint}")
    whole = {name: column.only(kept) for name, column in filled.items()}
    changing = {name: column for name, column in whole.items() if column.changes}
    if not changing:
        raise InvalidInput("the table has no column to learn from: beside the labels, none has two different values")
    left_out = tuple(name for name in columns if name not in changing)
    return _Cleaned(changing, [a for a, keep in zip(answers, kept, strict=True) if keep and a is not None], left_out)


def _labels(answers: Sequence[str]) -> tuple[str, ...]:
    """The labels that occur, in order: numbers by size, texts by letter."""
    found = set(answers)
    if len(found) < 2:
        raise InvalidInput("there is one label only: a bandit needs two to choose from")
    if len(found) == len(answers):
        raise InvalidInput(
            f"each of the {len(answers):,} rows has a label of its own: is it an identifier, or a number to be "
            "predicted? Labels are what is recommended; put numbers together in a few ranges"
        )
    try:
        return tuple(sorted(found, key=float))
    except ValueError:
        return tuple(sorted(found))


def _contexts(columns: Mapping[str, _Column], components: int | None, cut: float) -> tuple[list[str], Floats]:
    """Return names, and numbers in [-1, 1], a row a person."""
    if components is None:
        found: dict[str, Floats] = {}
        for name, column in columns.items():
            found |= column.scaled(name, cut)
        return list(found), np.column_stack(list(found.values()))
    parts = [values for name, column in columns.items() for values in column.encoded(name).values()]
    scores = _principal_components(np.column_stack(parts), whole_number("components", components))
    names = [f"component {i + 1}" for i in range(scores.shape[1])]
    return names, np.column_stack([_cut(score, cut) for score in scores.T])


def _cut(values: Floats, cut: float) -> Floats:
    """Standardised, cut at so many standard deviations, and divided by that."""
    return np.asarray(np.clip((values - values.mean()) / (values.std() * cut), -1.0, 1.0))


def _principal_components(table: Floats, count: int) -> Floats:
    """Return the first principal components of the standardised columns. Signs: the largest loading is positive."""
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    left, sizes, right = np.linalg.svd(standard, full_matrices=False)
    rank = int((sizes > 1e-10 * sizes[0]).sum())
    if count > rank:
        raise InvalidInput(f"components must be at most {rank}, as many as the table has directions, got {count}")
    signs = np.sign(right[np.arange(count), np.abs(right[:count]).argmax(axis=1)])
    return np.asarray(left[:, :count] * sizes[:count] * signs)

"""Where small policies come from: JSON files, those of the package, and objects of a module."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.definitions.histories import Histories, InvalidPolicy, PolicyFileMissing, describe
from private_bandits.definitions.policy import SmallPolicy, check_row
from private_bandits.loading import load_object

KEYS = {"name", "arms", "rewards", "horizon", "contexts", "policy"}
ROW_KEYS = {"history", "context", "probabilities"}


def load(path: str | Path) -> SmallPolicy:
    """The policy of a JSON file, in the format of `from_json`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PolicyFileMissing(f"{path} does not exist: name a JSON file that holds a policy") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidPolicy(f"{path} cannot be read as text: {type(error).__name__}") from None
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidPolicy(f"{path} is not JSON: {error}") from None
    return from_json(data)


def from_json(data: Any) -> SmallPolicy:
    """The policy of {"name", "arms", "rewards", "horizon", "contexts", "policy": [row, ...]}.

    A row is {"history": [[arm, reward], ...], "probabilities": ["2/3", "1/3"]}, with contexts [context, arm, reward]
    and "context". Arms and contexts are named by their number or their name; a probability is a number or a
    fraction in quotes. Every history needs one row.
    """
    if not isinstance(data, dict):
        raise InvalidPolicy(f"a policy must be a JSON object with the keys {', '.join(sorted(KEYS))}")
    _known_keys(data, KEYS, "a policy")
    for key in ("arms", "horizon", "policy"):
        if key not in data:
            raise InvalidPolicy(f"a policy needs the key {key!r}; it has {', '.join(sorted(data)) or 'none'}")
    space = Histories.of(data["arms"], _rewards(data.get("rewards", [0, 1])), data["horizon"], data.get("contexts", 0))
    if not isinstance(data.get("name", ""), str):
        raise InvalidPolicy(f"name must be a text, got {data['name']!r}")
    if not isinstance(data["policy"], list):
        raise InvalidPolicy("policy must be a list of rows, each with a history and probabilities")
    reader = _Reader(space)
    for row in data["policy"]:
        reader.add(row)
    return SmallPolicy(data.get("name", ""), space, reader.finish())


def to_dict(policy: SmallPolicy) -> dict[str, Any]:
    """The policy as data that `from_json` reads back, number for number.

    >>> to_dict(from_json({"arms": 2, "horizon": 1, "policy": [{"history": [], "probabilities": ["1/2", "1/2"]}]}))[
    ...     "policy"
    ... ]
    [{'history': [], 'probabilities': [0.5, 0.5]}]
    """
    rows: list[dict[str, Any]] = []
    for step in range(policy.horizon):
        for history, context in policy.space.each(step):
            row: dict[str, Any] = {"history": [list(entry) for entry in history]}
            if context is not None:
                row["context"] = context
            rows.append({**row, "probabilities": list(policy.row(history, context))})
    data: dict[str, Any] = {"name": policy.name, "arms": list(policy.arms), "rewards": list(policy.rewards)}
    if policy.contexts:
        data["contexts"] = list(policy.contexts)
    return {**data, "horizon": policy.horizon, "policy": rows}


def counterexample() -> SmallPolicy:
    """The paper's policy of Proposition 1(e): (0.95, 0.17)-View DP, but not (0.95, 0.17)-Table DP."""
    return _shipped("counterexample.json")


def adaptive_gap() -> SmallPolicy:
    """A policy that tells more to an adaptive adversary than to an interactive one, and to that one than to a table."""
    return _shipped("adaptive_gap.json")


def _made_without_arguments(function: Callable[..., Any]) -> SmallPolicy | None:
    """What a function such as `adaptive_gap` makes; None for a rule, which wants a history."""
    try:
        made = function()
    except TypeError:
        return None
    return made if isinstance(made, SmallPolicy) else None


def find(
    source: str | None = None,
    arms: int | None = None,
    horizon: int | None = None,
    rewards: Sequence[float] | None = None,
    contexts: int | None = None,
) -> SmallPolicy:
    """A JSON file, or `module:name` of a SmallPolicy or of a rule; the current directory can be imported from.

    A rule needs its sizes; everything else knows them itself. No source at all is the paper's counterexample.
    """
    sizes = {"arms": arms, "horizon": horizon, "rewards": rewards, "contexts": contexts}
    given = [name for name, value in sizes.items() if value is not None]
    if source is None:
        if given:
            raise InvalidPolicy(f"{given[0]} belongs to a rule given as module:name: name a policy as well")
        return counterexample()
    if ":" not in source or source.endswith(".json") or Path(source).exists():
        if given:
            raise InvalidPolicy(
                f"{given[0]} belongs to a rule given as module:name; the file {source} has its own sizes"
            )
        return load(source)
    found = load_object(source)
    if isinstance(found, SmallPolicy):
        if given:
            raise InvalidPolicy(f"{given[0]} belongs to a rule; the policy {source} has its own sizes")
        return found
    if not callable(found):
        raise InvalidPolicy(f"{source} must be a SmallPolicy or a rule that can be called, got {type(found).__name__}")
    made = None if given else _made_without_arguments(found)
    if made is not None:
        return made
    if arms is None or horizon is None:
        raise InvalidPolicy(f"the rule {source} needs arms and horizon")
    return SmallPolicy.from_callable(
        found, arms=arms, horizon=horizon, rewards=(0, 1) if rewards is None else rewards, contexts=contexts or 0
    )


def _shipped(name: str) -> SmallPolicy:
    return from_json(json.loads(resources.files("private_bandits.definitions").joinpath(name).read_text("utf-8")))


class _Reader:
    """Takes rows in any order and knows which are missing."""

    def __init__(self, space: Histories) -> None:
        self.space = space
        self.steps = [np.full((space.rows(t), len(space.arms)), np.nan) for t in range(space.horizon)]

    def add(self, row: Any) -> None:
        """One row of the file."""
        if not isinstance(row, dict):
            raise InvalidPolicy(f"a row of the policy must be an object with a history and probabilities, got {row!r}")
        known = ROW_KEYS if self.space.contexts else ROW_KEYS - {"context"}
        _known_keys(row, known, "a row of the policy")
        for key in sorted(known - set(row)):
            raise InvalidPolicy(f"a row of the policy needs the key {key!r}, got {row!r}")
        history = self._history(row["history"])
        context = _place("context", row["context"], self.space.contexts, row) if self.space.contexts else None
        where = describe(history, context)
        numbers = row["probabilities"]
        if not isinstance(numbers, list):
            raise InvalidPolicy(f"the probabilities of {where} must be a list, got {numbers!r}")
        values = check_row([_probability(p, where) for p in numbers], len(self.space.arms), where)
        into = self.steps[len(history)][self.space.index(history, context)]
        if not np.isnan(into).any():
            raise InvalidPolicy(f"{where} has two rows: keep one")
        into[:] = values

    def _history(self, given: Any) -> list[tuple[Any, ...]]:
        parts, form = (3, "[context, arm, reward]") if self.space.contexts else (2, "[arm, reward]")
        if not isinstance(given, list) or not all(isinstance(e, list) and len(e) == parts for e in given):
            raise InvalidPolicy(f"a history must be a list of {form}, got {given!r}")
        if len(given) >= len(self.steps):
            raise InvalidPolicy(f"the history {given!r} is too long: {len(self.steps) - 1} steps come before the last")
        entries = []
        for *where, arm, reward in given:
            if isinstance(reward, bool) or reward not in self.space.rewards:
                raise InvalidPolicy(f"the reward {reward!r} in {given!r} must be one of {list(self.space.rewards)!r}")
            context = [_place("context", c, self.space.contexts, given) for c in where]
            entries.append((*context, _place("arm", arm, self.space.arms, given), float(reward)))
        return entries

    def finish(self) -> tuple[Floats, ...]:
        """The arrays, once every history has its row."""
        missing = sum(int(np.isnan(step[:, 0]).sum()) for step in self.steps)
        if missing:
            first = "; ".join(islice(self._missing(), 3))
            raise InvalidPolicy(f"{missing:,} histories have no probabilities, such as {first}")
        return tuple(self.steps)

    def _missing(self) -> Iterator[str]:
        for step, rows in enumerate(self.steps):
            for row, (history, context) in zip(rows, self.space.each(step), strict=True):
                if np.isnan(row[0]):
                    yield describe(history, context)


def _known_keys(data: dict[str, Any], known: set[str], what: str) -> None:
    unknown = sorted(set(data) - known)
    if unknown:
        raise InvalidPolicy(f"{what} has the unknown key {unknown[0]!r}: it may have {', '.join(sorted(known))}")


def _rewards(given: Any) -> list[float]:
    if not isinstance(given, list) or any(isinstance(r, bool) or not isinstance(r, int | float) for r in given):
        raise InvalidPolicy(f"rewards must be a list of finite numbers, got {given!r}")
    return given


def _place(what: str, given: Any, known: tuple[str, ...], whole: Any) -> int:
    if isinstance(given, str) and given in known:
        return known.index(given)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < len(known):
        raise InvalidPolicy(
            f"the {what} {given!r} in {whole!r} must be 0 to {len(known) - 1} or one of {list(known)!r}"
        )
    return given


def _probability(given: Any, where: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise InvalidPolicy(f"a probability of {where} must be a number or a fraction in quotes, got {given!r}")
    try:
        # Fraction alone would write out "1e999999999" digit by digit.
        return float(Fraction(given)) if isinstance(given, str) and "/" in given else float(given)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InvalidPolicy(f'a probability of {where} must be a number such as 0.5 or "2/3", got {given!r}') from None

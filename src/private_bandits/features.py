"""Features: the table of actions that a contextual linear bandit needs, from a person's numbers and the arms."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Real
from typing import Any, Literal

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput

OUTSIDE = ("refuse", "clip")


@dataclass(frozen=True)
class Features:
    """One row of d numbers for each arm, from the p numbers of a context; no row is longer than `norm`.

    Row k is `scale` times these blocks side by side, where x is the context with each number divided by its bound, z_k
    the vector of arm k with each column divided by its largest absolute entry, e_k one for arm k and zero for others:

        shared      x; where arms have vectors also z_k and all products x_i z_kj. One coefficient for all arms
        per_arm     x at the place of arm k, zero at the others'. Coefficients of its own for each arm
        intercept   e_k; or one constant for all arms, where arms have vectors and there is no per_arm

        scale = norm / length of the longest unscaled row when every x_i = 1

    Norms hold in floating point too. Everything but x comes from what is declared here, and no context is kept.
    A policy's theta is that of the scaled features: its `parameter_norm` is 1/scale times that of the unscaled ones.

    context: p, or a list of p names. arms: K, or a list of K names, or a K x q table of vectors that describe them.
    bounds: on the absolute value of the numbers, one for all or a list of p. Public: chosen before any context is seen.
    What has names goes by name, in any order: contexts and bounds may be a dict, a pandas Series or a named tuple with
    exactly the names of `context`. A list, a tuple or an array goes by position.
    outside: "refuse" a context beyond its bounds with an error that names the number, or "clip" it silently: then no
    error repeats what is in a context. What is not finite is refused either way, by its kind.

    Arms that nothing tells apart are refused. x alone adds the same to every arm: `shared` without vectors needs
    `per_arm` (which then learns how an arm differs from what all have in common) or `intercept`.

    >>> import private_bandits as pb
    >>> from private_bandits.features import Features
    >>> features = Features(context=["age", "dose"], arms=["A", "B"], bounds=[100, 5])
    >>> features.names
    ('age[A]', 'dose[A]', 'age[B]', 'dose[B]', '1[A]', '1[B]')
    >>> (features([50, 5]) / features.scale).round(3).tolist()
    [[0.5, 1.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.5, 1.0, 0.0, 1.0]]
    >>> bool((features({"dose": 5, "age": 50}) == features([50, 5])).all())
    True
    >>> policy = pb.AdaCOFUL(
    ...     dimension=features.dimension, context_norm=features.context_norm, budget=pb.zCDP(0.1), parameter_norm=2
    ... )
    >>> agent = pb.Agent(policy, reward_range=(0, 1))
    >>> decision = agent.ask(actions=features([50, 5]))
    >>> agent.tell(decision, reward=1.0)

    Arms described by vectors, with nothing for each arm alone: d does not grow with the number of arms.

    >>> Features(2, arms=[[1, 0.2], [0, 0.4], [1, 0.9]], bounds=1, shared=True, per_arm=False).names
    ('x0', 'x1', 'z0', 'z1', 'x0*z0', 'x1*z0', 'x0*z1', 'x1*z1', '1')
    """

    context: Any
    arms: Any
    bounds: Any
    shared: bool = False
    per_arm: bool = True
    intercept: bool = True
    norm: float = 1.0
    outside: Literal["refuse", "clip"] = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "context", _names("context", self.context, "x{}", "a list of names"))
        object.__setattr__(self, "arms", _arms(self.arms))
        object.__setattr__(self, "bounds", _bounds(self.bounds, self.context))
        object.__setattr__(self, "norm", check_positive("norm", self.norm))
        for name in ("shared", "per_arm", "intercept"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InvalidInput(f"{name} must be True or False, got {getattr(self, name)!r}")
        if self.outside not in OUTSIDE:
            raise InvalidInput(f"outside must be one of {', '.join(OUTSIDE)}, got {self.outside!r}")
        if not (self.shared or self.per_arm or self.intercept):
            raise InvalidInput("there are no features: set at least one of shared, per_arm and intercept to True")
        self._check_arms()

    def _check_arms(self) -> None:
        """Vectors are used if there are any, and every arm can be told from every other."""
        if self._described and not self.shared:
            raise InvalidInput("arms have vectors, which only shared=True uses: set it, or give the number of arms")
        if self.per_arm or len(self.arms) == 1 or (self.intercept and not self._described):
            return
        if not self._described:
            raise InvalidInput(
                f"shared features alone are the same for all {len(self.arms)} arms: set per_arm=True or "
                "intercept=True, or give arms as a table of vectors"
            )
        first: dict[Any, int] = {}
        for k, vector in enumerate(self.arms):
            if first.setdefault(vector, k) != k:
                raise InvalidInput(
                    f"arms {first[vector]} and {k} (the first is 0) have the same vector and nothing else tells them "
                    "apart: set per_arm=True, or describe them better"
                )

    @property
    def dimension(self) -> int:
        """d, the number of columns."""
        return len(self.names)

    @property
    def context_norm(self) -> float:
        """What to declare to the policy: no row is longer."""
        return self.norm

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every column by name: "1" is a constant, "x0[A]" belongs to arm A alone."""
        arms = [f"arm {k}" for k in range(len(self.arms))] if self._described else self.arms
        columns = [f"z{j}" for j in range(self._vectors.shape[1])]
        found: list[str] = []
        if self.shared:
            found += [*self.context, *columns, *(f"{x}*{z}" for z in columns for x in self.context)]
        if self.per_arm:
            found += [f"{x}[{arm}]" for arm in arms for x in self.context]
        if self.intercept:
            found += ["1"] if self._one_constant else [f"1[{arm}]" for arm in arms]
        return tuple(found)

    @cached_property
    def scale(self) -> float:
        """What all features are multiplied by: a hair less than the formula, for the rounding of d terms."""
        longest = float(np.linalg.norm(self._unscaled(np.ones(len(self.context))), axis=1).max())
        return self.norm / longest * (1 - (self.dimension + 8) * float(np.finfo(float).eps))

    def __call__(self, context: Any) -> Floats:
        """The K x d table for `agent.ask(actions=...)`, of one context: p numbers by name or by position."""
        return self._unscaled(self._inside(context) / self.bounds) * self.scale

    def _unscaled(self, x: Floats) -> Floats:
        each = np.eye(len(self.arms))
        blocks: list[Any] = []
        if self.shared:
            blocks += [np.tile(x, (len(each), 1)), self._vectors, np.kron(self._vectors, x)]
        if self.per_arm:
            blocks.append(np.kron(each, x))
        if self.intercept:
            blocks.append(np.ones((len(each), 1)) if self._one_constant else each)
        return np.hstack(blocks)

    @property
    def _described(self) -> bool:
        return not isinstance(self.arms[0], str)

    @property
    def _one_constant(self) -> bool:
        return self._described and not self.per_arm

    @cached_property
    def _vectors(self) -> Floats:
        """z, a row an arm; without columns where arms have no vectors."""
        table = np.array(self.arms if self._described else [()] * len(self.arms), float)
        largest = np.abs(table).max(axis=0, initial=0)
        return table / np.where(largest > 0, largest, 1)

    def _inside(self, context: Any) -> Floats:
        """The context as p finite numbers within the bounds."""
        found = _numbers("context", _in_order("context", context, self.context), clipped=self.outside == "clip")
        if found.shape != (len(self.context),):
            raise InvalidInput(f"context must be a list of length {len(self.context)}, got shape {found.shape}")
        if not np.isfinite(found).all():
            i = int(np.isfinite(found).argmin())
            kind = "NaN" if np.isnan(found[i]) else "infinite"
            raise InvalidInput(f"context must be finite numbers, got one that is {kind} for {self.context[i]}")
        inside = np.clip(found, np.negative(self.bounds), self.bounds)
        if self.outside == "refuse" and (inside != found).any():
            i = int((inside != found).argmax())
            raise InvalidInput(
                f"context must lie within the bounds, got {self.context[i]} = {float(found[i])!r} where the bound is "
                f"{self.bounds[i]!r}: check its unit, declare a larger bound from the start, or use outside='clip'"
            )
        return inside


SHOWN = 10
"""Names that an error lists, at most."""


def _in_order(what: str, given: Any, names: tuple[str, ...]) -> Any:
    """Return what has names of its own as a list in the order of `names`, and anything else as it is.

    Refuses missing and unknown names. Errors hold no value.
    """
    found = _named(given)
    if found is None:
        return given
    if getattr(given, "ndim", 1) != 1:
        raise InvalidInput(f"{what} must be one row, got a table of {len(given)} rows: give them one by one")
    times = Counter(found.keys())
    faults = {
        "missing": [name for name in names if name not in times],
        "unknown": [key for key in times if key not in names],
        "more than once": [name for name in names if times[name] > 1],
    }
    if any(faults.values()):
        told = "; ".join(f"{fault}: {_listed(which)}" for fault, which in faults.items() if which)
        raise InvalidInput(
            f"{what} has names that do not fit ({told}): give exactly {_listed(names)} by name, or a list in this order"
        )
    return [found[name] for name in names]


def _named(given: Any) -> Any:
    """Return a dict, a pandas Series and whatever else has keys as it is, a named tuple as a dict, the rest as None."""
    if callable(getattr(given, "keys", None)):
        return given
    fields = getattr(given, "_fields", None)
    return None if fields is None else dict(zip(fields, given, strict=True))


def _listed(names: Sequence[Any]) -> str:
    """The first names. What is no text is told by its type: where an index went wrong it may be somebody's number."""
    texts = [name if isinstance(name, str) else f"labels of type {type(name).__name__}" for name in names]
    shown = list(dict.fromkeys(texts))
    return ", ".join(shown[:SHOWN]) + (f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else "")


def _numbers(what: str, given: Any, clipped: bool = False) -> Floats:
    """Return an array of floats. Errors hold no value. clipped: numbers that no float can hold are taken too."""
    try:
        found = np.asarray(given)
    except ValueError:
        raise InvalidInput(f"{what} must be rows of one length, got rows of different lengths") from None
    if found.dtype == object and clipped:
        found = np.array([_nearest_float(number) for number in found.flat]).reshape(found.shape)
    if found.dtype.kind not in "biuf":
        raise InvalidInput(f"{what} must be real numbers, got dtype {found.dtype}: convert them to floats")
    return found.astype(float)


def _nearest_float(number: Any) -> Any:
    """Return the nearest float of a real number, however large; anything else as it is, to be refused by its type."""
    if not isinstance(number, Real):
        return number
    try:
        return float(number)
    except OverflowError:
        return sys.float_info.max if number > Fraction(0) else -sys.float_info.max


def _is_list(given: Any) -> bool:
    return isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim > 0)


def _names(what: str, given: Any, default: str, right: str) -> tuple[str, ...]:
    """The names that were given, or as many as the number that was given."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given >= 1:
        return tuple(default.format(i) for i in range(given))
    names = tuple(given) if _is_list(given) else ()
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InvalidInput(f"{what} must be a whole number of at least 1 or {right}, got {given!r}")
    if len(set(names)) < len(names):
        raise InvalidInput(f"{what} must have different names, got {list(names)}")
    return tuple(map(str, names))


def _arms(given: Any) -> tuple[Any, ...]:
    """Names, or rows of finite numbers."""
    if not _is_list(given) or not len(given) or any(isinstance(arm, str) for arm in given):
        return _names("arms", given, "arm {}", "a list of names or a table of vectors")
    found = _numbers("arms", given)
    if found.ndim != 2 or not found.size:
        raise InvalidInput(f"arms given by vectors must be a table with a row each, got shape {found.shape}")
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        raise InvalidInput(f"arms must be finite numbers, got {found[row, column]} in row {row}, column {column}")
    return tuple(map(tuple, found.tolist()))


def _bounds(given: Any, names: tuple[str, ...]) -> tuple[float, ...]:
    """One for each number of the context."""
    given = _in_order("bounds", given, names)
    found = tuple(given) if np.iterable(given) else (given,) * len(names)
    if len(found) != len(names):
        raise InvalidInput(f"bounds must be one number or {len(names)}, one for each of the context, got {len(found)}")
    return tuple(check_positive(f"the bound of {name}", bound) for name, bound in zip(names, found, strict=True))

"""The list of specimens, and how one is entered."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

StrPath = str | os.PathLike[str]
Factory = TypeVar("Factory", bound=Callable[..., Any])
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Specimen:
    """An agent to audit, and what an audit should find.

    path: "module:function" of the factory. rho: what is claimed, per reward.
    cost: the true rho per reward; infinite where nothing bounds it; a lower bound where `why` says so.
    shows: where the flaw can be seen ("actions" where asks and tells are enough); "" for those without a flaw.
    hard: broken, but so little of it shows in actions that statistics of actions alone may well miss it.
    """

    name: str
    factory: Callable[..., Any]
    path: str
    broken: bool
    group: Literal["white", "black"]
    rho: float
    cost: float
    shows: str
    hard: bool
    why: str


SPECIMENS: dict[str, Specimen] = {}


def specimen(
    *, rho: float = 0.5, cost: float | None, shows: str = "actions", hard: bool = False
) -> Callable[[Factory], Factory]:
    """Enter a factory into the list. Without a cost of its own it keeps its promise."""

    def enter(factory: Factory) -> Factory:
        name = factory.__name__.removeprefix("make_")
        SPECIMENS[name] = Specimen(
            name=name,
            factory=factory,
            path=f"{factory.__module__}:{factory.__name__}",
            broken=cost is not None,
            group="white" if name.startswith("white") else "black",
            rho=rho,
            cost=rho if cost is None else cost,
            shows="" if cost is None else shows,
            hard=hard,
            why=" ".join(inspect.cleandoc(factory.__doc__ or "").split()),
        )
        return factory

    return enter


def correct(*, rho: float = 0.5) -> Callable[[Factory], Factory]:
    """Enter the factory of an agent that keeps its promise."""
    return specimen(rho=rho, cost=None)

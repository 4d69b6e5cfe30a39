"""Who can change what and who sees what: the input models, as data for one engine.

A *row* is what one person brings: the reward that each arm would have, and the context where there is one. Two
worlds are neighbours if one row differs. The models differ in which rows there are and in who picks the arm that is
really played.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from private_bandits.definitions.histories import Histories, InvalidPolicy
from private_bandits.errors import InvalidInput

Observer = Literal["all", "later", "others"]


@dataclass(frozen=True)
class Model:
    """One input model.

    `rows`: "constant" (the same reward for every arm: a list of rewards), "any", or "adaptive" (no table at all).
    `plays`: who picks the arm that is really played. `joint`: the context of a person may differ as well.
    `observer`: whose recommendations are seen: all, those after the differing step, or all but that step's.
    """

    name: str
    rows: Literal["constant", "any", "adaptive"]
    plays: Literal["policy", "adversary"]
    joint: bool = False
    observer: Observer = "all"


MODELS = {
    model.name: model
    for model in (
        Model("view", "constant", "policy"),
        Model("table", "any", "policy"),
        Model("interactive-view", "constant", "adversary"),
        Model("interactive", "any", "adversary"),
        Model("adaptive", "adaptive", "adversary"),
        Model("joint-view", "constant", "policy", joint=True, observer="later"),
        Model("joint-table", "any", "policy", joint=True, observer="later"),
    )
}
"""The models by name. The paper defines view, table and interactive DP, and joint DP for lists and tables."""

PLAIN = ("view", "table", "interactive", "adaptive")
"""What is computed unless something else is asked for: policies without contexts, or with public ones."""

JOINT = ("joint-view", "joint-table")


def resolve(space: Histories, name: str, observer: str = "later") -> Model:
    """The model of this name, if it makes sense for such a policy.

    Models that are not joint take contexts as public: the worst sequence of contexts counts, the same in both worlds.
    """
    if not isinstance(name, str) or name not in MODELS:
        raise InvalidInput(f"model must be one of {', '.join(MODELS)}, got {name!r}")
    if not isinstance(observer, str) or observer not in ("later", "others"):
        raise InvalidInput(f"observer must be later or others, got {observer!r}")
    model = MODELS[name]
    if not model.joint:
        return model
    if not space.contexts:
        raise InvalidPolicy(f"{name} needs a policy with contexts; for this one take {', '.join(PLAIN)}")
    return replace(model, observer="later" if observer == "later" else "others")

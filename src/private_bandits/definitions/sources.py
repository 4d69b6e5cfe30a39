"""Where a policy comes from on the command line: a file, or an object of a module."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from private_bandits.definitions.errors import InvalidPolicy
from private_bandits.definitions.files import counterexample, load
from private_bandits.definitions.policy import SmallPolicy
from private_bandits.loading import load_object


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
    given = [f"--{name}" for name, value in sizes.items() if value is not None]
    if source is None:
        if given:
            raise InvalidPolicy(f"{given[0]} belongs to a rule given as module:name: give --policy as well")
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
    if arms is None or horizon is None:
        raise InvalidPolicy(f"the rule {source} needs --arms and --horizon")
    return SmallPolicy.from_callable(
        found, arms=arms, horizon=horizon, rewards=(0, 1) if rewards is None else rewards, contexts=contexts or 0
    )

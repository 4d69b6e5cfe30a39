"""Between the definitions: lists and tables (Reductions 1 and 2), adversaries and policies (Proposition 2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from private_bandits.definitions.histories import TooLarge
from private_bandits.definitions.models import Model, resolve
from private_bandits.definitions.policy import SmallPolicy
from private_bandits.errors import InvalidInput

Query = Callable[[tuple[int, ...]], Any]
"""An adversary: from the recommendations so far to the arm that is played (adaptive: to the arm and its reward)."""

MOST_SEQUENCES = 2**20


def list_to_table(rewards: Sequence[float], arms: int) -> tuple[tuple[float, ...], ...]:
    """Reduction 1: the table in which every arm of step t has the reward r_t.

    >>> list_to_table([0, 1], arms=3)
    ((0, 0, 0), (1, 1, 1))
    """
    return tuple((reward,) * arms for reward in rewards)


def table_to_list(table: Sequence[Sequence[float]], actions: Sequence[int]) -> tuple[float, ...]:
    """Reduction 2: the rewards along a sequence of actions.

    >>> table_to_list([(0, 1), (0, 1)], actions=[1, 0])
    (1, 0)
    """
    return tuple(row[action] for row, action in zip(table, actions, strict=True))


def compose_with_adversary(policy: SmallPolicy, adversary: Query) -> SmallPolicy:
    """pi^B of Proposition 2: the policy that is recommended when B answers, with B taken into the policy.

    pi^B_t(a | a_1, r_1, ..., a_(t-1), r_(t-1)) = pi_t(a | B(a_1), r_1, ..., B(a_1, ..., a_(t-1)), r_(t-1)).
    On a list of rewards, pi^B behaves as pi does against B. On a table it need not: Table DP of pi^B reads row t at
    the arm a_t that was recommended, Interactive DP of pi at the arm B(a_1, ..., a_t) that was played.
    """
    if policy.contexts:
        raise InvalidInput("compose_with_adversary takes a policy without contexts")

    def composed(history: tuple[tuple[int, float], ...]) -> tuple[float, ...]:
        seen = tuple(arm for arm, _ in history)
        return policy.row([(adversary(seen[: t + 1]), reward) for t, (_, reward) in enumerate(history)])

    return SmallPolicy.from_callable(
        composed,
        arms=policy.arms,
        horizon=policy.horizon,
        rewards=policy.rewards,
        name=f"{policy.name} with an adversary",
    )


def distribution(
    policy: SmallPolicy,
    model: str,
    table: Sequence[Any] | None = None,
    adversary: Query | None = None,
    contexts: Sequence[int] | None = None,
) -> dict[tuple[int, ...], float]:
    """The exact probability of every sequence of recommendations in one world.

    `table` is a list of rewards for the view models, a table of rows for table and interactive, and nothing for
    adaptive, whose adversary returns (arm, reward). Without an adversary the recommended arm is played.

    >>> from private_bandits.definitions import counterexample
    >>> round(distribution(counterexample(), "view", [1, 0, 0])[0, 0, 0], 4)  # 2/3 x 1/3 x 1/2
    0.1111
    """
    chosen = resolve(policy.space, model)
    if len(policy.arms) ** policy.horizon > MOST_SEQUENCES:
        raise TooLarge(f"{len(policy.arms)}^{policy.horizon} sequences are too many; at most {MOST_SEQUENCES:,} fit")
    rows = _rows(policy, chosen, table, adversary)
    if policy.contexts and (contexts is None or len(contexts) != policy.horizon):
        raise InvalidInput(f"contexts must be {policy.horizon} numbers for this policy, got {contexts!r}")
    found = {}
    for actions in product(range(len(policy.arms)), repeat=policy.horizon):
        probability = 1.0
        history: list[tuple[Any, ...]] = []
        for step, action in enumerate(actions):
            context = contexts[step] if policy.contexts and contexts is not None else None
            index = policy.space.index(history, context)
            probability *= float(policy.normalised[step][index, action])
            if step + 1 < policy.horizon:
                played: Any = adversary(actions[: step + 1]) if adversary else action
                arm, reward = played if rows is None else (played, rows[step][played])
                history.append((arm, reward) if context is None else (context, arm, reward))
        found[actions] = probability
    return found


def _rows(
    policy: SmallPolicy, model: Model, table: Sequence[Any] | None, adversary: Query | None
) -> Sequence[Sequence[float]] | None:
    if model.plays == "policy" and adversary is not None:
        raise InvalidInput(f"in the {model.name} model the recommended arm is played: leave the adversary out")
    if model.rows == "adaptive":
        if adversary is None or table is not None:
            raise InvalidInput("the adaptive model takes no table, but an adversary that returns (arm, reward)")
        return None
    if table is None or len(table) != policy.horizon:
        raise InvalidInput(f"table must have {policy.horizon} rows, one for each step, got {table!r}")
    rows = list_to_table(table, len(policy.arms)) if model.rows == "constant" else table
    for row in rows:
        if not isinstance(row, Sequence) or len(row) != len(policy.arms) or not set(row) <= set(policy.rewards):
            raise InvalidInput(
                f"a row of the table must be {len(policy.arms)} of the rewards {list(policy.rewards)!r}, got {row!r}"
            )
    return rows

"""Makes the rows of a log ready for a bandit to start from (`Agent.warm_start`)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from private_bandits.bandit import Bandit
from private_bandits.errors import InvalidInput
from private_bandits.offline.logs import Log
from private_bandits.releasing import LoggedReward


@dataclass
class LoggedRewards:
    """The rows of a log that are taken, and how many others there are."""

    rows: list[LoggedReward]
    over_limit: int = 0
    dropped: int = 0

    def __repr__(self) -> str:
        return f"LoggedRewards({len(self.rows)} rows, values hidden)"


def logged_rewards(bandit: Bandit, log: Log) -> LoggedRewards:
    """Return every row that is taken. Rows beyond the limit per person, and those that the policy drops, are not."""
    policy, settings = bandit.policy, bandit.settings
    limit, bounds, steps = settings.max_rewards_per_person, settings.reward_range, bandit.door.grid.steps
    grid = [bounds.to_grid(reward, steps) for reward in log.rewards(bounds)]
    if policy.arm_names:
        entries = [bandit.entry(None, action) for action in log.actions(policy.arm_names)]
    else:
        offered = policy.offer(log.columns["arm"])
        entries = [bandit.entry(offered, row) for row in range(log.rows)]
    people = [None] * log.rows if limit is None else [*map(bandit.hashed_person, log.people())]
    found, taken = LoggedRewards([]), defaultdict[str | None, list[int]](list)  # the keys of each person's rewards
    for entry, reward, who in zip(entries, grid, people, strict=True):
        if entry is None:
            found.dropped += 1
        elif limit is not None and (len(taken[who]) >= limit or bandit.people.is_second(entry[0], taken[who])):
            found.over_limit += 1
        else:
            taken[who].append(entry[0])
            found.rows.append((*entry, reward, who))
    return found


def required_columns(bandit: Bandit) -> list[str]:
    """Return what a log has to have. Refuses policies that cannot start from one."""
    if not bandit.policy.supports_warm_start or bandit.policy.private_contexts:
        raise InvalidInput(
            f"{type(bandit.policy).__name__} cannot start from a log: its releases are planned, or make a tree, or "
            "hold contexts; use an index policy such as AdaCUCB, or AdaCOFUL"
        )
    return ["arm", "reward"] if bandit.settings.max_rewards_per_person is None else ["arm", "reward", "person"]

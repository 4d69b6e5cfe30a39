"""One trial from plan to statement, with made-up patients: late outcomes, drop-outs, a winner, a page for the board.

Three treatments of back pain are compared. Six patients come each day. Whether a treatment helped is known two weeks
later, and one patient in ten is never seen again. The trial stops once there is a winner, or after as many patients as
were planned. docs/trial.md explains each step.
"""

from __future__ import annotations

import argparse
import random
import shutil
from collections import deque
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

import private_bandits as pb
from private_bandits.progress import progress

HELPS = {"exercise": 0.65, "tablets": 0.35, "placebo": 0.3}
"""How often each treatment helps. The trial does not know it."""
BASE_RATE, GAP, LOST, DELAY_DAYS, A_DAY = 0.3, 0.3, 0.1, 14, 6
DELTA, FIRST_DAY = 0.05, datetime(2027, 1, 4, tzinfo=UTC)


class Calendar:
    """The days of the made-up trial, in place of the system's clock."""

    def __init__(self) -> None:
        self.today = FIRST_DAY

    def __call__(self) -> float:
        """Return the time as an agent takes it, in seconds since 1970."""
        return self.today.timestamp()


def planned(people: int) -> pb.Plan:
    """Return how likely a right verdict is by so many people, for several budgets."""
    return pb.plan(
        arms=list(HELPS),
        gap=GAP,
        people=people,
        base_rate=BASE_RATE,
        missing=LOST,
        delay=DELAY_DAYS * A_DAY,
        delta=DELTA,
        policies=("adac-top-two",),
        rho=(0.05, 0.1, 0.5, 1),
        runs=200,
    )


def run(agent: pb.Agent, calendar: Calendar, people: int) -> None:
    """Enrol patients day by day until there is a winner, wait for the last outcomes, and close the trial."""
    chance = random.Random(7)
    due: deque[tuple[datetime, str, float]] = deque()  # the clinic's own record: when to ask whom

    def tell_outcomes() -> None:
        while due and due[0][0] <= calendar.today:
            _, decision, helped = due.popleft()
            agent.tell(decision, reward=helped)

    with progress("patients of the trial") as report:
        while agent.counts.asked < people and agent.verdict(DELTA).winner is None:
            tell_outcomes()
            for _ in range(A_DAY):
                decision = agent.ask()
                helped = float(chance.random() < HELPS[decision.arm])
                if chance.random() >= LOST:
                    due.append((calendar.today + timedelta(days=DELAY_DAYS), decision.id, helped))
            report(agent.counts.asked / people)
            calendar.today += timedelta(days=1)
    calendar.today += timedelta(days=DELAY_DAYS)  # nobody new; the last outcomes come in
    tell_outcomes()
    calendar.today += timedelta(days=30)
    for decision in agent.open_decisions:  # never seen again
        agent.give_up(decision)
    agent.finish()


def main() -> None:
    """Plan the trial, run it, and write its statement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=1_200)
    parser.add_argument("--rho", type=float, default=0.5)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()
    console = Console()
    plan = planned(arguments.people)
    console.rule("Before: the plan")
    console.print(str(plan), markup=False, highlight=False)
    folder = arguments.out / "trial"
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier run of this example
    folder.mkdir(parents=True)
    calendar = Calendar()
    policy = pb.AdaCTopTwo(arms=list(HELPS), budget=pb.zCDP(arguments.rho), delta=DELTA)
    with pb.Agent(
        policy,
        reward_range=(0, 1),
        path=folder / "trial.db",
        give_up_after=timedelta(days=30),
        plan={"trial": "back pain", "outcome": "helped after two weeks", "people": arguments.people, "delta": DELTA},
        clock=calendar,
    ) as agent:
        run(agent, calendar, arguments.people)
        console.rule("After: what the board is given")
        statement = agent.statement(DELTA)
        console.print(statement.text, markup=False, highlight=False, soft_wrap=True)
        page = folder / "statement.html"
        page.write_text(statement.html(), encoding="utf-8")
    console.print(f"\nThe statement as a page, to be printed: {page}", soft_wrap=True)


if __name__ == "__main__":
    main()

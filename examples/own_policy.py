"""A policy of your own: an index in ten lines, and a policy from scratch in forty.

Both are private because of what they are given, not of what they do: see docs/own-policy.md, which has this code. Runs
a live agent with each, simulates both beside AdaC-IMED, draws that, and checks the rules that every policy has to keep.

    python examples/own_policy.py [--patients 2000] [--audit] [--out demo-output]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import private_bandits as pb
from private_bandits.policies import FiniteArmsPolicy
from private_bandits.testing import PolicyContract, PolicyRules, check_policy


class MOSS(pb.IndexPolicy):
    """MOSS (Audibert and Bubeck 2009) with room for the noise: of least regret in the worst case, up to constants."""

    name = "own-moss"

    def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
        """The mean, and as far as n rewards and one noise may stray; nothing once an arm had its share of the steps."""
        spread = 0.5 / counts + 1 / (self.budget.implied_rho * counts**2)
        return means + width * np.sqrt(spread * np.log(np.maximum(step / (len(self.arm_names) * counts), 1)))


@dataclass
class Explored:
    """The public state: the mean of each arm once it is released (None before), and its noise."""

    width: float
    means: list[float | None]
    noise_sd: list[float]


@dataclass(frozen=True)
class ExploreThenCommit(FiniteArmsPolicy[Explored]):
    """So many rewards of every arm, one release an arm; then the best of them for ever."""

    name = "own-explore-then-commit"
    # The intervals below are right for Gaussian noise.
    supported_budgets = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source = "folklore"
    rewards: int = 10

    def start(self, low: float, high: float) -> Explored:
        """Nothing is known."""
        return Explored(high - low, [None] * len(self.arm_names), [0.0] * len(self.arm_names))

    def recommend(self, state: Explored, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """Of the arms without a release, the one with the fewest rewards there or on their way; then the best."""
        unknown = [arm for arm, mean in enumerate(state.means) if mean is None]
        if unknown:
            return min(unknown, key=lambda arm: arrived[arm] + waiting[arm])
        return int(np.argmax([mean or 0.0 for mean in state.means]))

    def entry(self, state: Explored, action: int) -> tuple[int, tuple[int, ...]] | None:
        """Weight one in the arm's own sum; dropped once that is released."""
        return (action, (1,)) if state.means[action] is None else None

    def due(self, state: Explored, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """When enough rewards are there, whatever they are."""
        return count >= self.rewards

    def learn(self, state: Explored, release: pb.Release, step: int) -> None:
        """The released sum, noise included, is all that is ever known."""
        state.means[release.key] = release.values[0] / release.count
        state.noise_sd[release.key] = release.noise_sd / release.count

    def estimates(self, state: Explored, delta: float) -> list[pb.Estimate]:
        """Intervals that hold together: one release an arm, so delta/K for each."""
        odds, found = log(2 * len(self.arm_names) / delta), []
        for arm, (mean, sd) in enumerate(zip(state.means, state.noise_sd, strict=True)):
            reach = sqrt(2 * (state.width**2 / (4 * self.rewards) + sd**2) * odds)
            low, high = (-np.inf, np.inf) if mean is None else (mean - reach, mean + reach)
            rewards = 0 if mean is None else self.rewards
            found.append(pb.Estimate(arm, self.arm_names[arm], mean, float(low), float(high), rewards))
        return found

    def load_state(self, data: Mapping[str, Any]) -> Explored:
        """What dump_state, dataclasses.asdict by default, wrote."""
        return Explored(**data)


CURE_RATES = {"aspirin": 0.4, "ibuprofen": 0.8, "placebo": 0.1}


def trial(policy: pb.policies.Policy[Any], patients: int) -> pb.Agent:
    """A live agent with the policy."""
    agent = pb.Agent(policy, reward_range=(0, 1))
    chance = random.Random(1)  # the world's own; the agent's noise is never seeded
    for _ in range(patients):
        decision = agent.ask()
        agent.tell(decision, reward=float(chance.random() < CURE_RATES[decision.arm]))
    return agent


def main() -> None:
    """Run, simulate, check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patients", type=int, default=2_000)
    parser.add_argument("--audit", action="store_true", help="audit them too: half a minute")
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()
    console, budget, arms = Console(soft_wrap=True), pb.zCDP(0.1), list(CURE_RATES)
    policies: dict[str, Any] = {
        "MOSS": MOSS(arms=arms, budget=budget),
        "explore then commit": ExploreThenCommit(arms=arms, budget=budget, rewards=100),
        "AdaC-IMED": pb.AdaCIMED(arms=arms, budget=budget),
    }
    for name, policy in list(policies.items())[:2]:
        agent = trial(policy, arguments.patients)
        console.print(f"[bold]{name}[/bold]: {agent.guarantee()} {len(agent.ledger)} releases.")
        for e in agent.estimates():
            console.print(f"  {e.arm}: " + ("-" if e.mean is None else f"{e.mean:.3f} ({e.low:.3f} to {e.high:.3f})"))
    world = pb.Bernoulli(list(CURE_RATES.values()))
    result = pb.simulate(policies, world, horizon=10_000, runs=10)
    console.print(str(result))
    arguments.out.mkdir(parents=True, exist_ok=True)
    result.plot(arguments.out / "own-policy.png")
    console.print(f"Picture and page: {result.report(arguments.out / 'own-policy.html')}")
    for own in (MOSS, ExploreThenCommit):
        check_policy(own.example(budget), PolicyContract if arguments.audit else PolicyRules)
        console.print(f"{own.name} keeps the rules" + (", and the audit found nothing" if arguments.audit else ""))


if __name__ == "__main__":
    main()

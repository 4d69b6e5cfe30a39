"""Runs both worlds of a scenario: in random order, in one process or in two."""

from __future__ import annotations

import pickle
import secrets
import sys
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout
from multiprocessing import get_context

from private_bandits.audit.attempts import watched
from private_bandits.audit.scenario import Scenario, play
from private_bandits.audit.scores import View
from private_bandits.audit.target import Target
from private_bandits.errors import InvalidInput


class WorldRunner:
    """Runs both worlds, in random order, so that nothing but the secret tells them apart: no drift, no process.

    processes: where two processes would repeat each other's runs, because the agent's generator starts from a fixed
    seed in each, one does all the work: repeated runs are not independent.
    """

    def __init__(self, target: Target, processes: int) -> None:
        self._target = target
        self._pools: list[Executor] = []
        if processes > 1 and _travels(target):
            self._pools = [ProcessPoolExecutor(1, get_context("spawn")) for _ in range(processes)]
            probe = Scenario(12, 0, (0.5,) * target.arms)
            seen = [pool.submit(_play_many, target, probe, [0.0] * 8, False) for pool in self._pools]
            try:
                repeated = len({repr(future.result()) for future in seen}) < processes
            except BrokenProcessPool:
                self.close()
                raise InvalidInput(
                    "a second process could not be started: in a script, put the call under "
                    "`if __name__ == '__main__':`, or give processes=1"
                ) from None
            if repeated:
                self.close()

    @property
    def processes(self) -> int:
        """How many share the work."""
        return max(1, len(self._pools))

    def run(self, scenario: Scenario, runs: int, look: bool) -> tuple[list[View], list[View]]:
        """`runs` runs of each world."""
        order = [0.0, 1.0] * runs
        secrets.SystemRandom().shuffle(order)
        share = -(-len(order) // self.processes)
        pieces = [order[i : i + share] for i in range(0, len(order), share)]
        if self._pools:
            futures = [
                pool.submit(_play_many, self._target, scenario, piece, look)
                for pool, piece in zip(self._pools, pieces, strict=False)
            ]
            views = [view for future in futures for view in future.result()]
        else:
            views = _play_many(self._target, scenario, order, look)
        low, high = ([v for v, secret in zip(views, order, strict=True) if secret == world] for world in (0.0, 1.0))
        return low, high

    def close(self) -> None:
        """End the processes."""
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)
        self._pools = []


def _travels(target: Target) -> bool:
    """Whether another process can be given it: not where a function in a function makes the agents."""
    try:
        pickle.dumps(target)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _play_many(target: Target, scenario: Scenario, order: list[float], look: bool) -> list[View]:
    with watched(), redirect_stdout(sys.stderr):  # an agent that prints must not write into the report
        return [play(target, scenario, secret, look) for secret in order]

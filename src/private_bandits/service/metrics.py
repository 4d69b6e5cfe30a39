"""Counts what a worker does, for Prometheus. Its labels are routes, methods and statuses: no person chose them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from threading import Lock

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of times, in seconds."""
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Route = tuple[str, str]


class Metrics:
    """Counts of one worker. A scrape of several workers meets one of them: give each an address of its own."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[Route, list[int]] = {}
        self._seconds: Counter[Route] = Counter()
        self.running = 0
        """Calls that are being answered."""

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        with self._lock:
            self._answers[method, route, status] += 1
            times = self._times.setdefault((method, route), [0] * (len(BOUNDS) + 1))
            times[bisect_left(BOUNDS, seconds)] += 1
            self._seconds[method, route] += seconds  # type: ignore[assignment]

    def text(self, waiting: int) -> str:
        """Return the counts as Prometheus reads them. waiting: operations that wait for a committer."""
        with self._lock:
            lines = [
                *_head("requests_total", "counter", "Answers by method, route and status."),
                *(
                    f'private_bandits_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
                    for (method, route, status), count in sorted(self._answers.items())
                ),
                *_head("request_seconds", "histogram", "Time until the answer was complete."),
                *(line for route in sorted(self._times) for line in self._histogram(route)),
                *_head("requests_running", "gauge", "Calls that are being answered."),
                f"private_bandits_requests_running {self.running}",
                *_head("operations_waiting", "gauge", "Operations that wait for a committer."),
                f"private_bandits_operations_waiting {waiting}",
            ]
        return "\n".join(lines) + "\n"

    def _histogram(self, key: Route) -> list[str]:
        labels, total, lines = f'method="{key[0]}",route="{key[1]}"', 0, []
        name = "private_bandits_request_seconds"
        for bound, count in zip((*BOUNDS, "+Inf"), self._times[key], strict=True):
            total += count
            lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {total}')
        return [*lines, f"{name}_sum{{{labels}}} {self._seconds[key]:.6f}", f"{name}_count{{{labels}}} {total}"]


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP private_bandits_{name} {words}", f"# TYPE private_bandits_{name} {kind}"]

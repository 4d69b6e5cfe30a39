"""What one worker has: its database, its committer, the keys and bandits at hand."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from private_bandits.service.callers import Callers
from private_bandits.service.committer import Committer
from private_bandits.service.metrics import Metrics
from private_bandits.service.settings import ServerSettings
from private_bandits.service.snapshots import Snapshots
from private_bandits.service.watching import Watcher
from private_bandits.storage.sql.database import Database


@dataclass(frozen=True, repr=False)
class Service:
    """The parts of one worker.

    Args:
        settings: How the server runs.
        database: The database.
        committer: Runs what changes a bandit.
        callers: The keys that came lately.
        snapshots: Bandits as anyone may see them.
        watcher: Looks for what changed, for streams.
        metrics: What is counted.
    """

    settings: ServerSettings
    database: Database
    committer: Committer
    callers: Callers
    snapshots: Snapshots
    watcher: Watcher
    metrics: Metrics

    @classmethod
    def started(cls, settings: ServerSettings, metrics: Metrics) -> Service:
        """Connect to the database, whose tables have to be of this version, and start the committer's threads.

        Raises:
            DatabaseOutdated: They are of another version.
        """
        database = Database(settings.database, connections=20)
        try:
            database.check()
        except BaseException:
            database.close()
            raise
        return cls(
            settings,
            database,
            Committer(database, most_waiting=settings.max_waiting),
            Callers(database, settings.rate),
            Snapshots(database),
            Watcher(database),
            metrics,
        )

    def close(self) -> None:
        """Let what waits be done, and end."""
        self.committer.close()
        self.database.close()


def service_of(request: Request) -> Service:
    """Return the service that a request came to."""
    found: Service = request.app.state.service
    return found

"""What can go wrong, in words that name the public value and the remedy.

Each error is also the builtin that a caller would expect. No message holds a reward or a sum: a rejected
reward is described by its kind only, because error texts end up in logs.
"""


class PrivateBanditsError(Exception):
    """Everything this package raises on purpose."""


class InvalidInput(PrivateBanditsError, ValueError):
    """An argument that is not what it has to be. Nothing was changed."""


class UnsupportedBudget(InvalidInput):
    """A policy that cannot keep the promise asked of it."""


class MissingExtra(PrivateBanditsError, ImportError):
    """Something needs a package that the core is installed without. Nothing was done."""


class UnknownDecision(PrivateBanditsError, LookupError):
    """A decision that this agent never handed out. Nothing was changed."""


class ClosedDecision(InvalidInput):
    """A decision that has its reward already, or was given up. Nothing was changed."""


class IdempotencyKeyReused(InvalidInput):
    """A key under which something else was asked before. Nothing was changed."""


class CapacityExceeded(PrivateBanditsError, OverflowError):
    """A sum that might no longer fit into 64 bits. This reward changed nothing."""


class NoiseFailed(PrivateBanditsError, RuntimeError):
    """The noise could not be drawn, so nothing was released. This reward changed nothing."""


class PolicyFailed(PrivateBanditsError, RuntimeError):
    """A policy's own code failed at a release. Its words are not passed on: they might tell of the release."""


class AgentClosed(PrivateBanditsError, RuntimeError):
    """The agent was closed, belongs to another process, or stopped after its file could not be written."""


class AgentFinished(PrivateBanditsError, RuntimeError):
    """The agent was finished: its closing release is made, and it takes no rewards any more."""


class AgentBusy(PrivateBanditsError, BlockingIOError):
    """Somebody else's turn: the file is another agent's, or a call came from within a call of the same thread.

    Two copies of one state would spend the budget twice, and half of a change must not be seen.
    """


class AgentFileExists(PrivateBanditsError, FileExistsError):
    """A new agent was asked for where a file stands already."""


class AgentFileMissing(PrivateBanditsError, FileNotFoundError):
    """No agent's file stands at the path."""


class AgentFileInvalid(PrivateBanditsError, ValueError):
    """The file is not an agent's, or was written by a version that this one does not read."""


class DatabaseFailed(PrivateBanditsError, ConnectionError):
    """A database that could not be read or written. Nothing was changed."""


class DatabaseBusy(DatabaseFailed):
    """A database that others keep busy. Nothing was changed, and the same call may work in a moment."""


class DatabaseOutdated(PrivateBanditsError, RuntimeError):
    """A database whose tables are of another version. Nothing was changed."""


class OutcomeUnknown(PrivateBanditsError, ConnectionError):
    """A database or a service did not say whether it kept a change. The same call, with the same ids, tells."""


class UnknownBandit(PrivateBanditsError, LookupError):
    """A database has no bandit of this name."""


class BanditExists(PrivateBanditsError, FileExistsError):
    """A database has a bandit of this name already. Nothing was changed."""


class BanditStopped(PrivateBanditsError, RuntimeError):
    """A bandit that makes no decisions and takes no rewards: it is paused, closed, or its policy failed."""


class AccessRefused(PrivateBanditsError, PermissionError):
    """A key that may not do this, or none. Nothing was changed."""


class ServiceFailed(PrivateBanditsError, ConnectionError):
    """A service that does not answer, or not as it should."""


class StateRolledBack(PrivateBanditsError, RuntimeError):
    """A bandit that knows less than it has said: its database is an earlier copy. It is frozen."""


class Overloaded(PrivateBanditsError, BlockingIOError):
    """Too many calls wait for one bandit. This one changed nothing: try again after `retry_after` seconds."""

    def __init__(self, text: str, retry_after: int = 1) -> None:
        super().__init__(text)
        self.retry_after = retry_after

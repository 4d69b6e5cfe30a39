"""The command line, `private-bandits`."""

from private_bandits.cli import ledger_commands as _registered  # noqa: F401
from private_bandits.cli import plan_command as _planned  # noqa: F401
from private_bandits.cli.commands import app, main

__all__ = ["app", "main"]

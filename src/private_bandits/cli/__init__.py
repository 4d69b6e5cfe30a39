"""The command line, `private-bandits`."""

from private_bandits.cli import ledger_commands as _ledger  # noqa: F401  (each registers its commands)
from private_bandits.cli import plan_command as _planned  # noqa: F401
from private_bandits.cli import serve_command as _serve  # noqa: F401
from private_bandits.cli import service_commands as _service  # noqa: F401
from private_bandits.cli.commands import app, main

__all__ = ["app", "main"]

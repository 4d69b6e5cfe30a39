"""The command line, `private-bandits`."""

from private_bandits.cli.commands import app, main

__all__ = ["app", "main"]

"""The command line within this process: as in one of its own, without half a second for its start."""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from subprocess import CompletedProcess
from unittest import mock

from private_bandits.cli import main
from private_bandits.policies import POLICIES


def call_here(*arguments: str) -> CompletedProcess[str]:
    """Run `private-bandits` with these arguments; return its exit code and what it printed.

    It knows the policies that are shipped, and none that a test has made up. An exception that the command does not
    turn into a line of its own is raised here.
    """
    shipped = {name: policy for name, policy in POLICIES.items() if policy.__module__.startswith("private_bandits.")}
    command = ["private-bandits", *arguments]
    out, err = StringIO(), StringIO()
    with (
        mock.patch.dict(POLICIES, shipped, clear=True),
        mock.patch.object(sys, "argv", command),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
        else:
            code = 0
    code = code if isinstance(code, int) else int(code is not None)
    return CompletedProcess(command, code, out.getvalue(), err.getvalue())

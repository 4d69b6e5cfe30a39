"""docs/serving.md: its commands and its code run, and its tables are complete."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import fields
from io import StringIO
from pathlib import Path

import pytest

from private_bandits.client.keys import ROLES
from private_bandits.client.refusals import ENDINGS
from private_bandits.service.settings import PREFIX, ServerSettings
from tests.commands import call_here

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
COMMAND = [sys.executable, "-c", "from private_bandits.cli import main; main()"]
ADDRESS = "http://127.0.0.1:8000"


@contextmanager
def command_serves(arguments: list[str], folder: Path) -> Iterator[str]:
    """Run `private-bandits serve` until the end. Gives its address."""
    environment = os.environ | {"PRIVATE_BANDITS_PORT": "0", "PRIVATE_BANDITS_LOG_LEVEL": "error"}
    command = [*COMMAND, *arguments, "--json"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()
            assert process.wait(30) == 0


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_quick_start_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("private-bandits")]
    serve, *others = [shlex.split(line) for line in lines]
    with command_serves(serve[1:], tmp_path) as address:
        for *words, to, name in others:
            assert to == ">"
            made = call_here(*words[1:])
            assert made.returncode == 0, made.stderr
            Path(name).write_text(made.stdout)
        code = "\n".join(blocks("py"))
        assert code.count(ADDRESS) == 2
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(code.replace(ADDRESS, address), "serving.md", "exec", dont_inherit=True), {})
    assert "status='active'" in out.getvalue()
    assert "told=1" in out.getvalue()


def test_the_tables_are_complete() -> None:
    """Each role, each outcome, each setting with its flag, its variable and its default."""
    for role in ROLES:
        assert f"\n| {role} | " in PAGE
    for outcome in ("recorded", *ENDINGS):
        assert f"\n| `{outcome}` | " in PAGE
    for one in fields(ServerSettings):
        flag = "--" + one.name.replace("_", "-")
        row = re.search(rf"^\| `{flag}` \| `{PREFIX}{one.name.upper()}` \| (.*?) \|", PAGE, re.MULTILINE)
        assert row is not None, one.name
        if row[1].startswith("`"):
            assert row[1] == f"`{one.default}`"

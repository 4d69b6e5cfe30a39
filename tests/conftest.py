"""What holds for every test."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from private_bandits.audit import run as audits

MEMORY = Path("/dev/shm")
ROOM = 2**30
"""Bytes that have to be free in memory: a run of all tests takes a tenth of that."""


def pytest_configure(config: pytest.Config) -> None:
    """Keep files of tests in memory, where there is room: thousands of small writes need not wait for a disk.

    What a killed process has written lasts there too. All of it goes when the run ends; whoever sets TMPDIR keeps the
    files of tests that failed.
    """
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ["TMPDIR"] = folder = tempfile.mkdtemp(prefix="private-bandits-tests-", dir=MEMORY)
        tempfile.tempdir = None  # it is looked up anew
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))


def pytest_collection_finish() -> None:
    """Look through nothing that was there before the first test whenever a test collects garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def old_objects_are_no_garbage() -> None:
    """For tests that collect garbage thousands of times: what other tests left is not looked through each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def short_audits_are_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what the command does with an audit, not of what an audit finds."""
    monkeypatch.setattr(audits, "SHORT", replace(audits.SHORT, scripts=1, draws=150, seconds=0.3))


def pytest_sessionfinish() -> None:
    """Stop the PostgreSQL server of this run (databases.py), if there is one."""
    used = sys.modules.get("tests.databases")
    if used is not None:
        used.stop_server()


@pytest.fixture(autouse=True)
def databases_are_closed() -> Iterator[None]:
    """Close the databases that a test opened (databases.py), if it did."""
    yield
    used = sys.modules.get("tests.databases")
    if used is not None:
        used.close_all()

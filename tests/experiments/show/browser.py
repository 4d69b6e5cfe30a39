"""A real browser, headless. Without one its tests are skipped with a reason, and fail where CI=true."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def missing(what: str) -> NoReturn:
    """Skip; but a check that nobody sees skipped is none, so that it fails on a machine of the project."""
    reason = f"the report was NOT looked at in a browser: {what}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def find_browser() -> str:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    return found or missing("install Chromium (on Debian: apt install chromium)")


@contextmanager
def running_browser() -> Iterator[Any]:
    """Chromium, driven by playwright."""
    path = find_browser()
    try:
        api = importlib.import_module("playwright.sync_api")
    except ImportError:
        missing("playwright cannot be imported (pip install playwright)")
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=as_root)
        try:
            yield browser
        finally:
            browser.close()

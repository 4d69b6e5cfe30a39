"""A real browser, headless. Without one its tests are skipped with a reason, and fail where CI=true."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Visit:
    """An open page, and everything that it said on the console, failed with, or asked the network for."""

    page: Any
    said: list[str]


@contextmanager
def opened(browser: Any, address: str, **settings: Any) -> Iterator[Visit]:
    """The page, offline."""
    context = browser.new_context(offline=True, color_scheme="light", **settings)
    visit = Visit(context.new_page(), [])
    visit.page.on("console", lambda message: visit.said.append(f"{message.type}: {message.text}"))
    visit.page.on("pageerror", lambda error: visit.said.append(f"error: {error}"))
    visit.page.on("request", lambda request: visit.said.extend([request.url] * _foreign(request.url, address)))

    def dismiss(dialog: Any) -> None:
        visit.said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    visit.page.on("dialog", dismiss)
    visit.page.goto(address)
    try:
        yield visit
    finally:
        context.close()


def _foreign(url: str, address: str) -> bool:
    return url != address and not url.startswith("data:")

"""What holds for every test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture
def old_objects_are_no_garbage() -> Iterator[None]:
    """For tests that collect garbage thousands of times: what other tests left is not looked through each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()

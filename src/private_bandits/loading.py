"""Objects that a user names on the command line as module:name."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from private_bandits.errors import InvalidInput


def load_object(path: str) -> Any:
    """What `module:name` names; modules of the current folder are found.

    >>> load_object("math:tau")
    6.283185307179586
    """
    module, _, name = path.partition(":")
    if not module or not name:
        raise InvalidInput(f"expected module:name, got {path!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # it stays: other processes have to find the module as well
    try:
        found = importlib.import_module(module)
    except Exception as error:
        raise InvalidInput(f"{path} cannot be loaded: {type(error).__name__}: {error}") from error
    if not hasattr(found, name):
        raise InvalidInput(f"{path} cannot be loaded: the module {module!r} has no {name!r}")
    return getattr(found, name)

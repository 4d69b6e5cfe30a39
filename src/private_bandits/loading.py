"""Loads things by name: objects that a user names as module:name, and packages that an extra installs."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

from private_bandits.errors import InvalidInput, MissingExtra

EXTRAS = {
    "audit": ("jinja2", "scipy"),
    "dask": ("distributed",),
    "data": ("pandas", "scikit-learn"),
    "experiments": ("jinja2", "matplotlib", "numba", "pandas", "plotly", "pyarrow", "scipy"),
    "fast": ("numba",),
    "frames": ("pandas",),
    "service": ("alembic", "fastapi", "httpx2", "jinja2", "psycopg", "sqlalchemy", "uvicorn"),
    "pictures": ("jinja2", "matplotlib"),
}
"""Packages that each extra of pyproject.toml installs. The core does without them."""
IMPORTED_AS = {"scikit-learn": "sklearn"}
"""Packages that are imported by another name."""


def require(what: str, extra: str, *packages: str) -> None:
    """Refuse what needs an extra that is not installed: at the start, before any work is done in vain.

    what: what needs it, for the error. packages: those of the extra that are needed; by default all of them.

    >>> require("counting", "audit", "sys")
    >>> require("magic", "audit", "scipy_with_magic")
    Traceback (most recent call last):
        ...
    private_bandits.errors.MissingExtra: magic needs scipy_with_magic: pip install "private-bandits[audit]"
    """
    missing = [package for package in packages or EXTRAS[extra] if not _is_installed(package)]
    if missing:
        words = f'{what} needs {", ".join(missing)}: pip install "private-bandits[{extra}]"'
        raise MissingExtra(words, name=missing[0])


def _is_installed(package: str) -> bool:
    """Whether it can be found. It is not imported: that may take a second."""
    try:
        return find_spec(IMPORTED_AS.get(package, package)) is not None
    except ImportError:
        return False


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

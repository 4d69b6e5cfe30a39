"""Finished blocks on disk, one small file each, so that nothing is computed twice.

A block is found again by everything that its numbers depend on: the settings of its policy and of the environment, the
seed, and the code. Whatever else changes, it stays good; when one of these changes, it is not found.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.simulation.run import Block, Task

PACKAGE = "private_bandits"
ROOTS = (f"{PACKAGE}.simulation.run", f"{PACKAGE}.policies", f"{PACKAGE}.theory.proof_instances")
"""What computes the numbers; what these import counts as well."""
WITHOUT_NUMBERS = (f"{PACKAGE}.loading", f"{PACKAGE}.progress", f"{PACKAGE}.simulation.workers")
"""What they import, and no number depends on."""
LIBRARIES = ("numpy", "numba")
"""Libraries whose version may change a number in its last digits."""


class Cache:
    """A folder of finished blocks, each of one policy: regrets [run, checkpoint]."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str, shape: tuple[int, int]) -> Floats | None:
        """The block, or None where there is none or its file is damaged."""
        try:
            data = io.BytesIO(self._path(key).read_bytes())
            with np.load(data, allow_pickle=False) as file:  # a zip: its checksum is verified
                curves: Floats = file["curves"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None
        sound = curves.shape == shape and curves.dtype == np.float64 and np.isfinite(curves).all()
        return curves if sound else None

    def put(self, key: str, curves: Floats) -> None:
        """Keep a block: a file is there entirely or not at all, whenever the power fails."""
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f"{key}.{os.getpid()}.tmp"
        try:
            with unfinished.open("wb") as file:
                np.savez(file, curves=curves)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._path(key))
        finally:
            unfinished.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.npz"


def key_of(task: Task, name: str, block: Block) -> str:
    """The name of what a task computes for one of its policies in one block.

    The other policies are not in it: the numbers do not depend on them.
    """
    policy, environment = task.policies[name], task.environment
    settings = {
        "policy": policy.to_dict(),
        "environment": {"kind": type(environment).__name__, **_settings_of(environment)},
        "horizon": task.horizon,
        "checkpoints": task.checkpoints.tolist(),
        "seed": task.seed,
        "block": block,
        "code": code_digest(type(policy).__module__),
    }
    return _digest(json.dumps(settings, sort_keys=True, default=repr).encode())


def _settings_of(environment: Any) -> dict[str, Any]:
    """All that its rewards depend on: a table has a digest of its rows."""
    describe = asdict if is_dataclass(environment) else type(environment).to_dict
    found: dict[str, Any] = describe(environment)
    return found


@lru_cache
def code_digest(module: str = ROOTS[0]) -> str:
    """Names the state of the code: all sources that the numbers depend on, and the libraries that compute them.

    module: where the policy's class is; if that is another package, its one file counts.
    """
    found = dict(_own_sources())
    file = None if module in found else getattr(sys.modules.get(module), "__file__", None)
    if file is not None:
        found[module] = Path(file).read_bytes()
    versions = [f"{library} {version_of(library)}".encode() for library in LIBRARIES]
    return _digest(b"\0".join([*(name.encode() + b"\0" + found[name] for name in sorted(found)), *versions]))


def version_of(library: str) -> str | None:
    """The installed version, or None."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


@lru_cache(maxsize=1)
def _own_sources() -> dict[str, bytes]:
    """The sources of ROOTS and of all that they import from this package, directly or not, by module."""
    waiting, found = list(ROOTS), {}
    while waiting:
        name = waiting.pop()
        path = None if name in found or name in WITHOUT_NUMBERS else _path_of(name)
        if path is not None:
            found[name] = path.read_bytes()
            waiting += _imported(found[name])
    return found


def _path_of(module: str) -> Path | None:
    """The file of a module of this package; None for what is none, such as a class in one."""
    stem = Path(__file__).parents[3].joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def _imported(source: bytes) -> Iterator[str]:
    """Names of this package in the imports of a source, wherever they stand; `from a import b` may be a.b or a."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        yield from (name for name in names if name.startswith(f"{PACKAGE}."))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()

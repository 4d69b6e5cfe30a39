"""Pictures of experiments: drawn side by side while others are simulated, and only where they would change."""

from __future__ import annotations

import hashlib
import importlib
import json
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from private_bandits import palette, picture_style
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.run.cache import version_of
from private_bandits.experiments.run.experiment import Experiment
from private_bandits.experiments.run.results_folder import Folder
from private_bandits.loading import require
from private_bandits.simulation.workers import pool

if TYPE_CHECKING:
    import pandas as pd

LIBRARIES = ("matplotlib", "pandas")
"""Libraries whose version may change a picture."""


def drawn(regrets: Regrets) -> dict[str, bytes]:
    """Return the pictures of an experiment as files, by name."""
    figures = importlib.import_module(f"{__package__}.figures")  # here: matplotlib is an extra
    with TemporaryDirectory() as scratch:
        paths = figures.save_regrets(regrets, Path(scratch))
        return {str(path.relative_to(scratch)): path.read_bytes() for path in paths}


class Painters:
    """Processes that draw; with a count of 1, this one does."""

    def __init__(self, folder: Folder, count: int) -> None:
        self._folder, self._count = folder, count
        self._pool: ProcessPoolExecutor | None = None
        self._stopped: Any = None
        self._waiting: list[tuple[str, Future[dict[str, bytes]]]] = []
        self.files: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._pool is not None:
            if kind is not None:
                self._stopped.set()
            self._pool.shutdown(cancel_futures=True)

    def draw(self, regrets: Regrets, frame: pd.DataFrame) -> None:
        """Have the pictures of an experiment drawn, unless they are there. frame: the table of the same regrets."""
        key = _key(regrets.experiment, frame)
        there = self._there(key)
        if there is not None:
            self.files += there
        elif self._count == 1:
            self._keep(key, drawn(regrets))
        else:
            if self._pool is None:
                self._stopped = get_context("spawn").Event()
                self._pool = pool(self._count, self._stopped)
            self._waiting.append((key, self._pool.submit(drawn, regrets)))

    def finish(self) -> list[Path]:
        """Wait for the last one. All pictures."""
        for key, future in self._waiting:
            self._keep(key, future.result())
        self._waiting = []
        return self.files

    def _keep(self, key: str, made: dict[str, bytes]) -> None:
        self.files += [self._folder.put(name, data) for name, data in made.items()]
        note = {name: _digest(data) for name, data in made.items()}
        self._folder.put_made(self._note(key), lambda path: path.write_text(json.dumps(note)), keep=False)

    def _there(self, key: str) -> list[Path] | None:
        """The pictures that were drawn of the same numbers by the same code, if all of them stand as they were."""
        try:
            note = json.loads((self._folder.path / self._note(key)).read_text())
            paths = {self._folder.path / name: digest for name, digest in note.items()}
            sound = len(paths) > 0 and all(_digest(path.read_bytes()) == digest for path, digest in paths.items())
        except (OSError, ValueError, AttributeError):
            return None
        return list(paths) if sound else None

    def _note(self, key: str) -> str:
        return f"{self._folder.cache.name}/{key}.pictures.json"


def _key(experiment: Experiment, frame: pd.DataFrame) -> str:
    """Of all that pictures depend on: the numbers, the experiment, the code."""
    require("a picture", "experiments", "pandas")
    import pandas as pd

    numbers = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    return _digest(b"\0".join([numbers, repr(experiment).encode(), _code()]))


@lru_cache(maxsize=1)
def _code() -> bytes:
    shared = [Path(str(module.__file__)) for module in (palette, picture_style)]
    sources = [*sorted(Path(__file__).parents[1].rglob("*.py")), *shared]
    versions = [f"{library} {version_of(library)}".encode() for library in LIBRARIES]
    return b"\0".join([*(path.read_bytes() for path in sources), *versions])


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()

"""The folder of results. A file that would change is moved aside first: nothing is overwritten silently."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from private_bandits.errors import InvalidInput
from private_bandits.loading import require
from private_bandits.plain_data import csv_text

try:
    import fcntl
except ImportError:  # Windows: there nobody is kept from starting two commands at once
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import pandas as pd

SETTINGS = "settings.json"
ASIDE = "earlier"
CACHE = "cache"
LOCK = "lock"


class Folder:
    """Where results go. moved: files of earlier results that made room, and where they are now."""

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise InvalidInput(f"{path} is a file: name a folder for the results")
        try:
            (path / CACHE).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{path} cannot be written to ({error.strerror}): name another folder") from None
        self.path = path
        self.moved: dict[str, str] = {}
        self._aside: Path | None = None

    @contextmanager
    def alone(self) -> Iterator[Self]:
        """Keeps other commands from writing here at the same time. A process that ends lets go as well."""
        with (self.cache / LOCK).open("a") as lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    raise InvalidInput(
                        f"another command is writing to {self.path}: wait for its end, or name another folder"
                    ) from None
            yield self

    @property
    def cache(self) -> Path:
        """Where finished blocks are."""
        return self.path / CACHE

    def put(self, name: str, data: bytes) -> Path:
        """Write a file, whole or not at all. What stood there and differs is moved aside."""
        return self.put_made(name, lambda path: path.write_bytes(data))

    def put_made(self, name: str, make: Callable[[Path], object], keep: bool = True) -> Path:
        """The same for a file that `make` writes to the path it is given. keep: what stood there, if it differs."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{os.getpid()}-{path.name}")  # the ending stays: it may say what to write
        try:
            make(unfinished)
            if keep and path.exists() and path.read_bytes() != unfinished.read_bytes():
                self.set_aside(name)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return path

    def set_aside(self, name: str) -> None:
        """Move a file to a folder of this run's own, under the same name."""
        if self._aside is None:
            number = 1
            while (self.path / ASIDE / str(number)).exists():
                number += 1
            self._aside = self.path / ASIDE / str(number)
        target = self._aside / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).rename(target)
        self.moved[name] = str(target.relative_to(self.path))

    def put_frame(self, name: str, frame: pd.DataFrame) -> list[Path]:
        """NAME.csv and NAME.parquet."""
        require("a file of results", "experiments", "pyarrow")
        text = frame.to_csv(index=False, lineterminator="\n")
        buffer = io.BytesIO()
        frame.to_parquet(buffer, engine="pyarrow", index=False)
        return [self.put(f"{name}.csv", text.encode()), self.put(f"{name}.parquet", buffer.getvalue())]

    def put_rows(self, name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
        """NAME.csv, a line for each row."""
        return self.put(f"{name}.csv", csv_text(list(rows)).encode())

    def put_settings(self, name: str, settings: Mapping[str, Any]) -> Path:
        """Add the settings of one experiment to settings.json; those of others stay."""
        before = self.settings()
        after = dict(sorted({**before, name: json.loads(json.dumps(settings))}.items()))
        text = json.dumps(after, indent=2) + "\n"
        loses = name in before and after != before
        return self.put_made(SETTINGS, lambda path: path.write_text(text, encoding="utf-8"), keep=loses)

    def settings(self) -> dict[str, Any]:
        """The settings of every experiment whose results are here."""
        path = self.path / SETTINGS
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            found = None
        if not isinstance(found, dict):
            self.set_aside(SETTINGS)
            return {}
        return found

"""Files that `simulate` writes beside what it prints: all are checked before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from private_bandits.cli.flags import check_new_file
from private_bandits.errors import InvalidInput
from private_bandits.loading import require
from private_bandits.simulation import Simulation
from private_bandits.simulation.curve_panels import PAGE_NEEDS, PICTURE_NEEDS, check_picture_path

Csv = Annotated[Path | None, typer.Option(help="Write regret at every checkpoint to this new file.")]
Html = Annotated[Path | None, typer.Option(help="Write a page with picture, figures and settings to this new file.")]
PictureFile = Annotated[
    Path | None, typer.Option(help="Write the picture to this new file; its ending is .png, .svg or .pdf.")
]


@dataclass(frozen=True)
class Outputs:
    """New files for a simulation, None where none is asked for."""

    csv: Path | None
    html: Path | None
    picture: Path | None

    def check(self) -> None:
        """Refuse files that are there or cannot be written, and what needs an extra that is not installed."""
        if self.html is not None:
            require(*PAGE_NEEDS)
        if self.picture is not None:
            require(*PICTURE_NEEDS)
            check_picture_path(self.picture)
        for path in self._files:
            check_new_file(path)
        if len({path.resolve() for path in self._files}) < len(self._files):
            raise InvalidInput("--csv, --html and --picture must name different files")

    def write(self, result: Simulation) -> None:
        """Write what was asked for."""
        if self.csv is not None:
            result.to_csv(self.csv)
        if self.html is not None:
            result.report(self.html)
        if self.picture is not None:
            result.plot(self.picture)

    @property
    def _files(self) -> list[Path]:
        return [path for path in (self.csv, self.html, self.picture) if path is not None]

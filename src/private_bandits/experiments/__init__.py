"""The paper's experiments and what it lacks, as data: run, analysed and shown. The core does not import this package.

`run` computes the regrets, `analysis` tests claims on them, `show` draws and writes them; `reproduce` does all three.
The names below are for experiments of one's own. They are imported on first use: pictures are slow to load.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from private_bandits.experiments.analysis import verdicts
    from private_bandits.experiments.run.data import EXPERIMENTS
    from private_bandits.experiments.run.experiment import Entry, Experiment, Instance
    from private_bandits.experiments.show import figures, report

__all__ = ["EXPERIMENTS", "Entry", "Experiment", "Instance", "figures", "report", "verdicts"]

_MODULES = {"figures": "show.figures", "report": "show.report", "verdicts": "analysis.verdicts"}
_MEMBERS = {
    "EXPERIMENTS": "run.data",
    "Entry": "run.experiment",
    "Experiment": "run.experiment",
    "Instance": "run.experiment",
}


def __getattr__(name: str) -> Any:
    """Return a module or a class of a sub-package by the name that it has here."""
    if name in _MODULES:
        return import_module(f"{__name__}.{_MODULES[name]}")
    if name in _MEMBERS:
        return getattr(import_module(f"{__name__}.{_MEMBERS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

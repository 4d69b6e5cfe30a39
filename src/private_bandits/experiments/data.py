"""The experiments as data, where they were before version 0.9: `private_bandits.experiments` has the same names."""

from private_bandits.experiments.run.data import EXPERIMENTS
from private_bandits.experiments.run.experiment import Entry, Experiment, Instance, entries

__all__ = ["EXPERIMENTS", "Entry", "Experiment", "Instance", "entries"]

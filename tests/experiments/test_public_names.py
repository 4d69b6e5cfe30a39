"""The names that `private_bandits.experiments` offers, and those that it offered before 0.9."""

from __future__ import annotations

import subprocess
import sys

import pytest

from private_bandits import experiments
from private_bandits.experiments import data
from private_bandits.experiments.analysis import verdicts
from private_bandits.experiments.run.data import EXPERIMENTS
from private_bandits.experiments.run.experiment import Entry, Experiment, Instance
from private_bandits.experiments.show import figures, report

HOMES = {
    "EXPERIMENTS": EXPERIMENTS,
    "Entry": Entry,
    "Experiment": Experiment,
    "Instance": Instance,
    "figures": figures,
    "report": report,
    "verdicts": verdicts,
}


def test_every_public_name_leads_to_its_home() -> None:
    assert set(experiments.__all__) == set(HOMES)
    assert all(getattr(experiments, name) is home for name, home in HOMES.items())


def test_the_earlier_module_of_the_data_has_the_same_objects() -> None:
    assert all(getattr(data, name) is HOMES[name] for name in ("EXPERIMENTS", "Entry", "Experiment", "Instance"))


def test_another_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'pictures_of_cats'"):
        _ = experiments.pictures_of_cats


def test_what_is_not_used_is_not_imported() -> None:
    code = (
        "import sys, private_bandits.experiments as e; e.Entry; "
        "print(any(name.startswith('private_bandits.experiments.show') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

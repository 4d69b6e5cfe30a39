"""Extras that are not installed: told at once, in one line, by every command and function that needs one."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import private_bandits as pb
from private_bandits.audit import audit, audit_all, html, of_policy
from private_bandits.audit.evidence import clopper_pearson
from private_bandits.cli import app
from private_bandits.errors import MissingExtra, PrivateBanditsError
from private_bandits.experiments import reproduce as command
from private_bandits.experiments.analysis import verdicts
from private_bandits.experiments.analysis.estimates import mean
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.run.results_folder import Folder
from private_bandits.experiments.show import drawing, figures, gallery, report
from private_bandits.loading import EXTRAS, IMPORTED_AS, require
from private_bandits.testing import audit_policy
from private_bandits.theory.divergence import kl_bound_transport
from private_bandits.transport import transport_cost
from tests.commands import call_here
from tests.experiments.small import FINITE

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names_of(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}


OPTIONAL = {
    extra: names_of(packages) - names_of(PROJECT["dependencies"])
    for extra, packages in PROJECT["optional-dependencies"].items()
    if extra not in ("all", "dev")
}
"""Packages of each extra that a user may do without, as they are declared: a new one is blocked here too."""
PACKAGES = sorted(IMPORTED_AS.get(package, package) for package in set().union(*OPTIONAL.values()))
"""The same by the names that they are imported by."""

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
sys.path.insert(0, "")
sys.argv = {arguments!r}
from private_bandits.cli import main
main()
"""


def call(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """The command line in an empty folder, in a process that never had these packages."""
    code = BLOCKED.format(packages=PACKAGES, arguments=["private-bandits", *arguments])
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def call_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line in an empty folder, with packages that can no longer be imported. It is to refuse at once."""

    def call_it(arguments: list[str], packages: list[str] = PACKAGES) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        for package in packages:
            monkeypatch.setitem(sys.modules, package, None)
        return call_here(*arguments)

    return call_it


SMALL = ["--horizon", "20", "--runs", "2"]
NEED = {
    "simulate --setting contextual --rho 1 --csv regret.csv": ("fast", SMALL),
    "simulate --policy dp-ucb --rho 1 --csv regret.csv": ("fast", SMALL),
    "simulate --policy adac-ucb,dp-ucb --rho 1 --csv regret.csv": ("fast", SMALL),
    "simulate --rho 1 --csv regret.csv --html out.html": ("pictures", SMALL),
    "simulate --rho 1 --picture out.png": ("pictures", SMALL),
    "audit --short --html report.html": ("audit", []),
    "audit --policy adac-ucb --short --json": ("audit", []),
    "audit --policy nowhere:make_agent --short": ("audit", []),  # and no factory is called
    "plan --dimension 2 --rho 1": ("fast", ["--people", "20", "--runs", "2"]),
    "plan --picture plan.png": ("pictures", ["--people", "60", "--runs", "2"]),
    "reproduce --quick": ("experiments", []),
    "reproduce --figure finite --horizon 100 --runs 1 --out results": ("experiments", []),
    "reproduce --figure tables,contextual --horizon 100 --runs 1 --json": ("experiments", []),
    "db upgrade": ("service", []),
    "db import trial.db": ("service", []),
    "keys create ann --role ask": ("service", []),
    "keys list": ("service", []),
    "keys revoke 1": ("service", []),
    "serve": ("service", []),
}
"""Commands that need an extra."""
NEED_NONE = {
    "--version": [],
    "policies": [],
    "simulate --rho 1": SMALL,
    "simulate --setting linear --rho 1": SMALL,
    "definitions": [],
    "bounds": [],
    "verify ledger.jsonl": [],
    "show agent.db": [],
    "plan --arms 2 --rho 1": ["--people", "60", "--runs", "2"],
    "reproduce --figure tables": ["--horizon", "1000"],
}
"""Commands that the core can do."""


def test_extras_are_those_of_the_project() -> None:
    assert {extra: set(packages) for extra, packages in EXTRAS.items()} == OPTIONAL
    assert names_of(PROJECT["optional-dependencies"]["all"]) == set().union(*OPTIONAL.values())


def test_every_command_is_tried() -> None:
    commands = {made.name or made.callback.__name__ for made in app.registered_commands if made.callback}
    commands |= {str(group.name) for group in app.registered_groups}
    assert commands == {words.split()[0] for words in (*NEED, *NEED_NONE)} - {"--version"}


@pytest.mark.parametrize("words", NEED)
def test_a_command_that_needs_an_extra_says_so_in_one_line_and_does_nothing(
    words: str, tmp_path: Path, call_without: Call
) -> None:
    extra, more = NEED[words]
    never_there = extra == "fast"  # compiled engines that this process has loaded need their package no more
    options = [*words.split(), *more]
    done = call(tmp_path, options) if never_there else call_without(options)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert re.fullmatch(rf'error: .+ needs .+: pip install "private-bandits\[{extra}\]"\n', done.stderr), done.stderr
    in_part = {"audit": {"scipy"}, "pictures": {"matplotlib"}}
    needed = OPTIONAL[extra] if "--html" in words else in_part.get(extra, OPTIONAL[extra])
    assert {package for package in PACKAGES if package in done.stderr} == needed
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_never_had_the_packages_refuses_alike(tmp_path: Path, call_without: Call) -> None:
    words = ["reproduce", "--quick"]
    never, no_longer = call(tmp_path, words), call_without(words)
    assert (never.returncode, never.stdout, never.stderr) == (2, "", no_longer.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", NEED_NONE)
def test_the_core_does_without_extras(words: str, tmp_path: Path) -> None:
    agent = pb.Agent(pb.AdaCIMED(2, pb.zCDP(1)), path=tmp_path / "agent.db")  # for who reads one
    agent.ledger.to_jsonl(tmp_path / "ledger.jsonl")
    agent.close()
    done = call(tmp_path, [*words.split(), *NEED_NONE[words]])
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("package", sorted(OPTIONAL["experiments"]))
def test_one_package_that_is_missing_is_enough(package: str, tmp_path: Path, call_without: Call) -> None:
    done = call_without(["reproduce", "--figure", "finite", "--horizon", "100", "--runs", "1"], [package])
    assert done.stderr == f'error: reproduce needs {package}: pip install "private-bandits[experiments]"\n'
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])


def test_a_cluster_needs_an_extra_of_its_own(tmp_path: Path, call_without: Call) -> None:
    scale = ["--figure", "finite", "--horizon", "100", "--runs", "1"]
    done = call_without(["reproduce", *scale, "--dask", "tcp://127.0.0.1:1"], ["distributed"])
    assert done.stderr == 'error: a Dask cluster needs distributed: pip install "private-bandits[dask]"\n'
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])


# Functions.

POLICY = pb.AdaCUCB(2, pb.zCDP(1))
FRAME = pd.DataFrame({"label": ["a"]})
REGRETS = Regrets(FINITE, np.array([1]), {})
SOME = mean(np.array([1.0, 2.0]))
SIMULATED = pb.simulate({"a": POLICY}, pb.Bernoulli([0.5, 0.4]), 10, runs=2, progress=False)
FUNCTIONS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "transport_cost": ("scipy", lambda folder: transport_cost({(0,): 1.0}, {(1,): 1.0})),
    "kl_bound_transport": ("scipy", lambda folder: kl_bound_transport(0.1, {(0,): 1.0}, {(1,): 1.0})),
    "audit": ("scipy", lambda folder: audit(of_policy(POLICY))),
    "audit_all": ("scipy", lambda folder: audit_all([of_policy(POLICY)])),
    "audit_policy": ("scipy", lambda folder: audit_policy(POLICY)),
    "html": ("jinja2", lambda folder: html([])),
    "statement": ("jinja2", lambda folder: pb.Agent(POLICY).statement().html()),
    "clopper_pearson": ("scipy", lambda folder: clopper_pearson(1, 2, 0.1)),
    "plot": ("matplotlib", lambda folder: SIMULATED.plot(folder / "a.png")),
    "page, jinja2": ("jinja2", lambda folder: SIMULATED.report(folder / "a.html")),
    "page, matplotlib": ("matplotlib", lambda folder: SIMULATED.report(folder / "a.html")),
    "interval": ("scipy", lambda folder: SOME.interval()),
    "p_within": ("scipy", lambda folder: SOME.p_within(0.1)),
    "judge": ("scipy", lambda folder: verdicts.judge(FINITE, FRAME)),
    "pictures": ("scipy", lambda folder: gallery.pictures(FINITE, FRAME)),
    "save, scipy": ("scipy", lambda folder: figures.save(FINITE, FRAME, folder)),
    "save": ("matplotlib", lambda folder: figures.save(FINITE, FRAME, folder)),
    "draw": ("matplotlib", lambda folder: figures.draw(FINITE, FRAME)),
    "drawn": ("matplotlib", lambda folder: drawing.drawn(REGRETS)),
    "write": ("plotly", lambda folder: report.write(folder / "report.html", [(FINITE, FRAME)], {}, {})),
    "write, scipy": ("scipy", lambda folder: report.write(folder / "report.html", [(FINITE, FRAME)], {}, {})),
    "write, jinja2": ("jinja2", lambda folder: report.write(folder / "report.html", [(FINITE, FRAME)], {}, {})),
    "put_frame": ("pyarrow", lambda folder: Folder(folder).put_frame("a", FRAME)),
    "reproduce": ("pyarrow", lambda folder: command.reproduce([FINITE], folder / "new")),
    "reproduce, dask": ("distributed", lambda folder: command.reproduce([FINITE], folder / "new", dask="tcp://a:1")),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_needs_an_extra_names_package_and_extra(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, function = FUNCTIONS[name]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf'needs {package}: pip install "private-bandits\[\w+\]"$') as caught:
        function(tmp_path)
    assert caught.value.name == package
    assert [path for path in tmp_path.rglob("*") if path.name != "cache"] == []


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_notebook_shows_words_where_nothing_can_be_drawn(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "<img" in str(SIMULATED._repr_html_())
    monkeypatch.setitem(sys.modules, package, None)
    assert SIMULATED._repr_html_() is None
    assert repr(SIMULATED).startswith("Simulation(regret: a ")


@pytest.mark.parametrize(
    ("module", "package"), [("simulation.compiled", "numba"), ("experiments.run.cluster", "distributed")]
)
def test_a_module_that_is_made_of_an_extra_cannot_be_imported_without_it(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"private_bandits.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=f"needs {package}: pip install"):
        importlib.import_module(f"private_bandits.{module}")


def test_the_error_is_an_import_error_and_the_packages_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError) as caught:
        require("this", "experiments")
    assert isinstance(caught.value, PrivateBanditsError)
    assert str(caught.value) == 'this needs plotly, scipy: pip install "private-bandits[experiments]"'
    again = pickle.loads(pickle.dumps(caught.value))  # it may come from another process
    assert (type(again), str(again), again.name) == (MissingExtra, str(caught.value), "plotly")
    require("this", "experiments", "matplotlib")
    require("this", "fast")


def imports(tree: ast.AST) -> set[str]:
    """The packages that a module imports when it runs, not those for its types."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        found |= imports(node)
    return found


def test_every_module_that_imports_an_optional_package_requires_it() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    users = {path for path, text in texts.items() if imports(ast.parse(text)) & set(PACKAGES)}
    assert len(users) >= 7
    requiring = {path for path, text in texts.items() if re.search(r"^ *require\(", text, re.MULTILINE)}

    def is_safe(path: Path) -> bool:
        """A package that requires it when it is imported speaks for its modules."""
        return path in requiring or any(parent / "__init__.py" in requiring for parent in path.parents)

    assert [path.name for path in users if not is_safe(path)] == []

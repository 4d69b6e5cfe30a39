"""Damaged and edited files: refused, or without effect; and no word of what is private in a refusal.

The files in the folder beside this were written by version 0.8 (format 3), by agents that were made and used as in
`KINDS` and `one_step`: so many steps as "told" in went-on.json says, then closed. went-on.json also has what version
0.8 did in the 45 steps after that: the actions, and the values of all rows of the ledger. "live" has noise without a
seed.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import secrets
import shutil
import sqlite3
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentFileInvalid
from private_bandits.policies import Policy
from private_bandits.policies.legacy import TightAdaCUCB
from private_bandits.storage.formats import agent_checksum
from tests.support import read_ledger

FILES = Path(__file__).with_name("files")
WENT_ON = json.loads((FILES / "went-on.json").read_text())
ACTIONS = ((0.9, 0.0), (-0.45, 0.8), (-0.4, -0.7))
KINDS: dict[str, tuple[Policy[Any], dict[str, Any]]] = {
    "plain": (pb.AdaCUCB(3, pb.zCDP(0.1), variant="paper"), {"seed": 1}),
    "factor": (TightAdaCUCB(3, pb.zCDP(2.0)), {"seed": 2}),
    "tree": (pb.TreeUCB(3, pb.zCDP(0.5), horizon=200), {"seed": 3}),
    "private": (
        pb.AdaCOFULPrivate(2, pb.zCDP(0.5), horizon=500, variant="paper"),
        {"seed": 4, "reward_range": (-1.0, 1.0)},
    ),
    "private-tree": (pb.ShariffSheffet(2, pb.zCDP(0.5), horizon=500), {"seed": 5, "reward_range": (-1.0, 1.0)}),
    "phased": (pb.AdaCGOPE(ACTIONS, pb.zCDP(20.0), phase_factor=1e-6), {"seed": 6}),
    "contextual": (
        pb.AdaCOFUL(2, pb.zCDP(0.5), horizon=500, growth=0.2, regulariser=0.1, exploration=1.0),
        {"seed": 7},
    ),
    "people": (
        pb.AdaCUCB(3, pb.zCDP(0.1), variant="paper"),
        {"seed": 8, "max_rewards_per_person": 2, "unit": "person"},
    ),
    "laplace": (pb.AdaPUCB(3, pb.PureDP(0.5)), {"seed": 9, "give_up_after": 20}),
}
NEW = KINDS | {"factor": (pb.AdaCIMED(3, pb.zCDP(2.0)), {"seed": 2})}
"""The same for agents of this version, which has no other use for the policy of "factor"."""
MORE_STEPS = 45


def one_step(agent: pb.Agent, step: int) -> int:
    """The action of an ask, whose reward comes at once or never."""
    actions = None
    if not agent.policy.arm_names:
        actions = np.array([[0.9, 0.1], [-0.3, 0.8], [0.5, -0.6]]) * (1 - 0.04 * (step % 9))
    decision = agent.ask(actions=actions, person=f"person {step // 4}")
    if step % 7 != 3:
        agent.tell(decision, 0.1 + 0.8 * (step * 37 % 100) / 100)
    return decision.action


def copied(name: str, folder: Path) -> Path:
    """A file of version 0.8, to be worked on."""
    return Path(shutil.copy(FILES / f"{name}.db", folder / "agent.db"))


@contextlib.contextmanager
def edited(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, as any SQLite program sees it."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


# Files of version 0.8.


def as_format_two(connection: sqlite3.Connection) -> None:
    """Earlier sums beside the open ones, and the policy's state as a whole."""
    for key, text in connection.execute("SELECT key, private FROM episodes").fetchall():
        rows = connection.execute("SELECT private FROM kept WHERE key = ? ORDER BY number", (key,)).fetchall()
        whole = json.loads(text) | {"kept": [json.loads(part) for (part,) in rows]}
        connection.execute("UPDATE episodes SET private = ? WHERE key = ?", (json.dumps(whole), key))
    policy, arrivals = connection.execute("SELECT policy, arrivals FROM agent").fetchone()
    state = json.loads(policy) | json.loads(arrivals or "{}")
    connection.execute("UPDATE agent SET policy = ?", (json.dumps(state),))
    connection.execute("ALTER TABLE agent DROP COLUMN arrivals")
    connection.execute("DROP TABLE kept")
    connection.execute("PRAGMA user_version = 2")


def as_format_one(connection: sqlite3.Connection) -> None:
    """Without actions that change."""
    as_format_two(connection)
    connection.execute("ALTER TABLE decisions DROP COLUMN offered")
    connection.execute("PRAGMA user_version = 1")


FORMATS: dict[int, Callable[[sqlite3.Connection], None]] = {1: as_format_one, 2: as_format_two, 3: lambda _: None}


def in_formats(*names: str, some: Sequence[str] = ()) -> list[Any]:
    """Each file in every format that had its kind. some: those that are tested in the short form, if not all."""
    first = ("plain", "people", "laplace", "live")
    second = (*first, "tree", "phased", "private", "private-tree")
    had = {1: first, 2: second, 3: names}
    labels = {f"{name}-{f}": (name, f) for name in names for f in FORMATS if name in had[f]}
    return [
        pytest.param(*found, id=label, marks=[pytest.mark.full] if some and label not in some else [])
        for label, found in labels.items()
    ]


@pytest.mark.parametrize(("name", "older"), in_formats(*KINDS))
def test_a_file_of_an_earlier_format_goes_on_as_it_did(name: str, older: int, tmp_path: Path) -> None:
    path, expected = copied(name, tmp_path), WENT_ON[name]
    with edited(path) as connection:
        FORMATS[older](connection)
    told = expected["told"]
    with pb.Agent.open(path) as agent:
        assert agent.policy == KINDS[name][0]
        assert KINDS[name][1].items() <= agent.settings.items()
        half = [one_step(agent, step) for step in range(told, told + 20)]
    with pb.Agent.open(path) as agent:
        rest = [one_step(agent, step) for step in range(told + 20, told + MORE_STEPS)]
        assert half + rest == expected["actions"]
        assert [list(row.values) for row in agent.ledger] == expected["values"]


def test_a_live_file_of_version_eight_keeps_its_rows_and_its_promise(tmp_path: Path) -> None:
    path = copied("live", tmp_path)
    with edited(path) as connection:
        rows = [json.loads(text) for (text,) in connection.execute("SELECT release FROM ledger ORDER BY number")]
    with pb.Agent.open(path) as agent:
        for step in range(40):
            one_step(agent, step)
        for stored, row in zip(rows, agent.ledger, strict=False):
            found = json.loads(json.dumps(row.to_dict())) | {"keys": list(row.keys), "counts": list(row.counts)}
            assert stored == {name: found[name] for name in stored}
        assert len(agent.ledger) > len(rows)
        assert agent.guarantee().spent <= 0.1


# Edits of earlier formats, which have no checksums: what contradicts itself, or could mean less noise, is refused.


def outcome(path: Path) -> str:
    """Opening the file ends with this; "" stands for a refusal as it should be."""
    try:
        pb.Agent.open(path).close()
    except AgentFileInvalid:
        return ""
    except BaseException as error:
        return repr(error)
    return "opened"


class Edit(NamedTuple):
    """A change of plain data in one cell: of all rows of a table in turn, or of those that are of interest."""

    table: str
    column: str
    change: Callable[[Any], Any]
    concerns: Callable[[Any], bool] = lambda data: True


def apply(path: Path, edit: Edit, folder: Path) -> Iterator[Path]:
    """The file with one cell changed, for every cell that the edit concerns."""
    with edited(path) as connection:
        order = {"kept": "key, number", "people": "person"}.get(edit.table, "rowid")
        keys = {"kept": "key, label", "people": "person"}.get(edit.table, "rowid")
        cells = connection.execute(f"SELECT {keys}, {edit.column} FROM {edit.table} ORDER BY {order}").fetchall()
    for *where, text in cells:
        data = json.loads(text)
        if not edit.concerns(data):
            continue
        changed = edit.change(data)
        target = Path(shutil.copy(path, folder / "edited.db"))
        with edited(target) as connection:
            condition = " AND ".join(f"{name} = ?" for name in keys.split(", "))
            connection.execute(
                f"UPDATE {edit.table} SET {edit.column} = ? WHERE {condition}", (json.dumps(changed), *where)
            )
        yield target


def put(*path: Any, to: Any) -> Callable[[Any], Any]:
    """Another value at a place in plain data."""

    def change(data: Any) -> Any:
        inner = data
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = to(inner[path[-1]]) if callable(to) else to
        return data

    return change


def without(name: str) -> Callable[[Any], Any]:
    """A field less."""

    def change(data: Any) -> Any:
        del data[name]
        return data

    return change


def instead(other: Any) -> Callable[[Any], Any]:
    """Other data."""
    return lambda data: other


def settings(change: Callable[[Any], Any]) -> Edit:
    return Edit("agent", "settings", change)


WRONG: dict[str, Any] = {
    "null": None,
    "text": "12",
    "float": 1.5,
    "huge": 10**40,
    "negative": -(10**12),
    "true": True,
    "list": [],
}

SETTINGS: dict[str, tuple[str, Edit]] = {
    "another unit": ("people", settings(put("unit", to="peRson"))),
    "no unit": ("people", settings(put("unit", to=None))),
    "no limit per person": ("people", settings(put("max_rewards_per_person", to=None))),
    "limit of none": ("people", settings(put("max_rewards_per_person", to=0))),
    "limit below": ("people", settings(put("max_rewards_per_person", to=-1))),
    "limit of half": ("people", settings(put("max_rewards_per_person", to=0.5))),
    "limit of true": ("people", settings(put("max_rewards_per_person", to=True))),
    "limit of text": ("people", settings(put("max_rewards_per_person", to="2"))),
    "a limit less": ("people", settings(put("max_rewards_per_person", to=1))),
    "unit of a reward": ("people", settings(put("unit", to="reward"))),
    "more budget": ("plain", settings(put("policy", "budget", "rho", to=9.1))),
    "more budget, live": ("live", settings(put("policy", "budget", "rho", to=9.1))),
    "more budget, people": ("people", settings(put("policy", "budget", "rho", to=9.1))),
    "more budget, tree": ("tree", settings(put("policy", "budget", "rho", to=9.1))),
    "more budget, factor": ("factor", settings(put("policy", "budget", "rho", to=9.1))),
    "more budget, contexts": ("private", settings(put("policy", "budget", "rho", to=9.1))),
    "more budget, phases": ("phased", settings(put("policy", "budget", "rho", to=99.0))),
    "more budget, Laplace": ("laplace", settings(put("policy", "budget", "epsilon", to=9.1))),
    "budget of text": ("plain", settings(put("policy", "budget", "rho", to="0.1"))),
    "no budget": ("plain", settings(put("policy", "budget", to=None))),
    "another kind of budget": ("plain", settings(put("policy", "budget", to={"kind": "NoPrivacy"}))),
    "an unknown kind of budget": ("plain", settings(put("policy", "budget", "kind", to="dict"))),
    "another policy": ("plain", settings(put("policy", "policy", to="dp-ucb"))),
    "more arms": ("plain", settings(put("policy", "arms", to=["a", "b", "c", "d"]))),
    "another parameter": ("plain", settings(put("policy", "more", to=1))),
    "a seed": ("live", settings(put("seed", to=1))),
    "no seed": ("plain", settings(put("seed", to=None))),
    "a seed of text": ("plain", settings(put("seed", to="1"))),
    "a seed below": ("plain", settings(put("seed", to=-1))),
    "give up never": ("laplace", settings(put("give_up_after", to=0))),
    "give up text": ("laplace", settings(put("give_up_after", to="20"))),
    "no token": ("plain", settings(put("token", to=None))),
    "no salt": ("people", settings(put("salt", to=None))),
    "salt of text": ("people", settings(put("salt", to="no hexadecimal number"))),
    "range turned": ("plain", settings(put("reward_range", to=[1.0, 0.0]))),
    "range of text": ("plain", settings(put("reward_range", to="01"))),
    "range of one": ("plain", settings(put("reward_range", to=[1.0]))),
    "range infinite": ("plain", settings(put("reward_range", to=[0.0, float("inf")]))),
    "tree without levels": ("tree", settings(put("tree_levels", to=0))),
    "no factor": ("factor", settings(put("factor", to=None))),
    "more than there is": ("plain", settings(put("more", to=1))),
    **{
        f"without {name}": ("people", settings(without(name)))
        for name in ("max_rewards_per_person", "unit", "seed", "token", "salt", "policy", "reward_range")
    },
    **{
        f"settings {text}": ("plain", settings(instead(json.loads(text))))
        for text in ("null", "[]", '"text"', "1", "{}")
    },
}


def not_refused(edits: Mapping[str, Edit], path: Path, folder: Path) -> dict[str, str]:
    """Every edit that is not refused, and what happens instead. Each edit is of some cell."""
    found = {}
    for label, edit in edits.items():
        outcomes = [outcome(target) for target in apply(path, edit, folder)]
        assert outcomes, label
        found[label] = next(filter(None, outcomes), "")
    return {label: what for label, what in found.items() if what}


@pytest.mark.parametrize("name", sorted({name for name, _ in SETTINGS.values()}))
def test_edited_settings_are_refused(name: str, tmp_path: Path) -> None:
    edits = {label: edit for label, (of, edit) in SETTINGS.items() if of == name}
    assert not_refused(edits, copied(name, tmp_path), tmp_path) == {}


FIELDS = ("key", "number", "count", "max_squared", "max_l1", "weight_sums", "totals", "steps")


def counted(data: Any) -> bool:
    return bool(data["count"])


def sums(change: Callable[[Any], Any]) -> Edit:
    return Edit("episodes", "private", change, counted)


EPISODES: dict[str, Edit] = {
    **{f"without {name}": sums(without(name)) for name in FIELDS},
    **{
        f"{name} {sort}": sums(put(name, to=value))
        for name in (*FIELDS, "first")
        for sort, value in WRONG.items()
        if (name, sort) != ("first", "null")
    },
    **{f"{name} of {sort}": sums(put(name, 0, to=WRONG[sort])) for name in ("weight_sums", "totals") for sort in WRONG},
    "count below": sums(put("count", to=-1)),
    "count of none": sums(put("count", to=0)),
    "no norm": sums(put("max_squared", to=0)),
    "no norms": sums(lambda data: data | {"max_squared": 0, "max_l1": 0}),
    "a number more": sums(put("number", to=lambda number: number + 1)),
    "a number less": sums(put("number", to=lambda number: number - 1)),
    "another key": sums(put("key", to=lambda key: key + 1)),
    "another grid": sums(put("steps", to=lambda steps: 2 * steps)),
    "a float": sums(put("count", to=float)),
    "a float for a total": sums(put("totals", 0, to=float)),
    "a coordinate less": sums(lambda data: data | {n: data[n][1:] for n in ("totals", "weight_sums")}),
    "a total too large": sums(lambda data: put("totals", 0, to=16 * 2**30 * data["steps"])(data)),
    "a total too small": sums(lambda data: put("totals", 0, to=-16 * 2**30 * data["steps"])(data)),
    "no object": sums(lambda data: [data]),
    "nothing": sums(lambda data: None),
    "a number": sums(lambda data: 12),
}
WITH_OPEN_SUMS = ("plain", "factor", "private", "phased", "contextual", "people", "laplace", "live")
SOME = ("plain-1", "contextual-3", "private-2")


@pytest.mark.parametrize(("name", "older"), in_formats(*WITH_OPEN_SUMS, some=SOME))
def test_edited_sums_are_refused(name: str, older: int, tmp_path: Path) -> None:
    path = copied(name, tmp_path)
    with edited(path) as connection:
        FORMATS[older](connection)
    assert not_refused(EPISODES, path, tmp_path) == {}


@pytest.mark.parametrize("name", ["plain", "contextual"])
def test_sums_of_another_dimension_than_was_released_are_refused(name: str, tmp_path: Path) -> None:
    longer = sums(lambda data: data | {part: [*data[part], 0] for part in ("totals", "weight_sums")})
    assert not_refused({"longer": longer}, copied(name, tmp_path), tmp_path) == {}


def test_weights_below_the_declared_norm_are_refused_where_it_is_declared(tmp_path: Path) -> None:
    shorter = {"max_squared": sums(put("max_squared", to=lambda square: square - 1))}
    assert not_refused(shorter, copied("contextual", tmp_path), tmp_path) == {}
    shorter["max_l1"] = sums(put("max_l1", to=lambda norm: norm - 1))
    assert not_refused(shorter, copied("private", tmp_path), tmp_path) == {}


def kept(change: Callable[[Any], Any]) -> Edit:
    return Edit("kept", "private", change)


KEPT: dict[str, Edit] = {
    **{f"without {name}": kept(without(name)) for name in FIELDS},
    **{f"{name} {sort}": kept(put(name, to=value)) for name in FIELDS for sort, value in WRONG.items()},
    "first later": kept(put("first", to=lambda first: first + 1)),
    "a number more": kept(put("number", to=lambda number: number + 1)),
    "a number less": kept(put("number", to=lambda number: number - 1)),
    "no norm": kept(put("max_squared", to=0)),
    "a total too large": kept(lambda data: put("totals", 0, to=16 * 2**30 * data["steps"])(data)),
}


@pytest.mark.parametrize(
    "name", ["factor", *(pytest.param(n, marks=pytest.mark.full) for n in ("tree", "contextual", "private-tree"))]
)
def test_edited_earlier_sums_are_refused(name: str, tmp_path: Path) -> None:
    assert not_refused(KEPT, copied(name, tmp_path), tmp_path) == {}


COMMANDS: dict[str, tuple[str, str]] = {
    "another label": ("contextual", "UPDATE kept SET label = label || '0' WHERE number = 3"),
    "no label": ("contextual", "UPDATE kept SET label = '' WHERE number = 3"),
    "another number": ("contextual", "UPDATE kept SET number = 99 WHERE number = 3"),
    "another order": ("contextual", "UPDATE kept SET number = 20 - number"),
    "an earlier sum less": ("contextual", "DELETE FROM kept WHERE number = 3"),
    "the first earlier sum less": ("contextual", "DELETE FROM kept WHERE number = 1"),
    "the last earlier sum less": ("contextual", "DELETE FROM kept WHERE number = 16"),
    "no earlier sum": ("contextual", "DELETE FROM kept"),
    "an earlier sum of another": ("factor", "UPDATE kept SET key = 9 WHERE key = 1"),
    "no earlier sum of one": ("factor", "DELETE FROM kept WHERE key = 1"),
    "a tree without a part": ("tree", "DELETE FROM kept WHERE key = 2 AND number = 8"),
    "a tree without its last part": ("private-tree", "DELETE FROM kept WHERE number = 26"),
    "a tree in another order": ("private-tree", "UPDATE kept SET number = 50 - number"),
    "no open sum": ("plain", "DELETE FROM episodes"),
    "no open sum of one": ("live", "DELETE FROM episodes WHERE key = 1"),
    "the sum of another": ("plain", "UPDATE episodes SET key = 7 WHERE key = 2"),
    "text for a sum": ("plain", "UPDATE episodes SET private = 'nonsense'"),
    "bytes for a sum": ("plain", "UPDATE episodes SET private = x'ff00fe'"),
    "a number for a sum": ("plain", "UPDATE episodes SET private = 12"),
    "a count below": ("people", "UPDATE people SET rewards = -1"),
    "a count of text": ("people", "UPDATE people SET rewards = 'none'"),
    "a broken count": ("people", "UPDATE people SET rewards = 0.5"),
    "a decision for no arm": ("plain", "UPDATE decisions SET action = 3"),
    "a decision below": ("plain", "UPDATE decisions SET action = -1"),
    "a decision of text": ("plain", "UPDATE decisions SET action = 'one'"),
    "a decision of nobody": ("people", "UPDATE decisions SET person = NULL"),
    "a decision not made yet": ("plain", "UPDATE decisions SET number = number + 1000"),
    "a decision before the first": ("plain", "UPDATE decisions SET number = number - 1000"),
    "a decision of a later life": ("plain", "UPDATE decisions SET generation = 99"),
    "a decision among no such actions": ("contextual", "UPDATE decisions SET action = 3"),
    "a decision below, among actions": ("contextual", "UPDATE decisions SET action = -1"),
    "a decision without actions": ("contextual", "UPDATE decisions SET offered = NULL"),
    "a decision without private actions": ("private", "UPDATE decisions SET offered = NULL"),
    "actions of text": ("contextual", "UPDATE decisions SET offered = 'nonsense'"),
    "actions of another length": ("contextual", "UPDATE decisions SET offered = '[[1, 2, 3], [4, 5, 6], [7, 8, 9]]'"),
    "private actions of another length": (
        "private",
        "UPDATE decisions SET offered = '[[1, 2, 3], [1, 2, 3], [1, 2, 3]]'",
    ),
    "actions for arms": ("plain", "UPDATE decisions SET offered = '[[1, 2], [3, 4], [5, 6]]'"),
    "none asked": ("plain", "UPDATE agent SET asked = 0"),
    "asked below": ("plain", "UPDATE agent SET asked = -5"),
    "asked text": ("plain", "UPDATE agent SET asked = 'many'"),
    "a half asked": ("plain", "UPDATE agent SET asked = 99.5"),
    "a life of text": ("plain", "UPDATE agent SET generation = 'first'"),
    "a life below": ("plain", "UPDATE agent SET generation = -3"),
    "no agent": ("plain", "DELETE FROM agent"),
    "two agents": ("plain", "INSERT INTO agent SELECT * FROM agent"),
    "no state": ("plain", "UPDATE agent SET policy = 'null'"),
    "an empty state": ("plain", "UPDATE agent SET policy = '{}'"),
    "a list for a state": ("plain", "UPDATE agent SET policy = '[]'"),
    "text for a state": ("plain", "UPDATE agent SET policy = 'nonsense'"),
    "bytes for a state": ("plain", "UPDATE agent SET policy = x'ff00fe'"),
    "a deep state": ("plain", f"UPDATE agent SET policy = '{'[' * 100_000}'"),
    "an empty state in phases": ("phased", "UPDATE agent SET policy = '{}'"),
    "an empty state of contexts": ("contextual", "UPDATE agent SET policy = '{}'"),
    "an empty state of private contexts": ("private", "UPDATE agent SET policy = '{}'"),
    "an empty state of trees": ("tree", "UPDATE agent SET policy = '{}'"),
    "arrivals of text": ("contextual", "UPDATE agent SET arrivals = 'nonsense'"),
    "a row less": ("plain", "DELETE FROM ledger WHERE number = 5"),
    "the last row less": ("plain", "DELETE FROM ledger WHERE number = 12"),
    "no row": ("live", "DELETE FROM ledger"),
    "rows in another order": ("plain", "UPDATE ledger SET number = -number"),
    "a row twice": ("plain", "INSERT INTO ledger SELECT 13, release FROM ledger WHERE number = 12"),
    "text for a row": ("plain", "UPDATE ledger SET release = 'nonsense' WHERE number = 5"),
    "bytes for a row": ("plain", "UPDATE ledger SET release = x'ff00fe' WHERE number = 5"),
    "no table": ("people", "DROP TABLE people"),
    "no column": ("people", "ALTER TABLE people DROP COLUMN rewards"),
    "a column of another name": ("plain", "ALTER TABLE agent RENAME COLUMN asked TO told"),
}


def test_edited_tables_are_refused(tmp_path: Path) -> None:
    found = {}
    for label, (name, command) in COMMANDS.items():
        path = copied(name, tmp_path)
        with edited(path) as connection:
            assert connection.execute(command).rowcount != 0, label
        found[label] = outcome(path) or outcome(path)  # the second time too: the first left it as it was, and free
    assert {label: what for label, what in found.items() if what} == {}


def row(change: Callable[[Any], Any]) -> Edit:
    return Edit("ledger", "release", change, lambda data: data["number"] in (1, 4))


ROW_FIELDS = (
    *("number", "key", "episodes", "count", "values", "noise_sd", "rounding"),
    *("noise", "scale", "sensitivity", "steps", "calibrated", "private"),
)
UNTOLD = {("private", "true"), *((name, sort) for name in ("noise_sd", "rounding") for sort in ("float", "huge"))}
"""These edits may be right, or nothing in the file contradicts them."""
LEDGER: dict[str, Edit] = {
    **{f"without {name}": row(without(name)) for name in ROW_FIELDS},
    **{
        f"{name} {sort}": row(put(name, to=value))
        for name in ROW_FIELDS
        for sort, value in WRONG.items()
        if (name, sort) not in UNTOLD
    },
    **{f"values of {sort}": row(put("values", 0, to=WRONG[sort])) for sort in ("null", "text", "true", "list")},
    "values not a number": row(put("values", 0, to=float("nan"))),
    "values infinite": row(put("values", 0, to=float("inf"))),
    "a value more": row(put("values", to=lambda values: [*values, 0.5])),
    "half the cost": row(put("calibrated", to=lambda cost: cost / 2)),
    "no cost": row(put("calibrated", to=0.0)),
    "half the scale": row(put("scale", to=lambda scale: scale / 2)),
    "twice the scale": row(put("scale", to=lambda scale: scale * 2)),
    "half the sensitivity": row(put("sensitivity", to=lambda sensitivity: sensitivity // 2)),
    "sensitivity of one": row(put("sensitivity", to=1)),
    "another grid": row(put("steps", to=lambda steps: steps // 2)),
    "no noise": row(put("noise", to="none")),
    "another noise": row(put("noise", to=lambda noise: "laplace" if noise == "gaussian" else "gaussian")),
    "private or not": row(put("private", to=lambda private: not private)),
    "another key": row(put("key", to=77)),
    "another episode": row(put("episodes", to={"0/99": 1.0})),
    "no episode": row(put("episodes", to={})),
    "half an episode": row(put("episodes", to=lambda found: {name: x / 2 for name, x in found.items()})),
    "more than there is": row(put("more", to=1)),
    "no object": row(lambda data: [data]),
    "nothing": row(lambda data: None),
}


@pytest.mark.parametrize("name", ["live", *(pytest.param(name, marks=pytest.mark.full) for name in KINDS)])
def test_edited_rows_of_the_ledger_are_refused(name: str, tmp_path: Path) -> None:
    assert not_refused(LEDGER, copied(name, tmp_path), tmp_path) == {}


def part(change: Callable[[Any], Any]) -> Edit:
    """A change of rows that hold earlier sums again."""
    return Edit("ledger", "release", change, lambda data: len(data["parts"]) > 2)


def moved(data: Any) -> Any:
    """A reward of a sum that is held again counts as one of another."""
    data["parts"][1][2] += 1
    data["parts"][2][2] -= 1
    return data


PARTS: dict[str, Edit] = {
    **{f"parts {sort}": part(put("parts", to=value)) for sort, value in WRONG.items()},
    **{f"field {i} {sort}": part(put("parts", 1, i, to=value)) for i in range(5) for sort, value in WRONG.items()},
    "a part less": part(lambda data: data | {"parts": data["parts"][:-1]}),
    "a part twice": part(lambda data: data | {"parts": [*data["parts"], data["parts"][-1]]}),
    "another order": part(lambda data: data | {"parts": [data["parts"][i] for i in (0, 2, 1)] + data["parts"][3:]}),
    "a field more": part(put("parts", 1, to=lambda found: [*found, 1])),
    "another key": part(put("parts", 1, 0, to=lambda key: key + 1)),
    "another episode": part(put("parts", 1, 1, to=lambda label: label + "0")),
    "another multiplier": part(put("parts", 1, 3, to=lambda multiplier: multiplier / 2)),
    "new again": part(put("parts", 1, 4, to=True)),
    "a reward held again more": part(put("parts", 1, 2, to=lambda rewards: rewards + 1)),
    "a reward held again of another": part(moved),
    "a new reward more": part(put("parts", 0, 2, to=lambda rewards: rewards + 1)),
    "all rewards new": part(lambda data: data | {"count": sum(found[2] for found in data["parts"])}),
    "keys as well": part(lambda data: data | {"keys": [0]}),
}


@pytest.mark.parametrize("name", ["private-tree", pytest.param("contextual", marks=pytest.mark.full)])
def test_edited_parts_of_rows_are_refused(name: str, tmp_path: Path) -> None:
    path = copied(name, tmp_path)
    with edited(path) as connection:  # rows as they are now, in a file without checksums
        stored = [text for (text,) in connection.execute("SELECT release FROM ledger ORDER BY number")]
        now = [(json.dumps(row.to_dict()), row.number) for row in read_ledger(stored)]
        connection.executemany("UPDATE ledger SET release = ? WHERE number = ?", now)
    assert outcome(Path(shutil.copy(path, tmp_path / "unedited.db"))) == "opened"
    assert not_refused(PARTS, path, tmp_path) == {}


# Files of today: no bit can be changed, and no cell.


class Built(NamedTuple):
    """A file, and what an agent shows that goes on from it."""

    name: str
    content: bytes
    shown: str
    planted: list[str]
    """Everything that is private in it, as text."""


_BUILT: dict[str, Built] = {}


@pytest.fixture
def same_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens and salts are the same in every run, so that flips with a seed are as well."""
    source = random.Random(5)
    monkeypatch.setattr(secrets, "token_hex", lambda size=16: source.randbytes(size).hex())
    monkeypatch.setattr(secrets, "token_bytes", lambda size=16: source.randbytes(size))


def built(name: str, folder: Path) -> Built:
    """Made once for all tests of a process."""
    if name not in _BUILT:
        policy, options = NEW[name]
        path = folder / "built.db"
        with pb.Agent(policy, path=path, **options) as agent:
            for step in range(WENT_ON[name]["told"]):
                one_step(agent, step)
            planted = private_texts(agent)
        content = path.read_bytes()
        with pb.Agent.open(path) as agent:
            shown = everything(agent)
        path.unlink()
        _BUILT[name] = Built(name, content, shown, planted)
    return _BUILT[name]


def private_offers(agent: pb.Agent) -> list[Any]:
    """Return the private offers of all open decisions."""
    records = bandit_of(agent).records
    found = [records.offered_to(opened) for d in agent.open_decisions if (opened := records.find(d.id)) is not None]
    return [offer for offer in found if offer is not None]


def everything(agent: pb.Agent) -> str:
    """All that the agent shows and hides, and its next steps."""
    found: list[Any] = [[row.to_dict() for row in agent.ledger], agent.settings, repr(agent), agent.learned]
    found += [[(d.id.rpartition("-")[2], d.action) for d in agent.open_decisions], agent.estimates()]
    found += [
        [(key, e.dump(), [k.dump() for k in e.kept]) for key, e in sorted(bandit_of(agent).private.episodes.items())]
    ]
    found += [[offer.tolist() for offer in private_offers(agent)], asdict(agent.counts)]
    found += [[bandit_of(agent).records.ending_of(number) for number in range(1, agent.counts.asked + 1)]]
    found += [
        [one_step(agent, step) for step in range(bandit_of(agent).public.asked, bandit_of(agent).public.asked + 12)]
    ]
    waiting = agent.open_decisions
    for decision in waiting[:3]:
        agent.tell(decision, 0.5)
    found += [[row.to_dict() for row in agent.ledger], agent.learned]
    return json.dumps(found)


def private_texts(agent: pb.Agent) -> list[str]:
    """Sums and contexts, which are large enough to be told from other numbers."""
    numbers: set[int] = set()
    for episode in bandit_of(agent).private.episodes.values():
        for part in (episode, *episode.kept):
            numbers |= set(part.totals.reveal())
    for offer in private_offers(agent):
        numbers |= set(offer.ravel().tolist())
    return [str(abs(number)) for number in sorted(numbers) if abs(number) >= 10**5]


@pytest.mark.parametrize("name", KINDS)
def test_undamaged_files_hold_what_is_private_and_go_on_alike(name: str, tmp_path: Path, same_secrets: None) -> None:
    of, path = built(name, tmp_path), tmp_path / "copy.db"
    assert of.planted
    path.write_bytes(of.content)
    assert not open_damaged(path, of, of.planted)


def seen_in(error: BaseException) -> str:
    """All that a crash reporter could log: texts, notes, causes, and the locals of all frames but the test's."""
    parts: list[str] = []
    waiting: list[BaseException | None] = [error]
    known: set[int] = set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in known:
            continue
        known.add(id(one))
        waiting += [one.__cause__, one.__context__]
        parts += [str(one), repr(one), repr(one.args), repr(getattr(one, "__notes__", "")), repr(vars(one))]
        parts += [repr(getattr(one, name, "")) for name in ("doc", "object", "obj")]
        for frame, _ in traceback.walk_tb(one.__traceback__):
            if frame.f_code.co_filename != __file__:
                parts += [repr(value) for value in frame.f_locals.values()]
    return "\n".join(parts)


def tells_of(text: str, planted: list[str]) -> str:
    """The first private number in a text, as a number of its own or as bytes."""
    for number in planted:
        binary = repr(int(number).to_bytes(8, "little"))[2:-1] if number.isdecimal() else number
        if re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.])", text) or binary in text:
            return number
    return ""


def open_damaged(path: Path, of: Built, planted: list[str]) -> bool:
    """Whether the file is refused, without a word of what is private; if not, the damage has no effect."""
    agent, refusal = opened_or_refused(path)
    if agent is None:
        assert type(refusal) is AgentFileInvalid, repr(refusal)
        assert not tells_of(seen_in(refusal), planted)
        return True
    with agent:
        assert everything(agent) == of.shown
    return False


def opened_or_refused(path: Path) -> tuple[pb.Agent | None, BaseException | None]:
    try:
        return pb.Agent.open(path), None
    except BaseException as error:
        return None, error


def flips(content: bytes, count: int, seed: int) -> list[int]:
    """Bits of a file: a third anywhere, a third where something stands, a third the highest of a letter or digit."""
    chance = random.Random(seed)
    filled = [i for i, byte in enumerate(content) if byte]
    letters = [i for i, byte in enumerate(content) if 32 <= byte < 127]
    anywhere = [chance.randrange(8 * len(content)) for _ in range(count // 3)]
    somewhere = [8 * chance.choice(filled) + chance.randrange(8) for _ in range(count // 3)]
    header = [chance.randrange(800) for _ in range(count // 12)]
    return [*anywhere, *somewhere, *header, *(8 * chance.choice(letters) + 7 for _ in range(count // 4))]


def flipped(of: Built, bit: int) -> tuple[bytes, list[str]]:
    """The damaged file; and what is private in it, a sum with another digit too."""
    content = bytearray(of.content)
    place = bit // 8
    content[place] ^= 1 << bit % 8
    planted = list(of.planted)
    for number in of.planted:
        spans = [found.span() for found in re.finditer(number.encode(), of.content)]
        planted += [content[a:b].decode("latin-1") for a, b in spans if a <= place < b]
    return bytes(content), planted


@pytest.mark.parametrize("count", [36, pytest.param(1200, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", KINDS)
def test_a_flipped_bit_is_refused_or_without_effect_and_no_error_tells_what_is_private(
    name: str, count: int, tmp_path: Path, same_secrets: None
) -> None:
    of, path, refusals = built(name, tmp_path), tmp_path / "damaged.db", 0
    for bit in flips(of.content, count, seed=len(name)):
        content, planted = flipped(of, bit)
        path.write_bytes(content)
        refusals += open_damaged(path, of, planted)
        remove(path)
    assert refusals > count // 3


def remove(path: Path) -> None:
    for file in path.parent.glob(path.name + "*"):
        file.unlink()


@pytest.mark.parametrize("name", ["plain", "contextual", "private", "private-tree", "people"])
def test_flipped_bits_in_what_is_private_tell_nothing(name: str, tmp_path: Path, same_secrets: None) -> None:
    """The digits of each sum and context where they stand in the file, and what stands around them."""
    of, path, chance = built(name, tmp_path), tmp_path / "damaged.db", random.Random(1)
    places = [found.start() for number in of.planted for found in re.finditer(number.encode(), of.content)]
    for _ in range(24 if places else 0):
        place = chance.choice(places) + chance.randrange(-12, 12)
        content, planted = flipped(of, 8 * place + chance.choice([0, 2, 5, 7, 7]))
        path.write_bytes(content)
        open_damaged(path, of, planted)
        remove(path)


CELLS: dict[str, Callable[[Any, random.Random], Any]] = {
    "nothing": lambda value, chance: None,
    "zero": lambda value, chance: 0,
    "below": lambda value, chance: -1,
    "huge": lambda value, chance: 2**62,
    "text": lambda value, chance: "nonsense",
    "bytes": lambda value, chance: b"\xff\x00\xfe",
    "float": lambda value, chance: 0.5,
    "more": lambda value, chance: value + 1 if isinstance(value, int) else f"{value} ",
    "less": lambda value, chance: value - 1 if isinstance(value, int) else value and value[:-1],
    "a digit": lambda value, chance: digit_changed(value, chance),
}


def digit_changed(value: Any, chance: random.Random) -> Any:
    if not isinstance(value, (str, bytes)):
        return value
    text = value if isinstance(value, str) else value.decode("latin-1")
    digits = [i for i, letter in enumerate(text) if letter.isdecimal()]
    if not digits:
        return value
    i = chance.choice(digits)
    changed = text[:i] + str((int(text[i]) + 1 + chance.randrange(9)) % 10) + text[i + 1 :]
    return changed if isinstance(value, str) else changed.encode("latin-1")


def cells_of(connection: sqlite3.Connection) -> Iterator[tuple[str, str, tuple[Any, ...], list[str]]]:
    """Table, column and row of every cell; a row by all of its values."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        columns = [found[1] for found in connection.execute(f"PRAGMA table_info({table})")]
        for values in connection.execute(f"SELECT * FROM {table}").fetchall():
            for column in columns:
                yield table, column, values, columns


def edits_of(of: Built, folder: Path, count: int) -> Iterator[Path]:
    """The file with one cell edited, or a row removed or doubled; every table and column has its turn."""
    chance, path = random.Random(count), folder / "edited.db"
    path.write_bytes(of.content)
    with edited(path) as connection:
        cells = list(cells_of(connection))
    remove(path)
    by_column: dict[tuple[str, str], list[Any]] = {}
    for cell in cells:
        by_column.setdefault(cell[:2], []).append(cell)
    for i in range(count):
        choices = list(by_column.values())
        table, column, values, columns = chance.choice(choices[i % len(choices)])
        condition = " AND ".join(f"{name} IS ?" for name in columns)
        sort = chance.choice([*CELLS, *CELLS, "a row less", "another row's"])
        path.write_bytes(of.content)
        with edited(path) as connection, contextlib.suppress(sqlite3.IntegrityError):
            if sort == "a row less":
                connection.execute(f"DELETE FROM {table} WHERE {condition}", values)
            else:
                value = values[columns.index(column)]
                other = chance.choice(choices[i % len(choices)])[2][columns.index(column)]
                new = other if sort == "another row's" else CELLS[sort](value, chance)
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {condition}", (new, *values))
        yield path
        remove(path)


@pytest.mark.parametrize("count", [24, pytest.param(600, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", KINDS)
def test_an_edited_cell_is_refused_or_without_effect(name: str, count: int, tmp_path: Path, same_secrets: None) -> None:
    of = built(name, tmp_path)
    refusals = sum(open_damaged(path, of, of.planted) for path in edits_of(of, tmp_path, count))
    assert refusals > count // 3


@pytest.mark.parametrize("count", [20, pytest.param(400, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", ["plain", "contextual", "private"])
def test_a_flipped_bit_in_the_log_takes_no_row_back(name: str, count: int, tmp_path: Path, same_secrets: None) -> None:
    policy, options = KINDS[name]
    path, copies = tmp_path / "agent.db", tmp_path / "copies"
    copies.mkdir()
    with pb.Agent(policy, path=path, **options) as agent:
        for step in range(31):
            one_step(agent, step)
        published = {json.dumps(row.to_dict()) for row in agent.ledger}
        content, log = path.read_bytes(), path.with_name("agent.db-wal").read_bytes()  # as a kill would leave them
        planted = private_texts(agent)
    chance = random.Random(count)
    for _ in range(count):
        damaged = bytearray(log)
        bit = chance.randrange(8 * len(log)) if log else 0
        if log:
            damaged[bit // 8] ^= 1 << bit % 8
        (copies / "agent.db").write_bytes(content)
        (copies / "agent.db-wal").write_bytes(damaged)
        found, refusal = opened_or_refused(copies / "agent.db")
        if found is None:
            assert type(refusal) is AgentFileInvalid, repr(refusal)
            assert not tells_of(seen_in(refusal), planted)
        else:
            assert published <= {json.dumps(row.to_dict()) for row in found.ledger}
            found.close()
        remove(copies / "agent.db")
    (copies / "agent.db").write_bytes(content)
    (copies / "agent.db-wal").write_bytes(log)
    with pb.Agent.open(copies / "agent.db") as found:
        assert {json.dumps(row.to_dict()) for row in found.ledger} == published


def test_a_file_of_format_four_without_its_log_is_refused(tmp_path: Path) -> None:
    """Format 4 noted whether its log is needed, and had no table for how decisions ended."""
    path = tmp_path / "agent.db"
    with pb.Agent(KINDS["plain"][0], path=path, seed=1) as agent:
        for step in range(20):
            one_step(agent, step)
        counts = agent.counts
    with edited(path) as connection:
        as_format_four(connection)
        connection.execute("UPDATE presence SET log_needed = 1")
    with pytest.raises(AgentFileInvalid, match="the log that held them"):
        pb.Agent.open(path)
    for _ in range(2):
        with pb.Agent.open(path, without_log=True) as agent:
            assert (agent.counts.asked, agent.counts.open, agent.counts.told) == (counts.asked, counts.open, 0)
            assert agent.counts.unknown == counts.told
            with pytest.raises(pb.errors.ClosedDecision, match="did not note which"):
                agent.tell(f"{bandit_of(agent).settings.token}-1-1", 1.0)


def as_format_four(connection: sqlite3.Connection) -> None:
    """Write the row of agent without how decisions ended, and the total without fingerprints."""
    connection.execute("DROP TABLE closed")
    connection.execute("DROP TABLE generations")
    tables = ("decisions", "episodes", "kept", "ledger", "people")
    sums = [connection.execute(f"SELECT coalesce(sum(checksum + {2**32}), 0) FROM {t}").fetchone()[0] for t in tables]
    asked, generation, arrivals = connection.execute("SELECT asked, generation, arrivals FROM agent").fetchone()
    fixed = [connection.execute(f"SELECT checksum FROM {t}").fetchone()[0] for t in ("settings", "policy")]
    own = agent_checksum((asked, generation, arrivals, sum(sums)), (fixed[0], fixed[1]))
    connection.execute("ALTER TABLE agent DROP COLUMN ended")
    connection.execute("UPDATE agent SET total = ?, checksum = ?", (sum(sums), own))
    connection.execute("PRAGMA user_version = 4")


@pytest.mark.parametrize(("name", "table", "column"), [("people", "people", "person"), ("factor", "kept", "label")])
def test_a_text_that_became_bytes_is_refused(name: str, table: str, column: str, tmp_path: Path) -> None:
    """Its checksum is that of the text, and no look-up finds it: a person would begin to count anew."""
    path = tmp_path / "agent.db"
    policy, options = NEW[name]
    with pb.Agent(policy, path=path, **options) as agent:
        for step in range(40):
            one_step(agent, step)
    with edited(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = CAST({column} AS BLOB)")
    with pytest.raises(AgentFileInvalid, match=f"a column of {table} is of another type"):
        pb.Agent.open(path)


def test_actions_that_changed_places_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(KINDS["plain"][0], path=path) as agent:
        agent.ask(3)
    with edited(path) as connection:
        connection.execute("UPDATE decisions SET action = 1 - action WHERE number < 3")
    with pytest.raises(AgentFileInvalid, match="rows are missing, or from another time"):
        pb.Agent.open(path)

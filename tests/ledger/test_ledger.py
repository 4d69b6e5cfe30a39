"""The ledger: rows without a gap, and a total that is never below the exact one."""

from __future__ import annotations

import copy
import gc
import json
import math
import pickle
import random
import re
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import private_bandits as pb
from private_bandits.budget import NoiseKind
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Account, Ledger, Part, Release
from private_bandits.ledger import ledger as ledger_module
from private_bandits.mechanism.episode import label_of
from private_bandits.mechanism.tree import subtrees_joined
from private_bandits.storage.rows import chained_rows

steady = settings(derandomize=True, deadline=None)

Covered = tuple[Mapping[str, float], float]
"""What a row covers, with the multipliers, and its cost."""


def row(
    number: int,
    episodes: Mapping[str, float],
    calibrated: float,
    noise: NoiseKind = "gaussian",
    private: bool = True,
) -> Release:
    return Release(
        number=number,
        key=0,
        episodes=episodes,
        count=7,
        values=(0.1, -2.5),
        noise_sd=0.3,
        rounding=1e-8,
        noise=noise,
        scale=12.5,
        sensitivity=2**24,
        steps=2**24,
        calibrated=calibrated,
        private=private,
        parts=(Part(key=0, episode=next(iter(episodes)), rewards=7, multiplier=1.0, new=True),),
    )


def ledger_of(rows: Iterable[Covered], noise: NoiseKind = "gaussian") -> Ledger:
    return Ledger(chained_rows((row(i, e, cost, noise) for i, (e, cost) in enumerate(rows, start=1)), ""))


def account_of(rows: Iterable[Covered]) -> Account:
    return Account(chained_rows((row(i, e, cost) for i, (e, cost) in enumerate(rows, start=1)), ""))


def exact_total(rows: Iterable[Covered], noise: NoiseKind) -> Fraction:
    """The largest summed cost of an episode, without any rounding."""
    per_episode: defaultdict[str, Fraction] = defaultdict(Fraction)
    for episodes, cost in rows:
        for episode, multiplier in episodes.items():
            size = abs(Fraction(multiplier))
            per_episode[episode] += Fraction(cost) * (size**2 if noise == "gaussian" else size)
    return max(per_episode.values(), default=Fraction(0))


def assert_total_is_rounded_up(rows: list[Covered], noise: NoiseKind) -> None:
    total, exact = Fraction(ledger_of(rows, noise).total), exact_total(rows, noise)
    assert total >= exact
    assert total <= exact * (1 + Fraction(10 * len(rows), 2**52))  # and by roundings only


# The total.


def test_an_empty_ledger_has_spent_nothing() -> None:
    assert (len(Ledger()), Ledger().total, Ledger().rows) == (0, 0.0, ())


def test_one_release_costs_its_own_cost_to_the_last_bit() -> None:
    for cost in (0.1, 1e-300, 0.3, 7.0):
        assert ledger_of([({"0/1": 1.0}, cost)]).total == cost


def test_episodes_that_share_no_reward_cost_the_largest_and_not_the_sum() -> None:
    ledger = ledger_of([({"0/1": 1.0}, 0.1), ({"1/1": 1.0}, 0.3), ({"0/2": 1.0}, 0.2)])
    assert ledger.total == 0.3
    many = ledger_of([({f"0/{i}": 1.0}, 0.1) for i in range(1000)])
    assert many.total == 0.1


@pytest.mark.parametrize(("noise", "expected"), [("gaussian", 0.25 * (1 + 4 + 9)), ("laplace", 0.25 * (1 + 2 + 3))])
def test_multipliers_are_squared_for_gaussian_noise_and_linear_for_laplace(noise: NoiseKind, expected: float) -> None:
    rows: list[Covered] = [({"a": 1.0, "b": 1.0}, 0.25), ({"a": 2.0}, 0.25), ({"a": -3.0, "b": 0.5}, 0.25)]
    total = ledger_of(rows, noise).total
    assert total == pytest.approx(expected, rel=1e-14)
    assert total >= expected


costs = st.floats(1e-12, 1e6)
covered = st.tuples(
    st.dictionaries(st.sampled_from("abc"), st.floats(1e-3, 1e3) | st.floats(-1e3, -1e-3) | st.just(1.0), min_size=1),
    costs,
)


@steady
@given(rows=st.lists(covered, min_size=1, max_size=12), noise=st.sampled_from(["gaussian", "laplace"]))
def test_the_total_is_never_below_the_exact_one(rows: list[Covered], noise: NoiseKind) -> None:
    assert_total_is_rounded_up(rows, noise)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_the_total_of_many_roundings_is_never_below_the_exact_one(noise: NoiseKind, n_rows: int) -> None:
    generator = random.Random(1)
    for _ in range(2000):
        rows: list[Covered] = [({"a": generator.uniform(0.5, 2)}, generator.uniform(0.01, 1)) for _ in range(n_rows)]
        assert_total_is_rounded_up(rows, noise)


def test_the_roundings_of_a_square_a_product_and_a_sum_are_all_covered() -> None:
    assert_total_is_rounded_up([({"a": 0.5208321568965782}, 0.7546071999621744)], "gaussian")


@pytest.mark.parametrize("small", [1e-30, 1e-17, 5e-324])
def test_a_cost_too_small_to_change_the_sum_is_not_lost(small: float) -> None:
    for rows in ([({"a": 1.0}, small), ({"a": 1.0}, 1.0)], [({"a": 1.0}, 1.0), ({"a": 1.0}, small)]):
        assert Fraction(ledger_of(rows).total) >= 1 + Fraction(small)
    many = ledger_of([({"a": 1.0}, 1.0)] + [({"a": 1.0}, 1e-17)] * 1000)
    assert many.total >= 1 + 1000 * 1e-17


@pytest.mark.parametrize("noise", ["gaussian", "laplace", "none"])
def test_a_row_without_secret_noise_costs_everything(noise: NoiseKind) -> None:
    foreseeable = row(1, {"a": 1.0}, 0.1, noise, private=False)
    assert foreseeable.cost == math.inf
    assert foreseeable.calibrated == 0.1
    assert Ledger(chained_rows([foreseeable], "")).total == math.inf
    rows = chained_rows([row(1, {"b": 1.0}, 0.1), row(2, {"a": 1.0}, 0.1, noise, private=False)], "")
    assert Ledger(rows).total == math.inf


# Rows.


@pytest.mark.parametrize("number", [0, 1, 2, 4, -1])
def test_a_row_out_of_order_is_refused_and_leaves_the_account_as_it_is(number: int) -> None:
    account = account_of([({"a": 1.0}, 0.1), ({"b": 1.0}, 0.2)])
    before = (len(account), account.total)
    with pytest.raises(InvalidInput, match=f"row 3 comes next in the ledger, got row {number}$"):
        account.charge(row(number, {"c": 1.0}, 5.0))
    assert (len(account), account.total) == before
    assert not account.covers("c")
    with pytest.raises(InvalidInput, match="row 3 of the ledger does not hold the hash of what is before it"):
        account.charge(row(3, {"c": 1.0}, 5.0))
    assert (len(account), account.total) == before
    account.charge(replace(row(3, {"c": 1.0}, 5.0), previous=account.last_hash))
    assert (len(account), account.total) == (3, 5.0)
    with pytest.raises(InvalidInput, match="row 1 comes next in the ledger, got row 2"):
        Ledger([row(2, {"a": 1.0}, 0.1)])


def test_the_account_knows_which_episodes_were_released() -> None:
    account = account_of([({"0/1": 1.0, "1/1": 0.5}, 0.1), ({"2/7-8": 1.0}, 0.1)])
    released = ["0/1", "1/1", "0/0", "2/8", "2/7-8", "2/1-8", "2/3"]  # a later one of the same sum counts as well
    assert [label for label in (*released, "0/2", "1/1-2", "2/9", "3/1", "x") if account.covers(label)] == released
    assert (len(account), account.total) == (2, 0.1)  # asking has changed nothing
    assert repr(account) == "Account(2 releases, total 0.1)"


def test_rows_come_out_in_order_and_cannot_be_changed() -> None:
    ledger = ledger_of([({"a": 1.0}, 0.1), ({"b": 1.0}, 0.2)])
    assert [release.number for release in ledger] == [1, 2]
    assert list(ledger) == list(ledger.rows) == [ledger[0], ledger[1]]
    assert isinstance(ledger.rows, tuple)
    with pytest.raises(AttributeError):
        ledger[0].calibrated = 0.0  # type: ignore[misc]
    with pytest.raises(TypeError):
        ledger[0].episodes["a"] = 0.0  # type: ignore[index]
    edits: list[Callable[[Any], Any]] = [
        lambda found: found.__delitem__("a"),
        lambda found: found.__ior__({"a": 0.0}),
        lambda found: found.clear(),
        lambda found: found.pop("a"),
        lambda found: found.popitem(),
        lambda found: found.setdefault("c", 0.0),
        lambda found: found.update(a=0.0),
    ]
    for edit in edits:
        with pytest.raises(TypeError, match=r"cannot be changed: change a copy of it, such as dict\(row\.episodes\)"):
            edit(ledger[0].episodes)
    assert ledger[0].episodes == {"a": 1.0}
    assert repr(ledger) == "Ledger(2 releases, total 0.2)"


def test_a_row_does_not_change_with_the_data_that_it_was_made_from() -> None:
    episodes = {"a": 1.0}
    ledger = Ledger(chained_rows([row(1, episodes, 0.1)], ""))
    episodes["b"] = 5.0
    ledger[0].to_dict()["episodes"]["c"] = 5.0
    assert ledger[0].episodes == {"a": 1.0}


# Plain data.


@pytest.mark.parametrize("calibrated", [0.1, 1e-300, math.inf, 0.1 + 0.2])
@pytest.mark.parametrize("private", [True, False])
def test_a_row_is_the_same_after_json(calibrated: float, private: bool) -> None:
    original = row(1, {"0/1": 1.0, "2/5": -0.3}, calibrated, private=private)
    text = json.dumps(original.to_dict())
    again = Release.from_dict(json.loads(text))
    assert again == original
    assert isinstance(again.values, tuple)
    assert again.cost == original.cost


def test_a_ledger_is_the_same_after_json() -> None:
    rows: list[Covered] = [({"a": 1.5, "b": 1.0}, 0.1), ({"a": 0.7}, 0.3), ({"b": -1.1}, 0.2)]
    ledger = ledger_of(rows)
    again = Ledger(chained_rows((Release.from_dict(json.loads(json.dumps(one.to_dict()))) for one in ledger), ""))
    assert (again.rows, again.total) == (ledger.rows, ledger.total)


def test_a_span_covers_every_episode_in_it_and_costs_add_up() -> None:
    rows: list[Covered] = [
        ({"0/1": 1.0}, 0.1),
        ({"0/1-2": 1.0}, 0.1),
        ({"0/3": 1.0}, 0.1),
        ({"0/1-4": 1.0}, 0.1),
        ({"1/1": 1.0}, 0.25),
    ]
    ledger = ledger_of(rows)
    assert ledger.total == pytest.approx(0.3)
    assert Fraction(ledger.total) >= 3 * Fraction(0.1)


def joined_and_apart(spans: Iterable[tuple[int, int, int, float]]) -> tuple[list[Covered], list[Covered]]:
    """Spans of episodes that leave as one, by key, first and last, and the same with a label for each episode."""
    joined: list[Covered] = []
    apart: list[Covered] = []
    for key, first, last, cost in spans:
        joined.append(({label_of(key, first, last): 1.0}, cost))
        apart.append(({f"{key}/{n}": 1.0 for n in range(first, last + 1)}, cost))
    return joined, apart


@steady
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(1, 12), st.integers(0, 6), st.floats(1e-6, 10)), max_size=25))
def test_spans_cost_no_less_than_their_episodes_would_cost_one_by_one(spans: list[tuple[int, int, int, float]]) -> None:
    joined, apart = joined_and_apart((key, first, first + more, cost) for key, first, more, cost in spans)
    exact = exact_total(apart, "gaussian")
    assert Fraction(ledger_of(joined).total) >= exact
    assert Fraction(ledger_of(apart).total) >= exact
    assert ledger_of(apart).total == pytest.approx(float(exact))


@steady
@given(
    levels=st.integers(1, 5),
    leaves=st.integers(1, 70),
    costs=st.lists(st.floats(1e-6, 10), min_size=1, max_size=5),
    turns=st.integers(1, 3),
)
def test_nodes_of_trees_cost_exactly_what_their_leaves_would_cost_one_by_one(
    levels: int, leaves: int, costs: list[float], turns: int
) -> None:
    """What leaves as one leaves as one again, or not at all: then the total is no more than rounded up."""
    nodes = [(leaf % turns, 1 + leaf // turns, costs[leaf % len(costs)]) for leaf in range(leaves)]
    joined, apart = joined_and_apart(
        (key, number + 1 - 2 ** subtrees_joined(number, levels), number, cost) for key, number, cost in nodes
    )
    assert ledger_of(joined).total == ledger_of(apart).total
    assert ledger_of(joined).total == pytest.approx(float(exact_total(apart, "gaussian")))


def size_of(account: Account) -> int:
    """How many numbers an account remembers."""
    return len(pickle.dumps(account))


@pytest.mark.parametrize(
    "label",
    [
        lambda n: {f"0/{n}": 1.0},
        lambda n: {label_of(0, n + 1 - 2 ** subtrees_joined(n, 20), n): 1.0},
        lambda n: {f"0/{n - k}": 0.5**k for k in range(min(n, 5))},
    ],
    ids=["alone", "tree", "factor"],
)
def test_an_account_does_not_grow_with_the_number_of_releases(label: Callable[[int], Mapping[str, float]]) -> None:
    account = Account()
    sizes = []
    for number in range(1, 4097):
        account.charge(replace(row(number, label(number), 0.1), previous=account.last_hash))
        if number in (512, 1024, 2048, 4096):
            sizes.append(size_of(account))
    assert max(sizes) <= sizes[0] + 100


def test_labels_of_another_form_stand_for_themselves() -> None:
    ledger = ledger_of([({"all": 1.0}, 0.5), ({"all-1": 1.0}, 0.5), ({"x/y-2": 1.0}, 0.5), ({"0/5-3": 1.0}, 0.5)])
    assert ledger.total == 0.5


# Copies.

COPIES: list[Callable[[Any], Any]] = [
    copy.copy,
    copy.deepcopy,
    *(lambda found, protocol=protocol: pickle.loads(pickle.dumps(found, protocol)) for protocol in range(6)),
]


@pytest.mark.parametrize("copied", COPIES)
def test_a_row_can_be_copied_and_stays_as_it_is(copied: Callable[[Any], Any]) -> None:
    original = row(1, {"0/1": 1.0, "2/5": -0.3}, 0.1)
    again = copied(original)
    assert (again, repr(again), again.to_dict()) == (original, repr(original), original.to_dict())
    assert json.dumps(again.to_dict()) == json.dumps(original.to_dict())
    with pytest.raises(TypeError, match="cannot be changed"):
        again.episodes["0/1"] = 0.0
    with pytest.raises(AttributeError):
        again.calibrated = 0.0
    for one in (original, again):
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)


@pytest.mark.parametrize("copied", COPIES)
def test_a_ledger_can_be_copied(copied: Callable[[Any], Any]) -> None:
    ledger = ledger_of([({"a": 1.5, "b": 1.0}, 0.1), ({"a": 0.7}, 0.3)])
    again = copied(ledger)
    assert (again.rows, again.total, len(again), repr(again)) == (ledger.rows, ledger.total, 2, repr(ledger))
    assert (again[-1], again[:1]) == (ledger[1], [ledger[0]])
    assert (copied(Ledger()).rows, copied(Ledger()).total) == ((), 0.0)


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("few", [1, ledger_module.FEW])
def test_a_copy_of_an_agents_ledger_takes_the_rows_along_and_not_the_agent(
    copied: Callable[[Any], Any], few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "FEW", few)
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.1), variant="paper"), path=tmp_path / "agent.db")
    for _ in range(20):
        agent.tell(agent.ask(), reward=1.0)
    ledger = agent.ledger
    again = copied(ledger)
    assert len(again) > 2
    assert (again.rows, again.total) == (ledger.rows, ledger.total)
    with pytest.raises(TypeError, match="an agent cannot be copied"):
        copied(agent)
    rows = ledger.rows
    watch = weakref.ref(agent)
    agent.close()
    del agent, ledger
    gc.collect()
    assert watch() is None  # the copy does not hold it
    (tmp_path / "agent.db").unlink()
    assert (again.rows, again[0], again[-2:]) == (rows, rows[0], list(rows[-2:]))


def test_a_copy_keeps_the_total_of_the_account() -> None:
    """After an interrupt an account may have charged more than the rows say."""
    account = account_of([({"a": 1.0}, 0.5)])
    rows = [row(1, {"a": 1.0}, 0.1)]
    ledger = Ledger.stored(account, lambda first, last: rows, lambda first, last: rows)
    assert [copied(ledger).total for copied in COPIES] == [0.5] * len(COPIES)


# Frames.


def test_a_frame_has_a_row_for_each_release() -> None:
    rows = [row(1, {"0/1": 1.0}, 0.1), row(2, {"0/2": 1.0, "0/1": 0.5}, 0.2, "laplace", private=False)]
    ledger = Ledger(chained_rows(rows, ""))
    frame = ledger.to_frame()
    assert list(frame.columns) == list(ledger_module.COLUMNS)
    for name in frame.columns:
        assert frame[name].tolist() == [getattr(release, name) for release in ledger], name
    assert frame["cost"].tolist() == [0.1, math.inf]
    assert [type(found) for found in frame["episodes"]] == [dict, dict]
    assert [str(frame[name].dtype) for name in ("number", "noise_sd", "private")] == ["int64", "float64", "bool"]
    frame.loc[0, "episodes"]["0/1"] = 7.0  # type: ignore[index]
    assert ledger[0].episodes == {"0/1": 1.0}


def test_the_frame_of_an_empty_ledger_has_the_same_columns() -> None:
    frame = Ledger().to_frame()
    assert (len(frame), list(frame.columns)) == (0, list(ledger_module.COLUMNS))


def test_every_column_of_a_frame_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "using.md").read_text(encoding="utf-8")
    in_table = re.findall(
        r"`(\w+)`", " ".join(re.findall(r"^\| (`\w+`.*?) \|", page.partition("to_frame()` is")[2], re.M))
    )
    assert set(in_table[: len(ledger_module.COLUMNS)]) == set(ledger_module.COLUMNS)
    in_words = (Ledger.to_frame.__doc__ or "").partition("`Release`:")[2].replace("(a dict)", "")
    assert tuple(re.findall(r"\w+", in_words)) == ledger_module.COLUMNS


def test_pandas_takes_rows_and_ledgers_as_they_are() -> None:
    ledger = ledger_of([({"a": 1.5, "b": 1.0}, 0.1), ({"a": 0.7}, 0.3)])
    rows: Any
    for rows in (ledger, list(ledger), [release.to_dict() for release in ledger]):
        frame = pd.DataFrame(rows)
        assert frame["episodes"].tolist() == [{"a": 1.5, "b": 1.0}, {"a": 0.7}]
        assert frame["calibrated"].tolist() == [0.1, 0.3]


# Rows that are in a store.


def test_a_ledger_reads_the_rows_of_a_store_when_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "FEW", 10)
    monkeypatch.setattr(ledger_module, "PAGE", 7)
    rows = list(chained_rows((row(number, {f"0/{number}": 1.0}, 0.1) for number in range(1, 31)), ""))
    reads: list[tuple[int, int]] = []

    def read(first: int, last: int) -> list[Release]:
        reads.append((first, last))
        return rows[first - 1 : last]

    def not_now(first: int, last: int) -> list[Release]:
        pytest.fail(f"rows {first} to {last} are read")

    account = Account(rows[:24])
    ledger = Ledger.stored(account, not_now, read)
    account.charge(rows[24])  # and the ledger stays as it was
    assert (len(ledger), ledger.total, reads) == (24, 0.1, [])
    assert ledger[-1] == rows[23]
    assert ledger[0] == rows[0]
    assert ledger[-3:] == rows[21:24]
    assert ledger[::-5] == rows[23::-5]
    assert ledger[30:] == []
    assert reads == [(24, 24), (1, 1), (22, 24), (4, 24)]
    assert list(ledger) == list(ledger.rows) == rows[:24]
    assert max(last - first for first, last in reads[4:]) == 6
    for index in (24, -25):
        with pytest.raises(IndexError):
            ledger[index]
    few = Ledger.stored(Account(rows[:10]), read, not_now)
    reads.clear()
    assert list(few) == rows[:10]
    assert reads == []

"""Labelled tables as bandits: what is made of a table, what is left out, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.labelled import MOST_CATEGORIES

TABLE = {
    "age": [20.0, 30.0, 40.0, 50.0, 60.0, 70.0],
    "sex": ["f", "m", "f", "m", "f", "m"],
    "town": ["Ulm", "Bonn", "Ulm", "Kiel", "Bonn", "Kiel"],
    "drug": ["B", "A", "B", "A", "B", "B"],
}


def test_numbers_are_standardised_and_cut() -> None:
    made = pb.Labelled({"age": TABLE["age"], "drug": TABLE["drug"]}, "drug", cut=1.2)
    ages = np.array(TABLE["age"], float)
    standard = (ages - 45) / ages.std()
    np.testing.assert_allclose(made.contexts[:, 0], np.clip(standard / 1.2, -1, 1))
    assert made.contexts[0, 0] == -1  # beyond the cut
    assert abs(made.contexts[1, 0]) < 1


def test_texts_become_a_column_each_and_two_of_them_one() -> None:
    made = pb.Labelled(TABLE, "drug")
    assert made.features.context == ("age", "sex=m", "town=Bonn", "town=Kiel", "town=Ulm")
    assert made.contexts[:, 1].tolist() == [0, 1, 0, 1, 0, 1]
    assert made.contexts[:, 2:].sum(axis=1).tolist() == [1] * 6
    assert made.labels == ("A", "B")
    assert made.answers.tolist() == [1, 0, 1, 0, 1, 1]
    assert made.dimension == 2 * (5 + 1)
    assert made.best_fixed_share == 4 / 6
    assert made.guessing_share == 0.5


def test_actions_are_those_of_features_and_as_short_as_declared() -> None:
    made = pb.Labelled(TABLE, "drug")
    for row in range(made.rows):
        np.testing.assert_array_equal(made.actions(row), made.features(made.contexts[row]))
        assert np.linalg.norm(made.actions(row), axis=1).max() <= made.context_norm
        assert [made.reward(row, arm) for arm in range(2)] == [made.answers[row] == 0, made.answers[row] == 1]


def test_every_way_to_give_a_table_is_the_same(tmp_path: Path) -> None:
    expected = pb.Labelled(TABLE, "drug")
    frame = pd.DataFrame(TABLE)
    frame.to_csv(tmp_path / "table.csv", index=False)
    typed = frame.astype({"sex": "category", "town": "string"})
    for table in (frame, frame.astype(object), typed, tmp_path / "table.csv", str(tmp_path / "table.csv")):
        assert pb.Labelled(table, "drug") == expected
    assert pb.Labelled({name: TABLE[name] for name in ("age", "sex", "town")}, TABLE["drug"]) == expected
    numbers = pb.Labelled(np.array([TABLE["age"]]).T, np.array([1, 0, 1, 0, 1, 1]))
    np.testing.assert_array_equal(numbers.contexts, pb.Labelled({"age": TABLE["age"], "l": "bababb"}, "l").contexts)
    assert numbers.labels == ("0", "1")


def test_kinds_of_columns() -> None:
    frame = pd.DataFrame({"flag": [True, False, True], "code": [3, 1, 2], "label": [10, 9, 9]})
    assert pb.Labelled(frame, "label").features.context == ("flag=True", "code")
    assert pb.Labelled(frame, "label").labels == ("9", "10")  # by size
    frame["code"] = frame["code"].astype("category")
    assert pb.Labelled(frame, "label").features.context == ("flag=True", "code=1", "code=2", "code=3")


def test_rows_with_missing_values_are_left_out_and_told(tmp_path: Path) -> None:
    lines = ["a,b,empty,same,label", "1,x,,7,yes", ",x,,7,no", "NA,y,,7,no", "4,,,7,no", "5,y,,7,", "6,None,,7,no"]
    (tmp_path / "t.csv").write_text("\n".join([*lines, "9,x,,7,no", "inf,x,,7,no"]))
    made = pb.Labelled(tmp_path / "t.csv", "label")
    assert made.rows == 3
    assert made.rows_left_out == 5
    assert made.columns_left_out == ("empty", "same")
    assert made.features.context == ("a", "b=x")  # of "None" and "x", which are two texts
    assert made.left_out == "5 rows with missing values; columns that never change: empty, same"
    assert pb.Labelled(TABLE, "drug").left_out == ""
    gone = pd.DataFrame({"a": [1.0, math.nan, 3.0, 4.0], "b": [None, "x", "y", "z"], "label": ["u", "v", "u", "u"]})
    with pytest.raises(InvalidInput, match="one label only"):  # the other one was in a row that is left out
        pb.Labelled(gone, "label")


def test_components_are_those_of_the_correlation_matrix() -> None:
    generator = np.random.default_rng(0)
    table = generator.normal(size=(200, 4)) @ generator.normal(size=(4, 4)) * [1, 10, 100, 1000]
    labels = (table[:, 0] > 0).astype(int)
    made = pb.Labelled(table, labels, components=2, cut=100)
    standard = (table - table.mean(axis=0)) / table.std(axis=0)
    values, vectors = np.linalg.eigh(np.corrcoef(table.T))
    for i in range(2):
        score = standard @ vectors[:, -1 - i]
        found = made.contexts[:, i] * 100
        assert abs(found.std() - 1) < 1e-9
        assert abs(abs(np.corrcoef(found, score)[0, 1]) - 1) < 1e-9
    assert values[-1] > values[-2]
    assert made.features.context == ("component 1", "component 2")
    assert made == pb.Labelled(table, labels, components=2, cut=100)
    with pytest.raises(InvalidInput, match="components must be at most 3"):
        pb.Labelled(np.column_stack([table[:, :3], table[:, 0]]), labels, components=4)


@pytest.mark.parametrize(
    ("table", "label", "words"),
    [
        (TABLE, "medicine", "no column 'medicine': it has"),
        ({**TABLE, "drug": ["A"] * 6}, "drug", "one label only"),
        ({**TABLE, "drug": list("ABCDEF")}, "drug", "each of the 6 rows has a label of its own"),
        ({"age": [5] * 4, "drug": list("ABAB")}, "drug", "no column to learn from"),
        ({"drug": list("ABAB")}, "drug", "no column to learn from"),
        ({"age": [], "drug": []}, "drug", "the table is empty"),
        ({"age": [None, 1], "drug": ["A", None]}, "drug", "no row of the table is complete; column 'age' lacks most"),
        ({"age": [1, 2, 3], "drug": ["A", "B"]}, "drug", "must be of one length"),
        ({"n": [f"n{i}" for i in range(99)], "drug": [*"ABC"] * 33}, "drug", "column 'n' has 99 different values"),
        (pd.DataFrame([[1, 2, "A"]], columns=["a", "a", "drug"]), "drug", "two columns of one name"),
        (TABLE, 3, "label must be the name of a column"),
        (np.zeros((3, 2)), "drug", "must be a DataFrame"),
        (np.zeros(3), [1, 2, 1], "must be a DataFrame"),
        ("nowhere.csv", "drug", r"nowhere.csv cannot be read: No such file"),
    ],
)
def test_what_is_no_labelled_table_is_refused(table: Any, label: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        pb.Labelled(table, label)


def test_too_many_dimensions_are_refused_with_the_remedy() -> None:
    table = np.random.default_rng(0).normal(size=(400, 100))
    with pytest.raises(InvalidInput, match=r"actions would have 2,020 numbers .* use components"):
        pb.Labelled(table, np.arange(400) % 20)
    assert pb.Labelled(table, np.arange(400) % 20, components=3).dimension == 80
    assert MOST_CATEGORIES < 99  # what is refused above


def test_errors_repeat_no_value_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("secret4711,2\nsecret4712,3\n")
    with pytest.raises(InvalidInput) as caught:
        pb.Labelled(tmp_path / "t.csv", "label")
    assert "secret" not in str(caught.value)


def test_a_column_of_numbers_with_a_stray_text_is_refused_by_row() -> None:
    scores: list[object] = [*range(9), "<5"]
    with pytest.raises(InvalidInput, match=r"'score' holds numbers and 1 texts .* row 9") as refusal:
        pb.Labelled({"score": scores, "right": ["a", "b"] * 5}, "right")
    assert "<5" not in str(refusal.value), "a cell is somebody's"
    mostly_texts = ["low", "high", 3, 4] * 5
    world = pb.Labelled({"score": mostly_texts, "right": ["a", "b", "b", "a"] * 5}, "right")
    assert len(world.features.context) == 4

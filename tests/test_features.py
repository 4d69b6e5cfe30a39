"""Features: rows against hand-built ones, norms that hold whatever the context, and what is refused."""

from __future__ import annotations

import math
from collections import ChainMap, Counter, defaultdict
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.features import Features

steady = settings(derandomize=True, deadline=None)
Floats = NDArray[np.float64]

X = [3.0, -4.0]
Z = [[1.0, 0.5], [0.0, 2.0], [-4.0, 0.0]]
U = [0.3, -0.8]  # X within bounds of 10 and 5
V = [[0.25, 0.25], [0.0, 1.0], [-1.0, 0.0]]  # Z, columns divided by 4 and 2


def unscaled(features: Features, context: Any) -> Floats:
    return np.asarray(features(context) / features.scale)


@st.composite
def any_features(draw: st.DrawFn) -> Features:
    """Every configuration that is allowed, with bounds and vectors of very different sizes."""
    p, n_arms, q = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(0, 3))
    bounds = draw(st.lists(st.floats(1e-9, 1e9), min_size=p, max_size=p))
    norm = draw(st.floats(1e-9, 1e9))
    if not q:
        per_arm, intercept = draw(st.sampled_from([(True, False), (False, True), (True, True)]))
        return Features(p, n_arms, bounds, draw(st.booleans()), per_arm, intercept, norm)
    row = st.tuples(*[st.integers(-1000, 1000)] * q)
    table = np.array(draw(st.lists(row, min_size=n_arms, max_size=n_arms, unique=True)))
    units = draw(st.lists(st.floats(1e-9, 1e9), min_size=q, max_size=q))
    return Features(p, table * units, bounds, True, draw(st.booleans()), draw(st.booleans()), norm)


def contexts(features: Features) -> st.SearchStrategy[list[float]]:
    """Within the bounds, often at their ends."""
    return st.tuples(*[st.sampled_from([-b, b]) | st.floats(-b, b) for b in features.bounds]).map(list)


def exact_norm_squared(row: Floats) -> Fraction:
    return sum((Fraction(float(a)) ** 2 for a in row), Fraction(0))


# The blocks.


@pytest.mark.parametrize(
    ("arms", "blocks", "expected"),
    [
        (2, "per_arm", [[*U, 0, 0], [0, 0, *U]]),
        (2, "intercept", [[1, 0], [0, 1]]),
        (2, "per_arm intercept", [[*U, 0, 0, 1, 0], [0, 0, *U, 0, 1]]),
        (2, "shared per_arm", [[*U, *U, 0, 0], [*U, 0, 0, *U]]),
        (2, "shared intercept", [[*U, 1, 0], [*U, 0, 1]]),
        (1, "shared", [U]),
        (Z, "shared", [[*U, *z, *(x * a for a in z for x in U)] for z in V]),
        (Z, "shared intercept", [[*U, *z, *(x * a for a in z for x in U), 1] for z in V]),
        (Z[:1], "shared per_arm intercept", [[*U, 1, 1, *U, *U, *U, 1]]),
    ],
)
def test_rows_are_those_built_by_hand(arms: Any, blocks: str, expected: Any) -> None:
    chosen: dict[str, Any] = {name: name in blocks.split() for name in ("shared", "per_arm", "intercept")}
    features = Features(2, arms, [10, 5], **chosen)
    assert unscaled(features, X) == pytest.approx(np.array(expected, float), rel=1e-15)


def test_vectors_and_blocks_of_each_arm_together() -> None:
    features = Features(2, Z, [10, 5], shared=True, per_arm=True, intercept=True)
    found = unscaled(features, X)
    assert found[:, :8] == pytest.approx(unscaled(Features(2, Z, [10, 5], True, False, False), X), rel=1e-14)
    assert found[:, 8:] == pytest.approx(unscaled(Features(2, 3, [10, 5]), X), rel=1e-14)


@steady
@given(
    p=st.integers(1, 6), n_arms=st.integers(1, 6), bound=st.floats(1e-3, 1e3), norm=st.floats(1e-3, 1e3), data=st.data()
)
def test_disjoint_arms_hold_the_context_at_their_place(
    p: int, n_arms: int, bound: float, norm: float, data: st.DataObject
) -> None:
    features = Features(p, n_arms, bound, intercept=False, norm=norm)
    context = data.draw(contexts(features))
    expected = np.zeros((n_arms, n_arms, p))
    for k in range(n_arms):
        expected[k, k] = np.array(context) * norm / (bound * math.sqrt(p))
    assert features(context) == pytest.approx(expected.reshape(n_arms, -1), rel=1e-13, abs=1e-300)


@steady
@given(features=any_features())
def test_arms_can_be_told_apart(features: Features) -> None:
    assert len(set(map(tuple, features(features.bounds).tolist()))) == len(features.arms)


@steady
@given(features=any_features())
def test_every_column_has_a_name_and_a_use(features: Features) -> None:
    table = features(features.bounds)
    assert table.shape == (len(features.arms), features.dimension)
    assert len(set(features.names)) == features.dimension
    used = np.abs(table).max(axis=0) > 0
    assert all(use or "z" in name for use, name in zip(used, features.names, strict=True))  # a vector may be zero


def test_columns_are_named() -> None:
    named = Features(["age", "dose"], ["A", "B"], 1, shared=True)
    assert named.names == ("age", "dose", "age[A]", "dose[A]", "age[B]", "dose[B]", "1[A]", "1[B]")
    assert Features(1, 2, 1).names == ("x0[arm 0]", "x0[arm 1]", "1[arm 0]", "1[arm 1]")
    assert Features(1, [[1.0], [2.0]], 1, shared=True, intercept=False).names == (
        *("x0", "z0", "x0*z0"),
        *("x0[arm 0]", "x0[arm 1]"),
    )
    # Products in the order of their names.
    products = Features(["a", "b"], [[1.0, 0.5], [0.0, -1.0]], 1, shared=True, per_arm=False)
    row = dict(zip(products.names, unscaled(products, [0.5, 0.25])[0], strict=True))
    assert row == pytest.approx(
        {"a": 0.5, "b": 0.25, "z0": 1, "z1": 0.5, "a*z0": 0.5, "b*z0": 0.25, "a*z1": 0.25, "b*z1": 0.125, "1": 1}
    )


# By name.


class Person(NamedTuple):
    dose: float
    age: float


BY_NAME: list[Any] = [
    {"age": 50, "dose": 2.5},
    {"dose": 2.5, "age": 50},
    ChainMap({"dose": 2.5}, {"age": 50}),
    pd.Series([50, 2.5], ["age", "dose"]),
    pd.Series([2.5, 50], ["dose", "age"]),
    pd.Series([2.5, 50], ["dose", "age"], dtype=object),  # as rows of a frame with columns of text are
    pd.DataFrame({"dose": [9.0, 2.5], "age": [9, 50]}).iloc[1],
    Person(dose=2.5, age=50),
    *pd.DataFrame({"dose": [2.5], "age": [50]}).itertuples(index=False),
]


@pytest.mark.parametrize("outside", ["refuse", "clip"])
@pytest.mark.parametrize("context", BY_NAME, ids=lambda context: type(context).__name__)
def test_what_has_names_goes_by_name_in_any_order(context: Any, outside: Any) -> None:
    features = Features(["age", "dose"], 2, [100, 5], outside=outside)
    assert (features(context) == features([50, 2.5])).all()


def test_what_has_no_names_goes_by_position() -> None:
    features = Features(["age", "dose"], 2, [100, 5])
    for context in ([50, 2.5], (50, 2.5), np.array([50, 2.5])):
        assert unscaled(features, context)[0, :2] == pytest.approx([0.5, 0.5])


def test_numbers_without_names_are_x0_and_so_on() -> None:
    features = Features(2, 2, [100, 5])
    assert (features({"x1": 2.5, "x0": 50}) == features([50, 2.5])).all()


def test_bounds_go_by_name_too() -> None:
    by_position = Features(["age", "dose"], 2, [100, 5])
    for bounds in ({"dose": 5, "age": 100}, pd.Series({"dose": 5, "age": 100}), Person(dose=5, age=100)):
        assert Features(["age", "dose"], 2, bounds) == by_position
    with pytest.raises(
        InvalidInput, match=r"^bounds has .* \(missing: dose; unknown: Dose\): give exactly age, dose by"
    ):
        Features(["age", "dose"], 2, {"age": 100, "Dose": 5})


@pytest.mark.parametrize("outside", ["refuse", "clip"])
@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"age": 12.5}, "missing: dose"),
        ({}, "missing: age, dose"),
        ({"age": 12.5, "dose": 1, "height": 12.5, "name": "12"}, "unknown: height, name"),
        ({"Age": 12.5, "dose": 1}, "missing: age; unknown: Age"),
        (defaultdict(float, dose=12.5), "missing: age"),
        (Counter(dose=12), "missing: age"),
        (pd.Series([12.5, 1]), "missing: age, dose; unknown: labels of type int"),
        (pd.Series(["age", "dose"], [12.5, 1.25]), "missing: age, dose; unknown: labels of type float"),
        (pd.Series([12.5, 1, 12], ["age", "dose", "age"]), "more than once: age"),
        (pd.Series([12.5, 1], [("age", "a"), ("dose", "b")]), "missing: age, dose; unknown: labels of type tuple"),
    ],
)
def test_names_that_do_not_fit_are_refused_without_a_value(context: Any, message: str, outside: Any) -> None:
    features = Features(["age", "dose"], 2, [100, 5], outside=outside)
    with pytest.raises(InvalidInput) as caught:
        features(context)
    words = f"context has names that do not fit ({message}): give exactly age, dose by name, or a list in this order"
    assert str(caught.value) == words


@pytest.mark.parametrize("outside", ["refuse", "clip"])
def test_values_by_name_are_checked_like_any(outside: Any) -> None:
    features = Features(["age", "dose"], 2, [100, 5], outside=outside)
    for context, message in [
        ({"dose": math.nan, "age": 12.5}, "NaN for dose"),
        (pd.Series({"dose": 1, "age": -math.inf}), "infinite for age"),
        ({"dose": "12.5", "age": "12.5"}, "real numbers, got dtype"),
        ({"dose": [12.5], "age": [12.5]}, r"got shape \(2, 1\)"),
        ({"dose": None, "age": 12.5}, "real numbers, got dtype object"),
    ]:
        with pytest.raises(InvalidInput, match=message) as caught:
            features(context)
        assert "12" not in str(caught.value)
    beyond = {"dose": -6, "age": 12.5}
    if outside == "clip":
        assert (features(beyond) == features([12.5, -5])).all()
    else:
        with pytest.raises(InvalidInput, match=r"dose = -6\.0 where the bound is 5\.0"):
            features(beyond)


@pytest.mark.parametrize("rows", [1, 2])
def test_a_table_is_not_a_context(rows: int) -> None:
    features = Features(["age", "dose"], 2, [100, 5])
    people = pd.DataFrame({"dose": [1.0] * rows, "age": [12.5] * rows})
    with pytest.raises(InvalidInput, match=f"context must be one row, got a table of {rows} rows: give them one by"):
        features(people)
    with pytest.raises(InvalidInput, match="real numbers, got dtype object"):
        features(people.to_dict("records"))


def test_an_error_lists_few_of_many_names() -> None:
    features = Features(300, 2, 1)
    with pytest.raises(InvalidInput, match=r"\(missing: x0, .*, x9 and 290 more; unknown: labels of type int\)"):
        features(pd.Series(np.zeros(300)))


# The norm.


@steady
@given(features=any_features(), data=st.data())
def test_no_row_is_longer_than_the_norm(features: Features, data: st.DataObject) -> None:
    table = features(data.draw(contexts(features)))
    assert np.linalg.norm(table, axis=1).max() <= features.norm
    assert np.sqrt((table**2).sum(axis=1)).max() <= features.norm
    assert max(map(exact_norm_squared, table)) <= Fraction(features.norm) ** 2


@steady
@given(features=any_features(), data=st.data())
def test_the_norm_is_reached_at_the_bounds(features: Features, data: st.DataObject) -> None:
    corner = [data.draw(st.sampled_from([-b, b])) for b in features.bounds]
    assert np.linalg.norm(features(corner), axis=1).max() == pytest.approx(features.norm, rel=1e-12)


def test_the_norm_holds_in_many_dimensions() -> None:
    features = Features(300, 30, 0.1, shared=True)
    table = features(np.full(300, 0.1))
    assert 1 - 1e-11 < np.linalg.norm(table, axis=1).max() <= 1
    assert max(map(exact_norm_squared, table[:3])) <= 1


@steady
@given(features=any_features(), data=st.data())
def test_the_scale_comes_from_what_was_declared(features: Features, data: st.DataObject) -> None:
    used = replace(features)
    used(data.draw(contexts(features)))
    assert (used, used.scale) == (features, features.scale)
    # The features are those of the context relative to its bounds: the unit of a number does not matter.
    double = replace(features, bounds=[2 * b for b in features.bounds])
    context = np.array(data.draw(contexts(features)))
    assert (double(2 * context) == features(context)).all()


def test_no_context_is_kept() -> None:
    features = Features(2, 2, 100)
    features([1, 1])
    kept = repr(vars(features))
    features([98.7, 65.4])
    assert repr(vars(features)) == kept


# Outside of the bounds.


def test_beyond_a_bound_is_refused_with_the_number_and_the_remedy() -> None:
    features = Features(["age", "dose"], 2, [100, 5])
    with pytest.raises(InvalidInput, match=r"dose = -5\.5 where the bound is 5\.0.*outside='clip'"):
        features([100, -5.5])
    with pytest.raises(InvalidInput, match=r"age = 100\.00000000000001 where"):
        features([math.nextafter(100, 101), 6])


@steady
@given(features=any_features(), data=st.data())
def test_clipping_is_to_the_bounds(features: Features, data: st.DataObject) -> None:
    clipping = replace(features, outside="clip")
    context = [data.draw(st.floats(allow_nan=False, allow_infinity=False)) for _ in features.bounds]
    within = [min(max(x, -b), b) for x, b in zip(context, features.bounds, strict=True)]
    assert (clipping(context) == features(within)).all()


def test_with_clipping_no_error_repeats_a_number() -> None:
    features = Features(["age", "dose"], 2, [100, 5], outside="clip")
    for context in ([12.5, math.nan], [12.5, -math.inf], [12.5], [[12.5, 1]], ["12.5", "1"], [12.5, [1]], [12.5, None]):
        with pytest.raises(InvalidInput) as caught:
            features(context)
        assert "12" not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


# What is refused.


@pytest.mark.parametrize("outside", ["refuse", "clip"])
@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([0.1], r"list of length 2, got shape \(1,\)"),
        ([0.1, 0.2, 0.3], r"got shape \(3,\)"),
        ([[0.1, 0.2]], r"got shape \(1, 2\)"),
        (0.1, r"got shape \(\)"),
        ([], r"got shape \(0,\)"),
        ([0.1, math.nan], "NaN for x1"),
        ([math.inf, 0.1], "infinite for x0"),
        ([0.1, -math.inf], "infinite for x1"),
        (["a", "b"], "real numbers, got dtype <U1"),
        ([1j, 0], "real numbers, got dtype complex128"),
        ([None, 0], "real numbers, got dtype object"),
        (None, "real numbers, got dtype object"),
        ([[0.1], [0.1, 0.2]], "different lengths"),
    ],
)
def test_a_wrong_context_is_refused(context: Any, message: str, outside: Any) -> None:
    with pytest.raises(InvalidInput, match=message):
        Features(2, 3, 1, outside=outside)(context)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"context": 0}, "context must be a whole number of at least 1 or a list of names, got 0"),
        ({"context": 2.0}, "got 2.0"),
        ({"context": True}, "got True"),
        ({"context": []}, r"got \[\]"),
        ({"context": "ab"}, "got 'ab'"),
        ({"context": ["a", ""]}, r"got \['a', ''\]"),
        ({"context": ["a", "a"]}, "different names"),
        ({"arms": 0}, "arms must be a whole number of at least 1 or a list of names or a table of vectors, got 0"),
        ({"arms": -1}, "got -1"),
        ({"arms": 2.5}, "got 2.5"),
        ({"arms": True}, "got True"),
        ({"arms": None}, "got None"),
        ({"arms": "AB"}, "got 'AB'"),
        ({"arms": []}, r"got \[\]"),
        ({"arms": np.array(3.0)}, r"got array\(3\.\)"),
        ({"arms": np.zeros((0, 2))}, "got array"),
        ({"arms": ["A", "A"]}, "different names"),
        ({"arms": ["A", 1]}, r"got \['A', 1\]"),
        ({"arms": [1.0, 2.0]}, r"a row each, got shape \(2,\)"),
        ({"arms": [[], []]}, r"got shape \(2, 0\)"),
        ({"arms": [[1.0], [1.0, 2.0]]}, "different lengths"),
        ({"arms": [["A"], ["B"]]}, "real numbers"),
        ({"arms": [[1.0], [math.nan]]}, "finite numbers, got nan in row 1, column 0"),
        ({"arms": [[1.0, -math.inf], [0.0, 0.0]]}, "got -inf in row 0, column 1"),
        ({"bounds": 0}, "the bound of x0 must be a positive, finite number, got 0"),
        ({"bounds": -1}, "got -1"),
        ({"bounds": [1, 0]}, "the bound of x1 must be a positive, finite number, got 0"),
        ({"bounds": [math.nan, 1]}, "the bound of x0 .* got nan"),
        ({"bounds": math.inf}, "got inf"),
        ({"bounds": True}, "got True"),
        ({"bounds": None}, "got None"),
        ({"bounds": "11"}, "got '1'"),
        ({"bounds": [(0, 1), (0, 1)]}, r"got \(0, 1\)"),
        ({"bounds": [1, 1, 1]}, "one number or 2, one for each of the context, got 3"),
        ({"bounds": []}, "got 0"),
        ({"norm": 0}, "norm must be a positive"),
        ({"norm": math.nan}, "norm must be a positive"),
        ({"outside": "ignore"}, "outside must be one of refuse, clip, got 'ignore'"),
        ({"shared": "no"}, "shared must be True or False, got 'no'"),
        ({"per_arm": None}, "per_arm must be True or False, got None"),
        ({"per_arm": False, "intercept": False}, "no features: set at least one"),
        ({"shared": True, "per_arm": False, "intercept": False}, "the same for all 2 arms: set per_arm=True"),
        ({"arms": Z}, "only shared=True uses"),
        (
            {"arms": [[1], [2], [1]], "shared": True, "per_arm": False},
            "arms 0 and 2 .* same vector .* set per_arm=True",
        ),
        ({"arms": [[0.0], [-0.0]], "shared": True, "per_arm": False}, "arms 0 and 1"),
    ],
)
def test_wrong_settings_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Features(**({"context": 2, "arms": 2, "bounds": 1.0} | changed))


def test_the_same_vector_twice_is_fine_with_blocks_of_each_arm() -> None:
    table = Features(1, [[1], [1]], 1, shared=True, per_arm=True)([0.5])
    assert (table[0] != table[1]).any()


@pytest.mark.parametrize(
    ("arms", "same"),
    [
        (np.int64(2), 2),
        (("A", "B"), ["A", "B"]),
        (np.array(["A", "B"]), ["A", "B"]),
        (np.array([[1, 2], [3, 4]]), [[1.0, 2.0], [3.0, 4.0]]),
        ([np.array([1, 2]), np.array([3, 4])], [[1.0, 2.0], [3.0, 4.0]]),
    ],
)
def test_settings_of_other_types_are_the_same(arms: Any, same: Any) -> None:
    one = Features(np.int64(2), arms, np.array([1, 1]), shared=True)
    other = Features(2, same, 1, shared=True)
    assert (one, hash(one), repr(one)) == (other, hash(other), repr(other))
    for context in ([1, 0], (True, False), np.array([1, 0], dtype=np.float32)):
        assert (one(context) == other([1.0, 0.0])).all()


def test_features_cannot_be_changed() -> None:
    features = Features(2, 2, 1)
    with pytest.raises(FrozenInstanceError):
        features.norm = 2.0  # type: ignore[misc]
    features([0, 0])[:] = 7
    assert features([0, 0]).max() < 1


# With an agent.


@pytest.mark.parametrize("norm", [1.0, 0.3, 1e3])
def test_a_policy_takes_the_table(norm: float) -> None:
    features = Features(2, Z, [10, 5], shared=True, norm=norm)
    policy = pb.AdaCOFUL(features.dimension, pb.NoPrivacy(), features.context_norm)
    agent = pb.Agent(policy, reward_range=(-1, 1))
    for x in ([10, 5], [-10, 5], [0, 0], [10, -5]):
        agent.tell(agent.ask(actions=features(x)), reward=0.5)


def test_a_policy_learns_which_arm_is_for_whom() -> None:
    features = Features(1, ["A", "B"], bounds=2, intercept=False)
    agent = pb.Agent(pb.AdaCOFUL(features.dimension, pb.NoPrivacy(), horizon=1000), reward_range=(-1, 1))
    world = np.random.default_rng(0)
    for x in world.choice([-2.0, 2.0], size=400):
        decision = agent.ask(actions=features([x]))
        agent.tell(decision, reward=1.0 if (x > 0) == (decision.action == 0) else -1.0)
    assert [agent.ask(actions=features([x])).action for x in (2.0, -2.0)] == [0, 1]


def test_numbers_beyond_floats_are_clipped_like_any_that_are_too_large() -> None:
    features = pb.Features(context=["age", "dose"], arms=["A", "B"], bounds=[100, 1], outside="clip")
    assert (features([10**400, 0.5]) == features([100, 0.5])).all()
    assert (features([-(10**400), Fraction(10**400)]) == features([-100, 1])).all()
    with pytest.raises(InvalidInput, match="must be real numbers"):
        features(["old", 10**400])
    strict = pb.Features(context=["age", "dose"], arms=["A", "B"], bounds=[100, 1])
    with pytest.raises(InvalidInput, match="must be real numbers"):
        strict([10**400, 0.5])

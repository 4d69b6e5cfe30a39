"""Verification: every change of an exported ledger is found, and a right one is in order."""

from __future__ import annotations

import copy
import json
import math
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.ledger.chain import canonical, digest, short_head
from private_bandits.ledger.verification import verify_lines
from tests.support import EVERY_POLICY, interact, policy_id

PEOPLE: dict[str, Any] = {"max_rewards_per_person": 3, "one_reward_per_episode": True, "unit": "person"}


def small_agent(steps: int = 12, **options: Any) -> pb.Agent:
    agent = pb.Agent(pb.AdaCIMED(arms=["A", "B"], budget=pb.zCDP(0.5)), plan={"people": 100}, **options)
    for step in range(steps):
        who: dict[str, Any] = {"person": f"person {step % 5}"} if options else {}
        agent.tell(agent.ask(**who), float(step % 3 == 0), played=0)
    return agent


def test_every_policy_has_a_ledger_that_is_in_order() -> None:
    for policy in EVERY_POLICY:
        agent = pb.Agent(policy)
        interact(agent, 60, script_seed=1)
        found = agent.ledger.verify(agent.ledger.head)
        assert found.ok, (policy_id(policy), str(found))
        assert (found.rows, found.head) == (len(agent.ledger), agent.ledger.head)
        assert verify_lines(agent.ledger.to_jsonl()).ok
        if found.private:
            assert float(found.reward_cost) == pytest.approx(agent.ledger.total, rel=1e-12)
            assert found.reward_cost <= Fraction(found.promised_reward)


@pytest.mark.parametrize("options", [{}, PEOPLE], ids=["rewards", "people"])
def test_every_byte_counts(options: dict[str, Any]) -> None:
    text = small_agent(**options).ledger.to_jsonl()
    dice = random.Random(1)
    for place in range(len(text)):
        other = chr(dice.choice([c for c in (32, 48, 49, 65, 97, 125, 10, 34) if c != ord(text[place])]))
        changed = text[:place] + other + text[place + 1 :]
        assert not verify_lines(changed).ok, (place, text[max(0, place - 20) : place + 5], other)


def test_rows_that_are_swapped_dropped_doubled_or_cut_are_found() -> None:
    agent = small_agent(40)
    lines = agent.ledger.to_jsonl().split("\n")[:-1]
    rows = len(lines) - 2
    edits: list[Callable[[list[str]], object]] = []
    for i in range(1, rows + 1):
        edits.append(lambda found, i=i: found.pop(i))  # type: ignore[misc]
        edits.append(lambda found, i=i: found.insert(i, found[i]))  # type: ignore[misc]
    edits += [lambda found, i=i: found.insert(i, found.pop(i + 1)) for i in range(1, rows)]  # type: ignore[misc]
    edits += [lambda found: found.pop(), lambda found: found.pop(0), lambda found: found.clear()]
    for edit in edits:
        found = list(lines)
        edit(found)
        assert not verify_lines("".join(f"{line}\n" for line in found)).ok
    assert verify_lines("".join(f"{line}\n" for line in lines)).ok


def test_a_ledger_that_is_cut_and_given_another_head_is_found_by_a_known_one() -> None:
    agent = small_agent(40)
    earlier = agent.ledger[:3]
    head = short_head(3, digest(earlier[-1].text))
    cut = "".join(f"{line}\n" for line in (agent.ledger.opening, *(r.text for r in earlier), canonical({"head": head})))
    assert verify_lines(cut).ok  # it was the ledger once
    found = verify_lines(cut, agent.ledger.head)
    assert [str(finding) for finding in found.findings] == [
        f"the ledger: the head {agent.ledger.head} is of {len(agent.ledger)} rows, and there are 3: rows were cut off"
    ]
    assert agent.ledger.verify(head).ok  # an earlier head is part of the later ledger
    assert not agent.ledger.verify(short_head(3, digest("another"))).ok


def forged(ledger: pb.Ledger, change: Callable[[dict[str, Any], list[dict[str, Any]]], None]) -> str:
    """A ledger that somebody changed, with all hashes computed anew."""
    opening, rows = json.loads(ledger.opening), [json.loads(row.text) for row in ledger]
    change(opening, rows)
    texts = [canonical(opening)]
    for row in rows:
        texts.append(canonical(row | {"previous": digest(texts[-1])}))
    texts.append(canonical({"head": short_head(len(rows), digest(texts[-1]))}))
    return "".join(f"{text}\n" for text in texts)


def set_in_row(number: int, **values: Any) -> Callable[[Any, list[dict[str, Any]]], None]:
    return lambda opening, rows: rows[number - 1].update(values)


def release_twice(opening: Any, rows: list[dict[str, Any]]) -> None:
    rows.append(dict(rows[-1]) | {"number": len(rows) + 1})


@pytest.mark.parametrize(
    ("change", "row", "words"),
    [
        (set_in_row(2, scale=1000.0), 2, "its noise and its sensitivity make it"),
        (set_in_row(2, calibrated=0.5, scale=1000.0), 2, "its noise and its sensitivity make it"),
        (set_in_row(3, sensitivity=1), 3, "less than one reward moves the sum by"),
        (set_in_row(3, noise_sd=0.1), 3, "its standard deviation is not that of its noise"),
        (set_in_row(4, private=False), 4, "differs from the opening"),
        (set_in_row(4, steps=2), 4, "differs from the opening"),
        (release_twice, 9, "was released before"),
        (lambda opening, rows: opening["settings"]["policy"]["budget"].update(rho=0.1), None, "0.1 was promised"),
        (lambda opening, rows: rows[5]["parts"].pop(), 6, "holds other episodes again"),
        (lambda opening, rows: rows[5]["parts"][1].__setitem__(2, 9), 6, "counts other rewards"),
        (lambda opening, rows: rows[5]["episodes"].popitem(), 6, "charges other episodes"),
        (lambda opening, rows: opening.update(level=10.0) or rows[0].update(calibrated=9.0, scale=5e5), 1, "sensitiv"),
    ],
)
def test_a_ledger_that_was_rewritten_with_new_hashes_still_has_to_keep_the_promise(
    change: Any, row: int | None, words: str
) -> None:
    ledger = small_agent(40).ledger
    assert len(ledger) == 8
    found = verify_lines(forged(ledger, change))
    assert not found.ok
    assert any(finding.row == row and words in finding.words for finding in found.findings), str(found)
    assert not verify_lines(forged(ledger, change), ledger.head).ok
    assert verify_lines(forged(ledger, lambda opening, rows: None)).ok


def set_in_settings(**values: Any) -> Callable[[Any, list[dict[str, Any]]], None]:
    return lambda opening, rows: opening["settings"].update(values)


@pytest.mark.parametrize(
    "change",
    [
        lambda opening, rows: opening.update(noise="none", level="inf"),
        lambda opening, rows: opening["settings"]["policy"].update(budget={"kind": "PureDP", "epsilon": 0.6}),
        lambda opening, rows: opening.update(level=1e6),
        lambda opening, rows: opening.update(factor=[[2, 2], 2, None]),
        lambda opening, rows: opening.update(chained={}),
        lambda opening, rows: opening.pop("plan"),
        lambda opening, rows: opening.update(ledger=2),
        set_in_settings(seed=5),
        set_in_settings(unit="banana"),
        set_in_settings(unit="person"),
        set_in_settings(max_rewards_per_person=0),
        set_in_settings(max_rewards_per_person=-1),
        set_in_settings(max_rewards_per_person=True),
        set_in_settings(tree_levels=10**7),
        set_in_settings(reward_range=["a", "b"]),
        set_in_settings(reward_range=[1, 0]),
    ],
)
def test_an_opening_that_no_agent_writes_is_not_in_order(change: Any) -> None:
    for steps in (0, 40):
        found = verify_lines(forged(small_agent(steps).ledger, change))
        assert not found.ok
        assert found.findings[0].row == 0, str(found)


def agent_of(policy: Any, steps: int) -> pb.Agent:
    agent = pb.Agent(policy)
    for step in range(steps):
        agent.tell(agent.ask(), float(step % 2))
    return agent


def smaller(opening: Any, rows: list[dict[str, Any]]) -> None:
    row = rows[0]
    row.update(sensitivity=row["sensitivity"] // 1000, scale=row["scale"] / 1000, noise_sd=row["noise_sd"] / 1000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda opening, rows: rows[3].update(episodes={}), "charges other episodes"),
        (lambda opening, rows: rows[3].update(episodes={"0/1-4": 0.0}), "charges other episodes"),
        (lambda opening, rows: rows[3]["parts"].pop(), "holds other episodes again"),
        (lambda opening, rows: rows[3]["parts"][1].__setitem__(2, 7), "counts other rewards"),
        (lambda opening, rows: rows[2].update(unit=1000.0, noise_sd=rows[2]["noise_sd"] / 1000), "another unit"),
        (lambda opening, rows: rows[2].update(values=[1.0] * 7), "another number of values"),
        (lambda opening, rows: rows[2].update(scale=0.0), "no noise of a size"),
        (lambda opening, rows: rows[2].update(episodes={"0/1-1000000000000": 1.0}), "charges other episodes"),
        (smaller, "less than one reward moves"),
    ],
)
def test_forged_rows_of_a_tree_are_found(change: Any, words: str) -> None:
    found = verify_lines(forged(agent_of(pb.TreeUCB(1, pb.zCDP(0.5), horizon=100), 9).ledger, change))
    assert any(words in finding.words for finding in found.findings), str(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (smaller, "less than one reward moves"),
        (
            lambda opening, rows: rows[0].update(weights=[[100 * w for w in r] for r in rows[0]["weights"]]),
            "less than one",
        ),
        (lambda opening, rows: rows[0].update(weights=[rows[0]["weights"][0][:1]]), "row"),
        (lambda opening, rows: rows[0]["parts"].append(rows[0]["parts"][0]), "row"),
    ],
)
def test_forged_rows_of_sums_that_leave_together_are_found(change: Any, words: str) -> None:
    policy = pb.AdaCGOPE(actions=[[1.0, 0.0], [0.0, 1.0]], budget=pb.zCDP(50.0))
    agent = agent_of(policy, 100)
    assert agent.ledger.verify().ok
    assert not agent.ledger.person_cost(3).exact  # each sum counts at the largest weight
    found = verify_lines(forged(agent.ledger, change))
    assert any(finding.row == 1 and words in str(finding) for finding in found.findings), str(found)


def moments_agent(reward_range: tuple[float, float], cls: Any = pb.AdaCOFULPrivate, **options: Any) -> pb.Agent:
    """Releases that are vectors and hold earlier episodes again."""
    agent = pb.Agent(cls(dimension=2, budget=pb.zCDP(0.5)), reward_range, **options)
    for step in range(12):
        who: dict[str, Any] = {"person": f"person {step % 5}"} if options else {}
        decision = agent.ask(actions=[[math.cos(step), math.sin(step)], [0.3, -0.4]], **who)
        agent.tell(decision, reward_range[step % 2], played=step % 2)
    return agent


@pytest.mark.parametrize("options", [{}, PEOPLE], ids=["rewards", "people"])
@pytest.mark.parametrize("cls", [pb.AdaCOFULPrivate, pb.AdaCOFUL])
def test_vectors_that_are_held_again_are_in_order_for_reward_ranges_of_any_width(
    cls: Any, options: dict[str, Any]
) -> None:
    for reward_range in [(0.1, 0.3), (-3.0, -1.0), (0.0, 1e-90), (-1e90, 1e90), (1e10, 1e10 + 1), (0.0, 1 / 256)]:
        found = moments_agent(reward_range, cls, **options).ledger.verify()
        assert found.ok, (reward_range, str(found))
        assert found.rows > 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda opening, rows: rows[3].update(unit=256.0, noise_sd=3 * rows[3]["noise_sd"]), "another unit"),
        (lambda opening, rows: rows[3].update(unit=3.0, noise_sd=256 * rows[3]["noise_sd"]), "another unit"),
        (lambda opening, rows: rows[3]["parts"][1].__setitem__(3, 0.25), "holds other episodes again"),
        (lambda opening, rows: rows[3]["parts"].pop(), "holds other episodes again"),
        (lambda opening, rows: rows[3]["episodes"].popitem(), "charges other episodes"),
        (lambda opening, rows: rows[3].update(scale=rows[3]["scale"] / 2), "its noise and its sensitivity make it"),
        (lambda opening, rows: rows[3].update(sensitivity=2 * rows[3]["sensitivity"]), "its noise and its sensitivity"),
        (lambda opening, rows: opening.update(level=0.5), "may cost a reward"),  # as if each person were in one release
        (lambda opening, rows: opening.update(factor=[[256], 256, None]), "no opening of a ledger"),
    ],
)
def test_forged_rows_of_vectors_that_are_held_again_are_found(change: Any, words: str) -> None:
    found = verify_lines(forged(moments_agent((0.0, 3.0)).ledger, change))
    assert any(words in finding.words for finding in found.findings), str(found)


@pytest.mark.parametrize("text", ["", "\n", "x", "{}\n{}\n", "[]\n[]\n[]\n", "null\n" * 2, '{"head":1}\n', "\n" * 4])
def test_what_is_no_ledger_is_not_in_order(text: str) -> None:
    found = verify_lines(text)
    assert not found.ok
    assert "off" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_people_are_part_of_the_check() -> None:
    agent = small_agent(60, **PEOPLE)
    found = agent.ledger.verify()
    assert found.person_cost is not None
    assert found.person_cost.exact
    assert found.person_cost.cost <= Fraction(0.5)
    assert found.promised_person == 0.5
    # More rewards than the agent took, with the same noise: a person would cost more than was promised.
    more = verify_lines(forged(agent.ledger, lambda o, rows: o["settings"].update(max_rewards_per_person=30)))
    assert any(finding.row == 0 and "may cost a person" in finding.words for finding in more.findings)
    loose = verify_lines(forged(agent.ledger, lambda o, rows: o["settings"].update(one_reward_per_episode=False)))
    assert any("may cost a person" in finding.words for finding in loose.findings)


def test_words_and_plain_data_say_the_same() -> None:
    found = small_agent(40, **PEOPLE).ledger.verify()
    text = found.report()
    assert text.startswith(f"{found.rows} rows, head {found.head}: everything that a ledger shows is in order.")
    assert "One reward: rho = " in text
    assert "One person, at most 3 rewards: rho = " in text
    assert "Not seen from a ledger:" in text
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (data["ok"], data["findings"], data["plan"]) == (True, [], {"people": 100})
    assert Fraction(data["reward_cost"]) == found.reward_cost
    seeded = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), seed=1)
    seeded.tell(seeded.ask(), 1.0)
    nothing = seeded.ledger.verify()
    assert nothing.ok
    assert "nothing is promised" in nothing.report()
    assert nothing.to_dict()["promised_reward"] == "inf"


@pytest.mark.parametrize(
    "plan", [{1, 2}, {"start": Fraction(1, 2)}, float("nan"), {1: "x", "1": "y"}, b"bytes"], ids=str
)
def test_a_plan_that_would_not_come_back_is_refused(plan: Any) -> None:
    with pytest.raises(InvalidInput, match="plan must be plain data"):
        pb.Agent(pb.AdaCIMED(2, pb.zCDP(1)), plan=plan)


def test_the_cost_to_a_person_is_by_the_settings_unless_told_otherwise() -> None:
    ledger = small_agent(60, **PEOPLE).ledger
    assert ledger.person_cost() == ledger.person_cost(3, one_per_episode=True)
    assert ledger.person_cost().cost <= Fraction(0.5)
    with pytest.raises(InvalidInput, match="no limit for a person"):
        small_agent(12).ledger.person_cost()


# The chain itself.


def test_the_opening_is_public_and_complete() -> None:
    agent = small_agent(max_rewards_per_person=2)
    opening = json.loads(agent.ledger.opening)
    assert opening["plan"] == {"people": 100}
    assert opening["settings"]["policy"]["budget"] == {"kind": "zCDP", "rho": 0.5}
    assert opening["settings"]["max_rewards_per_person"] == 2
    assert "salt" not in opening["settings"]
    from private_bandits.agent import bandit_of

    assert bandit_of(agent).settings.salt not in agent.ledger.to_jsonl()


def test_each_row_holds_the_hash_of_the_text_before_it() -> None:
    ledger = small_agent(40).ledger
    before = ledger.opening
    for row in ledger:
        assert row.previous == json.loads(row.text)["previous"] == digest(before)
        before = row.text
    assert ledger.head == short_head(len(ledger), digest(before))


def test_two_agents_with_equal_settings_have_different_heads() -> None:
    assert small_agent(0).ledger.head != small_agent(0).ledger.head


def test_copies_keep_the_chain(tmp_path: Path) -> None:
    ledger = small_agent(40).ledger
    for copied in (copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert (copied.head, copied.opening, copied.to_jsonl()) == (ledger.head, ledger.opening, ledger.to_jsonl())
    text = ledger.to_jsonl(tmp_path / "ledger.jsonl")
    assert (tmp_path / "ledger.jsonl").read_bytes() == text.encode("ascii")
    with pytest.raises(InvalidInput, match="exists: name a new file"):
        ledger.to_jsonl(tmp_path / "ledger.jsonl")


def test_a_ledger_without_noise_is_strict_json() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.NoPrivacy()))
    for _ in range(5):
        agent.tell(agent.ask(), 1.0)
    for line in agent.ledger.to_jsonl().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(name))
    assert agent.ledger[0].calibrated == math.inf
    assert agent.ledger.verify().ok

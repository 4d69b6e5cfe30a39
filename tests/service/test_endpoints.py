"""The contract of each endpoint, on both databases."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.ledger.verification import verify_lines
from tests.databases import KINDS
from tests.service.site import EXACT, Site, problem, site, ucb


@pytest.fixture(params=KINDS)
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with site(request.param, tmp_path, allow_no_privacy=True) as found:
        yield found


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Site]:
    """On SQLite alone, where the database does not matter."""
    with site("sqlite", tmp_path) as found:
        yield found


def test_a_trial_from_its_making_to_its_end(served: Site) -> None:
    path = served.made(plan={"people": 100})
    shown = served.done("observe", "GET", path)
    assert (shown["status"], shown["finished"], shown["private"], shown["warning"]) == ("active", False, True, None)
    assert shown["plan"] == {"people": 100}
    assert shown["settings"]["policy"]["arms"] == ["A", "B"]
    first, *others = served.asked(path, 8)
    assert [served.told(path, first), served.told(path, first, 0.0)] == ["recorded", "already_recorded"]
    gone = served.done("tell", "POST", f"{path}/decisions/{others.pop()}/give-up")
    assert gone == {"outcome": "given_up"}
    items = [{"decision": one, "reward": 0.5} for one in others]
    assert len(served.done("tell", "POST", f"{path}/rewards", {"items": items})["outcomes"]) == 6
    assert served.done("operate", "POST", f"{path}/finish")["rewards"] >= 0
    assert served.done("operate", "POST", f"{path}/finish") == {"rewards": 0}
    shown = served.done("audit", "GET", path)
    assert shown["finished"]
    counts = {name: shown["counts"][name] for name in ("asked", "open", "told", "given_up")}
    assert counts == {"asked": 8, "open": 0, "told": 7, "given_up": 1}
    problem(served.call("ask", "POST", f"{path}/decisions", {}), 409, "finished")


def test_what_follows_from_releases_is_what_an_agent_says(served: Site) -> None:
    """Without noise and with the same rewards: one says what the other says."""
    path = served.made(policy=ucb(**EXACT))
    agent = pb.Agent(pb.AdaCUCB(arms=["A", "B"], budget=pb.NoPrivacy()))
    for _ in range(6):
        decisions = agent.ask(4)
        for decision, own in zip(decisions, served.asked(path, 4), strict=True):
            reward = 0.75 if decision.arm == "A" else 0.25
            agent.tell(decision, reward)
            assert served.told(path, own, reward) == "recorded"

    def same() -> None:
        estimates = served.done("observe", "GET", f"{path}/estimates?delta=0.1")
        assert estimates["estimates"] == [one._asdict() for one in agent.estimates(delta=0.1)]
        assert estimates["warning"] == "No privacy is promised: this bandit adds no noise."
        verdict = served.done("observe", "GET", f"{path}/verdict?delta=0.1")
        own = json.loads(json.dumps(agent.verdict(0.1).to_dict()))
        assert {name: verdict[name] for name in own} == own
        guarantee = served.done("observe", "GET", f"{path}/guarantee")
        assert {name: guarantee[name] for name in agent.guarantee().to_dict()} == agent.guarantee().to_dict()
        statement = served.done("observe", "GET", f"{path}/statement")
        other = agent.statement(written=statement["written"]).to_dict()
        assert {name for name in other if other[name] != statement[name]} <= {"settings", "ledger"}

    same()
    agent.finish()
    served.done("operate", "POST", f"{path}/finish")
    same()


def test_the_ledger_is_one_that_verify_accepts(served: Site) -> None:
    path = served.made()
    empty = served.call("audit", "GET", f"{path}/ledger")
    assert verify_lines(empty.text).ok
    for one in served.asked(path, 20):
        served.told(path, one)
    whole = served.call("audit", "GET", f"{path}/ledger")
    assert whole.headers["content-type"] == "application/jsonl"
    assert verify_lines(whole.text).ok
    assert json.loads(whole.text.splitlines()[-1])["head"] == served.done("observe", "GET", path)["head"]
    pages, at = "", f"{path}/ledger?limit=3"
    while True:
        page = served.call("audit", "GET", at)
        pages += page.text
        if "link" not in page.headers:
            break
        at = f"{path}/ledger" + page.headers["link"].partition("<")[2].partition(">")[0]
    assert pages == whole.text
    after = served.call("audit", "GET", f"{path}/ledger?cursor={whole.headers['x-cursor']}")
    assert after.text == ""


def test_decisions_are_listed_page_by_page_and_as_csv(served: Site) -> None:
    path = served.made(max_rewards_per_person=2)
    ids = served.asked(path, 5, person="planted-person")
    served.told(path, ids[1])
    found: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = served.done("observe", "GET", f"{path}/decisions?limit=2{cursor}")
        found += page["items"]
        cursor = None if page["next"] is None else f"&cursor={page['next']}"
    assert [one["id"] for one in found] == ids
    assert [one["status"] for one in found] == ["open", "told", "open", "open", "open"]
    table = served.call("observe", "GET", f"{path}/decisions", headers={"Accept": "text/csv"})
    assert [row["id"] for row in csv.DictReader(io.StringIO(table.text))] == ids
    assert "planted-person" not in table.text + json.dumps(found)
    activity = served.done("observe", "GET", f"{path}/activity")
    assert [(one["asked"], one["statuses"]) for one in activity["items"]] == [(5, {"open": 4, "told": 1})]
    assert sum(activity["items"][0]["actions"].values()) == 5


def test_an_ask_that_comes_again_has_the_same_answer(served: Site) -> None:
    path, again = served.made(), {"Idempotency-Key": "first"}
    one = served.done("ask", "POST", f"{path}/decisions", {"n": 3}, headers=again)
    assert served.done("ask", "POST", f"{path}/decisions", {"n": 3}, headers=again) == one
    problem(served.call("ask", "POST", f"{path}/decisions", {"n": 4}, headers=again), 422, "key-reused")
    other = served.done("ask", "POST", f"{path}/decisions", {"n": 3}, headers={"Idempotency-Key": "second"})
    assert other != one
    assert served.done("observe", "GET", path)["counts"]["asked"] == 6
    made = served.done("admin", "POST", "/v1/keys", {"name": "another", "role": "ask"})
    third = served.done(made["key"], "POST", f"{path}/decisions", {"n": 3}, headers=again)
    assert third not in (one, other)


def test_each_reward_of_a_list_has_an_outcome(served: Site) -> None:
    path = served.made(max_rewards_per_person=1)
    one, two = served.asked(path, 2, person="ann")
    items = [{"decision": key, "reward": 1} for key in (one, two, one, "nonsense")]
    items.append({"decision": served.asked(path, 1, person="bob")[0], "reward": 1, "played": "no such arm"})
    found = served.done("tell", "POST", f"{path}/rewards", {"items": items})["outcomes"]
    assert [item["outcome"] for item in found] == ["recorded", "over_limit", "already_recorded", None, None]
    kinds = [item["problem"]["type"].rpartition(":")[2] for item in found[3:]]
    assert kinds == ["unknown-decision", "does-not-fit"]
    assert served.done("tell", "POST", f"{path}/rewards", {"items": []}) == {"outcomes": []}


def test_a_bandit_is_paused_goes_on_and_is_closed(served: Site) -> None:
    path = served.made()
    (open_one,) = served.asked(path)
    assert served.done("operate", "PATCH", path, {"status": "paused"})["status"] == "paused"
    problem(served.call("ask", "POST", f"{path}/decisions", {}), 409, "stopped")
    assert served.told(path, open_one) == "recorded"
    assert served.done("operate", "PATCH", path, {"status": "active"})["status"] == "active"
    served.asked(path)
    assert served.done("operate", "PATCH", path, {"status": "closed"})["status"] == "closed"
    problem(served.call("operate", "PATCH", path, {"status": "active"}), 409, "wrong-status")
    problem(served.call("ask", "POST", f"{path}/decisions", {}), 409, "stopped")
    assert served.done("observe", "GET", f"{path}/estimates")["releases"] == 1


def test_actions_that_change_are_sent_with_each_ask(served: Site) -> None:
    policy = {"name": "adac-oful", "budget": {"kind": "zCDP", "rho": 1.0}, "parameters": {"dimension": 2}}
    path = served.made(policy=policy)
    (first,) = served.asked(path, actions={"left": [0.5, 0.0], "right": [0.0, 0.5]})
    (second,) = served.asked(path, actions=[[0.1, 0.2], [0.3, 0.1], [0.0, 0.0]])
    assert served.told(path, first) == served.told(path, second) == "recorded"
    assert served.done("observe", "GET", f"{path}/estimates")["estimates"] == []
    problem(served.call("observe", "GET", f"{path}/verdict"), 409, "no-verdict")
    problem(served.call("ask", "POST", f"{path}/decisions", {"actions": [[1.0]]}), 422, "does-not-fit")
    problem(served.call("ask", "POST", f"{path}/decisions", {}), 422, "does-not-fit")
    assert served.done("observe", "GET", f"{path}/activity")["items"][0]["actions"] is None


def test_decisions_on_private_contexts_are_shown_to_nobody(served: Site) -> None:
    parameters = {"dimension": 2, "horizon": 1000}
    policy = {"name": "adac-oful-private", "budget": {"kind": "zCDP", "rho": 1.0}, "parameters": parameters}
    path = served.made(policy=policy)
    (one,) = served.asked(path, actions={"left": [0.5, 0.0], "right": [0.0, 0.5]})
    assert served.told(path, one) == "recorded"
    problem(served.call("observe", "GET", f"{path}/decisions"), 403, "private-contexts")
    assert served.done("observe", "GET", f"{path}/activity")["items"][0]["actions"] is None


def test_bandits_are_listed_for_those_whom_they_concern(small: Site) -> None:
    for name in ("one", "two", "three"):
        small.made(name)
    first = small.done("observe", "GET", "/v1/bandits?limit=2")
    rest = small.done("operate", "GET", f"/v1/bandits?limit=2&cursor={first['next']}")
    assert [one["name"] for one in first["items"] + rest["items"]] == ["one", "two", "three"]
    assert rest["next"] is None
    made = small.done("admin", "POST", "/v1/keys", {"name": "x", "role": "observe", "bandit": "two"})
    assert [one["name"] for one in small.done(made["key"], "GET", "/v1/bandits")["items"]] == ["two"]
    problem(small.call("observe", "GET", "/v1/bandits?cursor=nonsense"), 422, "invalid-request")
    problem(small.call("operate", "POST", "/v1/bandits", {"name": "one", "policy": ucb()}), 409, "bandit-exists")


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"give_up_after_seconds": None}, "never-gives-up"),
    ({"never_give_up": True}, "never-gives-up"),
    ({"seed": 7}, "no-privacy"),
    ({"policy": ucb(**EXACT)}, "no-privacy"),
    ({"policy": ucb(kind="zCDP", rho=-1.0)}, "settings-refused"),
    ({"policy": ucb(kind="zCDP", epsilon=1.0)}, "settings-refused"),
    ({"policy": ucb() | {"name": "no-such-policy"}}, "settings-refused"),
    ({"policy": ucb() | {"parameters": {"arms": {"a": 1}, "beta": []}}}, "settings-refused"),
    ({"policy": ucb() | {"parameters": {"no_such_parameter": 1}}}, "settings-refused"),
    ({"policy": ucb() | {"parameters": {"budget": 1}}}, "settings-refused"),
    ({"reward_range": [1.0, 0.0]}, "settings-refused"),
    ({"unit": "person"}, "settings-refused"),
    ({"control": "C"}, "settings-refused"),
    ({"name": "a b"}, "invalid-request"),
    ({"name": "../x"}, "invalid-request"),
    ({"reward_range": [0.0]}, "invalid-request"),
    ({"seed": True}, "invalid-request"),
]


def test_what_cannot_be_made_is_refused(small: Site) -> None:
    for changed, name in REFUSED:
        answer = small.call("operate", "POST", "/v1/bandits", {"name": "trial", "policy": ucb()} | changed)
        problem(answer, 403 if name == "no-privacy" else 422, name)
    assert small.done("observe", "GET", "/v1/bandits")["items"] == []


def test_decisions_without_rewards_are_given_up_unless_that_is_refused(small: Site) -> None:
    found = small.done("observe", "GET", small.made("one"))
    assert found["settings"]["give_up_after"] == {"microseconds": 30 * 24 * 3600 * 10**6}
    path = small.made("two", give_up_after_seconds=None, never_give_up=True)
    assert small.done("observe", "GET", path)["settings"]["give_up_after"] is None


def test_what_promises_nothing_says_so_and_runs_only_where_that_is_allowed(tmp_path: Path) -> None:
    with site("sqlite", tmp_path, allow_no_privacy=True) as found:
        path = found.made(seed=3)
        warning = "No privacy is promised: the noise comes from a seed."
        for what in ("", "/estimates", "/verdict", "/guarantee"):
            shown = found.done("observe", "GET", path + what)
            assert (shown["private"], shown["warning"]) == (False, warning), what
        assert found.done("observe", "GET", "/v1/bandits")["items"][0]["warning"] == warning
        statement = found.call("observe", "GET", f"{path}/statement", headers={"Accept": "text/plain"})
        assert "seed" in statement.text
        (one,) = found.asked(path)
        with site("sqlite", tmp_path) as strict:
            problem(strict.call("ask", "POST", f"{path}/decisions", {}), 403, "no-privacy")
            told = strict.call("tell", "PUT", f"{path}/decisions/{one}/reward", {"reward": 1})
            problem(told, 403, "no-privacy")


def test_health_and_metrics_need_no_key(served: Site) -> None:
    for path in ("/livez", "/readyz"):
        assert served.client.get(path).json() == {"status": "ok"}
    served.asked(served.made("planted-name"))
    text = served.client.get("/metrics").text
    assert 'requests_total{method="POST",route="/v1/bandits/{bandit}/decisions",status="200"} 1' in text
    assert "planted-name" not in text


def test_the_statement_comes_as_it_is_asked_for(small: Site) -> None:
    path = small.made()
    text = small.call("observe", "GET", f"{path}/statement", headers={"Accept": "text/plain"})
    assert text.headers["content-type"].startswith("text/plain")
    assert "The trial was running when this was written" in text.text
    page = small.call("observe", "GET", f"{path}/statement", headers={"Accept": "text/html"})
    assert "<html" in page.text

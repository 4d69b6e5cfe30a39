"""Who may call what: every role on every endpoint, and keys that are none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter

from private_bandits.protocol.access import ANYONE, PERMISSIONS
from private_bandits.protocol.problems import FORBIDDEN, TOO_MANY, UNAUTHENTICATED, Refused
from private_bandits.service.callers import Callers
from private_bandits.service.guarded import GuardedRoute
from private_bandits.service.keys import ROLES, create_key, revoke_key
from tests.databases import opened
from tests.service.site import Site, problem, site, ucb

BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/bandits"): {"name": "new", "policy": ucb()},
    ("PATCH", "/v1/bandits/{bandit}"): {"status": "active"},
    ("POST", "/v1/bandits/{bandit}/decisions"): {},
    ("PUT", "/v1/bandits/{bandit}/decisions/{decision}/reward"): {"reward": 0.5},
    ("POST", "/v1/bandits/{bandit}/rewards"): {"items": []},
    ("POST", "/v1/keys"): {"name": "x", "role": "ask"},
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Site]:
    with site("sqlite", tmp_path) as found:
        yield found


def test_every_route_is_in_the_table_and_every_line_of_it_is_a_route(served: Site) -> None:
    routes = {(method, route.path) for route in served.app.routes for method in route.methods if method != "HEAD"}  # type: ignore[attr-defined]
    assert routes == {(one.method, one.path) for one in PERMISSIONS}
    assert {role for one in PERMISSIONS for role in one.roles} == {*ROLES, ANYONE}
    described = served.client.get("/openapi.json").json()["paths"]
    for one in PERMISSIONS:
        if one.path != "/openapi.json":
            operation = described[one.path][one.method.lower()]
            assert operation["x-roles"] == sorted(one.roles)
            assert ("security" in operation) is (ANYONE not in one.roles)


def test_a_route_without_a_role_cannot_be_made() -> None:
    router = APIRouter(route_class=GuardedRoute)
    with pytest.raises(LookupError, match="GET /v1/secrets has no role"):
        router.get("/v1/secrets")(lambda: None)


def test_what_one_role_changes_no_other_role_changes() -> None:
    for one in PERMISSIONS:
        assert len(one.roles) == 1 or one.method == "GET"
    tellers = [one for one in PERMISSIONS if "tell" in one.roles]
    assert all(one.method in ("PUT", "POST") for one in tellers)


def test_every_role_on_every_endpoint(served: Site) -> None:
    """The end of the bandit comes last. Streams without an end are in test_stream.py."""
    path = served.made()
    for one in sorted(PERMISSIONS, key=lambda one: one.path.endswith("/finish")):
        allowed = {*ROLES, None} if ANYONE in one.roles else set(one.roles)
        for role in (*ROLES, None):
            if one.path.endswith("/events") and role in allowed:
                continue
            decision = "closed" if one.path.endswith("/finish") else served.asked(path)[0]
            filled = one.path.format(bandit="trial", decision=decision, number=10**6)
            answer = served.call(role, one.method, filled, BODIES.get((one.method, one.path)))
            expected = {200, 201} if role in allowed else {401 if role is None else 403}
            if role in allowed and one.path == "/v1/keys/{number}":
                expected = {404}
            assert answer.status_code in expected, (role, one, answer.text)


def test_keys_for_one_bandit_do_not_tell_which_others_exist(served: Site) -> None:
    served.made("mine")
    served.made("other")
    key = served.done("admin", "POST", "/v1/keys", {"name": "x", "role": "observe", "bandit": "mine"})["key"]
    served.done(key, "GET", "/v1/bandits/mine/estimates")
    answers = [served.call(key, "GET", f"/v1/bandits/{name}/estimates") for name in ("other", "no-such-bandit")]
    one, two = (problem(answer, 403, "forbidden") for answer in answers)
    assert one | {"request_id": ""} == two | {"request_id": ""}
    for role in ("operate", "observe"):
        key = served.done("admin", "POST", "/v1/keys", {"name": "x", "role": role, "bandit": "mine"})["key"]
        sent = {"name": "mine-too", "policy": ucb()}
        problem(served.call(key, "POST", "/v1/bandits", sent), 403, "forbidden")
    problem(served.call("observe", "GET", "/v1/bandits/no-such-bandit/estimates"), 404, "unknown-bandit")
    problem(served.call("ask", "POST", "/v1/bandits/no-such-bandit/decisions", {}), 404, "unknown-bandit")
    problem(served.call("admin", "GET", "/v1/bandits/mine"), 403, "forbidden")


def test_keys_that_are_none_are_refused_before_anything_is_read(served: Site) -> None:
    for key in ("", "x", "pb_" + "A" * 43, "pb_" + "A" * 42, "pb_" + "A" * 5000):
        for name in ("trial", "no-such-bandit"):
            answer = served.call(key, "POST", f"/v1/bandits/{name}/decisions", {"nonsense": "x"})
            assert problem(answer, 401, "no-key")["title"] == UNAUTHENTICATED.title
            assert answer.headers["www-authenticate"] == "Bearer"
    basic = served.client.get("/v1/bandits", headers={"Authorization": "Basic eDp5"})
    problem(basic, 401, "no-key")


def test_a_key_is_made_listed_and_revoked(served: Site) -> None:
    made = served.done("admin", "POST", "/v1/keys", {"name": "for the clinic", "role": "operate"})
    listed = served.done("admin", "GET", "/v1/keys")
    assert {name: made[name] for name in made if name != "key"} == listed["items"][-1]
    assert made["key"] not in str(listed)
    served.done(made["key"], "GET", "/v1/bandits")
    revoked = served.done("admin", "DELETE", f"/v1/keys/{made['number']}")
    assert revoked["revoked"] is not None
    until = time.monotonic() + 3
    while served.call(made["key"], "GET", "/v1/bandits").status_code != 401:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert served.done("admin", "DELETE", f"/v1/keys/{made['number']}") == revoked
    problem(served.call("admin", "DELETE", "/v1/keys/999"), 404, "unknown-key")
    sent = {"name": "x", "role": "admin", "bandit": served.made().rpartition("/")[2]}
    problem(served.call("admin", "POST", "/v1/keys", sent), 422, "does-not-fit")
    problem(served.call("admin", "POST", "/v1/keys", sent | {"bandit": "none"}), 422, "does-not-fit")


def test_wrong_keys_are_cheap_and_revoked_ones_are_noticed(tmp_path: Path) -> None:
    database, now = opened("sqlite", tmp_path), [0.0]
    made = create_key(database, "x", "ask")
    callers = Callers(database, clock=lambda: now[0])
    for secret in (made.secret, "pb_" + "A" * 43):
        assert not callers.at_hand(f"Bearer {secret}")[1]
        found = callers.look_up(secret)
        assert callers.at_hand(f"bearer {secret}") == (secret, True, found)
    revoke_key(database, made.key.number)
    assert callers.at_hand(f"Bearer {made.secret}")[1]
    now[0] = 1.01
    assert not callers.at_hand(f"Bearer {made.secret}")[1]
    assert callers.look_up(made.secret) is None
    with pytest.raises(Refused) as caught:
        callers.check(None, frozenset(["ask"]), None, False)
    assert caught.value.problem is UNAUTHENTICATED


def test_a_key_that_calls_too_often_has_to_wait(tmp_path: Path) -> None:
    database, now = opened("sqlite", tmp_path), [100.0]
    keys = [create_key(database, "x", "ask").key for _ in range(2)]
    callers = Callers(database, rate=4.0, clock=lambda: now[0])

    def allowed(key: Any, tries: int = 10) -> int:
        found = 0
        for _ in range(tries):
            with suppress(Refused):
                callers.check(key, frozenset(["ask"]), "trial", False)
                found += 1
        with pytest.raises(Refused) as refused:
            callers.check(key, frozenset(["ask"]), "trial", False)
        assert refused.value.problem is TOO_MANY
        return found

    assert [allowed(key) for key in keys] == [4, 4]
    now[0] += 0.5
    assert allowed(keys[0]) == 2
    now[0] += 1000
    assert allowed(keys[0]) == 4
    with pytest.raises(Refused) as caught:
        callers.check(keys[1], frozenset(["tell"]), "trial", False)
    assert caught.value.problem is FORBIDDEN


def test_the_rate_of_a_key_is_a_setting(tmp_path: Path) -> None:
    with site("sqlite", tmp_path, rate=1.0) as found:
        answers = [found.call("observe", "GET", "/v1/bandits") for _ in range(3)]
        assert answers[0].status_code == 200
        assert "429" in {str(answer.status_code) for answer in answers}
        assert problem(answers[-1], 429, "too-many-requests")
        assert answers[-1].headers["retry-after"] == "1"

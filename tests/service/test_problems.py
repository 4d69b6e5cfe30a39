"""What goes wrong: malformed bodies, values that may be shown nowhere, and failures within."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from private_bandits import errors
from private_bandits.protocol.problems import BY_CLASS, INTERNAL, problem_of
from private_bandits.service.logs import FIELDS, OneLine
from private_bandits.service.routes import deciding
from private_bandits.service.settings import MAX_BODY, ServerSettings, settings_from
from tests.service.site import Site, listening, problem, site

JSON = {"Content-Type": "application/json"}
PLANTED = ("planted-person", "0.987654321", "987654321", "planted-context", "0.1234567", "planted-arm", "planted-key")
"""Values that are in what is sent, and may be in nothing that comes out."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Site]:
    with site("sqlite", tmp_path) as found:
        yield found


def deep(depth: int) -> bytes:
    return b'{"person":' + b"[" * depth + b"]" * depth + b"}"


MALFORMED: list[tuple[bytes, str]] = [
    (b"", "invalid-request"),
    (b"{", "invalid-json"),
    (b"\xff\xfe", "invalid-json"),
    (b'{"n": NaN}', "invalid-json"),
    (b'{"actions": [[Infinity]]}', "invalid-json"),
    (b'{"person": "\\ud800"}', "invalid-json"),
    (deep(200_000), "invalid-json"),
    (deep(50), "invalid-request"),
    (b"[]", "invalid-request"),
    (b"null", "invalid-request"),
    (b'"text"', "invalid-request"),
    (b'{"n": "1"}', "invalid-request"),
    (b'{"n": 1.5}', "invalid-request"),
    (b'{"n": true}', "invalid-request"),
    (b'{"n": 0}', "invalid-request"),
    (b'{"n": 1001}', "invalid-request"),
    (b'{"n": 1' + b"0" * 400 + b"}", "invalid-request"),
    (b'{"actions": [[1' + b"0" * 400 + b"]]}", "invalid-request"),
    (b'{"actions": [[1e999]]}', "invalid-request"),
    (b'{"actions": []}', "invalid-request"),
    (b'{"actions": {"a\\u0000b": [1.0]}}', "invalid-request"),
    (b'{"actions": {"planted-context": ["planted-context"]}}', "invalid-request"),
    (b'{"planted-person": 1}', "invalid-request"),
    (b'{"person": 0.987654321}', "invalid-request"),
    (b'{"person": ""}', "invalid-request"),
]


def test_malformed_bodies_are_refused_and_not_repeated(served: Site) -> None:
    path = served.made()
    for body, name in MALFORMED:
        answer = served.call("ask", "POST", f"{path}/decisions", content=body, headers=JSON)
        problem(answer, 422, name)
        assert not any(value in answer.text for value in PLANTED)
    text = served.call("ask", "POST", f"{path}/decisions", content=b"{}", headers={"Content-Type": "text/plain"})
    problem(text, 422, "invalid-request")
    assert served.done("observe", "GET", path)["counts"]["asked"] == 0


def test_a_problem_says_where_and_how(served: Site) -> None:
    path = served.made()
    items = [{"decision": "a", "reward": 1.0}, {"decision": "b", "reward": "planted"}, {"decision": "c", "planted": 1}]
    found = problem(served.call("tell", "POST", f"{path}/rewards", {"items": items}), 422, "invalid-request")
    assert found["errors"] == [
        {"at": "items/1/reward", "problem": "is of the wrong type or form"},
        {"at": "items/2/reward", "problem": "is missing"},
        {"at": "items/2", "problem": "has a member that is not known"},
    ]
    sent = served.call("observe", "GET", f"{path}/estimates?delta=2")
    assert problem(sent, 422, "invalid-request")["errors"] == [{"at": "delta", "problem": "is too large"}]
    long = served.call("ask", "POST", f"{path}/decisions", {}, headers={"Idempotency-Key": "x" * 256})
    assert problem(long, 422, "invalid-request")["errors"] == [{"at": "Idempotency-Key", "problem": "is too long"}]
    many = [{"decision": "a", "reward": 1.0}] * 1001
    assert problem(served.call("tell", "POST", f"{path}/rewards", {"items": many}), 422, "invalid-request")


def test_large_bodies_are_not_read(served: Site) -> None:
    path = f"{served.made()}/decisions"
    fits = b'{"n": 1' + b" " * (MAX_BODY - 8) + b"}"
    assert served.call("ask", "POST", path, content=fits, headers=JSON).status_code == 200
    problem(served.call("ask", "POST", path, content=fits + b" ", headers=JSON), 413, "too-large")
    problem(served.call("ask", "POST", path, content=iter([fits, b" "]), headers=JSON), 413, "too-large")
    problem(
        served.call("ask", "POST", path, content=b"{}", headers=JSON | {"Content-Length": "9" * 30}), 413, "too-large"
    )


def test_who_sends_too_much_hears_of_it(served: Site) -> None:
    """Over a socket: were the connection closed before the body was read, the answer would be lost."""
    path = f"{served.made()}/decisions"
    headers = JSON | {"Authorization": f"Bearer {served.keys['ask']}"}
    with listening(served) as client:
        for content in (b" " * 5_000_000, iter([b" " * 1_000_000] * 5)):
            problem(client.post(path, content=content, headers=headers), 413, "too-large")


def test_addresses_and_methods_that_are_none(served: Site) -> None:
    problem(served.client.get("/planted-person"), 404, "not-found")
    problem(served.client.delete("/livez"), 405, "wrong-method")
    assert 'route="none"' in served.client.get("/metrics").text


def test_nothing_that_was_sent_comes_out_again(
    served: Site, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Rewards, people, contexts, keys that callers chose: in no answer, log line, metric or description."""
    caplog.set_level(logging.DEBUG)
    path = served.made(max_rewards_per_person=3)
    policy = {"name": "adac-oful-private", "budget": {"kind": "zCDP", "rho": 1.0}, "parameters": {"dimension": 2}}
    policy["parameters"]["horizon"] = 100  # type: ignore[index]
    hidden = served.made("hidden", policy=policy)
    out: list[str] = []

    def call(role: str | None, method: str, at: str, sent: Any = None, **more: Any) -> Any:
        answer = served.call(role, method, at, sent, **more)
        out.append(answer.text + str(answer.headers))
        return answer

    key = {"Idempotency-Key": "planted-key"}
    asked = call("ask", "POST", f"{path}/decisions", {"n": 8, "person": "planted-person"}, headers=key).json()
    call("ask", "POST", f"{path}/decisions", {"n": 9, "person": "planted-person"}, headers=key)
    ids = [one["id"] for one in asked["decisions"]]
    for one in ids[:2]:
        for reward in (0.987654321, 987654321.5, "0.987654321", None):
            call("tell", "PUT", f"{path}/decisions/{one}/reward", {"reward": reward, "played": "planted-arm"})
            call("tell", "PUT", f"{path}/decisions/{one}/reward", {"reward": reward})
    call("tell", "POST", f"{path}/rewards", {"items": [{"decision": one, "reward": 0.987654321} for one in ids]})
    call("tell", "PUT", f"{path}/decisions/planted-context/reward", {"reward": 0.987654321})
    contexts = {"planted-context": [0.1234567, 0.0], "other": [0.0, 0.1234567]}
    answer = served.done("ask", "POST", f"{hidden}/decisions", {"actions": contexts})  # its own caller may know
    call("tell", "PUT", f"{hidden}/decisions/{answer['decisions'][0]['id']}/reward", {"reward": 0.987654321})
    call("ask", "POST", f"{hidden}/decisions", {"actions": contexts | {"planted-arm": [0.1234567]}})
    call(None, "POST", f"{path}/decisions?person=planted-person", {"person": "planted-person"})
    for at in (path, hidden):
        for what in ("", "/decisions", "/estimates", "/verdict", "/guarantee", "/activity", "/statement"):
            call("observe", "GET", f"{at}{what}?planted-person=0.987654321")
        call("audit", "GET", f"{at}/ledger")
    for at in ("/metrics", "/openapi.json", "/planted-person"):
        call(None, "GET", at)
    logged = "".join(OneLine().format(record) for record in caplog.records if record.name.startswith("private_bandits"))
    assert '"event": "answered"' in logged
    everything = "".join(out) + logged + "".join(capfd.readouterr())
    assert [value for value in PLANTED if value in everything] == []


def test_a_failure_within_says_nothing_of_its_cause(
    served: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    path = served.made()

    async def fails(*_: Any) -> None:
        raise RuntimeError("planted-person told 0.987654321")

    monkeypatch.setattr(deciding, "submit", fails)
    answer = served.call("ask", "POST", f"{path}/decisions", {"person": "planted-person"})
    found = problem(answer, 500, "internal")
    shown = answer.text + "".join(OneLine().format(record) for record in caplog.records) + "".join(capfd.readouterr())
    assert not any(value in shown for value in PLANTED)
    (failure,) = [json.loads(OneLine().format(r)) for r in caplog.records if r.name == "private_bandits.failures"]
    assert (failure["error"], failure["request_id"]) == ("RuntimeError", found["request_id"])


def test_every_error_of_the_package_has_fixed_words() -> None:
    for kind, one in BY_CLASS.items():
        made = kind.__new__(kind)
        Exception.__init__(made, "planted-person")
        assert problem_of(made) is one
        assert "planted" not in json.dumps(one.to_dict())
    assert problem_of(RuntimeError("planted")) is INTERNAL
    assert problem_of(errors.AgentBusy("planted")) is INTERNAL
    busy = problem_of(errors.DatabaseBusy("planted"))
    assert (busy.status, busy.headers) == (503, {"Retry-After": "1"})


def test_a_log_line_has_no_other_fields_and_no_words_of_errors() -> None:
    try:
        raise ValueError("planted-person")
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    fields = {"request_id": "7", "path": "/planted-person", "query": "planted-person", "status": 200}
    record = logging.makeLogRecord(
        {"name": "private_bandits.access", "msg": "answered", "levelname": "INFO", "exc_info": info} | fields
    )
    line = json.loads(OneLine().format(record))
    assert set(line) == {"time", "level", "event", "request_id", "status", "error"}
    assert {*line} - {"time", "level", "event"} <= set(FIELDS)
    other = logging.makeLogRecord({"name": "some.library", "msg": "planted-person %s", "args": ("planted-person",)})
    assert "planted" not in OneLine().format(other) + OneLine().format(record)


def test_settings_come_from_flags_variables_and_files(tmp_path: Path) -> None:
    secret = tmp_path / "database"
    secret.write_text("postgresql://ann:secret@host/name\n")
    environment = {
        "PRIVATE_BANDITS_DATABASE_FILE": str(secret),
        "PRIVATE_BANDITS_PORT": "9000",
        "PRIVATE_BANDITS_RATE": "2.5",
        "PRIVATE_BANDITS_ALLOW_NO_PRIVACY": "yes",
        "PRIVATE_BANDITS_HOST": "0.0.0.0",
    }
    found = settings_from({"host": "127.0.0.2", "port": None}, environment)
    assert (found.port, found.rate, found.allow_no_privacy, found.host) == (9000, 2.5, True, "127.0.0.2")
    assert found.database == "postgresql://ann:secret@host/name"
    assert "secret" not in repr(found)
    assert settings_from({}, {}) == ServerSettings()
    for wrong in (
        {"PRIVATE_BANDITS_PORT": "planted"},
        {"PRIVATE_BANDITS_PORT": "70000"},
        {"PRIVATE_BANDITS_WORKERS": "0"},
        {"PRIVATE_BANDITS_RATE": "nan"},
        {"PRIVATE_BANDITS_ALLOW_NO_PRIVACY": "planted"},
        {"PRIVATE_BANDITS_LOG_LEVEL": "loud"},
        {"PRIVATE_BANDITS_DATABASE_FILE": str(tmp_path / "nowhere")},
        environment | {"PRIVATE_BANDITS_DATABASE": "x"},
    ):
        with pytest.raises(errors.InvalidInput) as caught:
            settings_from({}, wrong)
        assert "planted" not in str(caught.value)

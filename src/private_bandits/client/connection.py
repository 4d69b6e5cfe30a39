"""Connections to a service, kept open between calls. What went wrong with one is an answer, never an exception."""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Generator
from urllib.parse import urlsplit

from private_bandits.client.calls import Answer, Call
from private_bandits.client.keys import Keys
from private_bandits.errors import AgentClosed, InvalidInput
from private_bandits.loading import require
from private_bandits.version import __version__

require("Client", "service", "httpx2")

import httpx2  # noqa: E402

_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class _Bearer(httpx2.Auth):
    """Shows a key. It is in an object without a repr, as reports of crashes show the variables of each frame."""

    def __init__(self, bearer: str) -> None:
        self._bearer = bearer

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["Authorization"] = self._bearer
        yield request


class Connections:
    """Connections of one process. May be used from several threads.

    Args:
        url: The address of the service.
        keys: The keys to show.
        timeout: Seconds to wait for a connection, and for an answer.
        most: Connections at most.
        tls: Which certificates are trusted; None: those that the system does.
    """

    def __init__(self, url: str, keys: Keys, timeout: float, most: int, tls: ssl.SSLContext | None) -> None:
        self.url = checked_url(url)
        self._keys, self._timeout, self._most, self._tls = keys, timeout, most, tls
        self._lock = threading.Lock()
        self._closed = False
        self._process, self._http = 0, self._opened()

    def send(self, call: Call) -> Answer:
        """Return the answer to a call.

        Raises:
            AccessRefused: There is no key of a role that may make it.
            AgentClosed: The connections were closed.
        """
        http, url, body = self._of_this_process(), self.url + call.path, call.encoded()
        headers, auth = {"Content-Type": "application/json", **call.headers}, _Bearer(self._keys.bearer(call.roles))
        try:
            found = http.request(call.method, url, params=dict(call.query), content=body, headers=headers, auth=auth)
            return Answer(found.status_code, found.text, dict(found.headers))
        except httpx2.HTTPError as error:
            return Answer(0, arrived=not isinstance(error, _NOT_SENT))
        except BaseException as error:
            caught = error
            caught.__context__ = None
        if self._closed:
            self._refuse()
        raise caught.with_traceback(None)  # the frames of the library hold the key

    def close(self) -> None:
        """Close all connections."""
        self._closed = True
        self._http.close()

    def _opened(self) -> httpx2.Client:
        self._process = os.getpid()
        return httpx2.Client(
            timeout=self._timeout,
            limits=httpx2.Limits(max_connections=self._most, max_keepalive_connections=self._most),
            verify=True if self._tls is None else self._tls,
            headers={"User-Agent": f"private-bandits/{__version__}"},
        )

    def _of_this_process(self) -> httpx2.Client:
        """Return connections of this process: a child must not speak on those of its parent."""
        if self._closed:
            self._refuse()
        if self._process != os.getpid():
            with self._lock:
                if self._process != os.getpid():
                    self._http = self._opened()
        return self._http

    def _refuse(self) -> None:
        raise AgentClosed("the client was closed: make a new one")


def checked_url(url: str) -> str:
    """Return the address of a service without a slash at its end. It may have a path in front of the service's own.

    >>> checked_url("https://example.org/bandits/")
    'https://example.org/bandits'
    """
    problem = "the address of a service looks like https://example.org or https://example.org/prefix"
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (it is checked when it is read)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(problem) from None
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"{problem}, without a user or a password: give the key as key")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidInput(f"{problem}, got {url!r}")
    return url.rstrip("/")

"""The log: a line of JSON for each event, with a fixed list of fields. No values, no queries, no words of errors."""

from __future__ import annotations

import json
import logging
import re
import time
from typing import Any

FIELDS = ("request_id", "method", "route", "status", "milliseconds", "key", "error")
"""What an event may say besides its time, its level and its name. key: the number of the caller's key."""
ACCESS = logging.getLogger("private_bandits.access")
FAILURES = logging.getLogger("private_bandits.failures")

_OWN_WORDS = ("private_bandits", "uvicorn")
"""Loggers whose messages are fixed words. Of others only the name is written."""


_PLACES = re.compile(r" \[?%[a-z]\]?")
"""Places of values in a message. The values are not written."""


class OneLine(logging.Formatter):
    """Formats an event as JSON. Of an exception it writes the class alone: frames and texts hold what was sent."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fixed = record.name.partition(".")[0] in _OWN_WORDS
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{at}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "event": _PLACES.sub("", str(record.msg)).strip().partition("\n")[0] if fixed else record.name,
        }
        line |= {name: value for name in FIELDS if (value := record.__dict__.get(name)) is not None}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)


def log_config(level: str) -> dict[str, Any]:
    """Return the configuration of logging: one line an event, to standard error."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": OneLine}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"},
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {"private_bandits": {"level": level.upper()}, "uvicorn": {"level": level.upper()}},
    }

"""A web application that recommends, and takes feedback: any number of workers share one bandit of the service.

    private-bandits serve --database bandits.db
    BANDIT_URL=http://127.0.0.1:8000 BANDIT_ASK_KEY=... BANDIT_TELL_KEY=... \
        uvicorn --factory app:make_app --workers 4 --port 8080

docs/serving.md says how the keys and the bandit are made. Nobody but the service holds a reward: this application
passes it on, and forgets it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import private_bandits as pb
from private_bandits.errors import ClosedDecision, UnknownDecision


class Recommendation(BaseModel):
    """The arm that a visitor is shown, and the id to come back with."""

    decision: str
    medicine: str


class Feedback(BaseModel):
    """The feedback that a visitor gives later."""

    decision: str
    helped: bool


class Thanks(BaseModel):
    """The feedback is recorded."""

    recorded: bool = True


def make_app() -> FastAPI:
    """Return the application of one worker, with a client of its own."""
    keys = {"ask": os.environ["BANDIT_ASK_KEY"], "tell": os.environ["BANDIT_TELL_KEY"]}
    bandit = pb.Client(os.environ["BANDIT_URL"], keys).bandit("trial")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with bandit:
            yield

    app = FastAPI(title="Which medicine?", lifespan=lifespan)

    @app.post("/recommendation")
    def recommend() -> Recommendation:  # not async: FastAPI runs it in a thread, and the client waits there
        decision = bandit.ask()
        return Recommendation(decision=decision.id, medicine=decision.arm)

    @app.post("/feedback")
    def feedback(sent: Feedback) -> Thanks:
        try:
            bandit.tell(sent.decision, reward=float(sent.helped))
        except ClosedDecision:
            raise HTTPException(409, "this recommendation has its feedback already, or it came too late") from None
        except UnknownDecision:
            raise HTTPException(404, "there is no such recommendation") from None
        return Thanks()

    return app

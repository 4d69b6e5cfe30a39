"""Shows what an audit found, to people (terminal, HTML with a picture) and to machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console

from private_bandits.audit.evidence import Claim
from private_bandits.audit.inside import Flaw
from private_bandits.audit.outside import OutsideEvidence
from private_bandits.audit.wording import odds, seen
from private_bandits.pages import render
from private_bandits.plain_data import json_number

CONSISTENT = "consistent with the claim"
VIOLATION = "violation"
NOTHING = "nothing is promised"
SKIPPED = "not possible from outside"
UNJUDGED = "could not be judged"
MARKS = {
    VIOLATION: "[red]violation[/red]",
    CONSISTENT: "[green]ok[/green]",
    SKIPPED: f"[bright_black]{SKIPPED}[/bright_black]",
}
"""Verdicts as the terminal shows them."""
FAILURE = 1e-4
"""How often an agent that keeps its claim may be accused, at most, unless the audit is given another level."""
WIDTH, HEIGHT, LEFT = 640, 240, 24
"""The size of a picture on the page, and its margin."""


@dataclass(frozen=True)
class AuditPart:
    """One of the audit's four parts: what was done, in a sentence, and what is wrong.

    skipped: nothing was judged. failed: because the agent did not let itself be judged.
    """

    name: str
    summary: str
    flaws: tuple[Flaw, ...] = ()
    skipped: bool = False
    failed: bool = False
    outcome: OutsideEvidence | None = None

    @property
    def colour(self) -> str:
        """The class of its verdict on the page: what was not judged is neither good nor bad."""
        return "violation" if self.flaws or self.failed else "skipped" if self.skipped else "ok"

    @property
    def verdict(self) -> str:
        """In one word or two."""
        if self.flaws:
            return VIOLATION
        return UNJUDGED if self.failed else SKIPPED if self.skipped else CONSISTENT

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        flaws = [{"title": f.title, "evidence": f.evidence} for f in self.flaws]
        found: dict[str, Any] = {"name": self.name, "verdict": self.verdict, "summary": self.summary, "flaws": flaws}
        if self.outcome is not None:
            o = self.outcome
            found |= {
                "lower_bound": json_number(o.bound),
                "confidence": 1 - o.failure,
                "runs_per_world": o.runs,
                "scenario": str(o.scenario),
                "measured": o.words,
                "seen": {"event": o.sighting.words, "secret_lowest": o.sighting.low, "secret_highest": o.sighting.high},
                "log_wealth": json_number(o.log_wealth),
                "log_wealth_needed": o.log_needed,
                "more_than_gaussian_noise_shows": o.beyond_gaussian,
            }
        return found


@dataclass
class Report:
    """All parts of one audit."""

    name: str
    claim: Claim | None
    inside: bool
    parts: list[AuditPart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    false_accusation: float = FAILURE
    """How often this audit accuses an agent that keeps its claim, at most."""

    @property
    def violated(self) -> bool:
        """Whether any part found the claim broken."""
        return any(part.flaws for part in self.parts)

    @property
    def judged(self) -> bool:
        """Whether what the agent does could be judged, from inside or from outside: noise and ledger are not enough."""
        return any(not part.skipped for part in self.parts if part.name[0] in "13")

    @property
    def verdict(self) -> str:
        """Violation, could not be judged, consistent with the claim, or nothing promised."""
        if self.violated:
            return VIOLATION
        return UNJUDGED if not self.judged else CONSISTENT if self.claim else NOTHING

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "policy": self.name,
            "claim": str(self.claim) if self.claim else None,
            "verdict": self.verdict,
            "violated": self.violated,
            "judged": self.judged,
            "seen": "inside and outside" if self.inside else "outside only",
            "parts": [part.to_dict() for part in self.parts],
            "notes": self.notes,
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.verdict}"

    def print(self, console: Console) -> None:
        """For people at a terminal."""
        colour = {VIOLATION: "red", CONSISTENT: "green"}.get(self.verdict, "yellow")
        console.print(f"[bold]{_plain(self.name)}[/bold]: claims {self.claim or 'nothing'}", highlight=False)
        for part in self.parts:
            mark = MARKS.get(part.verdict, part.verdict)
            console.print(f"  {part.name}: {mark}. {_plain(part.summary)}", highlight=False, soft_wrap=True)
            for flaw in part.flaws:
                text = f"    [red]{_plain(flaw.title)}[/red]: {_plain(flaw.evidence)}"
                console.print(text, highlight=False, soft_wrap=True)
        for note in self.notes:
            console.print(f"  note: {_plain(note)}", highlight=False, soft_wrap=True)
        console.print(f"  [{colour}]{self.verdict}[/{colour}] ({self.seconds:.1f} s)", highlight=False)


def _plain(text: str) -> str:
    """Square brackets are markup to rich."""
    return text.replace("[", r"\[")


def html(reports: Sequence[Report]) -> str:
    """One page that needs nothing else: verdicts, evidence, and the two worlds' distributions as pictures."""
    return render(
        "private_bandits.audit",
        "audit.html",
        reports=reports,
        broken=[report.name for report in reports if report.violated],
        unjudged=[report.name for report in reports if not report.judged],
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        bars=_bars,
        caption=_caption,
    )


def _bars(outcome: OutsideEvidence, counts: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Return x, y, width and height of each bar for the counts of one world, as SVG has them."""
    most = max(*outcome.low_world, *outcome.high_world, 1)
    step = (WIDTH - 2 * LEFT) / len(counts)
    for index, count in enumerate(counts):
        if count:
            high = count / most * (HEIGHT - 60)
            yield tuple(f"{number:.1f}" for number in (LEFT + index * step, HEIGHT - 40 - high, step, high))


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _caption(outcome: OutsideEvidence) -> str:
    return (
        f"What an observer of {outcome.sees} can tell, from {outcome.runs:,} runs of each world, which differ in one "
        f"reward. The better the two colours come apart, the more is given away. {_sentence(seen(outcome))}. "
        f"Scenario: {outcome.scenario}. Measured: {outcome.words}. Proven with confidence {1 - outcome.failure:.6f}: "
        f"at least {outcome.bound:.4g}; claimed: {outcome.claim}. {odds(outcome)}."
    )

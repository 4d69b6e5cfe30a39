"""What an audit found, for people (terminal, HTML with a picture) and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rich.console import Console

from private_bandits.audit.evidence import Claim
from private_bandits.audit.inside import Flaw
from private_bandits.audit.outside import Outcome
from private_bandits.plain_data import json_number

CONSISTENT = "consistent with the claim"
VIOLATION = "violation"
NOTHING = "nothing is promised"
SKIPPED = "not possible from outside"
UNJUDGED = "could not be judged"
FAILURE = 1e-4
"""How often an agent that keeps its claim may be accused, at most, unless the audit is given another level."""


@dataclass(frozen=True)
class Part:
    """One of the audit's four parts: what was done, in a sentence, and what is wrong.

    skipped: nothing was judged. failed: because the agent did not let itself be judged.
    """

    name: str
    summary: str
    flaws: tuple[Flaw, ...] = ()
    skipped: bool = False
    failed: bool = False
    outcome: Outcome | None = None

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
            }
        return found


@dataclass
class Report:
    """All parts of one audit."""

    name: str
    claim: Claim | None
    inside: bool
    parts: list[Part] = field(default_factory=list)
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
            mark = {VIOLATION: "[red]violation[/red]", CONSISTENT: "[green]ok[/green]"}.get(part.verdict, part.verdict)
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
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Privacy audit</title><style>'
        "body{font:16px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "body{color:#222;background:#fff}"
        "h2{margin-top:2em}.violation{color:#b00020}.ok{color:#146c2e}table{border-collapse:collapse}"
        "td,th{padding:.3em .8em;text-align:left;vertical-align:top;border-bottom:1px solid #ccc}"
        "figure{margin:1em 0}figcaption{color:#444;font-size:90%}</style>"
        f"<h1>Privacy audit</h1><p>{_headline(reports)}</p>{''.join(map(_section, reports))}</html>\n"
    )


def _headline(reports: Sequence[Report]) -> str:
    broken = [r.name for r in reports if r.violated]
    if broken:
        return f'<strong class="violation">Violations found: {escape(", ".join(broken))}.</strong>'
    unjudged = [r.name for r in reports if not r.judged]
    if unjudged:
        return f'<strong class="violation">Could not be judged: {escape(", ".join(unjudged))}.</strong>'
    return '<strong class="ok">No violation was found.</strong> An audit can refute a claim, never prove it.'


def _section(report: Report) -> str:
    rows = "".join(
        f'<tr><td>{escape(p.name)}<td class="{"violation" if p.flaws or p.failed else "ok"}">{escape(p.verdict)}'
        f"<td>{escape(p.summary)}{''.join(map(_flaw, p.flaws))}"
        for p in report.parts
    )
    pictures = "".join(picture(p.outcome) for p in report.parts if p.outcome is not None)
    notes = "".join(f"<p>Note: {escape(n)}</p>" for n in report.notes)
    seen = "Seen from inside and outside." if report.inside else "Seen from outside only."
    return (
        f"<h2>{escape(report.name)}: {escape(report.verdict)}</h2><p>Claim: {escape(str(report.claim or 'none'))}. "
        f"{seen} {report.seconds:.1f} seconds.</p><table><tr><th>Part<th>Verdict<th>What was done{rows}</table>"
        f"{notes}{pictures}"
    )


def _flaw(flaw: Flaw) -> str:
    return f'<br><strong class="violation">{escape(flaw.title)}</strong>: {escape(flaw.evidence)}'


def picture(outcome: Outcome) -> str:
    """The distributions of the score in the two worlds, one above the other's outline."""
    width, height, left = 640, 220, 10
    most = max(*outcome.low_world, *outcome.high_world, 1)
    step = (width - 2 * left) / len(outcome.low_world)

    def bars(counts: tuple[int, ...], fill: str) -> str:
        return "".join(
            f'<rect x="{left + i * step:.1f}" y="{height - 20 - c / most * (height - 40):.1f}" width="{step:.1f}" '
            f'height="{c / most * (height - 40):.1f}" fill="{fill}" fill-opacity="0.5"/>'
            for i, c in enumerate(counts)
            if c
        )

    ends = "".join(
        f'<text x="{x}" y="{height - 4}" font-size="12" text-anchor="{anchor}">{edge:.3g}</text>'
        for x, anchor, edge in ((left, "start", outcome.edges[0]), (width - left, "end", outcome.edges[-1]))
    )
    legend = (
        f'<rect x="{left}" y="2" width="12" height="12" fill="#0072b2" fill-opacity="0.5"/>'
        f'<text x="{left + 18}" y="13" font-size="13">the secret reward was the lowest</text>'
        f'<rect x="{left + 260}" y="2" width="12" height="12" fill="#d55e00" fill-opacity="0.5"/>'
        f'<text x="{left + 278}" y="13" font-size="13">it was the highest</text>'
    )
    text = (
        f"What an observer of {outcome.sees} can tell, from {outcome.runs:,} runs of each world. "
        f"Scenario: {outcome.scenario}. Measured: {outcome.words}. Proven with confidence {1 - outcome.failure:.6f}: "
        f"at least {outcome.bound:.4g}; claimed: {outcome.claim}."
    )
    return (
        f'<figure><svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="Two distributions" '
        'font-family="sans-serif">'
        f"{legend}{bars(outcome.low_world, '#0072b2')}{bars(outcome.high_world, '#d55e00')}{ends}</svg>"
        f"<figcaption>{escape(text)}</figcaption></figure>"
    )

"""Checks a ledger from its texts alone: the chain, the cost of each release, the cost to rewards and to people.

Everything is computed anew, by formulas of this module and in exact fractions, from the opening and the rows. It needs
no agent and no data. `BLIND` lists what cannot be seen from here.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from private_bandits.ledger.chain import canonical, digest, short_head
from private_bandits.ledger.people import PersonCost, Releases, worst_person
from private_bandits.ledger.row_checks import Facts
from private_bandits.ledger.rows import Release, label_span

CHECKED = (
    "each text holds the hash of the text before it, from the opening to the head",
    "the numbers of the rows have no gap, and no episode was released twice",
    "each release holds the episodes that the settings say, with their multipliers and their numbers of rewards",
    "the noise of each release is wide enough for its sensitivity, and as wide as the row says",
    "what a row says it cost is not less than what its noise and its sensitivity make it",
    "no reward costs more than was promised, over all of its releases",
    "no person costs more than was promised, in the dearest placement of the rewards that a person may have",
)
BLIND = (
    "whether noise was drawn at all, and drawn from the distribution that the rows name: who holds the raw outcomes "
    "can test that",
    "whether the weights of the rewards were within the sensitivity that a row states, where they are vectors",
    "whether the limit for each person was kept, and whether people were who they said they were",
    "whether rewards, or whether they arrived, were chosen after the outcome was known",
    "whether a copy of the agent's state was released elsewhere, with noise of its own",
    "rows after the last one here, unless a later head is known",
)
NO_HEAD = (
    "no head was given, so a ledger that was made wholly anew could not be seen. Check it with a head that you were "
    "given earlier, best before the first participant"
)
LONGEST_SPAN = 2**22
"""Leaves of a tree's node, at most: a text that names more is not counted through."""


@dataclass(frozen=True)
class Finding:
    """Something that is off. row: its number; 0: the opening; None: the ledger as a whole."""

    row: int | None
    words: str

    def __str__(self) -> str:
        place = "the ledger" if self.row is None else "the opening" if self.row == 0 else f"row {self.row}"
        return f"{place}: {self.words}"


@dataclass
class Verification:
    """The result of checking a ledger.

    rows: how many there are. head: the head of the chain as recomputed. findings: what is off; none is good news.
    reward_cost, promised_reward: the cost to the dearest reward so far, exactly, and the most that was promised.
    person_cost, promised_person: the same for the worst person; None where people have no limit.
    settings, plan: of the opening. notes: what a reader has to know. releases: rows by the sum that they are of.
    """

    rows: int = 0
    head: str = ""
    findings: list[Finding] = field(default_factory=list)
    settings: Mapping[str, Any] = field(default_factory=dict)
    plan: Any = None
    noise: str = ""
    private: bool = False
    reward_cost: Fraction = Fraction(0)
    promised_reward: float = math.inf
    person_cost: PersonCost | None = None
    promised_person: float | None = None
    notes: list[str] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is off."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data. Exact costs are texts such as "1/10"."""
        person = self.person_cost
        return {
            "ok": self.ok,
            "rows": self.rows,
            "head": self.head,
            "findings": [{"row": finding.row, "words": finding.words} for finding in self.findings],
            "noise": self.noise,
            "private": self.private,
            "reward_cost": str(self.reward_cost),
            "reward_cost_float": float(self.reward_cost),
            "promised_reward": "inf" if math.isinf(self.promised_reward) else self.promised_reward,
            "person_cost": None if person is None else str(person.cost),
            "person_cost_float": None if person is None else float(person.cost),
            "person_cost_is_exact": None if person is None else person.exact,
            "worst_placement": None if person is None else dict(person.placement),
            "promised_person": self.promised_person,
            "settings": dict(self.settings),
            "plan": self.plan,
            "notes": self.notes,
            "checked": list(CHECKED),
            "not_seen": list(BLIND),
        }

    def __str__(self) -> str:
        if not self.ok:
            return "\n".join(["Something is off.", *(f"- {finding}" for finding in self.findings)])
        return f"{self.rows} rows, head {self.head}: everything that a ledger shows is in order."

    def report(self) -> str:
        """Return the result in words: the verdict, the costs, what was checked, and what cannot be seen."""
        symbol = "epsilon" if self.noise == "laplace" else "rho"
        lines = [str(self), *(f"Note: {note}." for note in self.notes)]
        if not self.settings:  # nothing could be read
            return "\n".join(lines)
        if self.private:
            cost, promised = float(self.reward_cost), self.promised_reward
            lines.append(
                f"One reward: {symbol} = {cost:.6g} so far, exactly {self.reward_cost}; promised {promised:.6g}."
            )
        if self.person_cost is not None:
            person, limit = self.person_cost, self.settings["max_rewards_per_person"]
            exactly = f"exactly {person.cost}" if person.exact else "an upper bound"
            text = (
                f"One person, at most {limit} rewards: {symbol} = {float(person.cost):.6g} so far, {exactly}; promised"
            )
            lines.append(f"{text} {self.promised_person:.6g}.")
        lines += [
            "Checked:" if self.ok else "Looked at:",
            *(f"- {line}" for line in CHECKED),
            "Not seen from a ledger:",
        ]
        return "\n".join([*lines, *(f"- {line}" for line in BLIND)])


def verify_lines(text: str, known_head: str | None = None) -> Verification:
    """Check a ledger that `Ledger.to_jsonl` exported.

    Args:
        text: The whole file.
        known_head: A head that was noted earlier, in a statement for instance. The ledger must contain it.
    """
    lines = text.split("\n")
    head = lines[-2] if len(lines) > 2 else ""
    found = verify_texts(lines[0], lines[1 : max(1, len(lines) - 2)], known_head)
    if lines[-1] or head != canonical({"head": found.head}):
        found.findings.append(
            Finding(None, f"it does not end with its own head, {found.head}: its last row was changed, or it was cut")
        )
    return found


def verify_texts(opening: str, texts: Iterable[str], known_head: str | None = None) -> Verification:
    """Check a ledger from the text that it began with and the texts of its rows."""
    check = _Check(opening)
    for text in texts:
        check.row(text)
    return check.result(known_head)


class _Check:
    """One pass over a ledger."""

    def __init__(self, opening: str) -> None:
        self.found = Verification()
        self._last_hash = digest(opening)
        self._heads = [short_head(0, self._last_hash)]
        self._releases = Releases()
        self._costs: defaultdict[tuple[str, int], Fraction] = defaultdict(Fraction)
        self._newest: dict[str, int] = {}
        self._sizes: dict[tuple[str, int], int] = {}  # the rewards in each episode
        self._known = False
        try:
            self._facts = Facts(json.loads(opening))
            self._known = True
        except Exception:
            self.found.findings.append(Finding(0, "it cannot be read: it is no opening of a ledger, or was changed"))

    def row(self, text: str) -> None:
        """Check one row, and take it into the sums. Only the first row that is off is told of each kind."""
        number = len(self._heads)
        try:
            self._take(Release.from_text(text), number)
        except Exception:  # whatever a text may hold that no agent writes
            self._off(number, "it cannot be read: it is no row of a ledger, or was changed")
        self._last_hash = digest(text)
        self._heads.append(short_head(number, self._last_hash))

    def _take(self, row: Release, number: int) -> None:
        if row.previous != self._last_hash:
            self._off(number, "it does not hold the hash of the text before it: one of the two was changed")
        wrong = list(self._wrong(row, number))
        for words in wrong:
            self._off(number, words)
        self._charge(row)
        if not wrong:
            self.found.releases.append(row)

    def _off(self, number: int, words: str) -> None:
        if all(finding.words != words for finding in self.found.findings):
            self.found.findings.append(Finding(number, words))

    def _wrong(self, row: Release, number: int) -> Iterator[str]:
        """Say everything that is off with a row by itself, and with its place among the others."""
        if row.number != number:
            yield f"it has the number {row.number}, and number {number} comes next"
        if self._known:
            yield from self._facts.wrong_noise(row)
            yield from self._facts.wrong_parts(row, self._newest, self._sizes)
            yield from self._facts.wrong_values(row)

    def _charge(self, row: Release) -> None:
        """Add up what a release costs the rewards in it, and remember what was released."""
        for label, multiplier in row.episodes.items():
            key, first, last = label_span(label)
            if last - first >= LONGEST_SPAN:
                raise ValueError("a node with more leaves than are counted one by one")
            cost = Fraction(row.calibrated) if math.isfinite(row.calibrated) else Fraction(0)
            size = abs(Fraction(multiplier))
            for episode in range(first, last + 1):
                self._costs[key, episode] += cost * (size**2 if row.noise == "gaussian" else size)
        for part in row.parts:
            if part.new:
                key, _, last = label_span(part.episode)
                self._newest[key] = max(last, self._newest.get(key, 0))
                self._sizes[key, last] = part.rewards
        if row.noise != "none":
            self._releases.add(row)

    def result(self, known_head: str | None) -> Verification:
        """Compare the sums with the promise, and the chain with a known head."""
        found = self.found
        found.rows, found.head = len(self._heads) - 1, self._heads[-1]
        found.reward_cost = max(self._costs.values(), default=Fraction(0))
        self._look_for(known_head)
        if self._known:
            self._fill_in(found)
            if found.private:
                self._compare(found)
        return found

    def _look_for(self, known_head: str | None) -> None:
        """Say where a known head is, or that none was given."""
        if known_head is None:
            self.found.notes.append(NO_HEAD)
        elif known_head in self._heads:
            number = self._heads.index(known_head)
            before = "" if number else ", before the first release"
            self.found.notes.append(f"the head that you gave is in it, at row {number}{before}")
        else:
            self.found.findings.append(Finding(None, _missing_head(known_head, self.found.rows)))

    def _fill_in(self, found: Verification) -> None:
        """Note what the opening states."""
        facts = self._facts
        found.settings, found.plan, found.noise, found.private = facts.settings, facts.plan, facts.noise, facts.private
        if facts.chained is not None:
            found.notes.append(
                f"rows 1 to {facts.chained['rows']} were written by an earlier version and chained on "
                f"{facts.chained['on']}: nothing before that day is vouched for"
            )
        if not facts.private:
            found.notes.append("nothing is promised: there is no noise, or it comes from a seed")
            return
        found.promised_reward, found.promised_person = facts.promised_reward, facts.promised_person

    def _compare(self, found: Verification) -> None:
        facts = self._facts
        found.findings += [Finding(0, words) for words in facts.wrong_level()]
        if found.reward_cost > Fraction(found.promised_reward):
            words = f"a reward costs {float(found.reward_cost):.6g}, and {found.promised_reward:.6g} was promised"
            found.findings.append(Finding(None, words))
        if facts.limit is None or any(finding.row for finding in found.findings):
            return  # of rows that are off nothing can be said about people
        worst = worst_person(self._releases, facts.limit, facts.one_per_episode)
        ever = facts.person_cost_ever()
        if not worst.exact and ever < worst.cost:  # no placement that the agent takes ever costs more
            worst = PersonCost(ever, False, {})
        found.person_cost = worst
        assert found.promised_person is not None
        if worst.cost > Fraction(found.promised_person):
            words = f"a person costs {worst.rounded:.6g}, and {found.promised_person:.6g} was promised"
            found.findings.append(Finding(None, words))


def _missing_head(head: str, rows: int) -> str:
    number = head.partition("-")[0]
    if number.isdecimal() and int(number) > rows:
        return f"the head {head} is of {number} rows, and there are {rows}: rows were cut off"
    return f"the head {head} is none of this ledger: rows were rewritten, or it is of another ledger"

"""The ledger as lines of JSON, page by page: together they are what `Ledger.to_jsonl` exports."""

from __future__ import annotations

from collections.abc import Sequence

from private_bandits.ledger.chain import canonical, digest, short_head
from private_bandits.service.snapshots import Facts
from private_bandits.storage.sql.public_rows import LedgerRow


def page_text(facts: Facts, last: int, rows: Sequence[LedgerRow], limit: int) -> str:
    """Return the rows after row `last`: the first page begins with the opening, the last one ends with the head."""
    lines = [facts.opening] if last == 0 else []
    lines += [row.text for row in rows]
    if len(rows) < limit and lines:
        number = rows[-1].number if rows else last
        lines.append(canonical({"head": short_head(number, digest(lines[-1]))}))
    return "".join(f"{line}\n" for line in lines)

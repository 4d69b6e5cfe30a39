"""Bandits in a database, SQLite or PostgreSQL, that several workers share. Needs the extra [service].

One bandit is one row of hot state. No table has a row for a reward, and no fingerprint of a reward is stored.
"""

from private_bandits.loading import require

require("a database", "service", "alembic", "psycopg", "sqlalchemy")

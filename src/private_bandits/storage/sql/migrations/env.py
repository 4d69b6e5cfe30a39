"""Runs the steps on the connection that `migrating.upgrade` hands over, in its transaction."""

from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection)
context.run_migrations()

"""The statement: a trial as a board reads it, made of the public view alone."""

from private_bandits.statement.card import card_of
from private_bandits.statement.document import Statement, statement_of

__all__ = ["Statement", "card_of", "statement_of"]

"""The factors of correlated noise, for policies of one's own (mechanism/factor.py)."""

from private_bandits.mechanism.factor import HALF_BEFORE, INDEPENDENT, Factor, square_root

__all__ = ["HALF_BEFORE", "INDEPENDENT", "Factor", "square_root"]

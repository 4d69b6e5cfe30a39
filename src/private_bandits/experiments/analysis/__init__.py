"""Analyses the runs: regrets with their errors, the claims that are tested on them, and numbers in words."""

"""What the runs say: regrets with their errors, the claims that are tested on them, and numbers in words."""

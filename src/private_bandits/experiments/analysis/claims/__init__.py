"""The paper's claims and ours, one file each: the test, its numbers, and the words that follow."""

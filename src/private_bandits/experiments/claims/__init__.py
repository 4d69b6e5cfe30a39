"""The paper's claims, one file each: the test, its numbers, and the words that follow."""

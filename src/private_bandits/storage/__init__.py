"""Where the state of an agent is kept: in memory, or in a SQLite file.

`contract.py` says what a store promises. A new store is a module beside the others, and passes tests/storage.
"""

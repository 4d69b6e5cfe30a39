"""The routes. Each parses, calls one function, and answers."""

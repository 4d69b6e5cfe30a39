"""A trial from plan to statement: what people outside of it are shown, and can check."""

"""The statement: a trial as a board reads it, made of the public view alone."""

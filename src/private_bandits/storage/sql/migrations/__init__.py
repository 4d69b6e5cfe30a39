"""Steps from each form of the tables to the next. A step that was published is never edited."""

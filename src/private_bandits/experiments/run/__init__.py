"""What is run, as data, and how: the blocks of an experiment, their cache, one machine or a cluster, the files."""

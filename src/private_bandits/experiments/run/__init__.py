"""Runs experiments, which are data: the blocks of an experiment, their cache, one machine or a cluster, the files."""

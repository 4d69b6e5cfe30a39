"""The paper's experiments and what it lacks, as data, with one runner. The core does not import this package."""

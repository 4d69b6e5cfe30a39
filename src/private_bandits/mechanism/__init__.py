"""From a reward to a release: the reward range, exact sums, what leaves together, noise, and the door.

Read rewards.py, episode.py, composition.py, noise.py, then release.py: THE DOOR. Policies see none of it but what is
public: the factor, the shape of a tree, and how private contexts are scaled.
"""

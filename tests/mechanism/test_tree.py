"""The tree by brute force: every node, every prefix, every leaf."""

from __future__ import annotations

import pytest

from private_bandits.mechanism.tree import is_complete, levels_for, nodes_after, subtrees_joined


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_every_prefix_is_the_sum_of_disjoint_nodes_and_no_leaf_is_in_more_than_levels(levels: int) -> None:
    capacity = 2**levels - 1
    nodes: list[range] = []
    released: list[range] = []
    for number in range(1, 3 * capacity + 1):
        joined = subtrees_joined(number, levels)
        first = nodes[len(nodes) - joined].start if joined else number
        node = range(first, number + 1)
        assert len(node) == 2**joined
        nodes = nodes_after(nodes, node, number, levels)
        released.append(node)
        start = (number - 1) // capacity * capacity + 1
        assert [leaf for part in nodes for leaf in part] == list(range(start, number + 1))
        assert len(nodes) == (number - start + 1).bit_count() <= levels
        if is_complete(number, levels):
            assert number % capacity == 0
            nodes = []
    for leaf in range(1, 3 * capacity + 1):
        assert sum(leaf in node for node in released) <= levels
    assert sum(1 in node for node in released) == levels  # the bound is reached


def test_levels_are_enough_and_not_too_many() -> None:
    for leaves in range(1, 300):
        levels = levels_for(leaves)
        assert 2 ** (levels - 1) - 1 < leaves <= 2**levels - 1

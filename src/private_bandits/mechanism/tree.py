"""The binary tree mechanism: which sums leave so that every prefix is known from few of them.

Leaves are numbered 1, 2, 3, ... When leaf i is complete, one node leaves: the sum of the last 2^z leaves, z the number
of times that 2 divides i. A prefix of i leaves is then the sum of as many nodes as i has ones in binary, and a leaf is
in at most `levels` nodes of a tree of 2^levels - 1 leaves (Chan, Shi and Song 2011; Dwork et al. 2010). After that many
leaves the tree is complete and another one begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Node = TypeVar("Node")


def levels_for(leaves: int) -> int:
    """How many levels a tree needs for so many leaves, which is how many releases a leaf may be in.

    >>> levels_for(7), levels_for(8)
    (3, 4)
    """
    return leaves.bit_length()


def _place(number: int, levels: int) -> int:
    """Of leaf `number`, in its own tree."""
    return (number - 1) % ((1 << levels) - 1) + 1


def subtrees_joined(number: int, levels: int) -> int:
    """How many complete subtrees before it the node of leaf `number` takes in."""
    place = _place(number, levels)
    return (place & -place).bit_length() - 1


def subtrees_before(number: int, levels: int) -> list[tuple[int, int]]:
    """Return the first and last leaves of the complete subtrees that leaf `number` follows in its tree.

    >>> subtrees_before(8, 4), subtrees_before(16, 4)
    ([(1, 4), (5, 6), (7, 7)], [])
    """
    done = _place(number, levels) - 1
    first, found = number - done, []
    for level in reversed(range(levels)):
        size = 1 << level
        if done & size:
            found.append((first, first + size - 1))
            first += size
    return found


def is_complete(number: int, levels: int) -> bool:
    """Whether leaf `number` is the last one of its tree."""
    return _place(number, levels) == (1 << levels) - 1


def nodes_after(nodes: Sequence[Node], node: Node, number: int, levels: int) -> list[Node]:
    """The nodes that make up the prefix, once leaf `number` has completed `node`.

    >>> nodes_after(["1-4", "5-6"], "7", 7, 4), nodes_after(["1-4", "5-6", "7"], "1-8", 8, 4)
    (['1-4', '5-6', '7'], ['1-8'])
    """
    return [*nodes[: len(nodes) - subtrees_joined(number, levels)], node]

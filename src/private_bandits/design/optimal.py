"""How often to play each action so that no action's value is estimated badly: G-optimal designs.

For vectors a_1, ..., a_K and weights pi with V(pi) = sum of pi(a) a a^T, least squares knows the value of a up to a
variance proportional to its leverage, ||a||^2 in V(pi)^-1. The Kiefer-Wolfowitz theorem (1960): the largest leverage
is at least the rank r of the vectors, and equals r exactly where log det V(pi) is largest. Every design here carries
its largest leverage, computed anew from the final weights: the certificate.

Four steps, none of which draws a random number:

1. `span_of`: the rank, by Gram-Schmidt with pivoting on directions. Lengths do not matter to a rank.
2. `coordinates`: every action in terms of r actions of large volume, the entries at most 2. Leverage does not change
   under invertible maps, and here V of an optimal design has a condition number of at most 4 r^3, whatever the input.
3. `exchanges`: 2r actions, with repetition, whose largest leverage is at most 2r.
4. `optimal_weights`: an interior-point method on few actions, to which those that violate the optimality are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.arrays import Floats, Integers, Precise
from private_bandits.errors import InvalidInput

RAYS = 64
"""Directions that `lightened` follows before it mends all others: a matter of speed only."""
RANK_TOLERANCE = 1e-12
"""A direction that no action follows by more than this share of its own length is rounding, not a dimension."""
SHORTEST = 1e-100
"""An action shorter than this, relative to the longest one, counts as zero."""


@dataclass(frozen=True, eq=False)
class Design:
    """A distribution over actions, with the proof that it is good.

    weights: one for each action, exact zeros off the support, summing to one.
    support: actions with positive weight, ascending.
    rank: dimension of the span of the actions.
    basis: d x rank, orthonormal columns, the span; the identity if the actions span everything.
    leverage: the largest ||a||^2 in V(weights)^-1 over all actions, within the span. Never below `rank`,
        but for rounding.
    """

    weights: Floats
    support: Integers
    rank: int
    basis: Floats
    leverage: float


def span_of(actions: ArrayLike) -> Floats:
    """An orthonormal basis (columns) of the span of the rows; the identity if they span everything.

    Directions are added one by one as long as some action sticks out of their span by more than 1e-12 of its own
    length. So 1e-8 v counts as much as v, a feature in a unit 1e-8 times as long as the others' counts as a feature,
    and the rounding of entries (1e-16) does not. An action shorter than 1e-100 times the longest counts as zero.

    >>> span_of([[1.0, 0.0, 0.0], [0.0, 1e-8, 0.0]]).round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    return independent(checked(actions))[1]


def optimal_design(actions: ArrayLike, tol: float = 1e-3) -> Design:
    """Weights whose largest leverage is at most (1 + tol) rank, on at most rank (rank + 1) / 2 actions.

    log det of V is then within rank log(1 + tol) of its maximum. Zero vectors get no weight; if all are zero, the
    first has all the weight, rank and leverage are 0. K = 10,000 actions in d = 50 take about a second, and memory of
    O(K d), plus O(rank^4) if nearly all actions are equally good, so that the support has to be cut.

    >>> design = optimal_design([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> design.weights.tolist(), round(design.leverage, 9)
    ([0.5, 0.5, 0.0], 2.0)
    """
    if not isinstance(tol, Real) or isinstance(tol, bool) or not 0 < float(tol) <= 1:
        raise InvalidInput(f"tol must be in (0, 1], got {tol!r}: 1e-3 is a usual choice")
    rows = checked(actions)
    pivots, basis = independent(rows)
    if not len(pivots):
        return without_span(rows, basis)
    points, pivots = coordinates(rows, basis, pivots)
    # A tenth of the tolerance is left to rounding: the certificate has to hold in exact arithmetic too.
    weights = optimal_weights(points, exchanges(points, pivots), 0.6 * float(tol))
    design = certified(points, lightened(points, thinned(points, weights, 0.2 * float(tol))), basis)
    if design.leverage > (1 + tol) * design.rank:
        reached = design.leverage / design.rank - 1
        raise InvalidInput(f"tol = {tol!r} is finer than floats resolve here ({reached:.1e}): use a larger tol")
    return design


def small_design(actions: ArrayLike) -> Design:
    """Weights on at most 2 rank actions whose largest leverage is at most 2 rank; see `exchanges` for the proof.

    Each weight is a multiple of 1 / (2 rank). In particular at most 4 d log log max(d, 3) + 16 actions, the size of
    the core sets used for phased elimination (Todd 2016; Lattimore, Szepesvari and Weisz 2020).

    >>> small_design([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).weights.tolist()
    [0.5, 0.5, 0.0]
    """
    rows = checked(actions)
    pivots, basis = independent(rows)
    if not len(pivots):
        return without_span(rows, basis)
    points, pivots = coordinates(rows, basis, pivots)
    return certified(points, exchanges(points, pivots), basis)


def checked(actions: ArrayLike) -> Floats:
    """The actions as floats, divided by a power of two so that the largest entry is about one (which is exact)."""
    try:
        given = np.asarray(actions)
    except ValueError as error:
        raise InvalidInput("actions must be a K x d array, got rows of different lengths: one row an action") from error
    if given.ndim != 2 or 0 in given.shape:
        raise InvalidInput(f"actions must be a K x d array with K, d >= 1, got shape {given.shape}: one row an action")
    if given.dtype.kind not in "biuf":
        raise InvalidInput(f"actions must be real numbers, got dtype {given.dtype}: convert them to floats")
    rows = given.astype(np.float64)
    wrong = np.argwhere(~np.isfinite(rows))
    if len(wrong):
        row, column = wrong[0]
        raise InvalidInput(f"actions must be finite, got {rows[row, column]} in row {row}, column {column}: remove it")
    scaled: Floats = np.ldexp(rows, -np.frexp(np.abs(rows).max())[1])
    return scaled


def independent(rows: Floats) -> tuple[Integers, Floats]:
    """As many independent rows as the rank, and an orthonormal basis of the span: see `span_of`."""
    lengths = np.sqrt((rows * rows).sum(axis=1))
    real = lengths > SHORTEST * lengths.max()
    left = np.divide(rows, lengths[:, None], out=np.zeros_like(rows), where=real[:, None])
    pivots: list[int] = []
    basis = np.zeros((rows.shape[1], 0))
    while len(pivots) < min(rows.shape):
        squares = np.einsum("ij,ij->i", left, left)
        if squares.max() <= RANK_TOLERANCE**2:
            break
        # Of all that stick out at least half as far as any, the one that adds most volume: less is left to swap.
        pivot = int(np.where(squares >= squares.max() / 4, np.sqrt(squares) * lengths, 0).argmax())
        direction = left[pivot] / np.sqrt(squares[pivot])
        direction -= basis @ (basis.T @ direction)  # a second time, for orthogonality to the last digit
        direction /= np.sqrt(direction @ direction)
        left -= np.outer(np.einsum("ij,j->i", left, direction), direction)
        basis = np.column_stack([basis, direction])
        pivots.append(pivot)
    if len(pivots) == rows.shape[1]:
        basis = np.eye(len(pivots))  # the same span, and coordinates are then exact
    return np.array(pivots, dtype=np.int64), basis


def coordinates(rows: Floats, basis: Floats, pivots: Integers) -> tuple[Floats, Integers]:
    """Every row as a combination of few rows, with coefficients of at most 2, and which rows those are.

    While a coefficient exceeds 2, its row takes the place of the pivot: the volume more than doubles, so this ends
    (barycentric spanners: Awerbuch and Kleinberg 2008). The solution is refined in extended precision, where the
    machine has it: the certificate is about the actions as given, also at a condition number of 1e8.
    """
    inside = rows.astype(np.longdouble)
    if len(pivots) < rows.shape[1]:
        inside = inside @ basis.astype(np.longdouble)
    pivots = pivots.copy()
    points = combined(inside[pivots], inside)
    for _ in range(400 * len(pivots)):  # lengths differ by less than 2^400
        row, column = np.unravel_index(np.abs(points).argmax(), points.shape)
        if abs(points[row, column]) <= 2:
            break
        pivots[column] = row
        if abs(points[row, column]) > 1e3:  # an update would cancel digits
            points = combined(inside[pivots], inside)
            continue
        change = points[row].copy()
        change[column] -= 1
        points -= np.outer(points[:, column] / points[row, column], change)
    exact = combined(inside[pivots], inside).astype(np.longdouble)
    for _ in range(3):
        correction = combined(inside[pivots], inside - exact @ inside[pivots])
        exact += correction
        if np.abs(correction).max() <= 1e-14:
            break
    return exact.astype(np.float64), pivots


def combined(parts: Precise, rows: Precise) -> Floats:
    """The coefficients with which `parts` (square) make up each row."""
    solution: Floats = np.linalg.solve(parts.T.astype(np.float64), rows.T.astype(np.float64)).T
    return np.ascontiguousarray(solution)


def exchanges(points: Floats, pivots: Integers) -> Floats:
    """Uniform weights on 2r points, repetitions allowed, whose largest leverage is at most 2r.

    With t_j = p_j^T V^-1 p_j, t_ij = p_i^T V^-1 p_j and V the sum over the k = 2r chosen points, j in the place of i
    multiplies det V by (1 - t_i)(1 + t_j) + t_ij^2. As the t_i sum to r and the t_ij^2 to t_j, the mean of this over
    the chosen i is (1 + t_j) / 2 + t_j / (2r). So as long as a leverage k t_j exceeds 2r, some exchange multiplies
    the determinant by more than 1 + 1 / (2r), which cannot go on for ever. Fedorov's exchange; the argument is that of
    Madan, Singh, Tantipongpipat and Xie (COLT 2019) for local search with repetitions.
    """
    rank = points.shape[1]
    chosen = np.repeat(pivots, 2)
    while True:
        inverse = np.linalg.inv(moments(points[chosen], np.ones(2 * rank))).astype(np.float64)
        leverage = quadratic(points, inverse)
        if leverage.max() <= 1 - 1e-9:  # k t_j <= 2r, also after rounding
            break
        for _ in range(rank):  # then anew, before rounding adds up
            new = int(leverage.argmax())
            if leverage[new] <= 1 - 1e-9:
                break
            across = points[chosen] @ (inverse @ points[new])
            old = int(((1 - leverage[chosen]) * (1 + leverage[new]) + across**2).argmax())
            for point, sign in ((points[new], 1), (points[chosen[old]], -1)):
                ray = inverse @ point
                scale = sign / (1 + sign * (point @ ray))  # Sherman-Morrison
                inverse = inverse - scale * np.outer(ray, ray)
                leverage -= scale * np.einsum("ij,j->i", points, ray) ** 2
            chosen[old] = new
    weights: Floats = np.bincount(chosen, minlength=len(points)) / (2 * rank)
    return weights


def optimal_weights(points: Floats, weights: Floats, tol: float) -> Floats:
    """Weights whose largest leverage is at most (1 + tol) rank, if floats allow.

    Solves on few points and adds the worst violators until there are none. Points whose leverage is too low for the
    support of any optimal design of those few (Harman and Pronzato 2007) leave, but only while the violation halves:
    otherwise the few become more, or their violation a tenth, and this ends.
    """
    rank = points.shape[1]
    batch = max(6 * rank, 32)
    least = np.inf
    while True:
        white = whitened(points, weights)
        excess = np.einsum("ij,ij->i", white, white).max() / rank - 1
        if excess <= tol:
            break
        few = np.union1d(np.flatnonzero(weights), violators(white)[:batch])
        goal = max(tol / 4, excess / 10)
        solution = interior(points[few], weights[few], goal)
        leverage = leverages(points[few], solution)
        if leverage.max() > (1 + 2 * goal) * rank:  # the last digits are rounding
            break
        kept = np.full(len(few), True)
        if excess <= least / 2:
            kept = leverage >= least_leverage(rank, leverage.max() - rank) * (1 - 1e-9)
        least = min(least, excess)
        weights = np.zeros(len(points))
        weights[few[kept]] = solution[kept] / solution[kept].sum()
    return weights


def least_leverage(rank: int, excess: float) -> float:
    """Points of less leverage are in no optimal support, if the largest is rank + excess (Harman and Pronzato 2007).

    With the eigenvalues l of V*, seen from V: their sum is at most rank + excess, that of 1 / l at most rank, and a
    point of the optimal support has a leverage of at least rank times the smallest l.
    """
    excess = max(excess, 0.0)
    return rank * (1 + excess / 2 - math.sqrt(excess * (4 + excess - 4 / rank)) / 2)


def violators(white: Floats) -> Integers:
    """Points of the largest leverage, above the rank, the worst first; of those in nearly one direction, the worst."""
    rank = white.shape[1]
    leverage = np.einsum("ij,ij->i", white, white)
    worst = np.argsort(-leverage, kind="stable")[: 16 * rank + 32]
    worst = worst[leverage[worst] > rank]
    units = white[worst] / np.sqrt(leverage[worst, None])
    alike = np.abs(np.tril(units @ units.T, -1)) > 0.99
    different: Integers = worst[~alike.any(axis=1)]
    return different


def interior(points: Floats, weights: Floats, tol: float) -> Floats:
    """Weights with leverage of at most (1 + tol) rank by a primal-dual interior-point method (Sun and Freund 2004).

    Maximises log det V(w) - rank sum(w) over w >= 0, whose solution sums to one. With the leverages k, the slacks
    s = rank - k and H_ij = (p_i^T V^-1 p_j)^2, a Newton step on s w = mu solves (H + s / w) dw = k - rank + mu / w.
    """
    n, rank = points.shape
    weights = 0.8 * weights / weights.sum() + 0.2 / n
    slack = np.zeros(0)
    shrink = 0.2
    for _ in range(100):
        white = whitened(points, weights)
        leverage = np.einsum("ij,ij->i", white, white)
        if leverage.max() * weights.sum() <= (1 + tol) * rank:
            break
        if not len(slack):
            slack = np.maximum(rank - leverage, 0.1 * rank)
        centre = shrink * (weights @ slack) / n / weights
        step = newton_step(white, leverage, slack / weights, leverage - rank + centre)
        turn = centre - slack - slack / weights * step
        length = min(1.0, 0.99 * to_boundary(weights, step), 0.99 * to_boundary(slack, turn))
        weights = weights + length * step
        slack = slack + length * turn
        shrink = 0.1 if length > 0.7 else 0.5
    result: Floats = weights / weights.sum()
    return result


def newton_step(white: Floats, leverage: Floats, diagonal: Floats, right: Floats) -> Floats:
    """(H + diagonal)^-1 right to one digit, by conjugate gradients: H times a vector costs n rank^2, H itself n^2."""
    inverse = 1 / (leverage**2 + diagonal)
    solution = np.zeros_like(right)
    residual = right.copy()
    ray = inverse * residual
    size = first = residual @ ray
    for _ in range(300):
        image = quadratic(white, moments(white, ray)) + diagonal * ray
        length = size / (ray @ image)
        solution += length * ray
        residual -= length * image
        scaled = inverse * residual
        before, size = size, residual @ scaled
        if size <= 0.01 * first:
            break
        ray = scaled + size / before * ray
    return solution


def to_boundary(place: Floats, step: Floats) -> float:
    """How many steps it takes until a coordinate is zero."""
    down = step < 0
    return float(np.min(-place[down] / step[down], initial=np.inf))


def thinned(points: Floats, weights: Floats, share: float) -> Floats:
    """Without the smallest weights, as many as raise the largest leverage by a factor of at most 1 / (1 - share).

    D = sum of w_i p_i p_i^T over the dropped points is at most (sum of w_i k_i) V by Cauchy-Schwarz, k the leverages.
    """
    part = weights * leverages(points, weights)
    order = np.argsort(part, kind="stable")
    dropped = order[np.cumsum(part[order]) <= share]
    weights = weights.copy()
    weights[dropped] = 0
    result: Floats = weights / weights.sum()
    return result


def lightened(points: Floats, weights: Floats) -> Floats:
    """The same V, or a larger multiple of it, on at most m = rank (rank + 1) / 2 points (Caratheodory).

    Along z with sum z_i p_i p_i^T = 0 the matrix does not change. As m equations are solved by some z on any m + 1
    points, the walk can go on until m are left. It goes in the direction in which the total does not grow: the
    scaling back to one then makes V larger, and every leverage smaller.
    """
    rank = points.shape[1]
    limit = rank * (rank + 1) // 2
    support = np.flatnonzero(weights)
    if len(support) <= limit:
        return weights
    white = whitened(points[support], weights[support])
    first, second = np.triu_indices(rank)
    rays = null_space(white[:, first] * white[:, second])
    mass = weights[support]
    while rays.shape[1]:  # some at a time: the others then turn away from the emptied points all at once
        part, rays = rays[:, :RAYS], rays[:, RAYS:]
        emptied = walk(mass, part)
        rays = turned(np.hstack([part, rays]), emptied)
    result = np.zeros(len(points))
    result[support] = mass / mass.sum()
    return result


def null_space(products: Floats) -> Floats:
    """n - m well-conditioned z with z^T products = 0, for n x m products, n > m."""
    m = products.shape[1]
    try:  # the further rows as combinations of the first m: a quarter of the work of the factorisation below
        rays = np.vstack([-np.linalg.solve(products[:m].T, products[m:].T), np.eye(len(products) - m)])
    except np.linalg.LinAlgError:
        rays = np.full((1, 1), np.inf)
    if np.abs(rays).max() > 1e3:  # the first m nearly depend on each other, as those of repeated actions do
        rays = np.linalg.qr(products, mode="complete").Q[:, m:]
    return rays


def walk(mass: Floats, rays: Floats) -> Integers:
    """Move along each ray until a point is empty, change `mass` in place, and return the points emptied."""
    emptied: list[int] = []
    for _ in range(rays.shape[1]):
        ray = rays[:, 0] if rays[:, 0].sum() >= 0 else -rays[:, 0]
        down = np.flatnonzero(ray > 1e-12 * np.abs(ray).max())
        lengths = mass[down] / ray[down]
        emptied.append(int(down[lengths.argmin()]))
        mass -= lengths.min() * ray
        np.maximum(mass, 0, out=mass)
        mass[emptied] = 0
        rays = turned(rays, np.array(emptied[-1:]))
    return np.array(emptied)


def turned(rays: Floats, emptied: Integers) -> Floats:
    """The rays of the same space that are zero on the emptied points: one fewer for each.

    An orthogonal change of the rays, so that rounding does not grow: Householder reflections that make the emptied
    rows triangular, applied as one product I - Y T Y^T (Schreiber and Van Loan 1989).
    """
    count = len(emptied)
    rows = rays[emptied].T.copy()
    mirrors = np.zeros_like(rows)
    for i in range(count):
        normal = rows[i:, i].copy()
        normal[0] += np.copysign(np.sqrt(normal @ normal), normal[0])
        normal /= np.sqrt(normal @ normal) or 1.0  # zero if there is nothing to reflect
        rows[i:, i:] -= np.outer(2 * normal, np.einsum("i,ij->j", normal, rows[i:, i:]))
        mirrors[i:, i] = normal
    inverse = np.triu(mirrors.T @ mirrors, 1) + np.eye(count) / 2
    left: Floats = rays[:, count:] - (rays @ mirrors) @ np.linalg.solve(inverse, mirrors[count:].T)
    left[emptied] = 0
    return left


def certified(points: Floats, weights: Floats, basis: Floats) -> Design:
    """The design with its largest leverage, computed from nothing but the weights."""
    leverage = float(leverages(points, weights).max())
    return Design(weights, np.flatnonzero(weights), points.shape[1], basis, leverage)


def without_span(rows: Floats, basis: Floats) -> Design:
    """All actions are zero: there is nothing to estimate, and any action does."""
    weights = np.zeros(len(rows))
    weights[0] = 1
    return Design(weights, np.array([0]), 0, basis, 0.0)


def whitened(points: Floats, weights: Floats) -> Floats:
    """The points in coordinates in which V(weights) is the identity, so that leverages are squared lengths."""
    support = np.flatnonzero(weights)
    inverse: Floats = np.linalg.inv(np.linalg.cholesky(moments(points[support], weights[support])))
    white = np.empty_like(points)
    for part in blocks(points):
        white[part] = points[part] @ inverse.T
    return white


def leverages(points: Floats, weights: Floats) -> Floats:
    """||p||^2 in V(weights)^-1 for each point."""
    white = whitened(points, weights)
    values: Floats = np.einsum("ij,ij->i", white, white)
    return values


def moments(points: Floats, weights: Floats) -> Floats:
    """The sum of w_i p_i p_i^T."""
    total = np.zeros((points.shape[1], points.shape[1]))
    for part in blocks(points):
        total += points[part].T @ (points[part] * weights[part, None])
    return total


def quadratic(points: Floats, matrix: Floats) -> Floats:
    """p^T matrix p for each point."""
    values = np.empty(len(points))
    for part in blocks(points):
        values[part] = np.einsum("ij,ij->i", points[part] @ matrix, points[part])
    return values


def blocks(points: Floats) -> list[slice]:
    """Parts of the points so small that OpenBLAS multiplies them in one thread.

    For products of this size its threads wait for each other longer than they work: 30 times on a busy machine.
    """
    size = max(8, 2**18 // points.shape[1] ** 2)
    return [slice(start, start + size) for start in range(0, len(points), size)]

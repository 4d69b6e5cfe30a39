"""Normal and uniform numbers for the compiled engines: many generators side by side, one in each vector lane.

Each lane is a xoshiro128++ generator (Blackman and Vigna, 2021) of its own, seeded by numpy's SeedSequence; two
words make two normals by the method of Box and Muller, with polynomials instead of calls that cannot be vectorised.
Single precision: a normal is right to about 1e-7 of itself, and the largest possible is 6.66 in absolute value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats32
from private_bandits.simulation.compiled import compiled, part

Words = NDArray[np.uint32]
Word = np.uint32

LANES = 64
"""Generators side by side: several vectors of them, so that their latencies overlap."""
PAIRS = 2 * LANES
"""Normals come in multiples of this."""

f32, i32, u32 = np.float32, np.int32, np.uint32

# The logarithm of 1 + m, from m = sqrt(1/2) - 1 to sqrt(2) - 1, is m - m^2/2 + m^3 times this polynomial (Cephes).
LOG = tuple(
    map(
        np.float32,
        (
            7.0376836292e-2,
            -1.1514610310e-1,
            1.1676998740e-1,
            -1.2420140846e-1,
            1.4249322787e-1,
            -1.6668057665e-1,
            2.0000714765e-1,
            -2.4999993993e-1,
            3.3333331174e-1,
        ),
    )
)
# Sine and cosine between -pi/4 and pi/4 (Cephes).
SINE = tuple(map(np.float32, (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)))
COSINE = tuple(map(np.float32, (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)))
ROOT_HALF = np.int32(0x3F3504F3)  # the bits of sqrt(1/2)
LOG_TWO = np.float32(0.6931471805599453)
EIGHTH_TURN = np.float32(np.pi / 4 * 2**-31)
TINY = np.float32(2**-31)


def generators(seeds: np.random.SeedSequence) -> Words:
    """The state of all lanes, [4, LANES]; the functions below change it."""
    return seeds.generate_state(4 * LANES, np.uint32).astype(np.uint32).reshape(4, LANES)


# numba widens 32-bit integers at every operation; casting back lets LLVM see that the words stay 32 bits wide.
@part
def _scrambled(x0: Word, x3: Word) -> Word:
    total = u32(x0 + x3)
    return u32(u32(u32(total << u32(7)) | u32(total >> u32(25))) + x0)


@part
def _stepped(x0: Word, x1: Word, x2: Word, x3: Word) -> tuple[Word, Word, Word, Word]:
    shifted = u32(x1 << u32(9))
    x2 = u32(x2 ^ x0)
    x3 = u32(x3 ^ x1)
    x1 = u32(x1 ^ x2)
    x0 = u32(x0 ^ x3)
    x2 = u32(x2 ^ shifted)
    return x0, x1, x2, u32(u32(x3 << u32(11)) | u32(x3 >> u32(21)))


@part
def _radius(word: Word) -> np.float32:
    """sqrt(-2 log u), with u uniform on the middles of 2^31 cells."""
    u = (f32(i32(word >> u32(1))) + f32(0.5)) * TINY
    bits = np.float32(u).view(np.int32)
    exponent = i32(i32(bits - ROOT_HALF) >> i32(23))
    m = np.int32(bits - i32(exponent << i32(23))).view(np.float32) - f32(1)
    p = LOG[0] * m + LOG[1]
    p = p * m + LOG[2]
    p = p * m + LOG[3]
    p = p * m + LOG[4]
    p = p * m + LOG[5]
    p = p * m + LOG[6]
    p = p * m + LOG[7]
    p = p * m + LOG[8]
    square = m * m
    log = m + (p * m * square - f32(0.5) * square) + f32(exponent) * LOG_TWO
    return np.sqrt(max(f32(-2) * log, f32(0)))  # type: ignore[no-any-return]


@part
def _point(word: Word) -> tuple[np.float32, np.float32]:
    """A uniform point of the circle: an angle within an eighth of a turn from an axis, which the last bits choose."""
    angle = f32(i32(word)) * EIGHTH_TURN
    square = angle * angle
    sine = ((SINE[0] * square + SINE[1]) * square + SINE[2]) * square * angle + angle
    cosine = ((COSINE[0] * square + COSINE[1]) * square + COSINE[2]) * square * square - f32(0.5) * square + f32(1)
    sign = u32(u32(word & u32(2)) << u32(30))
    swap = u32(word & u32(1)) != u32(0)
    x = sine if swap else cosine
    y = cosine if swap else sine
    return (
        np.uint32(np.float32(x).view(np.uint32) ^ sign).view(np.float32),
        np.uint32(np.float32(y).view(np.uint32) ^ sign).view(np.float32),
    )


@compiled
def fill_normals(state: Words, out: Floats32, mean: float = 0.0, deviation: float = 1.0) -> None:
    """Fill `out`, whose length is a multiple of PAIRS, with independent normals."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    centre, scale = f32(mean), f32(deviation)
    for start in range(0, out.size, PAIRS):
        first, second = out[start : start + LANES], out[start + LANES : start + PAIRS]
        for lane in range(LANES):
            x0, x1, x2, x3 = s0[lane], s1[lane], s2[lane], s3[lane]
            radius = scale * _radius(_scrambled(x0, x3))
            x0, x1, x2, x3 = _stepped(x0, x1, x2, x3)
            x, y = _point(_scrambled(x0, x3))
            s0[lane], s1[lane], s2[lane], s3[lane] = _stepped(x0, x1, x2, x3)
            first[lane] = centre + radius * x
            second[lane] = centre + radius * y


@compiled
def fill_uniforms(states: Words, out: Floats32) -> None:
    """Fill each row of `out`, a multiple of LANES long, from a state of its own: independent, uniform on [-1, 1]."""
    for i in range(len(out)):
        s0, s1, s2, s3 = states[i, 0], states[i, 1], states[i, 2], states[i, 3]
        for start in range(0, out.shape[1], LANES):
            piece = out[i, start : start + LANES]
            for lane in range(LANES):
                x0, x1, x2, x3 = s0[lane], s1[lane], s2[lane], s3[lane]
                piece[lane] = f32(i32(_scrambled(x0, x3))) * TINY
                s0[lane], s1[lane], s2[lane], s3[lane] = _stepped(x0, x1, x2, x3)

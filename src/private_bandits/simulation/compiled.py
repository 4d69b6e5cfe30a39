"""How the compiled engines are compiled. Importing this needs numba, which the light core does without.

Machine code is kept beside the sources, or in the user's cache where that cannot be written to; where nothing can,
it is made anew in every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from private_bandits.loading import require

require("a contextual or dp-ucb simulation", "fast")

import numba  # noqa: E402

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be taken in another order and products fused: the compiler needs that to use the vector units. What
# would make NaN, infinity or the order of comparisons undefined is left out. Division by zero gives infinity.
RELAXED = {"reassoc", "contract", "nsz", "arcp"}
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": RELAXED}


def _folder() -> str:
    """One for every state of the sources: numba would only look at the file that a function stands in."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.blake2b(b"".join(path.read_bytes() for path in sources), digest_size=8).hexdigest()
    return str(Path(numba.config.CACHE_DIR or Path(__file__).parent / "__pycache__") / f"compiled-{digest}")


FOLDER = _folder()


def compiled(function: Function) -> Function:
    """The function as machine code, made at its first call; it runs without the interpreter's lock."""
    users = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = FOLDER
    try:
        return cast(Function, numba.njit(cache=True, **OPTIONS)(function))
    except RuntimeError:  # there is nowhere to keep it
        return cast(Function, numba.njit(**OPTIONS)(function))
    finally:
        numba.config.CACHE_DIR = users


def part(function: Function) -> Function:
    """As `compiled`, for functions that only compiled ones call: less to compile."""
    return cast(Function, numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)(function))


def part_as_written(function: Function) -> Function:
    """As `part`, but every operation is rounded by itself, as in numpy: for equal results from equal numbers."""
    options = OPTIONS | {"fastmath": False}
    return cast(Function, numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function))

"""Specimens for the privacy audit: agents that keep their promise, and agents that break it in one known way.

White specimens are built on this package's own agent, door and policy; black ones are small agents of their own, most
with `ask` and `tell` only, on the standard library's random numbers (or numpy's). Each factory `make_<name>` can be
called without arguments; its docstring names the flaw and the true cost. `SPECIMENS` lists them all.

Costs are per reward, in rho of zCDP, rewards in [0, 1], with the neighbours and the adversary of docs/guarantees.md:
every other reward, the action played and the order of tells are the adversary's choice.
"""

from tests.audit.specimens import black_actions as black_actions
from tests.audit.specimens import black_correct as black_correct
from tests.audit.specimens import black_extras as black_extras
from tests.audit.specimens import black_noise as black_noise
from tests.audit.specimens import black_oddities as black_oddities
from tests.audit.specimens import black_repeated as black_repeated
from tests.audit.specimens import white_batches as white_batches
from tests.audit.specimens import white_correct as white_correct
from tests.audit.specimens import white_endings as white_endings
from tests.audit.specimens import white_failures as white_failures
from tests.audit.specimens import white_held_again as white_held_again
from tests.audit.specimens import white_linear as white_linear
from tests.audit.specimens import white_logs as white_logs
from tests.audit.specimens import white_noise as white_noise
from tests.audit.specimens import white_options as white_options
from tests.audit.specimens import white_restarts as white_restarts
from tests.audit.specimens import white_shown as white_shown
from tests.audit.specimens import white_sums as white_sums
from tests.audit.specimens.listing import SPECIMENS, Specimen
from tests.audit.specimens.white_correct import make_white_plain
from tests.audit.specimens.white_failures import FailsByRelease
from tests.audit.specimens.white_held_again import per_release
from tests.audit.specimens.white_parts import open_decisions, running, small_policy

__all__ = [
    "SPECIMENS",
    "FailsByRelease",
    "Specimen",
    "make_white_plain",
    "open_decisions",
    "per_release",
    "running",
    "small_policy",
]

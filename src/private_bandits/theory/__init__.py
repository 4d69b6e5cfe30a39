"""The paper's bounds, one function a theorem.

divergence: how far apart outputs can be. robustness: what a few changed rewards can do. ucb, gope, oful: regret upper
bounds with constants. orders: those without, of rivals too. lower, instances: what no private policy can beat, and
where. reference: what the best policies reach, asymptotically. widths, coverage: confidence widths, and how often they
fail. calibration: the noise of a budget. tables: the paper's two. report: all that is known of a problem.

Where a function departs from the paper its docstring says so, and docs/theory.md shows why.
"""

from private_bandits.theory.bound import Bound
from private_bandits.theory.bounds_report import Problem, bounds_of, threshold_of
from private_bandits.theory.calibration import Calibration, calibration
from private_bandits.theory.coverage import Coverage, ellipsoid_coverage, index_coverage, phase_coverage
from private_bandits.theory.divergence import (
    BanditKL,
    Form,
    KLBounds,
    Moments,
    bandit_kl,
    kl_bound_bandit,
    kl_bound_product,
    kl_bound_transport,
    kl_bounds,
    kl_of_group,
    renyi_of_group,
)
from private_bandits.theory.gope import adac_gope_closed, adac_gope_regret
from private_bandits.theory.lower import (
    finite_lower,
    finite_lower_best,
    finite_lower_scan,
    finite_threshold,
    linear_lower,
    linear_threshold,
)
from private_bandits.theory.oful import adac_oful_regret, adac_oful_stochastic, eigenvalue_floor, settled_from
from private_bandits.theory.orders import (
    adac_gope_order,
    adac_oful_order,
    adac_ucb_order,
    adap_ucb_order,
    hanna_order,
    li_order,
    linpriv_order,
    shariff_sheffet_order,
)
from private_bandits.theory.paper_tables import table_one, table_two
from private_bandits.theory.proof_instances import GaussianArms, finite_instances, linear_instances
from private_bandits.theory.reference import reference_of, reference_regret
from private_bandits.theory.robustness import (
    ORDERS,
    Robustness,
    largest_probability,
    largest_shift,
    least_rho,
    rewards_needed,
    robustness,
    shift_bounds,
)
from private_bandits.theory.ucb import adac_ucb_minimax, adac_ucb_regret, adap_ucb_minimax, adap_ucb_regret, late_plays
from private_bandits.theory.widths import PhaseWidth, ellipsoid_width, index_width, phase_width

__all__ = [
    "ORDERS",
    "BanditKL",
    "Bound",
    "Calibration",
    "Coverage",
    "Form",
    "GaussianArms",
    "KLBounds",
    "Moments",
    "PhaseWidth",
    "Problem",
    "Robustness",
    "adac_gope_closed",
    "adac_gope_order",
    "adac_gope_regret",
    "adac_oful_order",
    "adac_oful_regret",
    "adac_oful_stochastic",
    "adac_ucb_minimax",
    "adac_ucb_order",
    "adac_ucb_regret",
    "adap_ucb_minimax",
    "adap_ucb_order",
    "adap_ucb_regret",
    "bandit_kl",
    "bounds_of",
    "calibration",
    "eigenvalue_floor",
    "ellipsoid_coverage",
    "ellipsoid_width",
    "finite_instances",
    "finite_lower",
    "finite_lower_best",
    "finite_lower_scan",
    "finite_threshold",
    "hanna_order",
    "index_coverage",
    "index_width",
    "kl_bound_bandit",
    "kl_bound_product",
    "kl_bound_transport",
    "kl_bounds",
    "kl_of_group",
    "largest_probability",
    "largest_shift",
    "late_plays",
    "least_rho",
    "li_order",
    "linear_instances",
    "linear_lower",
    "linear_threshold",
    "linpriv_order",
    "phase_coverage",
    "phase_width",
    "reference_of",
    "reference_regret",
    "renyi_of_group",
    "rewards_needed",
    "robustness",
    "settled_from",
    "shariff_sheffet_order",
    "shift_bounds",
    "table_one",
    "table_two",
    "threshold_of",
]

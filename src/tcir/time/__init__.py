"""A time model: it computes timelines from the events of the simulated machine and a table of
constants with their sources. All its times are modelled, not measured.
"""

from tcir.time.constants import CONSTANTS, Constants, alternatives, disputed
from tcir.time.engine import Surroundings, simulate
from tcir.time.rates import RATES_BY_KIND, pflops, rate_table, ratio_to_hopper
from tcir.time.timeline import Flow, Span, Timeline
from tcir.time.waves import ModelledTime, ctas_per_sm, in_sequence, modelled_time

__all__ = [
    "CONSTANTS",
    "RATES_BY_KIND",
    "Constants",
    "Flow",
    "ModelledTime",
    "Span",
    "Surroundings",
    "Timeline",
    "alternatives",
    "ctas_per_sm",
    "disputed",
    "in_sequence",
    "modelled_time",
    "pflops",
    "rate_table",
    "ratio_to_hopper",
    "simulate",
]

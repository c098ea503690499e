"""A model of when: events of the machine, constants with sources, timelines. Never measured."""

from tcir.time.constants import CONSTANTS, Constants, alternatives, disputed
from tcir.time.rates import RATES_BY_KIND, pflops, rate_table, ratio_to_hopper
from tcir.time.timeline import Flow, Span, Timeline

__all__ = [
    "CONSTANTS",
    "RATES_BY_KIND",
    "Constants",
    "Flow",
    "Span",
    "Timeline",
    "alternatives",
    "disputed",
    "pflops",
    "rate_table",
    "ratio_to_hopper",
]

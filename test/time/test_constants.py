"""The table of the time model: sources, disputes, rates."""

from __future__ import annotations

import pytest

from tcir.errors import LaunchError
from tcir.target import TARGETS
from tcir.time import (
    CONSTANTS,
    RATES_BY_KIND,
    Constants,
    alternatives,
    disputed,
    pflops,
    ratio_to_hopper,
)
from tcir.tools.dev.time_page import main


@pytest.mark.parametrize("constant", CONSTANTS.values(), ids=lambda c: c.name)
def test_every_number_has_a_source_and_a_confidence(constant) -> None:
    assert constant.figures and set(constant.figures) <= set(TARGETS)
    for figures in constant.figures.values():
        for figure in figures.values():
            assert len(figure.source) > 1
            assert figure.confidence in {"measured", "calculated", "vendor", "assumed"}
        values = [figure.value for figure in figures.values()]
        assert len(set(values)) == len(values), "answers that do not differ are no dispute"


def test_the_default_is_the_first_answer_and_a_choice_is_another() -> None:
    assert Constants("sm_100a")["cp-rate"] == 64
    assert Constants("sm_100a", {"cp-rate": "th"})["cp-rate"] == 43
    assert Constants("sm_90a").target == "sm_90"


@pytest.mark.parametrize(
    ("target", "choices", "message"),
    [
        ("sm_100a", {"cp-rates": "th"}, "did you mean 'cp-rate'"),
        ("sm_100a", {"cp-rate": "th2"}, "expected 'ut' or 'th' or 'port', got 'th2'"),
        ("sm_100a", {"shared-port": "only"}, "no constant in dispute on sm_100a"),
        ("sm_90", {"cp-rate": "th"}, "no constant in dispute on sm_90"),
        ("sm_120", {}, "expected target sm_80, sm_90, sm_100a, got 'sm_120'"),
    ],
)
def test_unknown_names_are_refused(target: str, choices: dict[str, str], message: str) -> None:
    with pytest.raises(LaunchError, match=message.replace("(", r"\(")):
        Constants(target, choices)


def test_choices_as_text() -> None:
    assert Constants.parse("sm_100a", ["ld-column=port"])["ld-column"] == 1
    with pytest.raises(LaunchError, match="expected NAME=ANSWER"):
        Constants.parse("sm_100a", ["ld-column"])


def test_a_target_without_the_operation_says_so() -> None:
    with pytest.raises(LaunchError, match=r"sm_80 has no tma-latency .* sm_90, sm_100a"):
        Constants("sm_80")["tma-latency"]


def test_alternatives_differ_from_the_default_in_one_constant() -> None:
    default, *others = alternatives("sm_100a")
    assert not default.choices and all(len(other.choices) == 1 for other in others)
    answers = sum(len(c.figures["sm_100a"]) - 1 for c in disputed("sm_100a").values())
    assert len(others) == answers >= 10
    for other in others:
        (name,) = other.choices
        assert other[name] != default[name]


@pytest.mark.parametrize(
    ("kind", "target", "want"),
    [  # dense, data sheets: A100, H100 SXM, HGX B200 (at about 1.85 GHz)
        ("tf32", "sm_80", 0.156),
        ("f16", "sm_80", 0.312),
        ("i8", "sm_80", 0.624),
        ("tf32", "sm_90", 0.4945),
        ("f16", "sm_90", 0.9895),
        ("f8f6f4", "sm_90", 1.979),
        ("tf32", "sm_100a", 1.1),
        ("f16", "sm_100a", 2.25),
        ("f8f6f4", "sm_100a", 4.5),
        ("mxf4nvf4", "sm_100a", 9),
    ],
)
def test_peaks_are_the_vendors(kind: str, target: str, want: float) -> None:
    assert pflops(kind, target) == pytest.approx(want, rel=0.025)


def test_ratio_to_hopper() -> None:
    ratios = {kind: ratio_to_hopper(kind, "sm_100a") for kind in RATES_BY_KIND["sm_100a"]}
    assert ratios == {
        **dict.fromkeys(("tf32", "f16", "i8", "f8f6f4", "mxf8f6f4"), 2),
        **dict.fromkeys(("mxf4", "mxf4nvf4"), 4),
    }
    assert ratio_to_hopper("f16", "sm_80") == 0.5


def test_the_page_is_fresh() -> None:
    assert main(["--check"]) == 0, "run python -m tcir.tools.dev.time_page"

"""What a finding says: both operations, and in words the edge (or the state) that is missing."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tcir.machine import Finding, MachineError

from . import test_clusters, test_mistakes, test_pairs
from .agent_programs import Run
from .test_hazards import OMISSIONS

WORDS = {
    "race": r"not ordered: .*(commit|wait|barrier|mbarrier|a release and an acquire of enough scope"
    r"|tcgen05|mma are in order)",
    "missing-proxy-fence": r"fence\.proxy\.async between .* generic proxy .* async proxy",
    "late-proxy-fence": r"fence\.proxy\.async by the writing thread",
    "missing-fence-after": r"tcgen05\.fence::after_thread_sync between the wait and the access",
    "missing-fence-before": r"tcgen05\.fence::before_thread_sync between .* and the arrival",
    "missing-init-fence": r"fence\.mbarrier_init between mbarrier\.init and use",
    "mbarrier-init-race": r"a (CTA|cluster) barrier between mbarrier\.init and the first use",
    "never-awaited": r"(a wait for its bytes|cp\.async\.bulk\.commit_group and wait_group)",
    "expect-tx-mismatch": r"announced and the arrived bytes differ by -?\d+: mbarrier at 0x",
    "tensor-memory-leak": r"tcgen05\.dealloc: the next CTA on the SM would wait forever",
    "peer-exited": r"a cluster barrier .* between the access .* and its end",
    "relaxed-cluster-barrier": r"without \.relaxed.*not promised by PTX ISA 9\.7\.13\.3",
    "operand-race": r"(commit|wait).*bytes 0x\w+\.\.0x\w+: rows .* of [AB].*ships in DeepGEMM",
    "issue-order": r"commit.*: order of issue of .* is not promised by PTX ISA 9\.7\.16\.6\.2",
    "phase-overtaken": r"an arrival of the waiter.*not promised by PTX ISA",
    "undefined-read": r"nothing wrote",
    "descriptor-constant": r"not promised by PTX ISA 9\.7\.16\.4\.1; ships in JAX",
}
"""Kind -> what its missing edge has to say. Kinds that only PTX programs have: test_findings.py."""


@cache
def everything() -> dict[str, list[Finding]]:
    """Findings of all pairs without their edges, by kind."""
    found: list[Finding] = []
    for module in (test_pairs, test_mistakes):
        for name in module.PAIRS:
            for seed in (None, 1, 2):
                found += module.run(name, False, seed).machine.findings
    for name in test_clusters.PAIRS:
        for seed in (None, 1, 2):
            found += test_clusters.outcome(name, False, seed).machine.findings
    for missing in OMISSIONS:
        run = Run(1)
        try:
            run.agents(*missing.case(run, (missing.edge,)))
        except MachineError as error:
            found += error.findings
        found += run.findings
    kinds: dict[str, list[Finding]] = {}
    for finding in found:
        kinds.setdefault(finding.code, []).append(finding)
    return kinds


def test_every_kind_has_its_words() -> None:
    assert set(everything()) == set(WORDS)


@pytest.mark.parametrize("kind", WORDS)
def test_both_operations_and_the_edge_are_named(kind: str) -> None:
    for finding in everything()[kind]:
        assert re.search(WORDS[kind], finding.missing), finding
        for operation in (finding.first, finding.second):
            assert operation.strip() and operation != "None", finding
        if kind in ("race", "operand-race"):  # how each touches the memory, too
            verb = r"\((.* (writes|reads) .*, then .* (overwrites|reads) it|uses mbarrier .*)\)"
            assert re.search(verb, finding.first), finding
        assert finding.cta is not None and finding.severity in ("error", "warning")

"""The instructions of the PTX ISA 9.1, section by section, and whether the simulated machine
executes them.

Names and section numbers are those of the document's table of contents, read in November 2026.
An instruction counts as executed if the interpreter has a rule for it or for one of its forms. It
is rejected by name if `isa.refused` has a reason for it. All other instructions do not exist for
sm_100a.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcir.interp.ptx import isa  # noqa: F401  (registers the rules)
from tcir.interp.ptx.registry import DECODERS, REFUSED

_SYNC = "without .sync it ended with sm_70"

#: Section, title, instructions.
SECTIONS: list[tuple[str, str, str]] = [
    ("9.7.1", "Integer arithmetic",
     "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi "
     "szext bmsk dp4a dp2a"),
    ("9.7.2", "Extended-precision arithmetic", "add.cc addc sub.cc subc mad.cc madc"),
    ("9.7.3", "Floating point",
     "testp copysign add sub mul fma mad div abs neg min max rcp rcp.approx.ftz.f64 sqrt rsqrt "
     "rsqrt.approx.ftz.f64 sin cos lg2 ex2 tanh"),
    ("9.7.4", "Half precision floating point", "add sub mul fma neg abs min max tanh ex2"),
    ("9.7.5", "Mixed precision floating point", "add sub fma"),
    ("9.7.6", "Comparison and selection", "set setp selp slct"),
    ("9.7.7", "Half precision comparison", "set setp"),
    ("9.7.8", "Logic and shift", "and or xor not cnot lop3 shf shl shr"),
    ("9.7.9", "Data movement and conversion",
     "mov shfl shfl.sync prmt ld ld.global.nc ldu st st.async st.bulk multimem.ld_reduce "
     "multimem.st multimem.red prefetch prefetchu applypriority discard createpolicy isspacep cvta "
     "cvt cvt.pack mapa getctarank"),
    ("9.7.9.25", "Asynchronous copies",
     "cp.async cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.bulk "
     "cp.reduce.async.bulk cp.async.bulk.prefetch"),
    ("9.7.9.26, 9.7.9.27", "Copies to several GPUs",
     "multimem.cp.async.bulk multimem.cp.reduce.async.bulk"),
    ("9.7.9.27.1", "Tensor copies",
     "cp.async.bulk.tensor cp.reduce.async.bulk.tensor cp.async.bulk.prefetch.tensor"),
    ("9.7.9.27.2", "Completion of bulk and tensor copies",
     "cp.async.bulk.commit_group cp.async.bulk.wait_group"),
    ("9.7.9.28", "Tensor maps", "tensormap.replace"),
    ("9.7.10", "Textures", "tex tld4 txq istypep"),
    ("9.7.11", "Surfaces", "suld sust sured suq"),
    ("9.7.12", "Control flow", "bra brx.idx call ret exit"),
    ("9.7.13", "Synchronisation and communication",
     "bar bar.warp.sync barrier barrier.cluster membar fence atom red red.async vote vote.sync "
     "match.sync activemask redux.sync griddepcontrol elect.sync"),
    ("9.7.13.15", "mbarrier",
     "mbarrier.init mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx mbarrier.arrive "
     "mbarrier.arrive_drop cp.async.mbarrier.arrive mbarrier.test_wait mbarrier.try_wait "
     "mbarrier.pending_count"),
    ("9.7.13.16 to 18", "Tensor map proxy, cluster launch control",
     "tensormap.cp_fenceproxy clusterlaunchcontrol.try_cancel clusterlaunchcontrol.query_cancel"),
    ("9.7.14", "Matrices of a warp",
     "wmma.load wmma.store wmma.mma mma mma.sp mma.sp::ordered_metadata ldmatrix stmatrix "
     "movmatrix"),
    ("9.7.15", "Matrices of a warpgroup (sm_90a)",
     "wgmma.mma_async wgmma.mma_async.sp wgmma.fence wgmma.commit_group wgmma.wait_group"),
    ("9.7.16", "Fifth generation tensor core",
     "tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit tcgen05.ld tcgen05.ld.red "
     "tcgen05.st tcgen05.wait tcgen05.cp tcgen05.shift tcgen05.mma tcgen05.mma.sp tcgen05.mma.ws "
     "tcgen05.mma.ws.sp tcgen05.fence tcgen05.commit"),
    ("9.7.17", "Stack", "stacksave stackrestore alloca"),
    ("9.7.18", "Video",
     "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 "
     "vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4"),
    ("9.7.19", "Miscellaneous", "brkpt nanosleep pmevent trap setmaxnreg"),
]  # fmt: skip

#: ptxas rejects them for sm_100a, and so does this machine.
ABSENT: dict[str, str] = {
    "tcgen05.ld.red": "not an instruction of sm_100a",
    "shfl": _SYNC,
    "vote": _SYNC,
}

#: Names of the table of contents whose rule is found by the first words of another one.
_ALIASES = {
    "mad.cc": "mad.lo.cc",
    "match.sync": "match.any.sync",
    "ld.global.nc": "ld",
    "tcgen05.mma.sp": "tcgen05.mma",
    "tcgen05.mma.ws": "tcgen05.mma",
    "tcgen05.mma.ws.sp": "tcgen05.mma",
}


@dataclass(frozen=True)
class IsaRow:
    """One instruction of the PTX ISA.

    verdict: "runs" (executed), "refused" (rejected by name) or "absent" (not in sm_100a)
    why:     the reason; "" if the instruction is executed
    """

    section: str
    name: str
    verdict: str
    why: str = ""


def _verdict(name: str) -> tuple[str, str]:
    if name in ABSENT:
        return "absent", ABSENT[name]
    if name in REFUSED:
        return "refused", REFUSED[name]
    rule = _ALIASES.get(name, name)
    if not any(known == rule or known.startswith((f"{rule}.", f"{rule}::")) for known in DECODERS):
        raise LookupError(f"{name}: neither a rule nor a reason why there is none")
    return "runs", ""


def rows() -> Iterator[IsaRow]:
    """Every instruction in the table of contents of the PTX ISA."""
    for section, _, names in SECTIONS:
        for name in names.split():
            yield IsaRow(section, name, *_verdict(name))


_LATER = """\
PTX ISA 9.2 to 9.4 add instructions for sm_100a. The simulated machine supports `clmad`, bulk copies
with `.ignore_oob`, `.weak` and `.relaxed`, `.multicast::cluster::16b`, `tcgen05.alloc.exclusive`,
and `cvt` from fp8, fp6 and fp4 to `.bf16x2`. It has no rule for `multimem.st.async`,
`multimem.red.async`, `fabric.*`, `mbarrier.check_layout`, `.layout` of mbarriers,
`ld.proxy::readonly`, `ldmatrix.m8n16.s8.s4` and (9.1) `.s2f6x2` of `cvt`: ptxas assembles these,
but they are reported as incomplete. `spcompress`, `spdecompress` and `applypriority.async.bulk` do
not exist for sm_100a."""

_WORDS = {"runs": "runs", "refused": "rejected by name: ", "absent": "not for sm_100a: "}


def section_text() -> list[str]:
    """Lines of the section about these instructions in docs/reference/ptx-coverage.md."""
    found = list(rows())
    count = {v: sum(r.verdict == v for r in found) for v in _WORDS}
    out = [
        "## The instructions of the PTX ISA 9.1, section by section",
        "",
        f"{count['runs']} instructions run, {count['refused']} are rejected by an error that names "
        f"them, and {count['absent']} do not exist for sm_100a. An instruction *runs* in the forms "
        "listed below; other forms are reported as incomplete. For each instruction that runs, a "
        "test executes a program with it; for each of the others, a test shows its error.",
        "",
        "| section | instructions | |",
        "|---|---|---|",
    ]
    for section, title, _ in SECTIONS:
        groups: dict[str, list[str]] = {}
        for row in found:
            if row.section == section:
                groups.setdefault(_WORDS[row.verdict] + row.why, []).append(f"`{row.name}`")
        for words, names in groups.items():
            out.append(f"| {section} {title} | {' '.join(names)} | {words} |")
    return [*out, "", _LATER, ""]

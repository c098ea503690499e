"""The .version and .target that an instruction needs, as ptxas requires them.

The sources are "PTX ISA Notes" and "Target ISA Notes" of each instruction in the PTX ISA. Every row
was confirmed with ptxas 13.0, which accepts the instruction from this version on and on these
targets, and rejects it below.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tcir.interp.ptx.errors import PtxSyntaxError
from tcir.interp.ptx.syntax import Instruction, PtxModule

Version = tuple[int, int]


@dataclass(frozen=True)
class RequiredTarget:
    """Targets that support a feature: sm_`least` and later.

    conditional: only variants with these suffixes (sm_100a, sm_100f)
    below:       only architectures before this one
    """

    least: int
    conditional: str = ""
    below: int = 1000

    def has(self, name: str) -> bool:
        """Whether `.target name` has the feature; true for names other than sm_NN."""
        found = _SM.fullmatch(name.partition(",")[0])
        if found is None:
            return True
        generation, suffix = int(found[1]), found[2]
        if self.conditional and (not suffix or suffix not in self.conditional):
            return False
        return self.least <= generation < self.below

    def __str__(self) -> str:
        variants = [f"sm_{self.least}{suffix}" for suffix in self.conditional or [""]]
        return f"{' or '.join(variants)} or later" + (
            f" before sm_{self.below}" if self.below < 1000 else ""
        )


_SM = re.compile(r"sm_(\d+)([af]?)")
_ANY = RequiredTarget(0)
_TCGEN05 = RequiredTarget(100, "af", below=120)
_SM_80, _SM_90, _SM_100 = RequiredTarget(80), RequiredTarget(90), RequiredTarget(100)
_CONDITIONAL = RequiredTarget(100, "af")

REQUIREMENTS: tuple[tuple[str, str, Version, RequiredTarget, str], ...] = (
    ("tcgen05", "", (8, 6), _TCGEN05, "9.7.16"),
    ("tcgen05.shift", "", (8, 6), RequiredTarget(100, "a", below=120), "9.7.16.9"),
    ("tcgen05.mma", "kind::i8", (8, 6), RequiredTarget(100, "a", below=120), "9.7.16.10"),
    ("tcgen05.mma", "kind::mxf4nvf4", (8, 7), _TCGEN05, "9.7.16.10"),
    ("tcgen05.mma", "block16", (8, 8), _TCGEN05, "9.7.16.10"),
    ("tcgen05.mma", "block32", (8, 8), _TCGEN05, "9.7.16.10"),
    ("wgmma", "", (8, 0), RequiredTarget(90, "a", below=100), "9.7.15"),
    ("wgmma.mma_async.sp", "", (8, 2), RequiredTarget(90, "a", below=100), "9.7.15.6"),
    ("wgmma.mma_async", "s8.u8", (8, 4), RequiredTarget(90, "a", below=100), "9.7.15"),
    ("wgmma.mma_async", "u8.s8", (8, 4), RequiredTarget(90, "a", below=100), "9.7.15"),
    ("cp.async", "", (7, 0), _SM_80, "9.7.9.25.3"),
    ("cp.async.bulk", "", (8, 0), _SM_90, "9.7.9.25.4"),
    ("cp.async.bulk", "shared::cta.global", (8, 6), _SM_90, "9.7.9.25.4"),
    ("cp.async.bulk.tensor", "tile::gather4", (8, 6), _SM_100, "9.7.9.27.1"),
    ("cp.async.bulk.tensor", "cta_group::2", (8, 6), _TCGEN05, "9.7.9.27.1"),
    ("cp.reduce.async.bulk", "", (8, 0), _SM_90, "9.7.9.25.4"),
    ("mbarrier", "", (7, 0), _SM_80, "9.7.13.15"),
    ("mbarrier.test_wait", "parity", (7, 1), _SM_80, "9.7.13.15"),
    ("mbarrier.try_wait", "", (7, 8), _SM_90, "9.7.13.15"),
    ("mbarrier.expect_tx", "", (8, 0), _SM_90, "9.7.13.15"),
    ("mbarrier.arrive.expect_tx", "", (8, 0), _SM_90, "9.7.13.15"),
    ("fence.mbarrier_init", "", (8, 0), _SM_90, "9.7.13"),
    ("fence.proxy.async", "", (8, 0), _SM_90, "9.7.13"),
    ("barrier.cluster", "", (7, 8), _SM_90, "9.7.13"),
    ("clusterlaunchcontrol", "", (8, 6), _SM_100, "9.7.13.17"),
    ("elect", "", (8, 0), _SM_90, "9.7.13"),
    ("griddepcontrol", "", (7, 8), _SM_90, "9.7.13"),
    ("setmaxnreg", "", (8, 0), RequiredTarget(90, "af"), "9.7.19"),
    ("redux", "", (7, 0), _SM_80, "9.7.13"),
    ("redux", "f32", (8, 6), RequiredTarget(100, "af", below=110), "9.7.13"),
    ("ldmatrix", "", (6, 5), RequiredTarget(75), "9.7.14.5"),
    ("stmatrix", "", (7, 8), _SM_90, "9.7.14.5"),
    ("movmatrix", "", (7, 8), RequiredTarget(75), "9.7.14.5"),
    ("mapa", "", (7, 8), _SM_90, "9.7.9"),
    ("getctarank", "", (7, 8), _SM_90, "9.7.9"),
    ("st.async", "", (8, 1), _SM_90, "9.7.9.12"),
    ("red.async", "", (8, 1), _SM_90, "9.7.13"),
    ("multimem", "", (8, 1), _SM_90, "9.7.9"),
    ("tensormap.replace", "", (8, 3), RequiredTarget(90, "af"), "9.7.9.28"),
    ("prefetch.tensormap", "", (8, 0), _SM_90, "9.7.9"),
    ("ld", "v8", (8, 8), _SM_100, "9.7.9"),
    ("st", "v8", (8, 8), _SM_100, "9.7.9"),
    ("fma", "f32x2", (8, 6), _SM_100, "9.7.3"),
    ("add", "f32x2", (8, 6), _SM_100, "9.7.3"),
    ("cvt", "e4m3x2", (7, 8), RequiredTarget(89), "9.7.9.21"),
    ("cvt", "e2m1x2", (8, 6), _CONDITIONAL, "9.7.9.21"),
    ("cvt", "ue8m0x2", (8, 6), _CONDITIONAL, "9.7.9.21"),
    ("cvt", "rs", (8, 7), RequiredTarget(100, "a", below=110), "9.7.9.21"),
    ("cvt", "tf32", (7, 0), _SM_80, "9.7.9.21"),
    ("cvt", "bf16x2", (7, 0), _SM_80, "9.7.9.21"),
    ("tanh", "", (7, 0), RequiredTarget(75), "9.7.3"),
    ("bmsk", "", (7, 6), _ANY, "9.7.1"),
    ("szext", "", (7, 6), _ANY, "9.7.1"),
    ("activemask", "", (6, 2), _ANY, "9.7.13"),
    ("alloca", "", (7, 3), _ANY, "9.7.17"),
    ("createpolicy", "", (7, 4), _SM_80, "9.7.9"),
    ("discard", "", (7, 4), _SM_80, "9.7.9"),
    ("applypriority", "", (7, 4), _SM_80, "9.7.9"),
)
"""First words of a mnemonic, words that follow anywhere, least .version, .target, section."""

_BY_WORD: dict[str, list[tuple[str, str, Version, RequiredTarget, str]]] = {}
for _row in REQUIREMENTS:
    _BY_WORD.setdefault(_row[0].partition(".")[0], []).append(_row)


def check(instruction: Instruction, module: PtxModule) -> None:
    """Raises PtxSyntaxError if ptxas would reject the instruction for the module's .version or
    .target.
    """
    mnemonic = instruction.mnemonic
    for name, words, version, target, section in _BY_WORD.get(mnemonic.partition(".")[0], ()):
        if f"{mnemonic}.".startswith(f"{name}.") and (not words or f".{words}." in f"{mnemonic}."):
            if _version(module.version) < version:
                needed, got = ".".join(map(str, version)), module.version
                raise _refused(instruction, f".version {needed} or later", got, section)
            if not target.has(module.target):
                raise _refused(instruction, f".target {target}", module.target, section)


def _version(text: str) -> Version:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def _refused(instruction: Instruction, expected: str, got: str, section: str) -> PtxSyntaxError:
    text = f"{instruction.mnemonic}: expected {expected}, got {got}: ptxas refuses it (PTX ISA "
    return PtxSyntaxError(f"{text}{section})", instruction.site.line, instruction.column)

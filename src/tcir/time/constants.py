"""Latencies, occupancies and rates of the time model: one table, each number with its source.

Cycles are those of the SM's clock. Where two sources disagree, a constant has several answers, the
first of which is the default; a `Constants` with other choices selects other answers for the model.
No number was fitted to the time of a whole kernel; docs/explanation/time.md says how each number
was obtained.

Sources: *SA* SemiAnalysisAI/microbench-blackwell, B200 at 1.965 GHz. *NV* NVLatencyModel.cpp of
facebookexperimental/triton, B200. *UT* a person's notes on utcmma, B200 at 1.845 GHz. *B3* the same
for a B300 (sm_103a). *TH* "Thor TCGen05 MMA With Copy Pipeline" (sm_110a). *GH* measurements of a
GH200 (hibouwu/CUDA_optimazation). *H200* docs/explanation/matmul-warp.md, docs/explanation/gemv.md,
its probes in docs/results/time-model.md. UT, B3 and TH are second-class: one person, repository
unnamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tcir.errors import LaunchError, did_you_mean
from tcir.target import SMEM_BYTES_PER_CYCLE, TARGETS, Target

SMALL_STAGE, LARGE_STAGE = 32 << 10, 48 << 10
"""Bytes of the stages that SA's two main loops load, 64 deep, of 128x128 and of 128x256."""


@dataclass(frozen=True)
class Figure:
    """A number with its source.

    confidence: ``measured``, ``calculated`` from measured numbers, ``vendor``, or ``assumed``
    """

    value: float
    source: str
    confidence: str = "measured"


@dataclass(frozen=True)
class Constant:
    """One number of the model, by target; it has several answers if sources disagree."""

    name: str
    unit: str
    meaning: str
    figures: Mapping[str, Mapping[str, Figure]]

    def disputed(self, target: str) -> bool:
        """Whether sources disagree."""
        return len(self.figures.get(target, ())) > 1


TIMED = [name for name, target in TARGETS.items() if not target.wgmma]
"""Targets with constants; a target with wgmma has those of the target without it (the name without
"a")."""


def _by(**targets: Figure | dict[str, Figure]) -> dict[str, dict[str, Figure]]:
    return {
        name: {"only": figures} if isinstance(figures, Figure) else figures
        for name, figures in targets.items()
    }


def _same(figures: Figure | dict[str, Figure]) -> dict[str, dict[str, Figure]]:
    return _by(**dict.fromkeys(TIMED, figures))


def _assumed(value: float, why: str) -> Figure:
    return Figure(value, why, "assumed")


_CONSTANTS = (
    # Clocks and memories.
    Constant(
        "clock",
        "GHz",
        "SM clock at which cycles are stated in microseconds",
        _by(
            sm_80=Figure(1.41, "A100 boost clock, data sheet", "vendor"),
            sm_90={
                "rest": Figure(1.83, "H100 SXM at 989.5 TFLOP/s; GH: 1.82 in a call of 15 us"),
                "held": Figure(1.43, "H200: cuBLAS held at 640 W"),
                "mma-sync": Figure(1.65, "H200: matmul-warp held"),
                "boost": Figure(1.98, "H200: operands of zeros"),
            },
            sm_100a={
                "load": Figure(1.85, "public reports under tensor load, 1.85 to 1.86"),
                "boost": Figure(1.965, "SA"),
                "power": Figure(1.5, "the power limit of large GEMMs", "assumed"),
            },
        ),
    ),
    Constant(
        "hbm",
        "B/ns",
        "bandwidth of global memory that loads reach, all SMs together",
        _by(
            sm_80=_assumed(1835, "90 % of the data sheet's 2039"),
            sm_90={
                "gh": Figure(4560, "GH: 95 % of 4.0 TB/s; H200: 4.8 TB/s", "calculated"),
                "copy": Figure(3685, "H200: a device copy, read and written"),
            },
            sm_100a={
                "sa": Figure(7260, "SA, TMA loads"),
                "arxiv": Figure(7480, "arXiv 2512.02189"),
            },
        ),
    ),
    Constant(
        "hbm-peak",
        "B/ns",
        "bandwidth of global memory by its pins",
        _by(
            sm_80=Figure(2039, "A100 data sheet, 80 GB", "vendor"),
            sm_90=Figure(4800, "H200 data sheet", "vendor"),
            sm_100a=Figure(7670, "device query: 7680 bits at 3.996 GHz, twice a clock", "vendor"),
        ),
    ),
    Constant(
        "hbm-latency",
        "cycles",
        "extra latency of a load that misses in L2",
        _by(
            sm_80=_assumed(310, "public micro-benchmarks: 570 less 260"),
            sm_90={
                "probe": Figure(533, "H200 probe: 8 KiB on one SM, 1007 less 474", "calculated"),
                "gh": Figure(342, "GH: 630 less 288, by working set", "calculated"),
            },
            sm_100a={
                "tma": Figure(937, "SA: 1 KB, all SMs, 1413 less a light load", "calculated"),
                "ldgsts": Figure(762, "SA: typical LDGSTS, 1085 to 1200, less 380", "calculated"),
            },
        ),
    ),
    Constant(
        "l2-latency",
        "cycles",
        "latency of an ld.global that hits in L2",
        _by(
            sm_80=_assumed(260, "public micro-benchmarks"),
            sm_90=Figure(288, "GH, small working set"),
            sm_100a=Figure(380, "SA: least LDGSTS, 356 to 400"),
        ),
    ),
    Constant(
        "l2-port",
        "B/clk",
        "from L2 into one SM, in stages of up to 32 KB",
        _by(
            sm_80=_assumed(64, "as sm_90"),
            sm_90={
                "alone": Figure(64, "GH, V04"),
                "wgmma": Figure(58, "GH, R13: with wgmma consumers, 32 KiB stages"),
                "large": Figure(45, "GH, R13: 48 KiB stages"),
            },
            sm_100a={
                "best": Figure(81, "SA: a CUTLASS main loop of 128x128", "calculated"),
                "wide": Figure(62, "SA: a CUTLASS main loop of 128x256", "calculated"),
                "hopper": _assumed(64, "the figure of sm_90"),
            },
        ),
    ),
    Constant(
        "l2-port-large",
        "B/clk",
        "as l2-port, in stages of 48 KB and more; linear in between",
        _by(
            sm_100a={
                "wide": Figure(62, "SA: a CUTLASS main loop of 128x256", "calculated"),
                "best": Figure(81, "SA: a CUTLASS main loop of 128x128", "calculated"),
            },
        ),
    ),
    Constant(
        "sector",
        "B",
        "smallest transfer from L2: shorter rows of a TMA box cost as much",
        _same(Figure(32, "CUDA C++ Best Practices Guide", "vendor")),
    ),
    Constant(
        "shared-port",
        "B/clk",
        "shared memory of one SM",
        _by(
            sm_80=Figure(SMEM_BYTES_PER_CYCLE, "CUDA C++ Programming Guide", "vendor"),
            sm_90=Figure(SMEM_BYTES_PER_CYCLE, "GH: 124 to 127"),
            sm_100a=Figure(SMEM_BYTES_PER_CYCLE, "SA; B3: 37 TB/s"),
        ),
    ),
    Constant(
        "shared-latency",
        "cycles",
        "from an ld.shared until its register can be read",
        _by(
            sm_80=_assumed(29, "as sm_90"),
            sm_90=Figure(29, "GH"),
            sm_100a=Figure(105, "NV, fitted"),
        ),
    ),
    Constant(
        "ldmatrix-latency",
        "cycles",
        "from an ldmatrix until its registers can be read",
        _by(
            sm_80=_assumed(34, "as sm_90"),
            sm_90=Figure(34, "GH"),
            sm_100a=Figure(29, "NV"),
        ),
    ),
    # TMA.
    Constant(
        "tma-latency",
        "cycles",
        "a load that hits in L2: from issue until a waiting thread continues, without its bytes",
        _by(
            sm_90={
                "probe": Figure(346, "H200 probe: 8 KiB 474, less 128 at the port", "calculated"),
                "gh": Figure(886, "GH: 16 KiB 1142, less 256 at the port", "calculated"),
            },
            sm_100a=Figure(460, "NV, light load"),
        ),
    ),
    Constant(
        "tma-cycles-per-kb",
        "cycles",
        "added to tma-latency per 1024 bytes if one SM loads alone; else the port's rate holds",
        _by(
            sm_90=Figure(16, "GH: as the port", "calculated"),
            sm_100a=Figure(6, "NV, light load"),
        ),
    ),
    Constant(
        "tma-inner",
        "cycles",
        "added to tma-latency per 512 bytes of a box's row beyond the first, at most twice",
        _by(sm_90=_assumed(0, "not measured"), sm_100a=Figure(240, "NV, light load")),
    ),
    Constant(
        "tma-issue",
        "cycles",
        "occupancy of the issuing thread and of the TMA engine, per operation",
        _by(sm_90=_assumed(30, "as sm_100a"), sm_100a=Figure(30, "NV")),
    ),
    Constant(
        "tma-store-latency",
        "cycles",
        "a store: from issue until its group is complete, without its bytes",
        _by(
            sm_90=Figure(945, "GH: 16 KiB 1777, less 52 per KB", "calculated"),
            sm_100a=Figure(130, "NV"),
        ),
    ),
    Constant(
        "tma-store-cycles-per-kb",
        "cycles",
        "time per 1024 bytes from one SM to L2, by TMA and by threads: about 20 B/clk",
        _by(
            sm_80=_assumed(52, "as sm_100a"),
            sm_90=Figure(52, "GH: st.global 3.8 TB/s of all SMs is 47; NV, sm_100a", "calculated"),
            sm_100a=Figure(52, "NV, TMA stores"),
        ),
    ),
    # Tensor cores.
    Constant(
        "mma-n-per-cycle",
        "columns/clk",
        "columns of D that tcgen05.mma or wgmma finishes, for 32 bytes of K",
        _by(
            sm_90=Figure(2, "GH: 4095 FLOP/clk at N = 64, 128, 256"),
            sm_100a=Figure(2, "SA: M = 128, N from 64 to 256"),
        ),
    ),
    Constant(
        "mma-latency",
        "cycles",
        "from the last column until a waiter of its commit continues (sm_90: wgmma.wait_group)",
        _by(
            sm_90=Figure(32, "GH: one chain, 36 + 0.62 N, less issue and columns", "calculated"),
            sm_100a={
                "sa": Figure(100, "SA: TS, M = 128: 136, 168, 232, less issue, N/2", "calculated"),
                "th": Figure(190, "TH: mma alone 354, less issue, A and N/2", "calculated"),
            },
        ),
    ),
    Constant(
        "mma-latency-column",
        "cycles",
        "added to mma-latency per column, while the tensor pipe is free for others",
        _by(sm_90=Figure(0.12, "GH: one chain, 36 + 0.62 N, less N/2", "calculated")),
    ),
    Constant(
        "mma-pair",
        "cycles",
        "and with .cta_group::2",
        _by(sm_100a=Figure(34, "SA: SS, M = 256: 202, 234, 298", "calculated")),
    ),
    Constant(
        "mma-scaled",
        "cycles",
        "and with block scales",
        _by(sm_100a=Figure(5, "SA: mxf4 pairs 282.4 and 184.4 beside 277.4 and 181.4")),
    ),
    Constant(
        "mma-issue",
        "cycles",
        "occupancy of the issuing thread, per tcgen05 instruction or wgmma",
        _same(_assumed(4, "descriptors and a predicate: four instructions")),
    ),
    Constant(
        "mma-sync",
        "FLOP/clk",
        "dense f16 mma.sync of one SM",
        _by(
            sm_80=Figure(2048, "A100 data sheet: 312 TFLOP/s, 108 SMs, 1.41 GHz", "vendor"),
            sm_90=Figure(2455, "H200: 601.3 at 1.86 GHz, 642.8 at 1.98 GHz", "calculated"),
            sm_100a=_assumed(2048, "a quarter of tcgen05's: GeForce forms only are documented"),
        ),
    ),
    Constant(
        "mma-sync-latency",
        "cycles",
        "from an mma.sync until a dependent one can start",
        _same(_assumed(33, "arXiv 2402.13499 for sm_90: 32 to 33")),
    ),
    # Tensor memory.
    Constant(
        "cp-rate",
        "B/clk",
        "tcgen05.cp",
        _by(
            sm_100a={
                "ut": Figure(64, "UT: 128x256b 63 to 68 cycles for 4 KB"),
                "th": Figure(43, "TH: 128x128b 47.7 cycles for 2 KB"),
                "port": _assumed(128, "the rate of shared memory"),
            }
        ),
    ),
    Constant(
        "cp-blocks-mma",
        "share",
        "share of a tcgen05.cp during which the tensor pipe does nothing else",
        _by(
            sm_100a={
                "th": Figure(1, "TH: its data time delays an independent mma"),
                "overlap": _assumed(0, "copies of their own port"),
            }
        ),
    ),
    Constant(
        "ld-column",
        "cycles",
        "tcgen05.ld, per column of 32 lanes and sub-partition",
        _by(
            sm_100a={
                "nv": Figure(2, "NV: 128 columns occupy 256; B3: 57 B/clk/warp"),
                "port": _assumed(1, "128 B/clk and sub-partition"),
            }
        ),
    ),
    Constant(
        "ld-latency",
        "cycles",
        "tcgen05.ld, beside its columns",
        _by(
            sm_100a={
                "64": Figure(51, "NV: 64 columns 179", "calculated"),
                "128": Figure(276, "NV: 128 columns 532", "calculated"),
            }
        ),
    ),
    Constant(
        "st-column",
        "cycles",
        "tcgen05.st, per column",
        _by(sm_100a=Figure(0.59, "UT: 13 to 49.8 for 1 to 64 columns", "calculated")),
    ),
    Constant(
        "st-latency",
        "cycles",
        "tcgen05.st, beside its columns",
        _by(sm_100a=Figure(12.4, "UT", "calculated")),
    ),
    Constant(
        "shift",
        "cycles",
        "tcgen05.shift of 32 bytes of columns",
        _by(
            sm_100a={
                "8-banks": _assumed(1, "8 banks of 64 rows in a sub-partition: one access each"),
                "4-banks": _assumed(2, "4 banks of 128 rows: two"),
            }
        ),
    ),
    # Barriers and fences.
    Constant(
        "mbarrier",
        "cycles",
        "from an arrival until a waiting thread continues",
        _by(
            sm_80=_assumed(50, "as sm_100a, nv"),
            sm_90=_assumed(50, "as sm_100a, nv"),
            sm_100a={
                "ut": Figure(88.5, "UT: round trip"),
                "nv": Figure(50, "NV: wait 30, arrive 20"),
            },
        ),
    ),
    Constant(
        "wait-ready",
        "cycles",
        "a wait for a phase that is already complete",
        _same(Figure(30, "NV, sm_100a")),
    ),
    Constant(
        "arrive", "cycles", "mbarrier.arrive, of its thread", _same(Figure(20, "NV, sm_100a"))
    ),
    Constant(
        "bar-sync",
        "cycles",
        "from the last arrival until all warps continue, 128 threads",
        _by(
            sm_80=_assumed(21, "as sm_90"),
            sm_90=Figure(21, "GH; 29 with 256 threads"),
            sm_100a=Figure(20.7, "UT; 14.6 with 32 threads"),
        ),
    ),
    Constant(
        "fence",
        "cycles",
        "fence.proxy.async",
        _by(
            sm_80=_assumed(11, "as sm_90"),
            sm_90=Figure(11, "GH; 267 at .gpu"),
            sm_100a=Figure(179, "UT; cta 27 to 36, gpu 292"),
        ),
    ),
    Constant(
        "tmem-wait",
        "cycles",
        "tcgen05.wait::ld after the last load",
        _by(sm_100a=Figure(12.8, "UT")),
    ),
    # Issue.
    Constant(
        "issue",
        "cycles",
        "occupancy of a sub-partition's scheduler, per warp instruction",
        _same(Figure(1, "CUDA C++ Programming Guide", "vendor")),
    ),
    Constant(
        "cuda-cores",
        "FLOP/clk",
        "f32 fma of the CUDA cores of one SM",
        _by(
            sm_80=Figure(128, "CUDA C++ Programming Guide: 64 results a clock", "vendor"),
            sm_90=Figure(256, "CUDA C++ Programming Guide: 128 results a clock", "vendor"),
            sm_100a=Figure(256, "CUDA C++ Programming Guide: 128 results a clock", "vendor"),
        ),
    ),
    Constant(
        "alu",
        "cycles",
        "time of a warp, per arithmetic instruction in a run",
        _same(
            {
                "mixed": _assumed(2, "half of the instructions wait for the one before"),
                "independent": _assumed(1, "none does"),
                "chain": Figure(4, "all do; GH: FFMA 4.0"),
            }
        ),
    ),
    Constant(
        "sfu",
        "cycles",
        "occupancy of a sub-partition's special-function unit, per warp instruction",
        _same(Figure(8, "16 a clock and SM: FlashAttention-4's text", "calculated")),
    ),
    # Around a kernel.
    Constant(
        "kernel-start",
        "cycles",
        "start of a kernel's first CTAs, until their barriers and tensor memory are ready",
        _by(
            sm_80=_assumed(1000, "less than sm_90: no barriers"),
            sm_90=Figure(2300, "GH: the setup of a CUTLASS kernel"),
            sm_100a=_assumed(2300, "as sm_90"),
        ),
    ),
    Constant(
        "cta-start",
        "cycles",
        "start of a CTA that follows another on its SM, until it is ready as well",
        _same(_assumed(500, "no public figure")),
    ),
    Constant(
        "cta-latency",
        "cycles",
        "time of a CTA before its first mma and after its last, which none of its own work hides",
        _by(
            sm_100a={
                "between": _assumed(1000, "between light and loaded"),
                "light": Figure(720, "NV: TMA 460, SA: mma 260", "calculated"),
                "loaded": Figure(1660, "SA: TMA about 1400, mma 260", "calculated"),
            }
        ),
    ),
    Constant(
        "launch",
        "us",
        "time of a launch in addition to its kernel, as events measure it",
        _by(
            sm_80=_assumed(3.9, "as sm_90"),
            sm_90=Figure(3.9, "GH: events less kernel"),
            sm_100a=Figure(3.2, "the floor of small public GEMMs", "calculated"),
        ),
    ),
)

CONSTANTS: Mapping[str, Constant] = {constant.name: constant for constant in _CONSTANTS}
"""Name -> constant."""


def is_timed(name: str) -> bool:
    """Whether the model has constants for a target; it has none for a target that a user adds."""
    known = CONSTANTS["hbm"].figures
    return name in known or name.removesuffix("a") in known


def target_of(name: str) -> Target:
    """Returns the target whose constants the model uses for the target `name`: this target, or
    another one (see `TIMED`). Raises LaunchError if there are none.
    """
    plain = name if name in TIMED else name.removesuffix("a")
    if not is_timed(name):
        raise LaunchError(
            f"time model: expected target {', '.join(TIMED)}, got {name!r}: others have "
            "no constants"
        )
    return TARGETS[plain]


@dataclass(frozen=True)
class Constants:
    """The constants of one target, with one answer chosen for each constant on which sources
    disagree.

    choices: constant -> answer, for answers other than the default

    Raises LaunchError for an unknown answer; the error names the allowed answers.
    """

    target: str
    choices: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "target", target_of(self.target).name)
        open_here = disputed(self.target)
        for name, answer in self.choices.items():
            if name not in open_here:
                raise LaunchError(
                    f"no constant in dispute on {self.target} is called {name!r}"
                    f"{did_you_mean(name, list(open_here))}"
                )
            if answer not in open_here[name].figures[self.target]:
                allowed = " or ".join(map(repr, open_here[name].figures[self.target]))
                raise LaunchError(f"constant {name}: expected {allowed}, got {answer!r}")

    @classmethod
    def parse(cls, target: str, texts: Iterable[str]) -> Constants:
        """Parses texts NAME=ANSWER."""
        choices: dict[str, str] = {}
        for text in texts:
            name, equals, answer = text.partition("=")
            if not equals:
                raise LaunchError(f"constant: expected NAME=ANSWER, got {text!r}")
            choices[name] = answer
        return cls(target, choices)

    def figure(self, name: str) -> Figure:
        """Returns the number that is in use for a constant, with its source; raises LaunchError if
        the target has none.
        """
        figures = CONSTANTS[name].figures.get(self.target)
        if figures is None:
            raise LaunchError(
                f"time model: {self.target} has no {name} ({CONSTANTS[name].meaning}); targets "
                f"with it: {', '.join(CONSTANTS[name].figures)}"
            )
        return figures[self.choices.get(name, next(iter(figures)))]

    def l2_port(self, stage_bytes: float) -> float:
        """Returns the bytes per cycle from L2 into one SM whose loads fill stages of `stage_bytes`
        bytes.
        """
        small = self["l2-port"]
        if self.target not in CONSTANTS["l2-port-large"].figures:
            return small
        large = (stage_bytes - SMALL_STAGE) / (LARGE_STAGE - SMALL_STAGE)
        return small + min(max(large, 0.0), 1.0) * (self["l2-port-large"] - small)

    def values(self) -> dict[str, float]:
        """Returns the number in use for each constant that the target has."""
        return {name: self[name] for name, c in CONSTANTS.items() if self.target in c.figures}

    def __getitem__(self, name: str) -> float:
        return self.figure(name).value


def disputed(target: str) -> dict[str, Constant]:
    """Returns the constants of a target on which sources disagree."""
    return {name: c for name, c in CONSTANTS.items() if c.disputed(target)}


def alternatives(target: str) -> list[Constants]:
    """Returns the default, then one `Constants` for every other answer to one disputed constant."""
    name = target_of(target).name
    others = [
        Constants(name, {constant.name: answer})
        for constant in disputed(name).values()
        for answer in list(constant.figures[name])[1:]
    ]
    return [Constants(name), *others]

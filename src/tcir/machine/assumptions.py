"""Hardware questions that documents do not settle, each with its assumption and alternatives.

Nothing else in the machine encodes such a choice. `RunOptions.assumptions` selects alternatives.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from tcir.errors import LaunchError, did_you_mean


def _question(question: str, alternatives: tuple[str, ...], evidence: str, used_by: str) -> Any:
    """The field of an open question; its default is the first alternative."""
    about = {
        "question": question,
        "alternatives": alternatives,
        "evidence": evidence,
        "used_by": used_by,
    }
    return field(default=alternatives[0], metadata=about)


@dataclass(frozen=True)
class Assumptions:
    """The choices in force: one alternative for each question; see `REGISTRY`.

    Raises LaunchError, which names the alternatives, for an unknown choice.
    """

    shift_quarters: str = _question(
        "Does a stand-alone tcgen05.shift move the sub-partition of its address, or all four?",
        ("one", "all"),
        "PTX ISA 9.7.16.9 speaks of a warp and 31 rows; CUTLASS's CuTeDSL primitives document an "
        "exception row per sub-partition, and .ashift moves all four",
        "tcgen05.shift",
    )
    pipe_order: str = _question(
        "Do tcgen05.mma and cp of one thread run in order of issue where PTX ISA 9.7.16.6.2 does "
        "not list the pair: mma -> cp, cp -> cp, mma -> mma with another D?",
        ("issue", "listed"),
        "DeepGEMM's block-scaled kernels and CUTLASS's example 72b overwrite scales without a wait "
        "every K block, CUTLASS's example 77 overwrites what an mma of another D reads; both run "
        "on B200. A warning says where a program relies on it",
        "tcgen05.mma and cp over columns that an earlier one reads or writes",
    )
    ashift_then_cp: str = _question(
        "Is an .ashift mma ordered before a later tcgen05.cp.4x256b of the same thread?",
        ("unordered", "ordered"),
        "PTX ISA 9.7.16.6 lists shift -> cp.4x256b, not mma -> cp",
        "refreshing the halo of a shifted A tile",
    )
    ashift_copies: str = _question(
        "With M = 128 and .cta_group::2 a CTA holds its 64 rows of A twice. Does .ashift move both "
        "copies, or only the one on lanes 0..63?",
        ("both", "first"),
        "seen on a B200 only for M = 128 of one CTA, where all four sub-partitions move (CUTLASS's "
        "CuTeDSL example 1cta_mma_a_from_tmem); if one copy stayed, the next mma could not use A",
        "tcgen05.mma .ashift with M = 128 of a pair",
    )
    ashift_half_lanes: str = _question(
        "A sparse A with M = 128 and .cta_group::2 has 16 rows in the 32 lanes of each "
        "sub-partition. Does .ashift move all 32 lanes, or only those rows, except the last of "
        "each 16?",
        ("lanes", "rows"),
        "no source has such a kernel; with A on all lanes the 32 of a sub-partition move, except "
        "the last (CUTLASS's CuTeDSL example 1cta_mma_a_from_tmem, seen on B200)",
        "tcgen05.mma.sp .ashift with M = 128 of a pair",
    )
    sparsity_selector: str = _question(
        "Which columns can the sparsity selector (0..3) of the kinds f16 and tf32 select?",
        ("four", "two"),
        "PTX ISA 9.7.16.4.2 gives it two bits and shows the columns in figures only; CUTLASS "
        "(mma_traits_sm100.hpp) uses 0 and 1, for an even column and the odd one after it",
        "tcgen05.mma.sp of the kinds f16 and tf32",
    )
    metadata_column: str = _question(
        "May the metadata of a sparse A start at an odd column (f16 and tf32 with a selector of 2 "
        "or 3: at one that is not a multiple of 4)?",
        ("refused", "added"),
        "PTX ISA 9.7.16.10.8 restricts lanes only; CUTLASS passes multiples and selects the others "
        "with the selector; added: the columns are counted from the address",
        "tcgen05.mma.sp",
    )
    half_lane_metadata: str = _question(
        "Where are the metadata of the 64 rows of a CTA whose D uses half of the lanes (data paths "
        "F and C): on D's lanes, or on lanes 0..63?",
        ("d-lanes", "packed"),
        "PTX ISA 9.7.16.10.5 asks for the same lane alignment (0 or 16) of D, A and metadata, and "
        "for the .ws forms CUTLASS (tmem_e_frg_ws) has them on D's lanes; its tmem_e_frg has "
        "only 128 rows",
        "tcgen05.mma.sp with M = 64, or M = 128 of a pair",
    )
    zero_column_spans: str = _question(
        "Which span of the zero-column mask descriptor counts zeroed columns?",
        ("skip-is-zero", "use-is-zero"),
        "the examples of PTX ISA 9.7.16.4.3 and CUTLASS (MaskAndShiftB) use the skip span, PTX's "
        "table the use span",
        "tcgen05.mma.ws with a zero-column mask",
    )
    cp4x256b_rows: str = _question(
        "Which rows does tcgen05.cp.4x256b read: four adjacent ones of the descriptor's matrix, or "
        "rows 0, 32, 64 and 96 of a matrix of 128?",
        ("neighbours", "every-32"),
        "the shape has four rows, and a third-party probe of a B200 saw four rows land 32 lanes "
        "apart; CUTLASS (SM100_UTCCP_4dp256bit) gives source and destination the same stride of 32",
        "tcgen05.cp.4x256b",
    )
    cp4x256b_lane: str = _question(
        "Into which lane of each sub-partition does tcgen05.cp.4x256b write: that of its address, "
        "or always the last?",
        ("address", "last"),
        "PTX ISA 9.7.16.9 does not mention the lane; CUTLASS's comment speaks of the last lanes of "
        "each subpartition, its layout of one lane in four",
        "tcgen05.cp.4x256b",
    )
    cp_row_phase: str = _question(
        "For a swizzled matrix that starts inside the swizzle pattern, with base offset 0: which "
        "rows does tcgen05.cp XOR by, those of the absolute address, or those counted from the "
        "start?",
        ("address", "start"),
        "PTX ISA 9.7.16.10.6 swizzles addresses, and the base offset of 9.7.16.4.1 speaks of where "
        "the pattern starts, not the matrix; published kernels move a start along K only; wgmma of "
        "an H200 goes by the address (docs/explanation/hopper.md)",
        "tcgen05.cp.4x256b from a row that is not a multiple of 8 (conv-shift-reuse, "
        "halo-load=w128)",
    )
    atom_32b_rows: str = _question(
        "Over how many rows of K does the stride dimension offset of an MN-major matrix step with "
        "the 128-byte swizzle of 32-byte atoms: 4, after which the pattern repeats, or 8, as with "
        "the other swizzles?",
        ("4", "8"),
        "CUTLASS (make_umma_desc, Layout_MN_SW128_32B_Atom) and DeepGEMM (kUseBase32) give it the "
        "bytes of 4 rows; PTX ISA 9.7.16.3.2 says 8 columns of every swizzled layout and does not "
        "name this one. A dense step is 8 rows, so with rows one behind the other both are right",
        "MN-major operands of tcgen05.mma.kind::tf32; visible with groups of rows apart, or in the "
        "16 rows of B of a sparse step",
    )
    cp_pair_source: str = _question(
        "From whose shared memory does tcgen05.cp of .cta_group::2 fill the peer's tensor memory: "
        "the peer's own, or the issuing CTA's?",
        ("own", "issuer"),
        "PTX ISA 9.7.16.9 does not say; CUTLASS and JAX put each CTA's scales at one offset of its "
        "own shared memory, which does not work otherwise",
        "tcgen05.cp.cta_group::2 (block-scaled gemm, cta-group=2)",
    )
    ld_st_lane: str = _question(
        "What may the lane of a tcgen05.ld or st address be: in the warp's sub-partition or below "
        "32, in its sub-partition only, or anything, of which five bits count?",
        ("own-or-local", "own", "five-bits"),
        "most published kernels add the sub-partition, DeepGEMM's epilogue leaves it 0 in all "
        "warps; CUTLASS's CuTeDSL primitives call the field local, and warn that another one "
        "faults",
        "tcgen05.ld, tcgen05.st",
    )
    unpack_upper: str = _question(
        "What is in the upper halves of the words that tcgen05.st.unpack::16b writes?",
        ("unspecified", "zero", "kept"),
        "PTX ISA 9.7.16.8 mentions only the lower halves",
        "tcgen05.st.unpack::16b",
    )
    alloc_content: str = _question(
        "What do newly allocated columns hold?",
        ("undefined", "zeros"),
        "a comment in CUTLASS's CuTeDSL primitives suggests zeros; PTX ISA 9.7.16.7 is silent",
        "tcgen05.alloc",
    )
    alloc_place: str = _question(
        "Which free columns does tcgen05.alloc take: under an order seed another place than the "
        "lowest where an SM has room for two CTAs of the launch, always the lowest, or under a "
        "seed any?",
        ("by-residents", "lowest", "any"),
        "DeepGEMM traps unless its allocation starts at column 0, and runs on B200, one CTA an SM; "
        "the second CTA of an SM gets other columns; PTX ISA 9.7.16.7 is silent. --validate-each "
        "takes the highest of by-residents and any",
        "tcgen05.alloc",
    )
    shared_start: str = _question(
        "Where does the shared memory of a CTA begin: at 0x400, under an order seed at another "
        "multiple of 1,024 with static variables in another order, or always at 0x400?",
        ("drawn", "reserved"),
        "ptxas 13.0 and 13.5 place the first variable at 0x400 for sm_90 and later, static before "
        "dynamic ones; what is in front is the system's. A multiple of 1,024: Triton declares "
        ".align 16 and swizzles over 1,024 bytes, which works on B200",
        "addresses of .shared variables",
    )
    elected_lane: str = _question(
        "Which lane of its member mask does elect.sync elect: under an order seed any, or always "
        "the lowest?",
        ("drawn", "lowest"),
        "PTX ISA 9.7.13.15 promises only that it is the same lane for the same member mask; "
        "hardware is seen to elect the lowest, which the order of issue does",
        "elect.sync",
    )
    handed_over: str = _question(
        "One thread arrives at an mbarrier for others. Which accesses to shared memory come before "
        "its arrival: also those of the threads that met it in elect.sync (its warp) or in "
        "wgmma.wait_group (wgmma of its warpgroup), only of those in elect.sync, or its own alone?",
        ("met", "elected", "own"),
        "PTX ISA 8.7.1, 9.7.13.2 and 9.7.15.7: its own. CUTLASS's PipelineTmaAsync counts one "
        "arrival of a warpgroup in clusters (sm90_pipeline.hpp), FlashAttention-3 and "
        "ThunderKittens likewise; NVIDIA's CuTe DSL primitives arrive by an elected lane. An H200: "
        "0 wrong words of 168 million rounds by an elected lane; no wgmma.wait_group of a warp "
        "ended before the other three had executed the same wgmma (64 x 6,600 to 52,800 rounds of "
        "m64n8k16, one warp up to 20 us late; 3.4 million of m64n256k16, one group in flight). "
        "Against it: NVIDIA/Fuser#3865, wrong results with several large products in flight, "
        "which no run here has settled. A warning says where a program relies on it",
        "elect.sync, wgmma.wait_group",
    )
    alloc_permit: str = _question(
        "Does a CTA that has allocated tensor memory and not relinquished its permit keep the "
        "other CTAs on its SM from allocating?",
        ("shared", "owned"),
        "PTX ISA 9.4 (9.7.18.7.1): an allocation that is not .exclusive uses the permit, but does "
        "not own it; CUTLASS relinquishes it early 'so that the next CTA can rasterize'",
        "tcgen05.alloc of CTAs that share an SM",
    )
    pair_dealloc: str = _question(
        "Does tcgen05.dealloc of .cta_group::2 wait for that of the peer?",
        ("waits", "at-once"),
        "PTX ISA 9.7.16.5 lets it block or not block: a kernel must be correct either way, so both "
        "are worth running",
        "tcgen05.dealloc.cta_group::2",
    )
    flip_8b_lines: str = _question(
        "In which lines of 128 bytes does 128B_ATOM_32B_FLIP_8B swap the halves of every 16 bytes?",
        ("odd", "even"),
        "the CUDA driver API says every alternate row",
        "cp.async.bulk.tensor with that swizzle",
    )
    zero_terms: str = _question(
        "What is the raw exponent of a zero product, or a zero D-in, when a sum's window is "
        "placed?",
        ("none", "-126", "-133"),
        "sf-tensor/tcgen05 uses none and matches a B200; microsoft/MMA-Sim had -126, then "
        "-133 (-21 for an f16 D), like arXiv 2512.07004 and mma.sync on an H200 "
        "(docs/explanation/hopper.md). Visible only near the bottom of D's range",
        "tcgen05.mma of floats, except the fp4 kinds",
    )
    fp4_sums: str = _question(
        "Where are the sums of mxf4 and mxf4nvf4 truncated: by products and scales, or by scales "
        "alone?",
        ("products", "scales"),
        "sf-tensor/tcgen05 (products) is matched to a B200 in detail; microsoft/MMA-Sim (scales) "
        "is simpler and differs rarely, see docs/explanation/numerics.md",
        "tcgen05.mma of the kinds mxf4 and mxf4nvf4",
    )
    scaled_n8: str = _question(
        "With M = 128 of one CTA, may N of the block-scaled kinds be an odd multiple of 8?",
        ("runs", "illegal"),
        "PTX ISA 9.7.16.2.1 allows steps of 8; older CUTLASS asserts steps of 16 with M = 128. N "
        "= 8 was seen on a B200 for f8f6f4 with A in tensor memory (CUTLASS's slice-k example), "
        "for no block-scaled kind",
        "tcgen05.mma of the kinds mxf8f6f4, mxf4 and mxf4nvf4; gemv-padded-n with pad_n=8",
    )
    fp6_holder: str = _question(
        "Which bits of a byte of tensor memory hold a 6-bit element of A?",
        ("6..1", "5..0"),
        "CUTLASS's CuTeDSL example cp_narrow_a_to_tmem_mma says 6..1 but tests only that cp and "
        "mma agree; mma.sync has 5..0",
        "tcgen05.cp .b6x16_p32, tcgen05.mma with A in tensor memory",
    )
    scale_input_d: str = _question(
        "Is D · 2^-s of scale-input-d rounded to D's type before the sum?",
        ("exact", "rounded"),
        "PTX ISA 9.7.16.10 does not say; the two differ for subnormal results of the scaling only",
        "tcgen05.mma with scale-input-d",
    )
    rs_pair_bits: str = _question(
        "cvt.rs to four 8- or 6-bit floats has 16 random bits for two operands. Does the first (a, "
        "e) use them in reverse order, or both as they are?",
        ("reversed", "plain"),
        "PTX ISA 9.7.9.21 shows it in a figure only; FlashInfer (mamba/conversion.cuh) matched "
        "e4m3x4 to a B200 over 22,528 inputs, torchao's comments say the same of their own "
        "measurement; the other types share the figure",
        "cvt.rs to e4m3x4, e5m2x4, e3m2x4, e2m3x4",
    )
    rs_fp4_bits: str = _question(
        "cvt.rs.e2m1x4 uses for a and b the upper bytes of both halves of rbits, for e and f the "
        "lower ones. Does each operand have one byte (a and e that of the upper, or of the lower "
        "half), or do both use all 16 bits, the first in reverse order?",
        ("upper-first", "lower-first", "reversed"),
        "PTX ISA 9.7.9.21 shows it in a figure only; Transformer Engine (ptx.cuh) says 8 bits an "
        "element, not which; upper-first is the order of f16x2 and bf16x2",
        "cvt.rs.e2m1x4",
    )
    im2col_w_halo: str = _question(
        "Which pixels are the halo of .im2col::w and ::w::128: the next ones of the walk "
        "(possibly in the next row), or those after the last pixel in its own row?",
        ("walk", "row"),
        "PTX ISA 5.5.5.3: 'at the end of the image'; shown only in figures. A filter tap reads "
        "pixel i + s of the walk as row i + s of shared memory",
        "cp.async.bulk.tensor .im2col::w, .im2col::w::128",
    )
    im2col_w_row_end: str = _question(
        "What follows in the w modes at the end of the row's range of W: the same row of the next "
        "image, or fill?",
        ("next-image", "fill"),
        "PTX ISA 5.5.5: like im2col with D and H constant; its example walks 128 pixels over rows "
        "of 9",
        "cp.async.bulk.tensor .im2col::w, .im2col::w::128",
    )
    im2col_w128_halo: str = _question(
        "Where does .im2col::w::128 put the halo: behind all 128 pixels (row k of each group, then "
        "row k + 1), or after each group of 32?",
        ("behind", "after-each-group"),
        "PTX ISA 5.5.5.3: 'loaded after every 32 elements', shown only in a figure. Behind: 128 "
        "contiguous rows are what the mandatory swizzle and tcgen05.mma need, and the four rows of "
        "one halo step are what tcgen05.cp.4x256b reads",
        "cp.async.bulk.tensor .im2col::w::128",
    )
    im2col_w_bytes: str = _question(
        "Do the halo's bytes count on the mbarrier in the w modes?",
        ("all", "main"),
        "PTX ISA 9.7.9.27 counts the bytes copied; no example",
        "complete_tx of .im2col::w, .im2col::w::128",
    )
    padded_bytes: str = _question(
        "Does complete_tx count the bytes that 16U4_ALIGN16B and 16U6_ALIGN16B read, or also the "
        "gaps in shared memory?",
        ("payload", "padded"),
        "DeepGEMM (sm100_fp8_fp4_gemm_1d1d) announces half of the shared bytes for fp4, Triton the "
        "packed bytes, and both run on B200; CUTLASS counts its shared-memory layout",
        "complete_tx of padded types",
    )
    u6_store: str = _question(
        "What does a store of 16U6_ALIGN16B read from 16 bytes of shared memory: the low six bits "
        "of each (.b6p2x16), or the first twelve bytes, as a load writes them?",
        ("low-bits", "first-bytes"),
        "PTX ISA 5.5.1 and 9.7.9.27.1.1 name .b6p2x16 for the direction .global.shared::cta",
        "cp.async.bulk.tensor to global memory",
    )
    atom_64b_load: str = _question(
        "May a load use swizzle 128B_ATOM_64B?",
        ("allowed", "refused"),
        "PTX ISA 5.5.7 does not exclude it; a public simulator reports a trap on a B200",
        "cp.async.bulk.tensor to shared memory",
    )
    cta_order: str = _question(
        "Do the CTAs of a grid start in the order of their indices, x fastest?",
        ("index", "any"),
        "no document promises an order, and CUDA's samples draw tickets instead; Triton's and "
        "CUTLASS's stream-K kernels wait for CTAs of smaller index, which silicon starts first",
        "CTAs that wait for others, where not all are resident; any: from the last one, or as a "
        "seed draws it",
    )

    def __post_init__(self) -> None:
        for entry in REGISTRY:
            value = getattr(self, entry.name)
            if value not in entry.alternatives:
                allowed = " or ".join(map(repr, entry.alternatives))
                raise LaunchError(f"assumption {entry.name}: expected {allowed}, got {value!r}")

    @classmethod
    def parse(cls, choices: Iterable[str]) -> Assumptions:
        """Parses texts NAME=ANSWER; raises LaunchError for an unknown name or answer."""
        names = [entry.name for entry in REGISTRY]
        chosen: dict[str, str] = {}
        for text in choices:
            name, equals, answer = text.partition("=")
            if not equals:
                raise LaunchError(f"assumption: expected NAME=ANSWER, got {text!r}")
            if name not in names:
                raise LaunchError(f"no assumption is called {name!r}{did_you_mean(name, names)}")
            chosen[name] = answer
        return cls(**chosen)

    def under(self, ordering: str) -> Assumptions:
        """Returns these assumptions under an ordering profile: "isa" sets `pipe_order` to
        "listed"."""
        return replace(self, pipe_order="listed") if ordering == "isa" else self

    def changes(self) -> dict[str, str]:
        """The answers that are not the default, by name."""
        values = {entry.name: getattr(self, entry.name) for entry in REGISTRY}
        return {e.name: values[e.name] for e in REGISTRY if values[e.name] != e.default}


@dataclass(frozen=True)
class Assumption:
    """One open question: its alternatives, the default among them, and the evidence."""

    name: str
    default: str
    question: str
    alternatives: tuple[str, ...]
    evidence: str
    used_by: str


REGISTRY = tuple(Assumption(f.name, str(f.default), **f.metadata) for f in fields(Assumptions))
"""All open questions, from the fields of `Assumptions`."""

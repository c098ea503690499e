"""Questions about the hardware that no document answers, each with its assumed answer and the
alternatives.

The rest of `tcir.machine` makes no such assumption of its own. `RunOptions.assumptions` selects
alternatives.
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
    """The answers that a run uses: one for each open question in `REGISTRY`.

    Raises LaunchError for an unknown answer; the error names the alternatives.
    """

    shift_quarters: str = _question(
        "Does a stand-alone tcgen05.shift move the sub-partition of its address, or all four?",
        ("one", "all"),
        "PTX ISA 9.7.16.9 describes one warp and 31 rows. CUTLASS's CuTeDSL primitives name one "
        "unmoved row per sub-partition, and .ashift moves all four sub-partitions",
        "tcgen05.shift",
    )
    pipe_order: str = _question(
        "Are tcgen05.mma and tcgen05.cp of one thread executed in order of issue for pairs that "
        "PTX ISA 9.7.16.6.2 does not list: mma -> cp, cp -> cp, mma -> mma with another D?",
        ("issue", "listed"),
        "DeepGEMM's block-scaled kernels and CUTLASS's example 72b overwrite scales in every K "
        "block without a wait; CUTLASS's example 77 overwrites operands of an mma with another D. "
        "All of these run on B200. A warning says where a program relies on this order",
        "tcgen05.mma and cp over columns that an earlier one reads or writes",
    )
    ashift_then_cp: str = _question(
        "Is an .ashift mma ordered before a later tcgen05.cp.4x256b of the same thread?",
        ("unordered", "ordered"),
        "PTX ISA 9.7.16.6 lists the pair shift -> cp.4x256b, but not mma -> cp",
        "refreshing the halo rows of a shifted A tile",
    )
    ashift_copies: str = _question(
        "With M = 128 and .cta_group::2, tensor memory of a CTA contains two copies of its 64 rows "
        "of A. Does .ashift move both copies, or only the copy on lanes 0..63?",
        ("both", "first"),
        "on a B200 only M = 128 of one CTA was seen, where all four sub-partitions move (CUTLASS's "
        "CuTeDSL example 1cta_mma_a_from_tmem). If one copy stayed, no mma could use A",
        "tcgen05.mma .ashift with M = 128 of a pair",
    )
    ashift_half_lanes: str = _question(
        "A sparse A with M = 128 and .cta_group::2 has 16 rows in the 32 lanes of each "
        "sub-partition. Does .ashift move all 32 lanes of the sub-partition, or only the lanes "
        "with rows of A, except the last of each 16?",
        ("lanes", "rows"),
        "no source has such a kernel. If A is on all lanes, all 32 lanes of a sub-partition move, "
        "except the last (CUTLASS's CuTeDSL example 1cta_mma_a_from_tmem, seen on B200)",
        "tcgen05.mma.sp .ashift with M = 128 of a pair",
    )
    sparsity_selector: str = _question(
        "Which columns can the sparsity selector (0..3) of the kinds f16 and tf32 select?",
        ("four", "two"),
        "PTX ISA 9.7.16.4.2 gives it two bits and shows the columns in figures only. CUTLASS "
        "(mma_traits_sm100.hpp) uses the values 0 and 1, for an even column and the next",
        "tcgen05.mma.sp of the kinds f16 and tf32",
    )
    metadata_column: str = _question(
        "May the metadata of a sparse A start at an odd column (for f16 and tf32 with a selector "
        "of 2 or 3: at a column that is not a multiple of 4)?",
        ("refused", "added"),
        "PTX ISA 9.7.16.10.8 restricts only the lanes. CUTLASS passes multiples and selects other "
        "columns with the selector. The answer added: columns count from the address",
        "tcgen05.mma.sp",
    )
    half_lane_metadata: str = _question(
        "If D uses half of the lanes (data paths F and C), where are the metadata of the CTA's 64 "
        "rows: on D's lanes, or on lanes 0..63?",
        ("d-lanes", "packed"),
        "PTX ISA 9.7.16.10.5 requires D, A and the metadata to have the same lane alignment (0 or "
        "16). For the .ws forms CUTLASS (tmem_e_frg_ws) places the metadata on D's lanes; for the "
        "other forms its tmem_e_frg supports only 128 rows",
        "tcgen05.mma.sp with M = 64, or M = 128 of a pair",
    )
    zero_column_spans: str = _question(
        "Which span of the zero-column mask descriptor counts zeroed columns: skip or use?",
        ("skip-is-zero", "use-is-zero"),
        "in the examples of PTX ISA 9.7.16.4.3 and in CUTLASS (MaskAndShiftB) it is the skip span, "
        "in the table of PTX ISA 9.7.16.4.3 the use span",
        "tcgen05.mma.ws with a zero-column mask",
    )
    cp4x256b_rows: str = _question(
        "Which rows does tcgen05.cp.4x256b read: four adjacent rows of the descriptor's matrix, or "
        "rows 0, 32, 64 and 96 of a matrix of 128 rows?",
        ("neighbours", "every-32"),
        "the shape has four rows, and a third party's test on a B200 saw them arrive 32 lanes "
        "apart. CUTLASS (SM100_UTCCP_4dp256bit) gives source and destination the same stride of 32",
        "tcgen05.cp.4x256b",
    )
    cp4x256b_lane: str = _question(
        "Into which lane of each sub-partition does tcgen05.cp.4x256b write: into the lane of its "
        "address, or always into the last lane?",
        ("address", "last"),
        "PTX ISA 9.7.16.9 does not mention the lane. CUTLASS's comment speaks of the last lanes of "
        "each subpartition, but CUTLASS's layout is that of one lane in each of the four",
        "tcgen05.cp.4x256b",
    )
    cp_row_phase: str = _question(
        "A swizzled matrix may start inside the swizzle pattern, with base offset 0. Does "
        "tcgen05.cp then swizzle by rows of the absolute address, or by rows counted from its "
        "start?",
        ("address", "start"),
        "PTX ISA 9.7.16.10.6 swizzles addresses, and the base offset of 9.7.16.4.1 is about the "
        "start of the pattern, not of the matrix. Published kernels move the start of a matrix "
        "along K only. wgmma on an H200 swizzles by the address (docs/explanation/hopper.md)",
        "tcgen05.cp.4x256b from a row that is not a multiple of 8 (conv-shift-reuse, "
        "halo-load=w128)",
    )
    atom_32b_rows: str = _question(
        "How many rows of K does the stride dimension offset of an MN-major matrix span with the "
        "128-byte swizzle of 32-byte atoms: 4 (then it repeats) or 8, as with other swizzles?",
        ("4", "8"),
        "CUTLASS (make_umma_desc, Layout_MN_SW128_32B_Atom) and DeepGEMM (kUseBase32) set it to "
        "the bytes of 4 rows. PTX ISA 9.7.16.3.2 says 8 columns for every swizzled layout, but "
        "does not name this layout. A dense step is 8 rows, so both agree for contiguous rows",
        "MN-major operands of tcgen05.mma.kind::tf32; the answer matters if groups of rows are not "
        "contiguous, or in the 16 rows of B of a sparse step",
    )
    cp_pair_source: str = _question(
        "tcgen05.cp of .cta_group::2 fills the tensor memory of both CTAs of a pair. From whose "
        "shared memory does it fill that of the peer: the peer's own, or the issuing CTA's?",
        ("own", "issuer"),
        "PTX ISA 9.7.16.9 does not say. CUTLASS and JAX store the scales of each CTA in that CTA's "
        "shared memory, at the same offset, which works only if the answer is own",
        "tcgen05.cp.cta_group::2 (block-scaled gemm, cta-group=2)",
    )
    ld_st_lane: str = _question(
        "Which lanes may the address of a tcgen05.ld or st have: those of the warp's sub-partition "
        "and those below 32, only those of its sub-partition, or any lane, of which five bits "
        "count?",
        ("own-or-local", "own", "five-bits"),
        "most published kernels add the sub-partition to the address; DeepGEMM's epilogue leaves "
        "it 0 in all warps. CUTLASS's CuTeDSL primitives say that the lane counts from the start "
        "of the sub-partition, and warn that an address in another sub-partition faults",
        "tcgen05.ld, tcgen05.st",
    )
    unpack_upper: str = _question(
        "What is in the upper halves of the words that tcgen05.st.unpack::16b writes?",
        ("unspecified", "zero", "kept"),
        "PTX ISA 9.7.16.8 mentions only the lower halves of the words",
        "tcgen05.st.unpack::16b",
    )
    alloc_content: str = _question(
        "What do newly allocated columns of tensor memory contain?",
        ("undefined", "zeros"),
        "a comment in CUTLASS's CuTeDSL primitives suggests zeros. PTX ISA 9.7.16.7 does not say",
        "tcgen05.alloc",
    )
    alloc_place: str = _question(
        "Which free columns of tensor memory does tcgen05.alloc take: always the lowest, under an "
        "order seed any, or (by-residents) under an order seed any if an SM has room for two CTAs "
        "of the launch, else the lowest?",
        ("by-residents", "lowest", "any"),
        "DeepGEMM traps unless its allocation starts at column 0, and it runs on B200 with one CTA "
        "per SM. The second CTA of an SM gets other columns. PTX ISA 9.7.16.7 does not say. Under "
        "the answers by-residents and any, --validate-each takes the highest columns",
        "tcgen05.alloc",
    )
    shared_start: str = _question(
        "Where does the shared memory of a CTA begin: always at 0x400, or under an order seed at "
        "another multiple of 1,024, with static variables in another order?",
        ("drawn", "reserved"),
        "ptxas 13.0 and 13.5 place the first variable at 0x400 for sm_90 and later, and static "
        "variables before dynamic ones; the system uses what is below. The start is a multiple of "
        "1,024 because Triton declares .align 16 swizzles over 1,024 bytes, and works on B200",
        "addresses of .shared variables",
    )
    elected_lane: str = _question(
        "Does elect.sync elect always the lowest lane of its mask, or under an order seed any?",
        ("drawn", "lowest"),
        "PTX ISA 9.7.13.15 promises only that the same member mask gives the same lane. Hardware "
        "was seen to elect the lowest lane, and so does the machine without a seed",
        "elect.sync",
    )
    handed_over: str = _question(
        "One thread arrives at an mbarrier for other threads. Which of their accesses to shared "
        "memory come before its arrival: those of all threads that executed elect.sync (its warp) "
        "or wgmma.wait_group (the wgmma of its warpgroup) together with it, only those of threads "
        "that executed elect.sync with it, or none but its own?",
        ("met", "elected", "own"),
        "PTX ISA 8.7.1, 9.7.13.2 and 9.7.15.7 promise the order only for its own accesses. For the "
        "others: CUTLASS's PipelineTmaAsync counts one arrival per warpgroup in clusters "
        "(sm90_pipeline.hpp), as do FlashAttention-3 and ThunderKittens; in NVIDIA's CuTe DSL "
        "primitives an elected lane arrives. On an H200, 168 million rounds with an elected lane "
        "gave 0 wrong words, and no wgmma.wait_group of a warp ended before the other three warps "
        "had executed the same wgmma (64 x 6,600 to 52,800 rounds of m64n8k16, one warp up to 20 "
        "us late; 3.4 million rounds of m64n256k16 with one group in flight). Against it: "
        "NVIDIA/Fuser#3865 reports wrong results with several large products in flight; no run "
        "here has settled this. A warning says where a program relies on the accesses of others",
        "elect.sync, wgmma.wait_group",
    )
    alloc_permit: str = _question(
        "A CTA has allocated tensor memory and has not relinquished its permit to allocate. Does "
        "it keep the other CTAs on its SM from allocating?",
        ("shared", "owned"),
        "PTX ISA 9.4 (9.7.18.7.1) says that an allocation that is not .exclusive uses the permit, "
        "but does not own it. CUTLASS relinquishes it early 'so that the next CTA can rasterize'",
        "tcgen05.alloc of CTAs that share an SM",
    )
    pair_dealloc: str = _question(
        "Does tcgen05.dealloc of .cta_group::2 wait for that of the peer CTA?",
        ("waits", "at-once"),
        "PTX ISA 9.7.16.5 allows it to block or not to block. A kernel must be correct in either "
        "case, so it is worth running with both answers",
        "tcgen05.dealloc.cta_group::2",
    )
    flip_8b_lines: str = _question(
        "The swizzle 128B_ATOM_32B_FLIP_8B swaps the halves of every 16 bytes in alternate lines "
        "of 128 bytes. Are these the odd or the even lines?",
        ("odd", "even"),
        "the documentation of the CUDA driver API says only: every alternate row",
        "cp.async.bulk.tensor with that swizzle",
    )
    zero_terms: str = _question(
        "A sum is computed in a window below the largest exponent of its terms. Which exponent "
        "counts for a product that is zero, or for a D-in that is zero?",
        ("none", "-126", "-133"),
        "sf-tensor/tcgen05 counts none, and matches a B200. microsoft/MMA-Sim had -126, then -133 "
        "(-21 for an f16 D), like arXiv 2512.07004 and mma.sync on an H200 "
        "(docs/explanation/hopper.md). The answers differ only near the bottom of D's range",
        "tcgen05.mma of floats, except the fp4 kinds",
    )
    fp4_sums: str = _question(
        "At which exponent are the sums of mxf4 and mxf4nvf4 truncated: at that of products and "
        "scales, or at that of the scales alone?",
        ("products", "scales"),
        "sf-tensor/tcgen05 (products) was matched to a B200 in detail. microsoft/MMA-Sim (scales) "
        "is simpler, and its results rarely differ; see docs/explanation/numerics.md",
        "tcgen05.mma of the kinds mxf4 and mxf4nvf4",
    )
    scaled_n8: str = _question(
        "May N of the block-scaled kinds be an odd multiple of 8, if M = 128 and .cta_group::1?",
        ("runs", "illegal"),
        "PTX ISA 9.7.16.2.1 allows steps of 8. Older CUTLASS asserts steps of 16 with M = 128. On "
        "a B200, N = 8 was seen for f8f6f4 (CUTLASS's slice-k example, A in tensor memory), not "
        "for block-scaled kinds",
        "tcgen05.mma of the kinds mxf8f6f4, mxf4 and mxf4nvf4; gemv-padded-n with pad_n=8",
    )
    fp6_holder: str = _question(
        "Which six bits of a byte of tensor memory contain a 6-bit element of A?",
        ("6..1", "5..0"),
        "CUTLASS's CuTeDSL example cp_narrow_a_to_tmem_mma says bits 6..1, but tests only that cp "
        "and mma agree. For mma.sync it is bits 5..0",
        "tcgen05.cp .b6x16_p32, tcgen05.mma with A in tensor memory",
    )
    scale_input_d: str = _question(
        "Is D · 2^-s of scale-input-d rounded to D's type before the sum?",
        ("exact", "rounded"),
        "PTX ISA 9.7.16.10 does not say. They differ only if the scaling has subnormal results",
        "tcgen05.mma with scale-input-d",
    )
    rs_pair_bits: str = _question(
        "cvt.rs to four 8- or 6-bit floats uses 16 random bits for two operands. Does the first "
        "operand (a, e) use these bits in reverse order, or do both operands use them as they are?",
        ("reversed", "plain"),
        "PTX ISA 9.7.9.21 shows the bits in a figure only. FlashInfer (mamba/conversion.cuh) "
        "compared e4m3x4 with a B200 on 22,528 inputs and found the reverse order, and comments in "
        "torchao report the same from their own measurement. The other types share the figure",
        "cvt.rs to e4m3x4, e5m2x4, e3m2x4, e2m3x4",
    )
    rs_fp4_bits: str = _question(
        "cvt.rs.e2m1x4 uses the upper bytes of both halves of rbits for a and b, and the lower "
        "bytes for e and f. Does each operand use one byte (a and e the byte of the upper half, or "
        "of the lower half), or do both operands use all 16 bits, the first in reverse order?",
        ("upper-first", "lower-first", "reversed"),
        "PTX ISA 9.7.9.21 shows the bits in a figure only. Transformer Engine (ptx.cuh) says 8 "
        "bits per element, but not which 8 bits. In f16x2 and bf16x2 the order is upper-first",
        "cvt.rs.e2m1x4",
    )
    im2col_w_halo: str = _question(
        "Which pixels are the halo of .im2col::w and ::w::128: the next pixels of the walk over "
        "the image (possibly in the next row), or the pixels after the last pixel in its own row?",
        ("walk", "row"),
        "PTX ISA 5.5.5.3 says 'at the end of the image' and shows the halo in figures only. For "
        "walk: a filter tap s reads pixel i + s of the walk as row i + s of shared memory",
        "cp.async.bulk.tensor .im2col::w, .im2col::w::128",
    )
    im2col_w_row_end: str = _question(
        "In the w modes of im2col, what follows at the end of a row's range of W: the same row of "
        "the next image or fill?",
        ("next-image", "fill"),
        "PTX ISA 5.5.5 says that these modes are like im2col with constant D and H. Its example "
        "walks 128 pixels over rows of 9 pixels",
        "cp.async.bulk.tensor .im2col::w, .im2col::w::128",
    )
    im2col_w128_halo: str = _question(
        "Where does .im2col::w::128 put the halo rows: after all 128 pixels (row k of each group, "
        "then row k + 1), or after each group of 32 pixels?",
        ("behind", "after-each-group"),
        "PTX ISA 5.5.5.3 says 'loaded after every 32 elements' and shows the place in a figure "
        "only. For the first answer (behind): the mandatory swizzle and tcgen05.mma need 128 "
        "contiguous rows, and tcgen05.cp.4x256b reads the four rows of one halo step",
        "cp.async.bulk.tensor .im2col::w::128",
    )
    im2col_w_bytes: str = _question(
        "In the w modes of im2col, do the bytes of the halo count on the mbarrier?",
        ("all", "main"),
        "PTX ISA 9.7.9.27 says that the bytes copied count; it has no example",
        "complete_tx of .im2col::w, .im2col::w::128",
    )
    padded_bytes: str = _question(
        "For the types 16U4_ALIGN16B and 16U6_ALIGN16B, does complete_tx count only the bytes read "
        "from global memory, or also the gaps in shared memory?",
        ("payload", "padded"),
        "for fp4, DeepGEMM (sm100_fp8_fp4_gemm_1d1d) announces half of the bytes in shared memory, "
        "and Triton the packed bytes; both run on B200. CUTLASS counts its layout in shared memory",
        "complete_tx of padded types",
    )
    u6_store: str = _question(
        "A store of 16U6_ALIGN16B reads 12 of 16 bytes of shared memory. Are these the low six "
        "bits of each byte (.b6p2x16), or the first twelve bytes?",
        ("low-bits", "first-bytes"),
        "PTX ISA 5.5.1 and 9.7.9.27.1.1 name .b6p2x16 for the direction .global.shared::cta",
        "cp.async.bulk.tensor to global memory",
    )
    atom_64b_load: str = _question(
        "May a TMA load use the swizzle 128B_ATOM_64B?",
        ("allowed", "refused"),
        "PTX ISA 5.5.7 does not exclude it. A public simulator reports a trap on a B200",
        "cp.async.bulk.tensor to shared memory",
    )
    cta_order: str = _question(
        "Do the CTAs of a grid start in the order of their indices, with x varying fastest?",
        ("index", "any"),
        "no document promises an order, and CUDA's samples draw tickets instead of relying on one. "
        "Triton's and CUTLASS's stream-K kernels wait for CTAs of smaller index, which start first",
        "CTAs that wait for other CTAs, if not all CTAs are resident. With the answer any, the "
        "last CTA starts first, or a seed draws the order",
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
        """Returns these assumptions as an ordering profile changes them: "isa" sets `pipe_order` to
        "listed".
        """
        return replace(self, pipe_order="listed") if ordering == "isa" else self

    def changes(self) -> dict[str, str]:
        """The answers that differ from the default, by the name of the question."""
        values = {entry.name: getattr(self, entry.name) for entry in REGISTRY}
        return {e.name: values[e.name] for e in REGISTRY if values[e.name] != e.default}


@dataclass(frozen=True)
class Assumption:
    """One open question about the hardware: its possible answers, the default answer, and the
    evidence.
    """

    name: str
    default: str
    question: str
    alternatives: tuple[str, ...]
    evidence: str
    used_by: str


REGISTRY = tuple(Assumption(f.name, str(f.default), **f.metadata) for f in fields(Assumptions))
"""All open questions, from the fields of `Assumptions`."""

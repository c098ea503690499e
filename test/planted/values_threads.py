"""Value bugs in kernels of llvm and nvvm ops, behind the passes that make them."""

from __future__ import annotations

from .edits import clamped, constant, masked, results, sub, through, where
from .planted import Planted
from .values_tensors import FINITE, NAN_TO_ZERO, NO_SUBNORMALS

NVVM = "convert-tc-to-nvvm"
SUMS = r"llvm\.bitcast %\d+ : vector<\d+xi32> to vector<\d+xf32>"
"""The registers of a load from tensor memory."""
WORDS = r"llvm\.extractvalue %\d+\[\d+\] : !llvm\.struct<\(i32(?:, i32){15}\)>"
"""The same, one by one."""
FOUR = r"llvm\.extractvalue %\d+\[\d\] : !llvm\.struct<\({0}, {0}, {0}, {0}\)>"
"""The registers of ldmatrix (i32) and of mma.sync (f32)."""
SIMT = "convert-to-simt"
CODES = "convert-to-simt"
REPACK = "convert-to-simt"


def _words(op: str, value: int, of: str = "$x", to: str = "$y") -> tuple[str, str]:
    name = f"c{value}".replace("-", "m")
    return f"${name} = arith.constant {value} : i32", f"{to} = arith.{op} {of}, ${name} : i32"


def _scalar(*lines: str) -> tuple[str, ...]:
    """Lines about f32 where the type in the text is that of a struct."""
    return tuple(line.replace("$T", "f32").replace("$D(", "(") for line in lines)


TENSOR_CORE = [
    *(
        Planted(what, program, NVVM, results(SUMS, *lines))
        for program, what, lines in (
            ("matmul f16", "sums rounded toward zero", masked(0xFFFFE000 - (1 << 32))),
            ("matmul f16", "sums saturate", clamped("-65504.0", "65504.0")),
            ("matmul bf16", "sums through f16", through("f16")),
            ("matmul bf16", "NaN is 0", NAN_TO_ZERO),
            ("matmul bf16 f32", "inf is the largest number", FINITE),
            ("matmul bf16 f32", "subnormal sums flushed", NO_SUBNORMALS),
            ("matmul bf16 f32", "sums cut to 20 bits", masked(0xFFFFFFF0 - (1 << 32))),
            ("shift-reuse f16", "sums clamped to 2048", clamped("-2048.0", "2048.0")),
            ("shift-reuse f16", "sums below 0.5 are 0", where("olt", "0.5", "0.0")),
            ("smem-offset tf32", "sums through bf16", through("bf16")),
            ("smem-offset tf32", "NaN is 0", NAN_TO_ZERO),
            ("smem-offset e5m2", "sums through f16", through("f16")),
            ("implicit-gemm bf16", "tiny sums are 0", where("olt", "1.0e-20", "0.0")),
            ("padded mx", "subnormal sums flushed", NO_SUBNORMALS),
            ("padded mx", "sums clamped to 2^64", clamped("-1.8446744e19", "1.8446744e19")),
            ("padded nvfp4", "sums through f16", through("f16")),
        )
    ),
    *(
        Planted(what, "implicit-gemm i8", NVVM, results(WORDS, *lines))
        for what, lines in (
            ("sums of 16 bits, saturated",
             (*_words("minsi", 32767, to="$m"), *_words("maxsi", -32768, of="$m"))),
            ("sums of 24 bits", ("$e = arith.constant 8 : i32", "$m = arith.shli $x, $e : i32",
                                 "$y = arith.shrsi $m, $e : i32")),
            ("negative sums are 0", _words("maxsi", 0)),
        )
    ),
    # Formats in the instruction descriptor (PTX ISA 9.7.16.4.2).
    Planted("A is unsigned", "implicit-gemm i8", NVVM, constant(134808736, 134808736 - (1 << 7))),
    Planted("B is unsigned", "implicit-gemm i8", NVVM, constant(134808736, 134808736 - (1 << 10))),
    Planted("A is e5m2", "padded mx", NVVM, sub(
        r"(arith\.constant )(\d{9})( : i32)", lambda m: f"{m[1]}{int(m[2]) | 1 << 7}{m[3]}")),
    Planted("A is e3m2", "padded mx6", NVVM, sub(
        r"(arith\.constant )(\d{9})( : i32)", lambda m: f"{m[1]}{int(m[2]) + (1 << 7)}{m[3]}")),
]  # fmt: skip

WARPS = [
    *(
        Planted(what, program, NVVM, results(FOUR.format("i32"), *_words("andi", mask)))
        for program, what, mask in (
            ("warp tf32", "A cut to bf16", 0xFFFF0000 - (1 << 32)),
            ("warp tf32", "A cut to 9 bits", 0xFFFF8000 - (1 << 32)),
            ("warp bf16", "A without its last bit", 0xFFFEFFFE - (1 << 32)),
            ("warp e4m3", "A without its last bits", 0xFEFEFEFE - (1 << 32)),
        )
    ),
    *(
        Planted(what, program, NVVM, results(FOUR.format("f32"), *_scalar(*lines)))
        for program, what, lines in (
            ("warp bf16", "sums of bf16",
             ("$n = arith.truncf $x : f32 to bf16", "$y = arith.extf $n : bf16 to f32")),
            ("warp e4m3", "sums of f16",
             ("$n = arith.truncf $x : f32 to f16", "$y = arith.extf $n : f16 to f32")),
            ("warp tf32", "NaN is 0",
             ("$z = arith.constant 0.0 : f32", "$p = arith.cmpf uno, $x, $x : f32",
              "$y = arith.select $p, $z, $x : f32")),
            ("warp tf32", "sums clamped to 2^64",
             ("$l = arith.constant 1.8446744e19 : f32", "$h = arith.constant -1.8446744e19 : f32",
              "$m = arith.minimumf $x, $l : f32", "$y = arith.maximumf $m, $h : f32")),
        )
    ),
]  # fmt: skip

DECODED = [
    *(
        Planted(f"{what} (e2m1 table)", "simt nvfp4", SIMT, constant(old, new))
        for what, old, new in (
            ("6.0 is 5.5", 0x0C080604, 0x0B080604),
            ("4.0 is 3.5", 0x0C080604, 0x0C070604),
            ("1.5 is 2", 0x03020100, 0x04020100),
            ("0.5 is 0", 0x03020100, 0x03020000),
            ("-6.0 is -5.5", -185009412, -185009412 + (1 << 24)),
            ("-0.5 is -0", -33620224, -33620224 + (1 << 8)),
        )
    ),
    Planted("codes 4 to 7 as 0 to 3 in every eighth", "simt nvfp4", SIMT,
            constant(0x77777777, 0x37777777)),
    Planted("ue4m3 without its last bit", "simt nvfp4", SIMT, constant(0x7F7F, 0x7F7E)),
    Planted("ue4m3 with the sign", "simt nvfp4", SIMT, constant(0x7F7F, 0x7F3F)),
    Planted("ue8m0 NaN is inf", "simt mx", SIMT, constant(0x7FC00000, 0x7F800000)),
    Planted("ue8m0 NaN is 2^127", "simt mx", SIMT,
            sub(r"arith\.cmpi eq, (%\d+), %c255_i32", r"arith.cmpi ugt, \1, %c255_i32")),
    Planted("ue8m0 odd codes one too low", "simt mx", SIMT, constant(128, 127)),
    Planted("ue8m0 of 7 bits", "simt mx", SIMT,
            sub(r"(= arith\.constant )255( : i32\n.* = arith\.andi)", r"\g<1>127\2")),
    Planted("ue8m0 halves of at most 2^63", "simt mx", SIMT, constant(0x7F800000, 0x5F800000)),
    *(
        Planted(what, "simt nvfp4 codes", CODES, constant(0x0F0F0F0F, mask))
        for what, mask in (("upper bits of a code kept", -1), ("signs lost", 0x07070707))
    ),
    Planted("padding channels of x are the last one", "implicit-gemm f16, 3 channels", REPACK,
            sub(r"(= arith\.constant )3( : i32\n\s*%\w+ = arith\.addi %\w+, %c3_i32_\w+ : i32)",
                r"\g<1>2\2", 1)),
    Planted("padding channels of x are NaN", "implicit-gemm f16, 3 channels", REPACK,
            sub(r"((?:%c0_i16 = arith\.constant 0 [\s\S]*?){3}%c0_i16 = arith\.constant )0 ",
                r"\g<1>32256 ", 1)),
]  # fmt: skip

BUGS = [*TENSOR_CORE, *WARPS, *DECODED]

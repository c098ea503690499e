"""Bugs that show only at ties, limits, ends of blocks, edges of groups, and in the largest sums."""

from __future__ import annotations

from .edits import number, results, sub, where
from .planted import PTX, Planted

TILED, THREADS, QUANTISED = "tile-gemm", "convert-tc-to-nvvm", "convert-to-simt"
SIMT, CONV = "convert-to-simt", "tile-conv-implicit-gemm"

TIES = [
    Planted(what, program, TILED, results('"tc.tmem_ld"', *where("oeq", at, instead)))
    for program, what, at, instead in (
        ("gemm e4m3", "the tie 464 is NaN", "464.0", "480.0"),
        ("gemm e4m3", "the tie of the smallest number and 0 is the number", "0.0009765625",
         "0.001953125"),
        ("gemm e4m3", "the tie 1.0625 is 1.125", "1.0625", "1.125"),
        ("gemm e4m3", "the tie 31 is 30", "31.0", "30.0"),
        ("gemm e5m2", "the tie 61440 is 57344", "61440.0", "57344.0"),
        ("gemm e5m2", "the tie 1.125 is 1.25", "1.125", "1.25"),
        ("gemm f16", "the tie 65520 is 65504", "65520.0", "65504.0"),
        ("gemm f16", "beyond 65504 is infinite", "65512.0", "0x7F800000"),
        ("gemm f16", "the tie 2^-25 is 2^-24", "2.98023223876953125e-08", "5.9604644775390625e-08"),
        ("gemm f16", "the tie 3 * 2^-25 is 2^-24", "8.94069671630859375e-08",
         "5.9604644775390625e-08"),
        ("gemm bf16", "the tie with infinity is the largest number", "0x7F7F8000", "0x7F7F0000"),
        ("gemm bf16", "the tie 1 + 2^-8 is 1 + 2^-7", "1.00390625", "1.0078125"),
        ("gemm bf16", "the tie 2 - 2^-8 is below 2", "1.99609375", "1.9921875"),
    )
]  # fmt: skip
TIES += [
    Planted("the tie 464 is NaN", "gemm e4m3, sm_90a", TILED,
            sub(r"(%\d+) = arith\.truncf (%arg\d+) : f32 to f8E4M3FN",
                r"%tie = arith.constant 464.0 : f32\n%over = arith.constant 480.0 : f32\n"
                r"%is = arith.cmpf oeq, \2, %tie : f32\n"
                r"%x = arith.select %is, %over, \2 : f32\n"
                r"\1 = arith.truncf %x : f32 to f8E4M3FN")),
]  # fmt: skip
CLAMPS = [
    Planted("-127 is -128", "gemm clamped", TILED, sub(r"-1\.27\d*e\+02", "-1.280000e+02")),
    Planted("126.5 is clamped to 126", "gemm clamped", TILED,
            results("arith.minimumf", *where("oeq", "127.0", "126.0"))),
    Planted("clamped to 127.25", "gemm clamped", TILED,
            sub(r"dense<1\.27\d*e\+02>", "dense<127.25>")),
    Planted("no clamp at -128", "quantise to i8", SIMT,
            sub(r"arith\.cmpf ult, (%\d+), %cst_2", r"arith.cmpf ult, \1, %cst")),
    Planted("-100 for -128", "quantise to i8", SIMT,
            sub(r"(arith\.select %\d+, )%cst_2", r"\1%cst")),
    Planted("127.5 is 127", "quantise to i8", SIMT,
            sub(r"cvt\.rni\.f32\.f32", "cvt.rzi.f32.f32")),
    Planted("halves away from zero", "quantise to i8", SIMT,
            sub(r"( *)(%\d+) = arith\.mulf (%\d+), %cst : f32",
                r"\1%up = arith.constant 1.0000001 : f32\n\1%m = arith.mulf \3, %cst : f32\n"
                r"\1\2 = arith.mulf %m, %up : f32")),
    Planted("the tie 464 is 480", "to e4m3", PTX,
            sub(r"(\t)(cvt\.rn\S*e4m3x2\.f32 \t?%rs\d+, %?\w+, (%r\d+);)",
                r"\1mul.rn.f32 \3, \3, 0f3F800001;\n\1\2")),
]  # fmt: skip
AWAY = sub(
    r"(cvt\.rn\.satfinite\.e2m1x2\.f32 a, %\w+, )(%\w+);", r"mul.rn.f32 \2, \2, 0f3F800001; \1\2;"
)
ABS = r"and\.b32 (\t%r\d+, %r\d+), 2147483647;"
BLOCKS = [
    *(
        Planted("ties of e2m1 away from zero in one of eight", program, PTX, AWAY)
        for program in ("gemm to nvfp4", "gemm to mxfp4", "quantise to nvfp4", "quantise to mxfp4")
    ),
    *(
        Planted("rceil rounds up at 448 * 2^n", program, PTX,
                sub(r"(add\.s32 \t%r\d+, %r\d+, )2097151;", r"\g<1>2097152;"))
        for program in ("gemm to mxfp8", "gemm to mxfp8, sm_90a", "quantise to mxfp8")
    ),
    Planted("rceil does not round up just above 448 * 2^n", "quantise to mxfp8", PTX,
            sub(r"(add\.s32 \t%r\d+, %r\d+, )2097151;", r"\g<1>2097024;")),
    *(
        Planted(f"the {which} element enters amax with its sign", "quantise to mxfp4", PTX,
                sub(ABS + rest, r"and.b32 \1, -1;", 1))
        for which, rest in (("first", ""), ("last", rf"(?![\s\S]*{ABS})"))
    ),
    *(
        Planted("an element of 32 enters amax with its sign", program, PTX,
                sub(r"abs\.f32 (\t%r\d+, %r\d+);", r"mov.b32 \1;", 1))
        for program in ("gemm to mxfp4", "gemm to mxfp8", "gemm to mxfp8, sm_90a")
    ),
    Planted("an element of 16 enters amax with its sign", "gemm to nvfp4", PTX,
            sub(r"abs\.f32 (\t%r\d+, %r\d+);", r"mov.b32 \1;", 1)),
    *(
        Planted("ties of ue4m3 scales upward", program, PTX,
                sub(r"(div\.rn\.f32 \t(%r\d+), %r\d+, 0f40C00000;)",
                    r"\1 mul.rn.f32 \2, \2, 0f3F800001;"))
        for program in ("gemm to nvfp4", "quantise to nvfp4")
    ),
    Planted("a subnormal global scale is 0", "padded nvfp4", "tile-gemv-padded-n",
            results(r'"tc.load_rows"\(%arg4', *where("olt", "1.17549435e-38", "0.0"))),
]  # fmt: skip
WHOLE = [
    Planted("sums through f32", "implicit-gemm i8, 128 channels", CONV,
            results('"tc.tmem_ld"', "$f = arith.sitofp $x : $T to $E(f32)",
                    "$y = arith.fptosi $f : $E(f32) to $T")),
    Planted("sums clamped to 2^24", "implicit-gemm i8, 128 channels", CONV,
            results('"tc.tmem_ld"', number("c", "16777216"), "$y = arith.minsi $x, $c : $T")),
    Planted("sums from -2^24", "implicit-gemm i8, 128 channels", CONV,
            results('"tc.tmem_ld"', number("c", "-16777216"), "$y = arith.maxsi $x, $c : $T")),
    Planted("starts at -65504, not -inf", "max pool", SIMT, sub("0xFF800000", "-65504.0")),
    Planted("starts at the lowest number, not -inf", "max pool", SIMT,
            sub("0xFF800000", "-3.40282347e+38")),
]  # fmt: skip
GROUPS = [
    bug
    for program in ("grouped", "grouped, masked")
    for bug in (
        Planted("row 127 of a tile is lost", program, TILED,
                sub(r"(%\d+) = arith\.cmpi ult, (%\d+), (%\d+) : vector<32xindex>",
                    r"%last = arith.constant dense<127> : vector<32xindex>\n"
                    r"%in = arith.cmpi ult, \2, \3 : vector<32xindex>\n"
                    r"%not = arith.cmpi ne, \2, %last : vector<32xindex>\n"
                    r"\1 = arith.andi %in, %not : vector<32xi1>")),
        Planted("127 rows are 126", program, TILED,
                sub(r"(%\d+) = arith\.addi (%\d+#1), (%\d+#2) : index",
                    r"%c127_ = arith.constant 127 : index\n%c126_ = arith.constant 126 : index\n"
                    r"%is = arith.cmpi eq, \3, %c127_ : index\n"
                    r"%rows = arith.select %is, %c126_, \3 : index\n"
                    r"\1 = arith.addi \2, %rows : index")),
        Planted("sizes are bytes", program, THREADS,
                sub(r"(%\d+) = llvm\.load (%\d+) \{alignment = 4 : i64\} : !llvm\.ptr<1> -> i32",
                    r"%word = llvm.load \2 {alignment = 4 : i64} : !llvm.ptr<1> -> i32\n"
                    r"%byte = arith.constant 255 : i32\n\1 = arith.andi %word, %byte : i32")),
    )
]  # fmt: skip
GROUPS += [
    Planted(
        "the map of A is a row short",
        "grouped",
        TILED,
        sub(r"dims = array<i64: 72, 420>", "dims = array<i64: 72, 419>"),
    ),
]
BUGS = [*TIES, *CLAMPS, *BLOCKS, *WHOLE, *GROUPS]

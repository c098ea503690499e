"""vprintf, __assertfail and %envreg1/2: what the driver provides to a kernel.

The expected lines of `LINES` are what an H200 printed for the same calls of printf in CUDA C++.
`test/corpus` has kernels that nvcc made: cuda_printf, cuda_assert_holds, cuda_cg_grid_sync.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from corpus.program import find

from tcir.machine.memory.heap import Heap
from tcir.run import RunReport, Uninitialized, run_ptx

TEXTS, VALUES = 4096, 8192

PRINT = """.version 8.8
.target sm_100a
.address_size 64
.extern .func (.param .b32 retval) vprintf (.param .b64 format, .param .b64 arguments);
.visible .entry k(.param .u64 memory, .param .u64 out)
{
  .reg .b64 %m, %out, %d; .reg .b32 %r, %t; .reg .pred %p;
  .local .align 8 .b8 pack[SIZE]; .reg .b64 %l, %g;
  ld.param.u64 %m, [memory]; ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, THREADS;
  mov.u64 %l, pack; cvta.local.u64 %g, %l;
STORES
  { .param .b64 param0; .param .b64 param1; .param .b32 retval0;
  st.param.b64 [param0], FORMAT; st.param.b64 [param1], %g;
  @%p call.uni (retval0), vprintf, (param0, param1);
  @%p ld.param.b32 %r, [retval0]; }
  mul.wide.u32 %d, %t, 4; add.s64 %d, %out, %d;
  @%p st.global.u32 [%d], %r;
  ret;
}
"""


def printed(text: str | None, *values: Any, threads: int = 1) -> tuple[RunReport, list[int]]:
    """Calls vprintf; a value is an int, a float, bytes (a string), None (a null pointer), or
    (value,) of 64 bits. Strings lie in global memory, arguments in local memory."""
    memory, out = np.zeros(16384, np.uint8), np.full(32, -9, np.int32)
    strings = [
        text.encode() if text is not None else b"",
        *(v for v in values if isinstance(v, bytes)),
    ]
    at = {}
    place = 0
    for string in strings:
        memory[place : place + len(string)] = np.frombuffer(string, np.uint8)
        at[string], place = place, place + len(string) + 1
    stores, offset = [], 0
    for value in values:
        if isinstance(value, bytes):
            stores.append(f"  add.s64 %d, %m, {at[value]};")
            register, size = "%d", 8
        else:
            code = "<i" if isinstance(value, int) else "<d" if isinstance(value, float) else "<q"
            number = 0 if value is None else value[0] if isinstance(value, tuple) else value
            code = "<I" if code == "<i" and number > 0x7FFFFFFF else code
            raw = struct.pack(code, number)
            register, size = str(int.from_bytes(raw, "little")), len(raw)
        offset = -(-offset // size) * size
        stores.append(f"  st.local.b{8 * size} [pack+{offset}], {register};")
        offset += size
    ptx = PRINT.replace("STORES", "\n".join(stores)).replace("SIZE", str(offset + 8))
    ptx = ptx.replace("FORMAT", "0" if text is None else "%m").replace("THREADS", str(threads))
    report = run_ptx(ptx, grid=1, block=32, args=[memory, out])
    return report, out[:threads].tolist()


LINES: list[tuple[str, list[Any], str]] = [
    (
        "%d|%u|%5.2f|%s|%x|%lld|%%|%c|%-6d|%08.3e|%p|%5s|%.3s",
        [-1, 4000000001, 1.5, b"abc", 256, (-1000000000000,), 66, 1, 1.5e10, (16,), b"ab", b"text"],
        "-1|4000000001| 1.50|abc|100|-1000000000000|%|B|1     |1.500e+10|0x10|   ab|tex",
    ),
    (
        "[%5%] [%k] [%05d] [% d] [%-+5d] [%#o] [%#X] [%#x] [%.0f] [%#.0f] [%F] [%f] [%f] [%f] [%e]",
        [-3, 4, 5, 8, 255, 0, 2.5, 2.0, 1.5, math.inf, -math.inf, math.nan, 12345.678],
        "[%] [%k] [-0003] [ 4] [+5   ] [010] [0XFF] [0] [2] [2.] [1.500000] [inf] [-inf] [nan] "
        "[1.234568e+04]",
    ),
    (
        "[%s] [%c%c] [%A] [%a] [%a] [%10.3s] [%x] [%X] [%u] [%ld] [%li] [%hu]",
        [None, 65, 66, 0.1, 0.1, 0.0, b"abcdef", -1, -1, -1, (-1,), (5,), 70000],
        "[(null)] [AB] [0X1.999999999999AP-4] [0x1.999999999999ap-4] [0x0p+0] [       abc] "
        "[ffffffff] [FFFFFFFF] [4294967295] [-1] [5] [4464]",
    ),
    (
        "[%.5d] [%8.5d] [%-8.3d] [%+.2e] [%G] [%g] [%g] [%g] [%#g] [%p] [%20p] [%.2a] [%5c] "
        "[%-5c]|",
        [42, 42, 7, 0.0, 1e20, 1e5, 1e6, 100000.5, 1.0, None, (0xABC,), 1.999, 120, 121],
        "[00042] [   00042] [007     ] [+0.00e+00] [1E+20] [100000] [1e+06] [100000] [1.00000] "
        "[(nil)] [               0xabc] [0x2.00p+0] [    x] [y    ]|",
    ),
]


@pytest.mark.parametrize(("text", "values", "line"), LINES)
def test_what_a_gpu_prints(text: str, values: list[Any], line: str) -> None:
    report, _ = printed(text + "\n", *values)
    assert report.ok and not report.findings, str(report)
    assert report.output == line + "\n" == report.as_dict()["output"]


def test_width_and_precision_by_arguments() -> None:
    report, _ = printed("[%*d] [%-*d] [%.*f] [%*d]", 5, 1, 4, 2, 2, 1.239, -4, 7)
    assert report.output == "[    1] [2   ] [1.24] [7   ]"


def test_vprintf_returns_the_number_of_conversions() -> None:
    """As an H200: 2 of "%d %d", 0 without arguments, -1 without a format."""
    assert printed("%d %d%%", 1, 2)[1] == [2]
    assert printed("plain\n")[1] == [0]
    report, count = printed(None)
    assert (report.output, count) == ("", [-1])


def test_active_lanes_print_one_after_the_other() -> None:
    report, counts = printed("%d;", 7, threads=3)
    assert report.output == "7;7;7;" and counts == [1, 1, 1]


def test_a_size_that_device_code_does_not_have_is_a_warning() -> None:
    """An H200 prints 0 for the argument behind %hhd: the guide lists h, l and ll."""
    for text, values in (("%hhd", [300]), ("%zu", [(7,)])):
        report, _ = printed(text, *values)
        assert [(f.severity, f.code, f.second) for f in report.findings] == [
            ("warning", "printf-size", text)
        ]


def test_arguments_have_to_be_there() -> None:
    report, _ = printed("%d %d", 1)  # 8 bytes more are declared, and not written
    assert {f.code for f in report.findings} == {"undefined-read"}, str(report)
    report, _ = printed("%d" * 4000, 1)
    assert {e.code for e in report.errors} == {"out-of-bounds"}, str(report)


def test_output_is_kept_up_to_the_size_of_the_drivers_buffer() -> None:
    report, _ = printed("%*d", 600_000, 1, threads=3)
    assert (1 << 20) < len(report.output) < (1 << 20) + 100
    assert report.output.endswith("the rest is dropped]\n")


def test_a_kernel_of_nvcc_prints() -> None:
    y = np.zeros(2, np.int32)
    ptx = find("right/cuda_printf").text
    report = run_ptx(ptx, grid=2, block=32, args=[Uninitialized(y)])
    assert report.output == "block 0 of 2\nblock 1 of 2\n" and report.ok, str(report)


def test_a_failed_assert_names_file_line_function_thread_and_condition() -> None:
    x = np.arange(1, 33, dtype=np.int32)
    x[[5, 9]] = 0
    ptx = find("right/cuda_assert_holds").text
    report = run_ptx(ptx, grid=1, block=32, args=[x, Uninitialized(np.zeros(32, np.int32))])
    (error,) = report.errors
    line = (
        "cuda_assert_holds.cu:13: void divide(const int *, int *): block: [0,0,0], thread: "
        "[5,0,0] Assertion `x[threadIdx.x] != 0` failed."
    )
    assert error.code == "assertion" and line in str(error), str(report)
    assert report.output.count("Assertion") == 2 and "thread: [9,0,0]" in report.output


GRID = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b64 %out, %d; .reg .b32 %a, %b;
  ld.param.u64 %out, [out]; mov.u32 %a, %envreg1; mov.u32 %b, %envreg2; mov.b64 %d, {%b, %a};
  ld.global.u32 %a, [%d+4]; st.global.u32 [%out], %a; ret;
}
"""


def test_the_barrier_of_a_cooperative_launch_begins_with_zero() -> None:
    out = np.ones(1, np.uint32)
    report = run_ptx(GRID, grid=1, block=1, args=[out])
    assert report.ok and out[0] == 0, str(report)


HEAP = """.version 8.8
.target sm_100a
.address_size 64
.extern .func (.param .b64 retval) malloc (.param .b64 size);
.extern .func free (.param .b64 address);
.visible .entry k(.param .u64 out)
{
  .reg .b64 %out, %d, %m; .reg .b32 %t, %r; .reg .pred %p;
  ld.param.u64 %out, [out];
  mov.u32 %t, %tid.x; setp.ne.b64 %p, %out, 0;
  { .param .b64 param0; .param .b64 retval0;
  st.param.b64 [param0], SIZE;
  call.uni (retval0), malloc, (param0);
  ld.param.b64 %m, [retval0]; }
BODY
  mov.u32 %r, %ctaid.x; mad.lo.u32 %t, %r, 32, %t;
  mul.wide.u32 %d, %t, 4; add.s64 %d, %out, %d;
  ld.global.u32 %r, [%m+4];
  st.global.u32 [%d], %r;
END
  ret;
}
"""
FREE = "  { .param .b64 param0; st.param.b64 [param0], %m; call.uni free, (param0); }"
STORE = "  st.global.u32 [%m+4], %t;"


def of_the_heap(*body: str, end: str = "", size: int = 8, ctas: int = 1) -> tuple[RunReport, Any]:
    out = np.full(32 * ctas, -9, np.int32)
    text = HEAP.replace("SIZE", str(size)).replace("BODY", "\n".join(body)).replace("END", end)
    return run_ptx(text, grid=ctas, block=32, args=[out]), out


def test_each_thread_has_memory_of_its_own() -> None:
    report, out = of_the_heap(STORE, end=FREE, ctas=40)
    assert report.ok and not report.findings, str(report)
    assert out.tolist() == [*range(32)] * 40


@pytest.mark.parametrize(
    ("body", "end", "size", "code", "words"),
    [
        ((STORE, FREE), "", 8, "out-of-bounds", "its memory was freed"),
        ((STORE,), FREE + FREE, 8, "invalid-free", "got memory that was freed before"),
        ((STORE, "add.s64 %m, %m, 4;", FREE), "", 8, "invalid-free", "that malloc returned"),
        ((STORE,), "", 7, "out-of-bounds", "memory of the kernel's malloc"),
        ((), "", 8, "undefined-read", ""),
        ((STORE,), "", 9 << 20, "out-of-bounds", "got bytes 0x4..0x7"),
    ],
)
def test_wrong_uses_of_the_heap(
    body: tuple[str, ...], end: str, size: int, code: str, words: str
) -> None:
    report, _ = of_the_heap(*body, end=end, size=size)
    assert [each.code for each in (*report.errors, *report.findings)][:1] == [code], str(report)
    assert words in str(report)


def test_nothing_is_freed_at_address_0() -> None:
    report, out = of_the_heap(STORE, end="mov.b64 %m, 0;" + FREE)
    assert report.ok and out.tolist() == [*range(32)]


KEPT = """.version 8.8
.target sm_100a
.address_size 64
.extern .func (.param .b64 retval) malloc (.param .b64 size);
.extern .func free (.param .b64 address);
.visible .entry give(.param .u64 all)
{
  .reg .b64 %d, %m, %a; .reg .b32 %t, %r;
  ld.param.u64 %d, [all];
  { .param .b64 param0; .param .b64 retval0; st.param.b64 [param0], 8;
  call.uni (retval0), malloc, (param0);
  ld.param.b64 %m, [retval0]; }
  mov.u32 %t, %tid.x; mov.u32 %r, %ctaid.x; mad.lo.u32 %t, %r, 32, %t;
  st.global.u32 [%m], %t;
  mul.wide.u32 %a, %t, 8; add.s64 %d, %d, %a; st.global.u64 [%d], %m;
  ret;
}
.visible .entry take(.param .u64 all, .param .u64 out)
{
  .reg .b64 %d, %o, %m, %a; .reg .b32 %t, %r;
  ld.param.u64 %d, [all]; ld.param.u64 %o, [out];
  mov.u32 %t, %tid.x; mov.u32 %r, %ctaid.x; mad.lo.u32 %t, %r, 32, %t;
  mul.wide.u32 %a, %t, 8; add.s64 %d, %d, %a; ld.global.u64 %m, [%d];
  ld.global.u32 %r, [%m+0]; mul.wide.u32 %a, %t, 4; add.s64 %o, %o, %a; st.global.u32 [%o], %r;
  { .param .b64 param0; st.param.b64 [param0], %m; call.uni free, (param0); }
  ret;
}
"""


@pytest.mark.parametrize("how", [{}, {"jobs": 2}, {"order_seed": 3}, {"lockstep": False}])
def test_memory_lasts_until_it_is_freed(how: dict[str, Any]) -> None:
    heap, ctas = Heap(), 40
    blocks, out = np.zeros(32 * ctas, np.uint64), np.full(32 * ctas, -9, np.int32)

    def launch(entry: str, *args: np.ndarray, text: str = KEPT) -> RunReport:
        return run_ptx(text, entry=entry, grid=ctas, block=32, args=args, heap=heap, **how)

    for _ in range(2):
        assert launch("give", blocks).ok and len(heap.blocks) == 32 * ctas
        report = launch("take", blocks, out, text=KEPT.replace("%m+0", "%m+4"))
        assert {each.code for each in report.findings} == {"undefined-read"} and not heap.blocks
        report = launch("take", blocks, out)
        assert "its memory was freed" in str(report.errors[0])
        assert launch("give", blocks).ok
        report = launch("take", blocks, out)
        assert report.ok and out.tolist() == [*range(32 * ctas)] and not heap.blocks, str(report)


def test_every_global_address_outside_the_windows() -> None:
    """isspacep: also above the windows, where the host's arrays may be."""
    text = (
        KEPT[: KEPT.index(".extern")]
        + """
.visible .entry k(.param .u64 at, .param .u64 out)
{
  .reg .b64 %a, %o; .reg .b32 %r; .reg .pred %p;
  ld.param.u64 %a, [at]; ld.param.u64 %o, [out];
  isspacep.global %p, %a; selp.u32 %r, 1, 0, %p; st.global.u32 [%o], %r;
  ret;
}
"""
    )
    for address, found in ((0x7F01_0000_0004, 0), (0x7FFF_1234_5678, 1), (0x8000_0000_0000, 1)):
        out = np.full(1, 9, np.uint32)
        assert run_ptx(text, grid=1, block=1, args=[np.uint64(address), out]).ok
        assert out[0] == found

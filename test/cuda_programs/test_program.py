"""Whole CUDA programs, host code included: ``python -m tcir.cuda program.cu``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import orphans
from tiers import slow_but

from tcir.codegen import cuda

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
HISTOGRAM = ROOT / "examples" / "histogram.cu"
LAUNCHES = "tcir: {} launches executed in "


def run(
    *given: object, cwd: Path | None = None, timeout: int = 300
) -> subprocess.CompletedProcess[str]:
    """Ended, with what it wrote."""
    return subprocess.run(
        [sys.executable, "-m", "tcir.cuda", *map(str, given)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        cwd=cwd,
    )


@pytest.mark.parametrize("status", [pytest.param(0, marks=pytest.mark.slow), 7])
def test_what_programs_use(status: int) -> None:
    ended = run(PROGRAMS / "whole.cu", "--n", status)
    assert ended.returncode == status, ended.stderr
    said = f"after, 2 calls, no error, 3 arguments, {status}"
    assert ended.stdout.splitlines() == ["before", "block 0: 7", "block 1: 7", said]
    assert LAUNCHES.format(3) in ended.stderr and ", 0 with a result" in ended.stderr


def test_tensor_maps_of_the_driver() -> None:
    ended = run(PROGRAMS / "tma.cu")
    assert (ended.returncode, ended.stdout) == (0, "1 0\nright\n"), ended.stderr
    assert "error: cuTensorMapEncode: box" in ended.stderr and "257" in ended.stderr


DEVICE = [
    ["simulated B200, 10.0, 148 SMs, 227 KB, 1 1 1 126, other 101",
     "1024 bytes, 256 threads, sm_100, cluster of 2; 1184 x 256, 2, 0"],
    ["simulated H100, 9.0, 4 SMs, 227 KB, 1 1 1 50, other 101",
     "1024 bytes, 256 threads, sm_90, cluster of 2; 32 x 256, 2, 0"],
]  # fmt: skip
WORK = ["stream", "3 1 256, 0101, 2 1 0, invalid argument, no error"]


def test_what_programs_ask_the_device_for() -> None:
    """A function of cuSOLVER is linked, and not called."""
    ended = run(PROGRAMS / "device.cu")
    assert (ended.returncode, ended.stdout.splitlines()) == (0, [*DEVICE[0], *WORK]), ended.stderr
    assert LAUNCHES.format(3) in ended.stderr and ", 0 with a result" in ended.stderr


@pytest.mark.slow
def test_an_h100_with_four_sms_and_a_function_that_nobody_has() -> None:
    ended = run("--target", "sm_90a", "--sms", 4, PROGRAMS / "device.cu", "missing")
    assert (ended.returncode, ended.stdout.splitlines()) == (2, [*DEVICE[1], *WORK]), ended.stderr
    words = "device.cu: the simulated CUDA runtime has no function cusolverDnCreate"
    assert words in ended.stderr and "Traceback" not in ended.stderr


def test_names_of_libraries_that_a_program_defines() -> None:
    """Variables with the names of the driver's functions, and functions of others."""
    ended = run(PROGRAMS / "own_names.cu")
    assert (ended.returncode, ended.stdout) == (0, "13000 22 1 999\n"), ended.stderr


@pytest.mark.parametrize("how", slow_but({""}, ("", "limit", "freed")))
def test_memory_of_malloc_lasts_beyond_the_launch(how: str) -> None:
    ended = run(PROGRAMS / "heap.cu", *[how] * bool(how))
    given = ["no error", "2 of 2"] if how == "limit" else ["1 of 2"]
    assert ended.stdout.splitlines() == [
        *given,
        "too late: invalid argument",
        *["sum 992, then 0"] * 2,
        "copy: invalid argument",
        "free: invalid argument",
    ]
    assert ended.returncode == (how == "freed"), ended.stderr
    assert ("its memory was freed" in ended.stderr) == (how == "freed")


@pytest.mark.slow
def test_headers_of_cccl() -> None:
    """CUB, Thrust, cooperative groups, libcu++, cuda_fp16.h: of tcir's dependencies alone."""
    ended = run(PROGRAMS / "cccl.cu")
    assert (ended.returncode, ended.stdout) == (0, "32 192496 3000\n"), ended.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("name", "status"),
    [
        *((f"cub_{name}", 0) for name in ("block", "device", "sort")),
        *((f"thrust_{name}", 0) for name in ("select", "sort", "sum")),
        ("thrust_sets", 1),
    ],
)
def test_algorithms_of_cccl(name: str, status: int) -> None:
    """Each program compares algorithms with the host's; a set's reads what no thread has loaded."""
    program = PROGRAMS / "cccl" / f"{name}.cu"
    ended = run("--sms", 4, program, timeout=1800)
    compared = re.findall(r'check\(\s*"([^"]+)"', program.read_text())
    assert (ended.returncode, ended.stdout.splitlines()) == (
        status,
        [f"{c} right" for c in compared],
    )
    assert ("undefined-register" in ended.stderr) == status


@pytest.mark.slow
def test_the_user_s_standard_of_cpp(tmp_path: Path) -> None:
    text = "template <class T> concept Four = sizeof(T) == 4; static_assert(Four<int>);"
    (tmp_path / "p.cu").write_text(f"{text} int main() {{}}\n")
    assert run("--nvcc=-std=c++20", "p.cu", cwd=tmp_path).returncode == 0
    assert run("p.cu", cwd=tmp_path).returncode == 3


@pytest.mark.parametrize("freed", [[], pytest.param(["freed"], marks=pytest.mark.slow)])
def test_an_illegal_act_is_the_error_of_all_later_calls(freed: list[str]) -> None:
    ended = run(PROGRAMS / "outside.cu", *freed)
    assert ended.stdout == "719 719 719 cudaErrorLaunchFailure\n", ended.stderr
    assert ended.returncode == 1  # although the program ends well
    assert "error: _Z4fillPi: out-of-bounds" in ended.stderr and "(outside.cu:4)" in ended.stderr


def test_errors_that_a_program_can_go_on_from() -> None:
    ended = run(PROGRAMS / "launches.cu")
    assert ended.returncode == 1, ended.stderr  # although it knows of them
    assert ended.stdout.splitlines() == [
        "cudaErrorInvalidConfiguration",
        "cudaErrorInvalidValue",
        "cudaSuccess",
        "cudaErrorCooperativeLaunchTooLarge",
        "cudaSuccess",
    ]
    assert "error: _Z7nothingv: grid: expected at most 4736 CTAs of 64 threads" in ended.stderr
    assert "error: _Z7nothingv: block.x: expected 1..1024, got 2000" in ended.stderr


GRAPHS = [
    "capturing 1, calls 0, pinned 3; cudaStreamSynchronize(s): cudaErrorStreamCaptureUnsupported",
    "6 nodes, calls 2, pinned 23",
    "10007 10009 10007, calls 5, 1 root, update 0",
    "12 12 cudaFree(outside): cudaErrorInvalidValue",
    "cudaStreamEndCapture(u, &clone): cudaErrorStreamCaptureUnmatched",
    "1010101 10007, calls 6",
    "cudaGraphExecUpdate(other, others, &info): cudaErrorGraphExecUpdateFailure",
    "cudaGraphLaunch(memory, s): cudaErrorInvalidValue",
    "cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal): cudaErrorStreamCaptureUnsupported",
    "cudaStreamEndCapture(s, &clone): cudaErrorStreamCaptureUnmatched",
    "cudaGraphExecUpdate(other, graph, &info): cudaErrorGraphExecUpdateFailure",
]


@pytest.mark.parametrize("wrong", [[], ["--nvcc=-DWRONG"]])
def test_graphs(wrong: list[str]) -> None:
    """The wrong one depends on memory of a graph that nothing wrote."""
    ended = run(*wrong, PROGRAMS / "graphs.cu")
    assert ended.stdout.splitlines() == GRAPHS
    assert ended.returncode == len(wrong) == ended.stderr.count("undefined-read"), ended.stderr
    assert LAUNCHES.format(14 + len(wrong)) in ended.stderr


CONDITIONS = [
    "16 bytes, 13, 4, cudaErrorInvalidSymbol",
    "cudaErrorInvalidValue",
    "3 4 9",  # the loop ends when the counter, 3, -1 and 5 at first, is not above 0
    "1009 5009 7009 7009 8009 ",  # cases 0, 2, 1, none, 0: each set by the launch before
    "1 31 31 75 31 4",
]


@pytest.mark.parametrize("wrong", [[], pytest.param(["--nvcc=-DWRONG"], marks=pytest.mark.slow)])
def test_conditions_and_variables(wrong: list[str]) -> None:
    """Two threads of the wrong one set a condition."""
    ended = run(*wrong, PROGRAMS / "conditions.cu")
    assert (ended.stdout.splitlines(), ended.returncode) == (CONDITIONS, len(wrong)), ended.stderr
    assert ended.stderr.count("race: ") == len(wrong)


def test_memory_that_nobody_wrote() -> None:
    """The kernels of odd numbers depend on it; those of even ones do not."""
    ended = run(PROGRAMS / "unwritten.cu")
    found = re.findall(r"tcir: _Z\d+[a-z]+ILi(\d+)E.*: undefined-read: ", ended.stderr)
    assert {*map(int, found)} == {*range(1, 22, 2)}, ended.stderr
    assert ended.returncode == 1 and "error" not in ended.stderr


@pytest.mark.parametrize("wrong", [pytest.param([], marks=pytest.mark.slow), ["wrong"]])
def test_limits_of_the_runtime(wrong: list[str]) -> None:
    ended = run(PROGRAMS / "limits.cu", *wrong)
    assert ended.returncode == len(wrong), ended.stderr
    said = dict(line.split(": ") for line in ended.stdout.splitlines())
    assert len(said) == 17
    if not wrong:
        assert {*said.values()} == {"cudaSuccess"}
        return
    assert {name: error.removeprefix("cudaError") for name, error in said.items()} == {
        **dict.fromkeys(("48 KB", "227 KB", "asked for", "of another kernel", "48 KB with static",
                         "227 KB with static", "launch bounds"), "InvalidValue"),
        **dict.fromkeys(("grid.y", "threads", "threads of two axes", "block.z", "CTAs"),
                        "InvalidConfiguration"),
        "cluster of 8": "cudaSuccess", "grid group": "cudaSuccess",
        "cluster of 16": "InvalidClusterSize", "registers": "LaunchOutOfResources",
        "grid barrier": "LaunchFailure",
    }  # fmt: skip
    assert "(limits.cu:25)" in ended.stderr and "cudaLaunchCooperativeKernel" in ended.stderr


@pytest.mark.parametrize("wrong", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_samples_of_launches_that_are_too_large(wrong: bool) -> None:
    """The program's check fails, because most results are missing; memory that the others may have
    written is no undefined read. The last CTA is among those of the sample."""
    ended = run("--sample", 12, *["--nvcc=-DWRONG"] * wrong, PROGRAMS / "large.cu")
    assert (ended.returncode, ended.stdout) == (2 - wrong, "wrong\n"), ended.stderr
    ctas = (12, 4096, 1) if wrong else (24, 8192, 2)
    assert "sampled: {} of {} CTAs of {} launches were executed".format(*ctas) in ended.stderr
    assert ("of CTA (4095, 0, 0)" in ended.stderr) is wrong


@pytest.mark.slow
def test_a_program_with_few_ctas_is_no_sample() -> None:
    ended = run("--sample", 12, PROGRAMS / "whole.cu", "--n", 7)
    assert ended.returncode == 7 and "sampled" not in ended.stderr, ended.stderr


@pytest.mark.slow
def test_a_barrier_that_is_missing(tmp_path: Path) -> None:
    text = HISTOGRAM.read_text()
    (tmp_path / "racy.cu").write_text(text.replace("  __syncthreads();\n  for", "  for"))
    ended = run("racy.cu", 3000, cwd=tmp_path)
    assert ended.returncode == 1
    assert "race: " in ended.stderr and "(racy.cu:" in ended.stderr
    right = run(HISTOGRAM, 3000)
    assert (right.returncode, right.stdout) == (0, "3000 bytes counted, right\n"), right.stderr


def test_orders_that_give_other_results(tmp_path: Path) -> None:
    """Atomics of warps, so there is no race: which one comes first is open."""
    (tmp_path / "first.cu").write_text(
        "__device__ int place;\n"
        "__global__ void first(int* order) { order[atomicAdd(&place, 1)] = threadIdx.x; }\n"
        "int main() { int* order; cudaMalloc(&order, 512); first<<<1, 128>>>(order); }\n"
    )
    ended = run("--order-seeds", 3, "first.cu", cwd=tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert "_Z5firstPi: the result differs with --order-seed" in ended.stderr
    assert "out-of-bounds" not in ended.stderr  # the variable begins each order anew


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("__global__ void k() {}\n", "expected a program with main(), got none"),
        ("int main() { what(); }\n", 'identifier "what" is undefined'),
        ("int mine(); int main() { return mine(); }\n", "undefined symbol: _Z4minev"),
    ],
)
def test_what_cannot_be_run(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(text)
    ended = run("p.cu", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert words in ended.stderr and "Traceback" not in ended.stderr


def test_a_file_that_is_not_there_and_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("nowhere.cu").stderr == "error: nowhere.cu: no such file\n"
    monkeypatch.setenv("CC", "false")
    (tmp_path / "p.cu").write_text("int main() {}\n")
    ended = run(tmp_path / "p.cu")
    assert ended.returncode == 2 and ended.stderr.startswith("error: false driver.c:")


@pytest.mark.slow
def test_two_files_and_flags_of_nvcc(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(
        "#include <cstdio>\nvoid launch();\nint main() { launch(); puts(WORD); }\n"
    )
    (tmp_path / "b.cu").write_text(
        '#include <cstdio>\n__global__ void k() { printf("in b\\n"); }\n'
        "void launch() { k<<<1, 1>>>(); }\n"
    )
    ended = run("""--nvcc=b.cu -DWORD=\\"well\\" """, "a.cu", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "in b\nwell\n"), ended.stderr


def test_device_functions_of_another_file(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(
        "extern __device__ int twice(int x);\n__global__ void k(int *p) { *p = twice(1); }\n"
        "int main() { int *p; cudaMalloc(&p, 4); k<<<1, 1>>>(p); }\n"
    )
    (tmp_path / "b.cu").write_text("__device__ int twice(int x) { return 2 * x; }\n")
    ended = run("--nvcc=-rdc=true b.cu", "a.cu", cwd=tmp_path)
    assert ended.returncode == 2
    assert "is linked as machine code, which is not executed: include the files" in ended.stderr


@pytest.mark.parametrize("flags", [[], ["--nvcc=-rdc=true"]])
def test_launches_from_kernels(flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(
        "__global__ void child() {}\n__global__ void parent() { child<<<1, 1>>>(); }\n"
        "int main() { parent<<<1, 1>>>(); }\n"
    )
    ended = run(*flags, "p.cu", cwd=tmp_path)
    assert ended.returncode == (2 if flags else 3)
    assert "launches from kernels are made by cudadevrt" in ended.stderr


def test_a_kernel_that_waits_for_the_host(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(
        "#include <cstdio>\n__global__ void wait(volatile int *flag) { while (!*flag); }\n"
        "int main() { int *flag; cudaMallocManaged(&flag, 4), *flag = 0;\n"
        "  wait<<<1, 32>>>(flag), *flag = 1;\n"
        "  puts(cudaGetErrorName(cudaDeviceSynchronize())); }\n"
    )
    ended = run("p.cu", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (1, "cudaErrorLaunchFailure\n")
    assert "deadlock" in ended.stderr and "nothing of the host" in ended.stderr


def test_more_orders_than_anybody_waits_for() -> None:
    ended = run("--order-seeds", "10001", HISTOGRAM)
    assert "--order-seeds: expected an integer of 0 to 10000, got '10001'" in ended.stderr


def test_a_trace_where_nothing_can_be() -> None:
    """Said before the program runs."""
    ended = run("--trace", "/no/such/trace", HISTOGRAM)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert (
        ended.stderr == "error: cannot write '/no/such/trace': there is no directory '/no/such'\n"
    )


@pytest.mark.slow
def test_more_memory_than_there_is(tmp_path: Path) -> None:
    (tmp_path / "much.cu").write_text(
        "#include <cstdio>\nint main() { void *p; size_t n = 1;\n"
        "  for (size_t n : {~(size_t)0, ~(size_t)0 >> 1, (size_t)1 << 50, (size_t)64})\n"
        "    puts(cudaGetErrorString(cudaMalloc(&p, n))); }\n"
    )
    ended = run("much.cu", cwd=tmp_path)
    assert ended.stdout.splitlines() == ["out of memory"] * 3 + ["no error"], ended.stderr


def test_sigterm_ends_nvcc_too(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "tcir.cuda", HISTOGRAM],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    ) as process:
        while not list((tmp_path / "temporary").rglob("tmpxft*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (143, "error: ended by SIGTERM\n")
    assert orphans(process.pid) == 0 and not list((tmp_path / "temporary").iterdir())


def test_a_signal_while_nvcc_begins_ends_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    class Interrupted(subprocess.Popen[str]):
        def __init__(self, *words: Any, **named: Any) -> None:
            super().__init__(*words, **named)
            begun.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    (tmp_path / "nvcc").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "nvcc").chmod(0o755)
    monkeypatch.setattr(cuda, "find_tool", lambda name: str(tmp_path / name))
    monkeypatch.setattr(cuda.subprocess, "Popen", Interrupted)
    # A shell's background job ignores SIGINT, and so would this process.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            cuda.compile_cuda(HISTOGRAM, "sm_100a")
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ProcessLookupError):
        os.killpg(begun[0], signal.SIGTERM)


@pytest.mark.parametrize("where", slow_but(["kernel"], ["kernel", "host"]))
def test_ctrl_c_ends_it_at_once(where: str, tmp_path: Path) -> None:
    """Also while the host computes, and nothing stays in the folder of temporary files."""
    text = (
        "#include <cstdio>\n"
        "__global__ void endless(volatile int *p)\n"
        "{ for (int i = 0; i < 1 << 30; i++) *p = i; }\n"
        "int main() { int *p; cudaMalloc(&p, 4); cudaMemset(p, 0, 4);\n"
        '  puts("ready"); fflush(stdout);\n'
        f"  {'endless<<<1, 32>>>(p);' * (where == 'kernel')}\n"
        "  for (volatile int i = 0;; i++) {} }\n"
    )
    (tmp_path / "endless.cu").write_text(text)
    (tmp_path / "temporary").mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "tcir.cuda", "endless.cu"],
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "error: interrupted\n")
    assert not list((tmp_path / "temporary").iterdir())

"""A compiled function that puts a sequence of launches on a stream in one call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

STEP = ctypes.c_void_p * 3
"""A launch: the addresses of a CUlaunchConfig, a CUfunction, and the parameters' addresses; or a
CUDA graph: a CUgraphExec, a CUstream, and 0."""
_TEXT = """
define i64 @tcir_walk(ptr %launch, ptr %replay, ptr %push, ptr %pop, ptr %context,
                      ptr %steps, i64 %count) {
entry:
  %popped = alloca ptr
  %pushed = call i32 %push(ptr %context)
  %active = icmp eq i32 %pushed, 0
  br i1 %active, label %head, label %rejected
rejected:
  %early = zext i32 %pushed to i64
  %outside = or i64 %early, -4294967296
  ret i64 %outside
head:
  %n = phi i64 [ 0, %entry ], [ %next, %done ]
  %more = icmp ult i64 %n, %count
  br i1 %more, label %step, label %end
step:
  %config_at = getelementptr [3 x ptr], ptr %steps, i64 %n, i64 0
  %function_at = getelementptr [3 x ptr], ptr %steps, i64 %n, i64 1
  %parameters_at = getelementptr [3 x ptr], ptr %steps, i64 %n, i64 2
  %config = load ptr, ptr %config_at
  %function = load ptr, ptr %function_at
  %parameters = load ptr, ptr %parameters_at
  %graph = icmp eq ptr %parameters, null
  br i1 %graph, label %replayed, label %launched
replayed:
  %of_graph = call i32 %replay(ptr %config, ptr %function)
  br label %done
launched:
  %of_launch = call i32 %launch(ptr %config, ptr %function, ptr %parameters, ptr null)
  br label %done
done:
  %status = phi i32 [ %of_graph, %replayed ], [ %of_launch, %launched ]
  %next = add i64 %n, 1
  %good = icmp eq i32 %status, 0
  br i1 %good, label %head, label %end
end:
  %code = phi i32 [ 0, %head ], [ %status, %done ]
  %ignored = call i32 %pop(ptr %popped)
  %low = zext i32 %code to i64
  %high = shl i64 %n, 32
  %both = or i64 %high, %low
  ret i64 %both
}
"""


@cache
def walk() -> Callable[..., int]:
    """The compiled function. Arguments: the addresses of cuLaunchKernelEx, cuGraphLaunch,
    cuCtxPushCurrent and cuCtxPopCurrent, a context, the address of an array of `STEP`, and its
    length.

    It returns a CUresult in bits 31..0, and in bits 63..32 the number of the step at which it
    ended, or -1 if the context was rejected.
    """
    from tcir.machine.jit import native  # llvmlite: not for those who only import

    native.link_texts(Path(__file__), {"tcir_walk": _TEXT})
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 6, ctypes.c_int64)
    made: Callable[..., int] = kind(native.address("tcir_walk"))
    return made

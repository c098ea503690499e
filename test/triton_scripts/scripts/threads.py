"""Tensors and launches of other threads, as of the first one; ``outside``: one is illegal."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import torch
import triton
import triton.language as tl


@triton.jit
def twice(x, y, n, OUTSIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n + OUTSIDE)


def work(n: int) -> int:
    x = torch.arange(n, device="cuda", dtype=torch.float32)
    y = torch.empty(n, device="cuda")
    assert y.is_cuda and y.cuda() is y
    twice[(triton.cdiv(n, 64),)](x, y, n, sys.argv[-1] == "outside", BLOCK=64)
    torch.cuda.synchronize()
    assert torch.equal(y, 2 * x)
    done.append(n)
    return n


class Worker(threading.Thread):
    def run(self) -> None:
        work(70)


done: list[int] = []
threads = [threading.Thread(target=work, args=(33,)), Worker()]
for each in threads:
    each.start()
for each in threads:
    each.join()
if sys.argv[-1] != "outside":
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, (5, 200))) == [5, 200]
print(sorted(done))

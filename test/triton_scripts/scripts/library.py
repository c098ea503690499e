"""Asks for what libraries of Triton kernels ask torch for on a GPU."""

import numpy as np
import torch
import triton
import triton.language as tl
from torch.profiler import ProfilerActivity, profile


@triton.jit
def double_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


@triton.autotune(
    [
        triton.Config({"B": 256, "K": 256}, num_stages=4),
        triton.Config({"B": 16, "K": 16}),
        triton.Config({"B": 32, "K": 16}),
    ],
    key=["n"],
)
@triton.jit
def product_kernel(a, b, c, n, B: tl.constexpr, K: tl.constexpr):
    row, column = tl.arange(0, B), tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, n, K):
        depth = k + tl.arange(0, K)
        total += tl.dot(
            tl.load(a + row[:, None] * n + depth[None, :]),
            tl.load(b + depth[:, None] * n + column[None, :]),
        )
    tl.store(c + row[:, None] * n + column[None, :], total)


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        assert x.is_cuda
        out = torch.empty_like(x)
        with torch.cuda.device(x.device), torch.cuda.stream(torch.cuda.Stream()):
            double_kernel[(1,)](x, out, x.numel(), BLOCK=128)
        return out

    @staticmethod
    def backward(ctx, gradient):
        assert gradient.is_cuda
        out = torch.empty_like(gradient)
        with torch.cuda.device_of(gradient), torch.cuda.Stream() as stream:
            double_kernel[(1,)](gradient.contiguous(), out, gradient.numel(), BLOCK=128)
        assert stream.record_event().query() and stream.query()
        return out


@torch.compile(fullgraph=True, dynamic=True)
def softcap(x):
    return torch.tanh(x / 30) * 30


class Part:
    """A typed pointer, which Triton takes like a tensor."""

    def __init__(self, tensor, first):
        self.dtype, self.address = tensor.dtype, tensor[first:].data_ptr()

    def data_ptr(self):
        return self.address


x = torch.arange(100.0, device="cuda", requires_grad=True)
torch.cuda.cudart().cudaProfilerStart()
with (
    torch.cuda.profiler.profile(),
    profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]),
):
    y = Double.apply(x)
y.sum().backward()
assert torch.equal(y, 2 * x) and (x.grad == 2).all()

assert softcap(y).is_cuda and torch.compile(softcap)(y).allclose(30 * (y / 30).tanh())

whole, twice = torch.arange(64.0, device="cuda"), torch.zeros(32, device="cuda")
double_kernel[(1,)](Part(whole, 16), twice, 32, BLOCK=128)
assert torch.equal(twice, 2 * whole[16:48])
double_kernel[(1,)](triton.reinterpret(whole, tl.float32), twice, 32, BLOCK=128)
assert torch.equal(twice, 2 * whole[:32])

made = [x, y, x.grad, torch.empty(3, device="cuda"), torch.ones(70).cuda() + 1, x.half()]
assert not any(tensor.data_ptr() % 512 for tensor in made)
assert not any(tensor.data_ptr() % 512 for tensor in torch.arange(9.0).sort())
part = torch.ones(64, device="cuda")[1:]
assert part.data_ptr() % 512 == 4 and part.detach().data_ptr() == part.data_ptr()
given = torch.from_numpy(np.arange(9.0)[1:])  # memory of the script, which stays where it is
assert given.data_ptr() % 512 and given.detach().data_ptr() == given.data_ptr()
large = torch.ones(3, device="cuda").resize_(1000)
assert large[:3].tolist() == [1, 1, 1]

n = 256
a, b = (torch.randint(-2, 3, (n, n), device="cuda").half() for _ in "ab")
c = torch.zeros(n, n, device="cuda")
product_kernel[(1,)](a, b, c, n)
assert torch.equal(c[:16, :16], a[:16].float() @ b[:, :16].float())
assert product_kernel.best_config.kwargs == {"B": 16, "K": 16}
assert torch._C._cuda_getCurrentRawStream(0) == torch.cuda.current_stream().cuda_stream


def replayed(graph: torch.cuda.CUDAGraph | None = None) -> None:  # annotations need classes
    raise AssertionError(graph)


try:
    torch.cuda.CUDAGraph()
    raise AssertionError("a CUDA graph was made")
except Exception as error:
    assert "torch.cuda.CUDAGraph is not supported" in str(error), error

print("right")

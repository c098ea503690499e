"""Tensors report the devices that they have on a computer with a GPU."""

import io
import threading

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def increment(x):
    at = x + tl.arange(0, 8)
    tl.store(at, tl.load(at) + 1)


class Double(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        assert gradient.device.type == "cuda"
        return 2 * gradient


def there():
    return torch.arange(8, dtype=torch.float32, device="cuda")


first, host = torch.device("cuda:0"), torch.device("cpu")
x = there()

# Attributes, and functions that follow their tensors.
assert x.device == first and str(x.device) == "cuda:0" and x.get_device() == 0
assert x.is_cuda and not x.is_cpu and "cuda:0" in repr(x)
assert x.device == torch.device("cuda", torch.cuda.current_device())
for made in (torch.empty_like(x), x.new_zeros(3), x + 1, x[2:], torch.zeros(2, device=x.device)):
    assert made.device == first
for made in (torch.zeros(2, device=0), torch.zeros(2).to(0), torch.zeros(2).to(x)):
    assert made.device == first
for made in (torch.zeros(2), torch.tensor([1]), x.cpu() + 1, x.cpu()[1:], torch.zeros(2).to(host)):
    assert made.device == host and made.get_device() == -1 and made.is_cpu
assert torch.zeros(2, device="meta").device.type == "meta"
active = triton.runtime.driver.active.get_active_torch_device()
assert active == first and torch.zeros(2, device=active).is_cuda
torch.testing.assert_close(x.cpu(), torch.arange(8, dtype=torch.float32))

# Copies.
copies = [x.cpu(), x.to("cpu"), x.to(device=host), torch.empty(8).copy_(x)]
array = x.cpu().numpy()
increment[(1,)](x)
assert x[0] == 1 and array[0] == 0 and all(each[0] == 0 and each.is_cpu for each in copies)
array = np.zeros(4, np.float32)
own = torch.from_numpy(array)
assert own.is_cpu
for moved in (own.cuda(), own.to("cuda"), torch.as_tensor(array, device="cuda")):
    assert moved.is_cuda and moved.cuda() is moved and moved.to("cuda") is moved
    moved += 1
assert array[0] == 0
torch.zeros(4).pin_memory().cuda(non_blocking=True).record_stream(torch.cuda.current_stream())
torch.zeros(4, pin_memory=True)

# Default devices, modules, gradients, threads, files.
with torch.device("cuda"):
    assert torch.zeros(4).is_cuda
torch.set_default_device("cuda")
assert torch.zeros(4).is_cuda and torch.tensor([1]).is_cuda
torch.set_default_device(None)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
assert next(model.parameters()).is_cpu
for each_model in (model.to("cuda"), model.cpu().cuda()):
    assert all(each.is_cuda for each in [*each_model.parameters(), *each_model.buffers()])
optimiser = torch.optim.AdamW(model.parameters())
with torch.autocast(x.device.type, dtype=torch.bfloat16):
    product = torch.ones(2, 4, device="cuda") @ torch.ones(4, 4, device="cuda")
assert product.dtype == torch.bfloat16
model(product.float()).sum().backward()
optimiser.step()
leaf = there().requires_grad_()
Double.apply(leaf).sum().backward()
assert leaf.grad.device == first
seen = []
thread = threading.Thread(target=lambda: seen.append(there().device))
thread.start()
thread.join()
assert seen == [first]
for saved in (x, torch.zeros(2)):
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    assert torch.load(file, map_location="cuda").is_cuda

# Queries.
assert torch.cuda.get_device_properties(x.device).name == torch.cuda.get_device_name()
assert torch.get_device_module(x.device).current_device() == 0
assert torch.accelerator.current_accelerator().type == "cuda"
assert torch.cuda.max_memory_allocated() == 0
torch.randn(4, device="cuda", generator=torch.Generator(device="cuda").manual_seed(1))
with torch.random.fork_rng(devices=[0]), torch.cuda.device(x.device):
    torch.manual_seed(0)
print("right")

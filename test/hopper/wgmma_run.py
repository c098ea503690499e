"""Records the probes of `wgmma_cases` on a GPU: `python3 wgmma_run.py [OUT.npz]`.

Lies in one folder with `wgmma_cases.py`, `wgmma_sparse.py`, `wgmma_forms.py`, `float_inputs.py` and
`wgmma.cubin` (ptxas -arch=sm_90a of `wgmma_forms.ptx()`); needs cuda-python and numpy. Every group
runs in a process of its own, so that one that faults leaves the others' results. OUT.npz holds for
every probe the words of D (`GROUP/NAME`) or, of the groups of addresses, the addresses read as
uint16; where numpy knows the words, only those that are others. `info` is JSON: digests of inputs
and results, mismatches, device.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import wgmma_cases  # noqa: E402
import wgmma_sparse  # noqa: E402
from wgmma_cases import Probe, exact, read_at  # noqa: E402
from wgmma_forms import FORMS  # noqa: E402

GROUPS = wgmma_cases.GROUPS | wgmma_sparse.GROUPS


def call(function: str, *arguments: Any) -> Any:
    """Result of a driver function."""
    from cuda.bindings import driver

    status, *values = getattr(driver, function)(*arguments)
    if int(status) != 0:
        raise RuntimeError(f"{function}: {status.name}")
    return values[0] if len(values) == 1 else values


def start() -> Any:
    """The module, in the device's primary context."""
    call("cuInit", 0)
    device = call("cuDeviceGet", 0)
    call("cuCtxSetCurrent", call("cuDevicePrimaryCtxRetain", device))
    return call("cuModuleLoadData", (HERE / "wgmma.cubin").read_bytes())


def launch(module: Any, probe: Probe) -> np.ndarray:
    """D's words after; `probe.cases["smem"]` holds the address of the image."""
    function = call("cuModuleGetFunction", module, probe.form.name.encode())
    arrays = [
        np.ascontiguousarray(x) for x in (probe.cases, probe.images, probe.a, probe.m, probe.d)
    ]
    places = []
    for array in arrays:
        at = call("cuMemAlloc", max(16, array.nbytes))
        call("cuMemcpyHtoD", at, array.ctypes.data, array.nbytes)
        places.append(at)
    values = (*map(int, places), probe.images.shape[1])
    kinds = (ctypes.c_uint64,) * 5 + (ctypes.c_uint32,)
    call("cuLaunchKernel", function, len(probe.cases), 1, 1, 128, 1, 1, 0, 0, (values, kinds), 0)
    call("cuCtxSynchronize")
    result = np.empty_like(arrays[4])
    call("cuMemcpyDtoH", result.ctypes.data, places[4], result.nbytes)
    call("cuMemcpyDtoH", arrays[0].ctypes.data, places[0], arrays[0].nbytes)
    probe.cases["smem"] = arrays[0]["smem"]
    for at in places:
        call("cuMemFree", at)
    return result


def digest(*arrays: np.ndarray) -> str:
    """Digest of arrays' bytes."""
    together = hashlib.sha256()
    for array in arrays:
        together.update(np.ascontiguousarray(array).tobytes())
    return together.hexdigest()[:16]


def threads_of(probe: Probe, read: np.ndarray) -> np.ndarray:
    """Of the addresses [layouts, words, 128] those that an element was read from.

    A selector of rows, whose B is looked for, has at most 32 of them, of a sparse A 64.
    """
    few = "_b" in probe.name[-10:] and probe.form.selector is None
    return read[..., :64] if few else read


def group(name: str, swapped: bool, out: Path) -> None:
    """Records one group, as far as it comes."""
    module = start()
    kept: dict[str, np.ndarray] = {}
    info: dict[str, Any] = {"swapped": swapped, "probes": {}}
    try:
        for probe in GROUPS[name](swapped):
            key = f"{name}/{probe.name}"
            given = digest(probe.cases, probe.images, probe.a, probe.m, probe.d)
            words = launch(module, probe)
            bases = sorted({int(x) for x in probe.cases["smem"]})
            line: dict[str, Any] = {"inputs": given, "digest": digest(words), "smem": bases}
            if name.startswith("addresses"):
                read = read_at(words, probe.form)
                kept[key] = threads_of(probe, read)
                line["rest"] = int(np.count_nonzero(read[..., kept[key].shape[-1] :]))
            elif probe.expected is not None:
                wrong = int(np.count_nonzero(words != probe.expected))
                line["wrong"], line["of"] = wrong, int(words.size)
                if wrong:
                    kept[key] = words
            else:
                kept[key] = words
            info["probes"][key] = line
    except RuntimeError as error:
        info["error"] = f"{key}: {error}"
    np.savez_compressed(out, info=json.dumps(info), **kept)


def convention() -> bool:
    """Whether LBO and SBO without swizzle mean the other way round than the probes assume."""
    module = start()
    for swapped in (False, True):
        probe = exact(FORMS["n8_s32_s8_s8"], swapped)
        words = launch(module, probe)
        wrong = int(np.count_nonzero(words != probe.expected))
        print(f"convention: swapped={swapped}: {wrong} of {words.size} words differ", flush=True)
        if not wrong:
            return swapped
    return False


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--group":
        name, swapped = sys.argv[2].split(":")
        group(name, swapped == "1", Path(sys.argv[3]))
        return
    if len(sys.argv) == 2 and sys.argv[1] == "--convention":
        print("swapped" if convention() else "as assumed")
        return
    out = Path(sys.argv[1] if len(sys.argv) > 1 else HERE / "wgmma.npz")
    began = time.time()
    me = [sys.executable, str(Path(__file__).resolve())]
    said = subprocess.run([*me, "--convention"], capture_output=True, text=True, timeout=120)
    print(said.stdout, said.stderr[-2000:], flush=True)
    swapped = said.stdout.strip().endswith("swapped")
    everything: dict[str, Any] = {}
    info: dict[str, Any] = {"convention": said.stdout, "groups": {}}
    for name in GROUPS:
        part = out.with_name(f"part_{name}.npz")
        part.unlink(missing_ok=True)
        try:
            done = subprocess.run(
                [*me, "--group", f"{name}:{int(swapped)}", str(part)],
                capture_output=True,
                text=True,
                timeout=150,
            )
            errors = done.stderr[-2000:]
        except subprocess.TimeoutExpired:
            errors = "timeout"
        if part.exists():
            with np.load(part) as loaded:
                info["groups"][name] = json.loads(str(loaded["info"]))
                everything.update({k: loaded[k] for k in loaded.files if k != "info"})
            part.unlink()
        else:
            info["groups"][name] = {"error": errors}
        found = info["groups"][name]
        lines = found.get("probes", {})
        wrong = {k: v["wrong"] for k, v in lines.items() if v.get("wrong")}
        few = dict(list(wrong.items())[:12])
        print(f"{name}: {len(lines)} probes, {len(wrong)} not as numpy expects {few}", flush=True)
        if found.get("error") or errors:
            print(found.get("error", ""), errors, flush=True)
    try:
        smi = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
        info["device"] = smi.split(" (UUID")[0]
    except OSError:
        info["device"] = "not known"
    np.savez_compressed(out, info=json.dumps(info), **everything)
    print(f"{out}: {out.stat().st_size} bytes, {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()

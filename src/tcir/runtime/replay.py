"""Runs a bundle (see `tcir.runtime.bundle`) on a GPU, in this process, and returns a report of the
results.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tcir.errors import InputError
from tcir.files import open_regular, read_bytes

Array = np.ndarray[Any, Any]
Fields = dict[str, Any]
"""An object of launch.json."""
_READ = "the folder is damaged: request it again"


def seal(description: Fields) -> str:
    """Digest of all fields of launch.json except ``sha256``, the field in which the digest is
    stored.
    """
    rest = {name: value for name, value in description.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except InputError as error:
        raise InputError(f"{error}; {_READ}") from None


@dataclass(frozen=True)
class Bundle:
    """The contents of a bundle's folder, whose digests were checked."""

    folder: Path
    description: Fields
    cubin: bytes
    ptx: str
    before: list[Array]
    expected: dict[int, Array]
    near: dict[int, tuple[Array, Array]]
    """Results with a bound: the reference, and the allowed error of each element."""

    @staticmethod
    def read(folder: Path) -> Bundle:
        """Reads a bundle. `InputError` if a file is missing, modified or not a file."""
        try:
            bundle = Bundle._read(folder)
            bundle._verify()
        except (InputError, MemoryError):
            raise
        except Exception as error:  # of readers of JSON, zip and numpy's headers, or a field
            what = f"{type(error).__name__}: {error}"
            raise InputError(f"{folder}: {what}; {_READ}") from None
        return bundle

    @staticmethod
    def _read(folder: Path) -> Bundle:
        description = json.loads(_bytes(folder / "launch.json"))
        if seal(description) != description["sha256"]:
            raise InputError(f"{folder / 'launch.json'}: its SHA-256 does not match; {_READ}")
        cubin = _bytes(folder / "kernel.cubin")
        ptx = _bytes(folder / "kernel.ptx").decode()
        buffers = list(enumerate(description["buffers"]))
        with open_regular(folder / "data.npz") as file, np.load(file) as data:
            before = [data[f"before{n}"] for n, _ in buffers]
            expected = {n: data[f"expected{n}"] for n, each in buffers if each["written"]}
            near = {
                n: (data[f"reference{n}"], data[f"errors{n}"])
                for n, each in buffers
                if each.get("bounded")
            }
        return Bundle(folder, description, cubin, ptx, before, expected, near)

    def _verify(self) -> None:
        wanted = [
            ("kernel.cubin", self.cubin, self.description["cubin_sha256"]),
            ("kernel.ptx", self.ptx.encode(), self.description["ptx_sha256"]),
        ]
        for n, b in enumerate(self.description["buffers"]):
            wanted.append((f"data.npz, before{n}", self.before[n].tobytes(), b["before_sha256"]))
        for n, array in self.expected.items():
            sha = self.description["buffers"][n]["expected_sha256"]
            wanted.append((f"data.npz, expected{n}", array.tobytes(), sha))
        for name, data, sha in wanted:
            if hashlib.sha256(data).hexdigest() != sha:
                raise InputError(f"{self.folder / name}: expected SHA-256 {sha}; {_READ}")
        for each in self.launches:
            str(each["kernel"])
            self.sizes(each)
            self.parameters(each, [0] * len(self.before), lambda fields, address: b"")

    @property
    def launches(self) -> list[Fields]:
        """The launches in order: kernel, sizes, params."""
        found: list[Fields] = self.description["launches"]
        return found

    def sizes(self, launch: Fields) -> Fields:
        """The sizes of a launch: grid, block, cluster, dynamic shared memory, programmatic."""
        found: Fields = {k: tuple(launch[k]) for k in ("grid", "block", "cluster")}
        found["dynamic_smem"] = launch["dynamic_smem"]
        found["programmatic"] = launch.get("programmatic", False)
        return found

    def parameters(
        self,
        launch: Fields,
        pointers: Sequence[int],
        encode: Callable[[Any, int], bytes],
    ) -> list[bytes]:
        """Bytes of each parameter of a launch whose buffers are at the addresses `pointers`."""
        values = []
        for param in launch["params"]:
            if param["kind"] == "bytes":
                values.append(bytes.fromhex(param["hex"]))
                continue
            address = pointers[param["buffer"]] + param["offset"]
            if param["kind"] == "pointer":
                values.append(address.to_bytes(8, "little"))
            else:
                fields = {
                    k: tuple(v) if isinstance(v, list) else v for k, v in param["fields"].items()
                }
                values.append(encode(make_dataclass("MapFields", fields)(**fields), address))
        return values


def replay(bundle: Bundle, repeats: int) -> Fields:
    """Runs the bundle's kernels on device 0, one after the other; returns a report.

    If the bundle is a question of the self-test (`description["question"]`), it is not timed, and
    its report contains the digest of the bytes that the kernels wrote.
    """
    from tcir.emulation.narrow import encoder
    from tcir.runtime.devices import device
    from tcir.runtime.memory import to_device
    from tcir.runtime.module import load_or_compile, synchronize
    from tcir.runtime.tensor_map import Encode, encode
    from tcir.runtime.timing import measure

    d = bundle.description
    gpu = device()
    module, loaded = load_or_compile(bundle.cubin, bundle.ptx, gpu)
    report: Fields = {
        "kernels": [launch["kernel"] for launch in bundle.launches],
        "target": d["target"],
        "cubin_sha256": d["cubin_sha256"],
        "origin": d["origin"],
        "loaded": loaded,
    }
    # A program for sm_90a has no maps of narrow elements: one that has them is emulated.
    encode_map: Encode = encode
    if gpu.capability[0] == 9:
        encode_map = encoder(encode_map)
    copies = [to_device(array, gpu) for array in bundle.before]
    pointers = [copy.pointer for copy in copies]
    calls = []
    for each in bundle.launches:
        values = bundle.parameters(each, pointers, encode_map)
        function = module.function(each["kernel"])
        calls.append(partial(function.launch, values, **bundle.sizes(each)))

    def launch() -> None:
        for each in calls:
            each()

    launch()
    synchronize()
    if "question" in d:
        out = copies[d["question"]["buffer"]].numpy()
        report["written_sha256"] = hashlib.sha256(out.tobytes()).hexdigest()
        return report
    report["buffers"] = []
    for n, array in bundle.expected.items():
        found = copies[n].numpy()
        where = np.flatnonzero(found != array)
        entry: Fields = {"buffer": n, "bytes": array.size, "different": int(where.size)}
        if d["buffers"][n]["workspace"]:
            entry["workspace_of"] = [
                each["kernel"]
                for each in bundle.launches
                if any(param.get("buffer") == n for param in each["params"])
            ]
        if where.size and n in bundle.near:
            entry["error_over_bound"] = ratio = excess(
                found, d["buffers"][n]["bounded"], *bundle.near[n]
            )
            entry["within"] = ratio <= 1
        elif bundle.near and "workspace_of" in entry:
            entry["within"] = True  # what it does to the results is in their bound
        if where.size:
            first = int(where[0])
            entry["first"] = first
            entry["expected"] = array[first : first + 16].tobytes().hex()
            entry["got"] = found[first : first + 16].tobytes().hex()
            np.savez_compressed(bundle.folder / f"silicon{n}.npz", found=found)
        report["buffers"].append(entry)
    report["equal"] = all(b["different"] == 0 for b in report["buffers"])
    report["within"] = all(b.get("within", not b["different"]) for b in report["buffers"])
    # Timed last, all launches together: a kernel may use what it wrote.
    times = measure(launch, repeats=repeats)
    report["milliseconds"] = {
        "median": statistics.median(times),
        "least": min(times),
        "most": max(times),
        "launches": repeats,
    }
    return report


def excess(
    found: Array,
    dtype: str,
    reference: Array,
    errors: Array,
) -> float:
    """The largest error of a buffer's elements as a fraction of the element's error bound; infinite
    if an element is NaN and its reference is not.
    """
    if dtype == "bfloat16":  # numpy has none: the upper half of an f32
        found = (found.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    values = found.view("f4" if dtype == "bfloat16" else dtype).astype("f8")
    values = values.reshape(reference.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.abs(values - reference)
        off[(values == reference) | (np.isnan(values) & np.isnan(reference))] = 0
        parts = np.where(off == 0, 0.0, off / errors)
    return float(np.nan_to_num(parts, nan=np.inf).max(initial=0.0))


def describe_device() -> Fields:
    """Fields of the report that describe device 0 and its driver."""
    from tcir.runtime.devices import device
    from tcir.runtime.driver import call

    gpu = device()
    return {
        "device": str(gpu),
        "driver": gpu.driver,
        "multiprocessors": gpu.attribute("MULTIPROCESSOR_COUNT"),
        "clock_kHz": gpu.attribute("CLOCK_RATE"),
        "memory_clock_kHz": gpu.attribute("MEMORY_CLOCK_RATE"),
        "memory_bytes": int(call("cuDeviceTotalMem", gpu.handle)),
    }

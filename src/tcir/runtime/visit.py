"""``python run.py`` of a bundle or a kit: runs every bundle in a process of its own and writes a
report.

If a bundle does not end in time, its process is killed; a fault ends only the process of its own
bundle. The other bundles run in either case. report.json and report.txt are rewritten after each
bundle, so that there is always a report to send.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tcir.errors import Error, IncompleteError, InputError
from tcir.files import write_atomic, write_json
from tcir.runtime.replay import Bundle, describe_device, replay

SECONDS = 120
"""Time limit of a bundle. It takes a few seconds, including the start of its process and of the
driver."""
WRONG = ("different", "fault", "hang", "died", "refused", "other answer")
"""Outcomes in which the GPU's results differ from the machine's, or are missing."""

Report = dict[str, Any]


def main(folder: Path, words: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0 if all results are as expected, 1 if some are
    not, 2 without a GPU, 3 for a damaged folder, 130 if interrupted.
    """
    options = _parser().parse_args(words)
    try:
        chosen = [Bundle.read(path) for path in _folders(folder, options.only)]
        if options.child:
            write_json(options.child, attempt(chosen[0], options.repeats))
            return 0
        if options.dry_run:
            for bundle in chosen:
                _describe(bundle)
            print("the folder is sound")
            return 0
        return _visit(folder, chosen, options.repeats, options.seconds)
    except Error as error:
        print(f"{folder.name}: {error}", file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Runs the kernels of this folder on a GPU, compares their results with the "
        "expected ones, times them, and writes report.json and report.txt: send those back. See "
        "README.md."
    )
    parser.add_argument("--dry-run", action="store_true", help="check the folder only")
    parser.add_argument("--only", metavar="NAME", help="one bundle of the folder")
    parser.add_argument("--repeats", type=int, default=20, help="launches to time (20)")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"after which a bundle is ended ({SECONDS})"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)  # runs here, the result goes to a file
    return parser


def _folders(folder: Path, only: str | None) -> list[Path]:
    """The folder itself if it is a bundle, or else the bundles in it, limited to `only`.
    InputError if there are none."""
    if (folder / "launch.json").exists():
        return [folder]
    found = sorted(path.parent for path in folder.glob("*/launch.json"))
    names = [path.name for path in found]
    if not found:
        raise InputError(f"{folder}: expected bundles, got none: the folder is damaged")
    if only is not None and only not in names:
        raise InputError(f"--only: expected one of {', '.join(names)}, got {only!r}")
    return [path for path in found if only in (None, path.name)]


def _describe(bundle: Bundle) -> None:
    for each in bundle.launches:
        sizes = [len(v) for v in bundle.parameters(each, [0] * len(bundle.before), _blank)]
        print(
            f"@{each['kernel']} for {bundle.description['target']}, grid {each['grid']}, block "
            f"{each['block']}, {len(sizes)} parameters of {sizes} bytes"
        )


def _blank(fields: Any, address: int) -> bytes:
    """Placeholder for a tensor map in the parameters, if no driver can encode it."""
    return bytes(128)


# --- the process of one bundle -------------------------------------------------------------------


def attempt(bundle: Bundle, repeats: int) -> Report:
    """Runs a bundle in this process; returns its outcome and the reason."""
    from tcir.runtime.driver import CudaError
    from tcir.runtime.module import LaunchFailedError

    found: Report = {}
    try:
        found["device"] = describe_device()
        found.update(replay(bundle, repeats))
    except LaunchFailedError as error:
        found.update(outcome="fault", message=str(error))
    except IncompleteError as error:
        found.update(outcome="no GPU", message=str(error), exit_code=error.exit_code)
    except (InputError, CudaError) as error:
        found.update(outcome="refused", message=str(error), exit_code=error.exit_code)
    else:
        found["outcome"] = _outcome(found)
    return found


def _outcome(found: Report) -> str:
    """Outcome of a bundle that ran. A question, which compares nothing, is "equal" here."""
    if found.get("equal", True):
        return "equal"
    return "within bound" if found["within"] else "different"


# --- the visit -----------------------------------------------------------------------------------


def _visit(folder: Path, chosen: Sequence[Bundle], repeats: int, seconds: float) -> int:
    report: Report = {
        "schema": 4,
        "started": _now(),
        "host": _host(),
        "bundles": [],
    }
    status = 0
    try:
        for number, bundle in enumerate(chosen):
            print(f"{number + 1} of {len(chosen)}: {bundle.folder.name}", flush=True)
            found = {"bundle": bundle.folder.name, **_in_process(folder, bundle, repeats, seconds)}
            if "device" in found:
                report["device"] = found.pop("device")
            if "question" in bundle.description:
                _answer(found, bundle.description["question"])
            report["bundles"].append(found)
            _write(folder, report)
            if found["outcome"] == "no GPU" or found.get("stuck"):
                break
    except KeyboardInterrupt:
        report["interrupted"], status = True, 130
    text = _write(folder, report)
    print(text)
    outcomes = [each["outcome"] for each in report["bundles"]]
    if "no GPU" in outcomes or (set(outcomes) == {"refused"} and not status):
        last = report["bundles"][-1]
        print(f"{folder.name}: {last['message']}", file=sys.stderr)
        return int(last["exit_code"])
    wrong = any(outcome in WRONG for outcome in outcomes)
    print("please send report.json" + (" and every silicon*.npz" if wrong else ""))
    return status or int(wrong)


def _in_process(folder: Path, bundle: Bundle, repeats: int, seconds: float) -> Report:
    """Runs a bundle in a process of its own; returns that process's report, or how it ended without
    one."""
    with tempfile.TemporaryDirectory(prefix="tcir-visit-") as place:
        result = Path(place, "result.json")
        command = [
            sys.executable, str(folder / "run.py"), "--child", str(result),
            "--repeats", str(repeats),
        ]  # fmt: skip
        if bundle.folder != folder:
            command += ["--only", bundle.folder.name]
        began = time.monotonic()
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            _, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return _end(process, seconds)
        except BaseException:
            process.kill()
            raise
        if result.exists():
            found: Report = json.loads(result.read_text())
        else:
            last = (said.strip().splitlines() or ["it said nothing"])[-1]
            words = f"its process ended with status {process.returncode}: {last}"
            found = {"outcome": "died", "message": words}
        return {**found, "seconds": round(time.monotonic() - began, 1)}


def _end(process: subprocess.Popen[str], seconds: float) -> Report:
    """Kills a process that does not answer. If it cannot be killed, the report is marked "stuck",
    which ends the run."""
    words = f"no answer within {seconds:g} seconds: its process was killed"
    process.kill()
    try:
        process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        words = f"no answer within {seconds:g} seconds, and process {process.pid} cannot be killed"
        return {"outcome": "hang", "message": f"{words}: the GPU needs a reset", "stuck": True}
    return {"outcome": "hang", "message": words}


def _answer(found: Report, question: Report) -> None:
    """Adds to the report of a question the alternatives of its assumption under which the machine
    writes the GPU's bytes."""
    silicon = "fault" if found["outcome"] == "fault" else found.get("written_sha256")
    if silicon is None:
        return
    answers = [name for name, digest in question["answers"].items() if digest == silicon]
    found.update(assumption=question["name"], assumed=question["assumed"], answers=answers)
    found["outcome"] = "as assumed" if question["assumed"] in answers else "other answer"
    if not answers:
        found["message"] = "none of the known alternatives"
    elif found["outcome"] == "other answer":
        found["message"] = f"assumed {question['assumed']}, silicon: {' or '.join(answers)}"


def _now() -> str:
    utc = datetime.timezone.utc  # noqa: UP017  Python 3.9 and 3.10 have no datetime.UTC
    return datetime.datetime.now(utc).isoformat(timespec="seconds")


def _host() -> Report:
    try:
        bindings = importlib.metadata.version("cuda-bindings")
    except importlib.metadata.PackageNotFoundError:
        bindings = "none"
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "cuda-bindings": bindings,
    }


def _write(folder: Path, report: Report) -> str:
    """Writes the report as JSON and as text; returns the text."""
    write_json(folder / "report.json", report)
    lines = [f"{report['started']}, {json.dumps(report['host'])}"]
    lines.append(json.dumps(report.get("device", "no device")))
    width = max((len(each["bundle"]) for each in report["bundles"]), default=0)
    for each in report["bundles"]:
        times = each.get("milliseconds")
        words = f"{times['median']:.4f} ms" if times else each.get("message", "")
        if each.get("loaded", "cubin") != "cubin":
            words += f"; {each['loaded']}"
        lines.append(f"{each['bundle']:<{width}}  {each['outcome']:<12}  {words}".rstrip())
    if report.get("interrupted"):
        lines.append("interrupted")
    text = "\n".join(lines)
    write_atomic(folder / "report.txt", f"{text}\n".encode())
    return text

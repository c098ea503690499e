"""--help and --print-completion of every command."""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import tcir.opt.arguments as opt
import tcir.ptxrun.arguments as ptxrun
import tcir.reduce.arguments as reduce
import tcir.sweep.arguments as sweep
import tcir.viz.command as viz
from tcir.passmanager.pipeline import registered_pipelines

PARSERS = {
    "tc-opt": opt.make_parser,
    "tc-run": ptxrun.make_parser,
    "tc-bench": sweep.make_parser,
    "tc-reduce": reduce.make_parser,
    "tc-viz": viz.parser,
}
GENERAL = {"--help", "--version", "--print-completion"}


def ways(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """The command, or each of its ways."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action.choices.values())
    return [parser]


@pytest.mark.parametrize("name", PARSERS)
def test_flags_are_in_groups_and_say_what_they_do(name: str) -> None:
    parser = PARSERS[name]()
    assert (parser.epilog or "").index("examples:\n") < (parser.epilog or "").index("exit status:")
    for way in ways(parser):
        titles = [group.title for group in way._action_groups]
        assert titles[:2] == ["positional arguments", "options"] and len(titles) > 2
        for group in way._action_groups:
            for action in group._group_actions:
                assert action.help, action
                if group.title == "options":
                    assert set(action.option_strings) & GENERAL, action.option_strings


def completions(words: str, script: str, folder: Path) -> set[str]:
    """What bash offers for the last of `words`, which are split as bash splits them."""
    split = words.split(" ")
    program = f"""
{script}
COMP_WORDS=({" ".join(f"'{word}'" for word in split)})
COMP_CWORD={len(split) - 1}
function=$(complete -p {split[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, cwd=folder, timeout=60
    )
    assert not done.stderr, done.stderr
    return set(done.stdout.split())


needs_shtab = pytest.mark.skipif(
    importlib.util.find_spec("shtab") is None, reason="needs the extra completion"
)


def script(name: str, shell: str = "bash") -> subprocess.CompletedProcess[str]:
    words = ["-m", f"tcir.tools.{name.replace('-', '_')}", "--print-completion", shell]
    return subprocess.run([sys.executable, *words], capture_output=True, text=True)


@needs_shtab
@pytest.mark.parametrize("name", PARSERS)
def test_the_script_is_one_of_bash(name: str) -> None:
    done = script(name)
    assert (done.returncode, done.stderr) == (0, "")
    checked = subprocess.run(["bash", "-n"], input=done.stdout, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "--version" in completions(f"{name} --v", done.stdout, Path())


@needs_shtab
def test_names_of_pipelines_passes_and_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "matmul.mlir").touch()
    text = script("tc-opt").stdout
    schedules = {name for name in registered_pipelines() if name.startswith("conv")}
    assert "conv-shift-reuse" in schedules
    for words in ("tc-opt --pipeline = conv", "tc-opt --pipeline conv"):
        assert completions(words, text, tmp_path) == schedules
    assert completions("tc-opt --pipeline =", text, tmp_path) > {*schedules, "gemm", "layers"}
    assert completions("tc-opt --tile-co", text, tmp_path) > {"--tile-conv-shift-reuse"}
    assert completions("tc-opt --pipeline = gemm --emit = cu", text, tmp_path) == {"cubin"}
    assert completions("tc-opt --pipeline = gemm mat", text, tmp_path) == {"matmul.mlir"}
    text = script("tc-bench").stdout
    assert completions("tc-bench s", text, tmp_path) == {"sweep"}
    assert completions("tc-bench sweep --pipeline = gemv-p", text, tmp_path) == {"gemv-padded-n"}
    assert completions("tc-bench sweep --target = sm_8", text, tmp_path) == {"sm_80"}


def test_without_the_package_the_extra_is_named() -> None:
    words = "import sys; sys.modules['shtab'] = None; from tcir.tools.tc_viz import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", words, "--print-completion", "bash"], capture_output=True, text=True
    )
    assert done.stdout == ""
    assert "pip install 'tcir[completion]'" in done.stderr

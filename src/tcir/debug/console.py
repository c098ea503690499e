"""`interact`: a run that stops repeatedly and prompts for commands at each stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tcir.debug.control import Breakpoint, Follower, Stopped, place_words, starts
from tcir.debug.places import check_numbers, lines_at
from tcir.debug.stop import SEEN_AS, Stop
from tcir.debug.watching import Watched, watch
from tcir.errors import LaunchError
from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.op import Blocking
from tcir.interp.ptx.syntax import PtxModule
from tcir.machine.order.clocks import Access
from tcir.run import parsed, run_ptx

PROMPT = "(tcir) "
HELP = """\
step [N]        executes N instructions of this warp (1)
continue        goes on to the next stop
break PLACE     stops at a line, FILE:LINE of the source or a label[,warp=N][,cta=X.Y.Z]
watch PLACE     stops after a write to N[I,J], an element of argument N, to an address 0x…, to
                smem[0x…] (smem:f16[0x…], smem:f16@0xTILE,64,128B[ROW,COLUMN]), to tmem[LANE,COLUMN]
delete          forgets all breakpoints and watches
print NAMES     registers of this warp: %r1,%d0..%d7; all; as another type: f32=%r1, f16x2=all
dump PART       registers…, smem[=FROM:TO], tmem[=LANE:LANE,COLUMN:COLUMN], mbarriers
where           where every warp of this CTA is
quit            ends the run
A command may be shortened to its first letter; an empty line repeats the last one."""

Read = Callable[[str], str]
Write = Callable[[str], None]


def interact(
    ptx: str | Path,
    *,
    args: Sequence[object] = (),
    read: Read = input,
    write: Write = print,
    **launch: Any,
) -> Stop:
    """Runs a kernel as `tcir.run_ptx` does; stops at its first instruction and prompts for
    commands.

    read:  called with the prompt; returns a command, or raises EOFError
    write: called with each line of output

    Returns the `Stop` at which the user ended the session, or the `Stop` at the end of the run.
    """
    console = Console(parsed(ptx), args, read, write)
    try:
        report = run_ptx(ptx, args=args, observer=console, **launch)
        reason = "the end"
    except Stopped as stopped:
        report, reason = console.report, str(stopped)
        report.stopped = reason
        report.findings = console.machine.findings.counted()
        report.counters = console.machine.counters.as_dict()
        report.instructions = console.launch.instructions
    if report.errors:
        reason = f"illegal: {report.errors[0]}"
    return Stop(reason, report, console)


class Console(Follower):
    """Prompts before the first instruction, after steps, at breakpoints and after watched
    writes."""

    def __init__(self, module: PtxModule, args: Sequence[object], read: Read, write: Write) -> None:
        super().__init__()
        self.module, self.args, self.read, self.write = module, args, read, write
        self.breakpoints: list[tuple[Breakpoint, frozenset[int]]] = []
        self.watches: dict[Watched, Access | None] = {}
        self._steps = 1
        self._stepping: WarpInterpreter | None = None
        self._last = "step"

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        def fetched() -> None:
            reason = self._reason(interpreter)
            if reason:
                self.at = interpreter
                self._ask(Stop(reason, self.report, self))

        interpreter.trace(fetched)
        return super().follow(interpreter)

    def _reason(self, interpreter: WarpInterpreter) -> str:
        """Reason to stop before the next instruction; "" if there is none."""
        for watched, known in self.watches.items():
            access = watched.writer(self, self.args)
            if access is not None and access is not known:
                self.watches[watched] = access
                return f"watch of {watched}: {watched.value(self, self.args)} now"
        place = interpreter.divergence.pc
        warp = interpreter.warp
        for at, lines in self.breakpoints:
            here = at.warp in (None, warp.index) and at.cta in (None, warp.agent.cta.index)
            reached = here and place in starts(interpreter.program, lines)
            if reached and interpreter.active(interpreter.next_op()):
                return f"breakpoint at {place_words(at.line, lines)}"
        mine = self._stepping is None or self._stepping.warp.agent.ended
        if self._steps and (mine or interpreter is self._stepping):
            self._steps -= 1
            return "" if self._steps else "step"
        return ""

    def _ask(self, stop: Stop) -> None:
        """Executes commands until one resumes the kernel."""
        self._stepping = self.at
        self.write(stop.where_text())
        while True:
            try:
                line = self.read(PROMPT).strip() or self._last
            except EOFError:
                line = "quit"
            self._last = line
            word, _, rest = line.partition(" ")
            try:
                if self._obey(word, rest.strip(), stop):
                    return
            except (LaunchError, ValueError) as error:
                self.write(str(error))

    def _obey(self, word: str, rest: str, stop: Stop) -> bool:
        """Executes one command; returns whether the kernel resumes."""
        names = ("step", "continue", "break", "watch", "delete", "print", "dump", "where", "quit")
        meant = [name for name in names if word and name.startswith(word)]
        match meant[0] if meant else "":
            case "step":
                self._steps = int(rest or 1)
                if self._steps < 1:
                    raise LaunchError("step: expected 1 or more")
                return True
            case "continue":
                self._steps = 0
                return True
            case "break":
                self._add(rest)
            case "watch":
                watched = watch(rest)
                watched.check(self.args)
                watched.start(self)
                self.watches[watched] = watched.writer(self, self.args)
            case "delete":
                self.breakpoints.clear()
                self.watches.clear()
            case "print":
                kind, _, listed = rest.rpartition("=") if rest not in SEEN_AS else (rest, "", "")
                self.write(stop.dump([f"registers{':' * bool(kind)}{kind}={listed}"]))
            case "dump":
                self.write(stop.dump([rest] if rest else []))
            case "where":
                self.write(stop.where_text())
            case "quit":
                raise Stopped("quit")
            case _:
                self.write(HELP)
        return False

    def _add(self, text: str) -> None:
        from tcir.debug.command import break_at

        at = break_at(text)
        if not isinstance(at, Breakpoint):
            raise LaunchError(f"break: expected a line, FILE:LINE or a label, got {text!r}")
        check_numbers(at.hit, at.warp, at.cta, self.machine.grid, self.launch.sizes.warps)
        lines = lines_at(at.line, self.module)
        self.breakpoints.append((at, lines))
        self.write(f"breakpoint at {place_words(at.line, lines)}")

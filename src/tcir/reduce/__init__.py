"""tc-reduce: reduces a failing program to a smaller program that still fails in the same way.

A program is reduced by moves, each of which makes it smaller. Moves on MLIR (`mlir`) remove ops,
results and arguments, and shrink shapes. Moves on a pipeline (`passes`) remove passes and options.
Moves on PTX (`ptx`) remove statements. A smaller program is kept if it fails as the first program
did (`failure`): at the same pass, with the same verdict and the same finding. Every attempt runs in
a fork of this process (`attempt`), so crashes and hangs are failures like any other.
"""

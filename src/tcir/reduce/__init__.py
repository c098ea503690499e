"""Finds the smallest program that still fails in the same way: tc-reduce.

A program is reduced by moves, each of which makes it smaller. Moves on MLIR (`mlir`) remove ops,
results and arguments and shrink shapes; moves on a pipeline (`passes`) remove passes and options;
moves on PTX (`ptx`) remove statements. A smaller program is kept if it fails as the first one did
(`failure`): same pass, same verdict, same finding. Every attempt runs in a fork (`attempt`), so
crashes and hangs are failures like others.
"""

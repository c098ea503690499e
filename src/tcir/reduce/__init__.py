"""The smallest program that still fails in the same way: tc-reduce.

A program is reduced by moves, each of which makes it smaller: of MLIR (`mlir`) ops, results,
arguments and shapes, of a pipeline (`passes`) passes and options, of PTX (`ptx`) statements. A
smaller program is kept if it fails as the first one did (`failure`): same pass, same verdict, same
finding. Every attempt is a fork (`attempt`), so crashes and hangs are failures like others.
"""

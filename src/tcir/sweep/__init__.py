"""Sweeps over many compilations of one program: combinations, executors, results, tables,
pictures."""

"""Sweeps: many compilations of one program with different options. Contains the combinations of
options, executors, results, tables and pictures.
"""

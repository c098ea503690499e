"""Clusters, CTAs and agents (warps or roles) of the simulated machine, and the order in which they
run.
"""

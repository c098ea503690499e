"""Clusters, CTAs and agents: who runs, and in which order."""

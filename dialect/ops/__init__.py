"""The ops of ``tc``, one file per group: what an op is, its rules, its example."""

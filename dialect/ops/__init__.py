"""The ops of ``tc``, one file per group: definition, rules, example."""

"""Parts that the doors share: their launches, and the execution of scripts. A door is a command
that runs programs of another framework on tcir, such as ``python -m tcir.triton``.
"""

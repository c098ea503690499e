"""What instructions do to registers that an operation in flight still reads or writes.

Each file lets the ops of a program tell, or look, when they touch such registers.
"""

"""LLVM IR of the computation of one instruction in the 32 lanes of a warp (a *kernel* of this
package, not a GPU kernel).
"""

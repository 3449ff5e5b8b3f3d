"""The mathematics of the course: pure functions, one topic a module, numpy only.

This package re-exports nothing, so that ``labcore.ops.softmax`` is always the module
and ``labcore.softmax`` always the function.
"""

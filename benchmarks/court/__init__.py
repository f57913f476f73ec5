"""A court: random laws for each system, half of them never seen while choosing.

A law follows from its seed alone: its shape, sizes and budgets are drawn by it. Laws of
even seeds are for choosing constants, thresholds and families; laws of odd seeds are
only ever reported (``make bench ONLY=court``). Who looks at a single law of an odd seed
to change anything has spent it.
"""

"""JSON without the json module, whose import takes as long as a bare interpreter's start. The
catalogue and the control socket call it; needs the GIL.

Only what is plain: objects with names of text, lists, whole numbers of 64 bits, true, false, null,
and text of printable ASCII without quotation marks and backslashes; nothing else between them.
For everything else it asks the json module, so the answer is always that one's.
"""

cpdef bytes json_bytes(object value)
"""Write the bytes that `json.dumps(value, separators=(",", ":"), allow_nan=False)` writes.
ValueError, TypeError, RecursionError: as it raises them."""

cpdef object json_value(bytes text)
"""Read the value that `json.loads` reads. ValueError, RecursionError: as it raises them."""

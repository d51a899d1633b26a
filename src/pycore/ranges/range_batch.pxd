"""Hands the columns of a ledger range out through the Arrow PyCapsule interface. Made by
range_reader."""

from pulsarx._pycore.ranges.range_block cimport ColumnOrder, RangeBlock


cdef class RangeBatch:
    cdef RangeBlock* c_block             # owned: one reference
    cdef readonly tuple column_names


cdef int column_order(object names, ColumnOrder* order) except -1
"""ValueError: a name that is no column (says the nearest one), a name given twice, no name."""

cdef RangeBatch range_batch_new(RangeBlock* block, tuple names)
"""Takes over the caller's reference to the block, also when it raises."""

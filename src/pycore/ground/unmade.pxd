"""Types whose objects native code alone makes. For the modules of such types, once, when they are
imported.
"""

cdef int refuse_new(object kind) except -1
"""Have `kind.__new__` raise TypeError: an object without what native code sets would have its
methods read the memory of nothing."""

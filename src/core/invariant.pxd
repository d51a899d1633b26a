"""States what must hold. A violated invariant is our bug: the process stops with file and line.

For what bad input or a bad disk may cause, return a status instead.
"""

cdef extern from *:
    """
    #ifndef PULSARX_INVARIANT
    #define PULSARX_INVARIANT
    #include <stdio.h>
    #include <stdlib.h>
    #define invariant(condition) \\
        do { if (__builtin_expect(!(condition), 0)) { \\
            fprintf(stderr, "pulsarx: invariant violated: %s (%s:%d)\\n", \\
                    #condition, __FILE__, __LINE__); \\
            abort(); } } while (0)
    #endif
    """
    void invariant(bint condition) noexcept nogil

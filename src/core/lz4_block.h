/* The reference implementation of LZ4, compiled into its one user: nobody else sees its names. */

#define LZ4LIB_VISIBILITY static
#define LZ4_DISABLE_DEPRECATE_WARNINGS
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

#include "../../vendored/lz4/lz4.h"
#include "../../vendored/lz4/lz4.c"

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* Cython has these, too. */
#undef likely
#undef unlikely

"""Reads weak references. All of pycore may call it, with the GIL.

CPython 3.15 has no PyWeakref_GetObject any more, and 3.12 not yet what takes its place.
"""

cdef extern from *:
    """
    static CYTHON_INLINE PyObject *pulsarx_referent(PyObject *reference) {
    #if PY_VERSION_HEX >= 0x030D0000
        PyObject *found = NULL;
        if (PyWeakref_GetRef(reference, &found) < 0)
            return NULL;
        return found ? found : Py_NewRef(Py_None);
    #else
        return Py_XNewRef(PyWeakref_GetObject(reference));
    #endif
    }
    """
    # None: it is gone.
    object referent "pulsarx_referent" (object reference)

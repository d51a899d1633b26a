# cython: language_level=3
"""Body of unmade.pxd."""

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        void* tp_dict
    void PyType_Modified(PyTypeObject* kind)


def _refuse(kind, *_, **__) -> None:
    raise TypeError(f"{kind.__name__} is not made by __new__: consumers and readers give them")


cdef int refuse_new(object kind) except -1:
    # The slot stays as it is: native code makes them by it.
    cdef PyTypeObject* found = <PyTypeObject*>kind
    (<dict>found.tp_dict)["__new__"] = staticmethod(_refuse)
    PyType_Modified(found)
    return 0

"""Declares the C calls by which a bare vectorcall function replaces a method of an extension
type."""

from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    ctypedef struct PyMethodDef:
        const char* ml_name
        void* ml_meth
        int ml_flags
        const char* ml_doc

ctypedef object (*FastCall)(object self, PyObject** arguments, Py_ssize_t count, PyObject* names)

cdef struct EverydayCall:                # send_async(content, callback, partition_key=key)
    PyObject* content
    PyObject* callback
    PyObject* key

cdef bint everyday_call(PyObject** arguments, Py_ssize_t count, PyObject* names,
                        EverydayCall* call) noexcept
"""Take a call of one of the everyday forms apart. False: it is another one."""

cdef object described(object self, PyObject** arguments, Py_ssize_t count, PyObject* names)
"""Call send_async_described with the same arguments."""

cdef int install_send_async(PyTypeObject* owner, PyMethodDef* method, FastCall function) except -1
"""Give a type its send_async. method: static."""

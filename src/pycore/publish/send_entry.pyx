# cython: language_level=3
"""send_async as a bare vectorcall function, installed into ProducerCore when this module is
imported.

A `def` of eleven arguments counts the references of nine defaults up and down at each call, nine
dependent
increments of the same `None`: a quarter of the whole send. The two everyday forms are taken apart
here by hand;
every other call goes on to `send_async_described`.
"""

from cpython.object cimport PyObject, PyTypeObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from pulsarx._pycore.publish.producer_core cimport ProducerCore

cdef extern from "Python.h":
    int METH_FASTCALL
    int METH_KEYWORDS
    object PyDescr_NewMethod(PyTypeObject* owner, PyMethodDef* method)
    void PyType_Modified(PyTypeObject* owner)
    object PyObject_VectorcallMethod(object name, PyObject** arguments, size_t count,
                                     PyObject* names)

cdef extern from *:
    """
    static PyObject *pulsarx_type_dict(PyTypeObject *type) { return type->tp_dict; }
    """
    PyObject* pulsarx_type_dict(PyTypeObject* owner)

cdef enum:
    ARGUMENTS_MAX = 13          # with self

cdef str PARTITION_KEY = "partition_key"      # interned, as the names of a call are
cdef str DESCRIBED = "send_async_described"

cdef PyMethodDef DEFINITION


cdef bint everyday_call(PyObject** arguments, Py_ssize_t count, PyObject* names,
                        EverydayCall* call) noexcept:
    call.key = <PyObject*>None
    if names == NULL:
        if count == 4 and arguments[2] == <PyObject*>None:
            call.key = arguments[3]
        elif count != 2:
            return False
    elif count == 2 and PyTuple_GET_SIZE(<tuple>names) == 1 and (
            <PyObject*>PyTuple_GET_ITEM(<tuple>names, 0) == <PyObject*>PARTITION_KEY):
        call.key = arguments[2]
    else:
        return False
    call.content = arguments[0]
    call.callback = arguments[1]
    return True


cdef object send_async(object self, PyObject** arguments, Py_ssize_t count, PyObject* names):
    cdef ProducerCore core = <ProducerCore>self
    cdef EverydayCall call
    if not everyday_call(arguments, count, names, &call) or not (
            core.plain_sends and type(<object>call.content) is bytes):
        return described(self, arguments, count, names)
    if call.callback == <PyObject*>None:
        core.send_untold(<object>call.content, <object>call.key)
    else:
        core.send_told(<object>call.content, <object>call.callback, <object>call.key)
    return None


cdef object described(object self, PyObject** arguments, Py_ssize_t count, PyObject* names):
    cdef PyObject* all_arguments[ARGUMENTS_MAX]
    cdef Py_ssize_t named = 0 if names == NULL else PyTuple_GET_SIZE(<tuple>names)
    cdef Py_ssize_t at
    if count + named >= ARGUMENTS_MAX:
        raise TypeError(f"send_async takes at most 11 arguments, not {count + named}")
    if count < 2 and (names == NULL or "callback" not in <tuple>names):
        raise TypeError("send_async() missing 1 required positional argument: 'callback'; "
                        "it may be None")
    all_arguments[0] = <PyObject*>self
    for at in range(count + named):
        all_arguments[at + 1] = arguments[at]
    try:
        return PyObject_VectorcallMethod(DESCRIBED, all_arguments, <size_t>count + 1, names)
    except TypeError as error:
        said = str(error)
        if DESCRIBED not in said:
            raise
        raise TypeError(said.replace(DESCRIBED, "send_async")) from None


cdef int install_send_async(PyTypeObject* owner, PyMethodDef* method,
                            FastCall function) except -1:
    method.ml_name = "send_async"
    method.ml_meth = <void*>function
    method.ml_flags = METH_FASTCALL | METH_KEYWORDS
    method.ml_doc = (
        b"send_async($self, content, callback, properties=None, partition_key=None,\n"
        b"           ordering_key=None, sequence_id=None, replication_clusters=None,\n"
        b"           disable_replication=False, event_timestamp=None, deliver_at=None,\n"
        b"           deliver_after=None)\n--\n\n")  # Producer.send_async says the rest
    (<dict>pulsarx_type_dict(owner))["send_async"] = PyDescr_NewMethod(owner, method)
    PyType_Modified(owner)
    return 0


install_send_async(<PyTypeObject*>ProducerCore, &DEFINITION, send_async)

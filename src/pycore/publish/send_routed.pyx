# cython: language_level=3
"""send_async of a PartitionRouter as a bare vectorcall function, installed when this module is
imported."""

from cpython.object cimport PyCallable_Check, PyObject, PyTypeObject

from pulsarx._pycore.publish.partition_router cimport PartitionRouter
from pulsarx._pycore.publish.producer_core cimport ProducerCore, refuse_callback
from pulsarx._pycore.publish.send_entry cimport (
    EverydayCall, PyMethodDef, described, everyday_call, install_send_async,
)

cdef PyMethodDef DEFINITION


cdef object send_async(object self, PyObject** arguments, Py_ssize_t count, PyObject* names):
    cdef PartitionRouter router = <PartitionRouter>self
    cdef ProducerCore producer
    cdef EverydayCall call
    if not everyday_call(arguments, count, names, &call) or not router.is_open or (
            router.router is not None or type(<object>call.content) is not bytes):
        return described(self, arguments, count, names)
    if call.callback != <PyObject*>None and not PyCallable_Check(<object>call.callback):
        refuse_callback(<object>call.callback)
    producer = router.route(<object>call.content, None, <object>call.key, None, None)
    if not producer.plain_sends:
        producer.send_async_described(<object>call.content, <object>call.callback, None,
                                      <object>call.key)
    elif call.callback == <PyObject*>None:
        producer.send_untold(<object>call.content, <object>call.key)
    else:
        producer.send_told(<object>call.content, <object>call.callback, <object>call.key)
    return None


install_send_async(<PyTypeObject*>PartitionRouter, &DEFINITION, send_async)

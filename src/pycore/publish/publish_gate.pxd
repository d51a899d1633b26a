"""The publish gate of a topic as producers are given it. Beneath the policies of the broker.

A gate is there only where a policy asks about each entry; `core/publish_gate` says what it may
answer.
"""

from pulsarx._core.publish_gate cimport PublishGate


cdef class Gate:
    cdef PublishGate* c_gate             # inside the object that a kind of gate is

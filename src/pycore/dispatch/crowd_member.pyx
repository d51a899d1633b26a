# cython: language_level=3
"""Body of crowd_member.pxd."""


cdef class CrowdMember:
    """See the pxd."""

"""Body of weak_list.pxd."""

from cpython.weakref cimport PyWeakref_NewRef


cdef class WeakList:
    def __cinit__(self) -> None:
        self.references = {}
        self.prune_at = 16

    def add(self, member) -> None:
        reference = PyWeakref_NewRef(member, None)
        self.references[id(reference)] = reference
        if len(self.references) > self.prune_at:
            for key, each in list(self.references.items()):
                if each() is None:
                    self.references.pop(key, None)
            self.prune_at = 2 * len(self.references) + 16

    def members(self) -> list:
        """Return the objects that are still there, in the order they were added."""
        found = [reference() for reference in list(self.references.values())]
        return [each for each in found if each is not None]

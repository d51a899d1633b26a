"""Changes native functions of this process, so that a test sees what a library would do that has a
bug there. For processes that end soon: nothing is put back."""

from __future__ import annotations

import ctypes
import importlib
import mmap
import platform

_RETURN_0 = {"x86_64": bytes.fromhex("31c0c3")}  # xor eax, eax; ret
CAN_CHANGE = platform.machine() in _RETURN_0
WHY_NOT = "machine code is changed on x86_64 alone"


def let_return_0(module: str, *functions: str) -> None:
    """Functions of the core do nothing from now on and answer 0, for whoever calls them."""
    table = importlib.import_module(f"pulsarx._core.{module}").__pyx_capi__
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    code = _RETURN_0[platform.machine()]
    for function in functions:
        at = pointer_of(table[function], name_of(table[function]))
        page = at // mmap.PAGESIZE * mmap.PAGESIZE
        if protect(page, 2 * mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
            raise OSError(ctypes.get_errno(), "mprotect")
        ctypes.memmove(at, code, len(code))

from pulsarx.ground.linked_modules import LIBRARY

if LIBRARY not in __path__:
    __path__.append(LIBRARY)

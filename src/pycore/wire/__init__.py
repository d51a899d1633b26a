from pulsarx.linked_modules import LIBRARY

__path__.append(LIBRARY)

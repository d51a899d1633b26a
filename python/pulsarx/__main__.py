"""`python -m pulsarx`."""

from __future__ import annotations

import sys

from pulsarx.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What the command line exits with; part of its interface, see README.md.

0    done; also where the reader of its output left (a broken pipe)
1    failed: the error is on standard error
2    the command line cannot be understood, or one of its values
3    `check` has found damage
130  interrupted by Ctrl-C
"""

from __future__ import annotations

DONE = 0
FAILED = 1
USAGE = 2
DAMAGED = 3
INTERRUPTED = 130

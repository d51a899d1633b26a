"""Serves a folder, in a process of its own.

python served_folder.py FOLDER [DURABILITY]    prints its URL, and runs until its standard input is
closed; without DURABILITY `os`
"""

from __future__ import annotations

import sys

import pulsarx
from pulsarx.server import serve

if __name__ == "__main__":
    durability = sys.argv[2] if len(sys.argv) > 2 else "os"
    with (
        pulsarx.Client(sys.argv[1], durability=durability) as client,
        serve(client, port=0) as service,
    ):
        print(service.service_url, flush=True)
        sys.stdin.read()

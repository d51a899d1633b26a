"""Serves a folder, in a process of its own.

python served_folder.py FOLDER       prints its URL, and runs until its standard input is closed
"""

from __future__ import annotations

import sys

import pulsarx
from pulsarx.server import serve

if __name__ == "__main__":
    with pulsarx.Client(sys.argv[1], durability="os") as client, serve(client, port=0) as service:
        print(service.service_url, flush=True)
        sys.stdin.read()

"""`python -m pulsarx serve`: serves a folder to programs with any client of Pulsar."""

from __future__ import annotations

import signal
import sys

from pulsarx.errors import InvalidConfiguration, PulsarException, detail_of

USAGE = """\
usage: python -m pulsarx serve FOLDER [--host ADDRESS] [--port NUMBER] [--allow-anonymous]

Owns FOLDER, and serves it in Pulsar's binary protocol until SIGTERM or SIGINT comes. Prints
one line when it listens.

  --host ADDRESS     where to listen; 127.0.0.1 unless told
  --port NUMBER      6650 unless told; 0 takes a free one, which the line says
  --allow-anonymous  listen on an address that others reach too, who are not asked who they are"""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Python's own is 5 ms, which a message would wait for whenever it goes from thread to thread.
_SWITCH_SECONDS = 0.0005


class _Usage(Exception):
    """The command line cannot be understood."""


def main(arguments: list[str]) -> int:
    """The exit status. arguments: behind `serve`. The main thread alone may call."""
    if any(each in ("-h", "--help") for each in arguments):
        print(USAGE)
        return 0
    try:
        folder, options = _parse(arguments)
    except _Usage as error:
        print(f"{error}\n\n{USAGE}", file=sys.stderr)
        return 2
    sys.setswitchinterval(_SWITCH_SECONDS)
    # They wait until it is served, so that neither opening nor closing is cut in half.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        return _serve(folder, options)
    except PulsarException as error:
        print(detail_of(error), file=sys.stderr)
        return 2 if isinstance(error, InvalidConfiguration) else 1
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(folder: str, options: dict[str, str]) -> int:
    from pulsarx.client import Client
    from pulsarx.server.broker_service import DEFAULT_PORT, serve

    with (
        Client(folder) as client,
        serve(
            client,
            host=options.get("--host", "127.0.0.1"),
            port=int(options.get("--port", DEFAULT_PORT)),
            allow_anonymous="--allow-anonymous" in options,
        ) as service,
    ):
        print(f"{folder} is served at {service.service_url}", flush=True)
        signal.sigwait(_SIGNALS)
    return 0


def _parse(arguments: list[str]) -> tuple[str, dict[str, str]]:
    """The folder, and the options that are given."""
    folders: list[str] = []
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name == "--allow-anonymous" and not equals:
            found[name] = ""
        elif name in ("--host", "--port"):
            if not equals and not rest:
                raise _Usage(f"{name} needs a value")
            found[name] = value if equals else rest.pop(0)
        elif name.startswith("-"):
            raise _Usage(f"there is no option {name}")
        else:
            folders.append(name + equals + value)
    if len(folders) != 1:
        raise _Usage("which folder? Give one")
    port = found.get("--port", "0")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise _Usage(f"--port {port}: give a number from 0 to 65535")
    return folders[0], found

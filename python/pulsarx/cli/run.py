"""`python -m pulsarx run`: runs a program written for the official client, unchanged."""

from __future__ import annotations

import io
import os
import runpy
import sys
from types import ModuleType

from pulsarx import install_as_pulsar
from pulsarx.errors import PulsarException, detail_of
from pulsarx.options import routes as table

USAGE = """\
usage: python -m pulsarx run [--root FOLDER] [--route URL=FOLDER]...
                             [--namespace TENANT/NAMESPACE]... [--http[=PORT]]
                             PROGRAM [argument...]

Runs PROGRAM, a file or `-m MODULE`, with `import pulsar` finding PulsarX.

  --root FOLDER         each cluster that the program opens is a folder below this one,
                        named after its host; with `memory:` all is gone when the program ends
  --route URL=FOLDER    where one cluster's URL leads, as pulsar://localhost:6650=events
  --namespace TENANT/NAMESPACE
                        made in each cluster that has it not; public/default is there
  --http[=PORT]         Pulsar's admin REST API at http://localhost:8080, or at another port, while
                        PROGRAM runs: of the one --route, or of pulsar://localhost:6650

They stand before PROGRAM or right behind it. What follows is the program's; a `--` ends
ours, where the program has arguments of the same name. --root or --route must be given."""


_LOCAL = "pulsar://localhost:6650"
_HTTP_PORT = "8080"
_SERVED: list[object] = []  # a service ends when it is forgotten


class _Usage(Exception):
    """The command line cannot be understood."""


def main(arguments: list[str]) -> int:
    """The exit status; what the program raises, SystemExit too, comes out of this."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    try:
        program, is_module, rest, options = _parse(arguments)
        _install(options)
    except (_Usage, PulsarException) as error:
        said = detail_of(error) if isinstance(error, PulsarException) else error
        print(f"{said}\n\n{USAGE}", file=sys.stderr)
        return 2
    if not is_module and not os.path.exists(program):
        print(f"there is no file {program!r}", file=sys.stderr)
        return 2
    # As `python` has them while it runs a program.
    sys.argv = [program, *rest]
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(program))
    if is_module:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    elif os.path.isfile(program):
        _run_file(program)
    else:
        runpy.run_path(program, run_name="__main__")
    return 0


def _run_file(program: str) -> None:
    """Run a file like `python program`. The module stays `__main__`, also for threads that outlive
    its code."""
    module = ModuleType("__main__")
    module.__file__ = program
    sys.modules["__main__"] = module
    with io.open_code(program) as file:
        code = compile(file.read(), program, "exec", dont_inherit=True)
    exec(code, module.__dict__)


def _parse(
    arguments: list[str],
) -> tuple[str, bool, list[str], list[tuple[str, str]]]:
    """Program, whether it is a module, its arguments, and ours."""
    rest, options = _options(arguments)
    is_module = rest[:1] == ["-m"]
    if is_module:
        rest = rest[1:]
    if not rest:
        raise _Usage("which program? Give a file or -m MODULE")
    program = rest[0]
    rest, behind = _options(rest[1:])
    return program, is_module, rest, options + behind


def _install(options: list[tuple[str, str]]) -> None:
    routes: dict[str, str] = {}
    for route in (value for name, value in options if name == "--route"):
        url, equals, folder = route.partition("=")
        if not equals or not folder:
            raise _Usage(f"--route {route}: write URL=FOLDER")
        if routes.setdefault(url, folder) != folder:
            raise _Usage(f"--route {url} is given twice: {routes[url]}, {folder}")
    roots = [value for name, value in options if name == "--root"]
    if len(roots) > 1:
        raise _Usage(f"--root is given twice: {roots[0]}, {roots[1]}")
    if not routes and not roots:
        raise _Usage("where do the program's URLs lead? Give --root or --route")
    namespaces = [value for name, value in options if name == "--namespace"]
    ports = [value for name, value in options if name == "--http"]
    if len(ports) > 1:
        raise _Usage("--http is given twice")
    for port in ports:
        if not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise _Usage(f"--http={port}: give a number from 0 to 65535")
    install_as_pulsar(routes, root=roots[0] if roots else None, namespaces=namespaces)
    from pulsarx.compat.started_processes import tell_started

    table.last()
    tell_started()
    for port in ports:
        _serve(next(iter(routes)) if len(routes) == 1 and not roots else _LOCAL, int(port))


def _serve(service_url: str, port: int) -> None:
    """Have the cluster of a URL administered over HTTP until the process ends."""
    from pulsarx.client import Client
    from pulsarx.rest.http_service import serve_http

    try:
        served = serve_http(Client(service_url), port=port)
    except ImportError as error:
        raise _Usage(str(error)) from None
    _SERVED.append(served)
    print(f"{service_url} is administered at {served.url}", file=sys.stderr, flush=True)


def _options(arguments: list[str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Split the arguments into what follows our options, and our options."""
    found: list[tuple[str, str]] = []
    rest = list(arguments)
    while rest:
        name, equals, value = rest[0].partition("=")
        if rest[0] == "--":
            return rest[1:], found
        if name not in ("--root", "--route", "--namespace", "--http"):
            break
        del rest[0]
        if name == "--http":
            value = value if equals else _HTTP_PORT
        elif not equals:
            if not rest:
                raise _Usage(f"{name} needs a value")
            value = rest.pop(0)
        found.append((name, value))
    return rest, found

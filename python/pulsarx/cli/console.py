"""`pulsarx console`: the page of `pulsarx serve` for a folder, with or without an owner."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from pulsarx import errors
from pulsarx.cli.command import command, folder_argument
from pulsarx.cli.declared import Whole, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsarx.cli.folder import Folder

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SECRET_SIZE = 24  # bytes


@command("pulsarx console --port 8090")
@folder_argument
@option(
    "-p",
    "--port",
    type=Whole(0, 65535),
    default=0,
    show_default=True,
    help="Where to listen on 127.0.0.1; 0: a free port.",
)
@option("--no-browser", is_flag=True, help="Print the address alone.")
def console(folder: Folder, port: int, no_browser: bool) -> None:
    """Show a page to look into the folder and to operate it, until Ctrl-C.

    It is opened in the browser when the output is a terminal, and its address is printed.
    Ownership of the folder does not change: requests go to the owner; without one, files are read,
    and the folder is owned for the time of a change. Only programs of this machine reach the page,
    and access needs the full address.
    """
    import secrets
    import webbrowser

    from pulsarx.rest.console_service import ConsoleService

    if folder.is_http:
        raise errors.InvalidUrl(
            detail=f"{folder.place} has a page of its own: open it in a browser"
        )
    secret = secrets.token_urlsafe(_SECRET_SIZE)
    # They wait until it is served, so that neither opening nor closing is cut in half.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        with ConsoleService(folder.path, lambda: folder.owned("console"), secret, port) as service:
            address = f"{service.url}/#key={secret}"
            folder.output.record({"folder": service.place, "url": address})
            folder.output.flush()
            if folder.output.is_table and not no_browser and _has_display():
                signal.pthread_sigmask(signal.SIG_SETMASK, before)  # for the browser inherits it
                with _leading_to(address) as place:
                    webbrowser.open(place)
                    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
                    signal.sigwait(_SIGNALS)
            else:
                signal.sigwait(_SIGNALS)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _has_display() -> bool:
    """Else a browser of text would take the terminal."""
    return any(os.environ.get(each) for each in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


@contextmanager
def _leading_to(address: str) -> Iterator[str]:
    """The address of a file that leads there and that only this user may read, while it is needed:
    command lines, the browser's too, are seen by all users of the machine."""
    import html
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="pulsarx-") as folder:
        path = Path(folder) / "console.html"
        text = f'<meta http-equiv="refresh" content="0; url={html.escape(address)}">'
        path.write_text(f"<!doctype html><title>PulsarX</title>{text}", encoding="utf-8")
        yield path.as_uri()

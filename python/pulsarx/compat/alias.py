"""Makes `import pulsar` and `import _pulsar` find PulsarX in place of the official client."""

from __future__ import annotations

import os
import sys

from pulsarx.errors import InvalidTopicName, NotAllowedError, OperationNotSupported
from pulsarx.options import routes as table
from pulsarx.options.service_url import parse_service_url
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    Path = str | os.PathLike[str]

_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.join(_HERE, "pulsar")
_FILES = {
    "pulsar": os.path.join(_PACKAGE, "__init__.py"),
    "_pulsar": os.path.join(_HERE, "_pulsar.py"),
    "pulsar.asyncio": os.path.join(_HERE, "pulsar_asyncio.py"),
}


class Finder:
    """A finder of sys.meta_path: finds the modules of the alias. The other ones of `pulsar` lie in
    its folder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        file = _FILES.get(fullname)
        if file is None:
            return None
        from importlib.util import spec_from_file_location

        folder = [_PACKAGE] if fullname == "pulsar" else None
        return spec_from_file_location(fullname, file, submodule_search_locations=folder)


_finder = Finder()


def install_as_pulsar(
    routes: Mapping[str, Path] | None = None,
    *,
    root: Path | None = None,
    namespaces: Iterable[str] = (),
) -> None:
    """Make `import pulsar` find PulsarX, in this process, and let the URLs of clusters lead to
    folders.

    Two URLs are of one cluster when their hosts are the same, whatever the scheme; localhost and
    127.0.0.1 are one host, as are the standard ports. Called again it adds routes. Call it before
    the first `import pulsar`.

    Args:
        routes: Service URL to folder, `file:...` or `memory:name`, which clients of that URL open.
        root: Where the URLs lead that have no route: each to a folder of its host's name below it.
            With `memory:` each to a broker in memory. None: Client refuses them.
        namespaces: `tenant/namespace`, made where a client opens a cluster and they are not there.

    Raises:
        NotAllowedError: The official client is loaded already, whose classes the program may hold.
            Nothing is changed then, nor by the next ones.
        InvalidConfiguration: A URL leads elsewhere already.
        InvalidUrl: No URL of a cluster, or no place.
        InvalidTopicName: No name of a namespace.
        OperationNotSupported: A route leads to a cluster.

    Example:
        import pulsarx

        pulsarx.install_as_pulsar({"pulsar://localhost:6650": "events"})
        import pulsar

        with pulsar.Client("pulsar://localhost:6650") as client:
            client.create_producer("orders").send(b"one")
        pulsarx.uninstall_as_pulsar()
    """
    for name in ("pulsar", "_pulsar"):
        loaded = sys.modules.get(name)
        if loaded is not None and not _is_ours(loaded):
            raise NotAllowedError(
                detail=f"{name} is loaded already, from {getattr(loaded, '__file__', None)}; "
                "call install_as_pulsar before the first import of it"
            )
    places = {url: _place(target) for url, target in (routes or {}).items()}
    names = tuple(_namespace(each) for each in namespaces)
    table.add(places, None if root is None else _place(root), names)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall_as_pulsar() -> None:
    """Undo install_as_pulsar: the next `import pulsar` finds what is installed, and no URL has a
    route. Names that were imported from the alias, and open clients, stay what they are."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("pulsar", "_pulsar") and _is_ours(module):
            del sys.modules[name]
    table.clear()


def _namespace(name: str) -> str:
    if name.count("/") != 1:
        raise InvalidTopicName(detail=f"{name!r} is no namespace; write tenant/namespace")
    TopicName.of(f"{name}/topic")
    return name


def _is_ours(module: ModuleType) -> bool:
    return (getattr(module, "__file__", None) or "").startswith(_HERE + os.sep)


def _place(target: Path) -> tuple[str | None, str | None]:
    try:
        found = parse_service_url(target)
    except OperationNotSupported:
        raise OperationNotSupported(
            detail=f"a route leads to a folder or memory, not to {target!r}"
        ) from None
    return found.folder, found.memory_name

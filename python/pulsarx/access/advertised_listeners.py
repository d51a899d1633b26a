"""Named addresses of a service, to which clients are led, as by Pulsar's advertisedListeners."""

from __future__ import annotations

from urllib.parse import urlsplit

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SCHEMES = ("pulsar", "pulsar+ssl")


class AdvertisedListener:
    """A value. Its URLs, without TLS and with it; None: there is no such one."""

    __slots__ = ("service_url", "service_url_tls")

    def __init__(self, service_url: str | None, service_url_tls: str | None) -> None:
        self.service_url: str | None = service_url
        self.service_url_tls: str | None = service_url_tls

    def urls(self) -> tuple[str | None, str | None]:
        return self.service_url, self.service_url_tls

    def hosts(self) -> list[str]:
        return [str(urlsplit(each).hostname) for each in self.urls() if each is not None]


def listeners_of(given: Mapping[str, str | Iterable[str]]) -> dict[str, AdvertisedListener]:
    """By name. given: a URL a name, or two where one of them is with TLS. InvalidConfiguration:
    what cannot be one."""
    found: dict[str, AdvertisedListener] = {}
    owners: dict[tuple[str, int], str] = {}  # the name of each host and port, which has one
    for name, urls in given.items():
        if not isinstance(name, str) or not name or name.strip() != name:
            raise _flaw(f"the name {name!r:.200}", "give a text without spaces around it")
        by_scheme: dict[str, str] = {}
        for url in [urls] if isinstance(urls, str) else urls:
            scheme, host, port = _parts(name, url)
            if scheme in by_scheme:
                raise _flaw(f"{name} has {by_scheme[scheme]} and {url}", "give one of a kind")
            if owners.setdefault((host, port), name) != name:
                raise _flaw(
                    f"{host}:{port} is that of {owners[host, port]} and of {name}",
                    "names that lead to one place are one",
                )
            by_scheme[scheme] = url
        if not by_scheme:
            raise _flaw(f"{name} has no URL", "give one, as pulsar://host:6650")
        found[name] = AdvertisedListener(by_scheme.get("pulsar"), by_scheme.get("pulsar+ssl"))
    return found


def _parts(name: str, url: object) -> tuple[str, str, int]:
    way_out = f"{name}: give {' or '.join(f'{each}://host:port' for each in _SCHEMES)}"
    if not isinstance(url, str):
        raise _flaw(f"{url!r:.200}", way_out)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _flaw(f"{url!r:.200}", way_out) from None
    if parts.scheme not in _SCHEMES or not host or not port:
        raise _flaw(f"{url!r:.200}", way_out)
    end = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if not is_host(host) or parts.netloc.lower() != end or url != url.strip():
        raise _flaw(f"{url!r:.200}", way_out)
    if parts.path or parts.query or parts.fragment:
        raise _flaw(f"{url!r:.200}", way_out)
    return parts.scheme, host, port


def _flaw(what: str, way_out: str) -> Exception:
    return errors.InvalidConfiguration(detail=f"advertised_listeners: {what}; {way_out}")


def is_host(text: str) -> bool:
    import ipaddress

    if ":" in text:
        try:
            ipaddress.IPv6Address(text)
            return True
        except ValueError:
            return False
    return bool(text) and text.isascii() and all(each.isalnum() or each in "-._" for each in text)


def no_such_listener(name: str) -> str:
    """Pulsar's words, which its clients look for."""
    return f"the broker do not have {name} listener"

"""`python -m pulsarx serve`: serves a folder to programs with any client of Pulsar."""

from __future__ import annotations

import signal
import sys

from pulsarx.errors import InvalidConfiguration, PulsarException, detail_of
from pulsarx.options.service_url import CLUSTER_SCHEMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.access import AccessSettings, TlsSettings
    from pulsarx.broker_options import BrokerOptions

USAGE = """\
usage: python -m pulsarx serve FOLDER [OPTION]...

Owns FOLDER, and serves it in Pulsar's binary protocol and by Pulsar's admin REST API until
SIGTERM or SIGINT comes. Prints where when it listens, a line each.

  --host ADDRESS      where to listen; 127.0.0.1 unless told
  --port NUMBER       6650 unless told; 0 takes a free one, which the line says
  --http-port NUMBER  of the REST API and /metrics; 8080 unless told, or a free one with --port 0
  --no-http           serve the binary protocol alone
  --broker-option NAME=VALUE
                      of BrokerOptions, as offload_url=s3://bucket/prefix or
                      default_retention_time_in_minutes=60. May be given more than once
  --advertised-address NAME
                      what clients are led to; else the address that they have reached
  --advertised-listener NAME=URL
                      what clients are led to that ask for NAME (their listener_name), as
                      outside=pulsar://broker.example.org:6650. Once more with the same NAME for
                      pulsar+ssl://. May be given more than once
  --allow-anonymous   listen on an address that others reach too, who are not asked who they are

TLS, in the files PEM:
  --tls-certificate FILE   of this server, with what is between it and its authority
  --tls-key FILE           its private key
  --tls-port NUMBER        of the binary protocol with TLS; 6651 unless told, or a free one with
                           --port 0
  --https-port NUMBER      of the REST API and /metrics with TLS; 8443 unless told, or a free one
                           with --port 0
  --tls-only               without TLS nothing is spoken: there is neither --port nor --http-port
  --tls-trust-certs FILE   the authorities that may sign certificates of clients
  --tls-require-client-certificate

Who clients are; those that do not prove it are hung up on:
  --token-secret-key KEY   of tokens with HS256, HS384, HS512: a file, data:;base64,..., base64
  --token-public-key KEY   the same of RS256, PS256, ES256 and so on, in PEM or DER
  --token-auth-claim NAME  the claim that is the role; sub unless told
  --token-audience TEXT    what the claim aud must have
  --token-audience-claim NAME
                           that claim, where it is another one
  --basic-auth-conf FILE   names and passwords, of htpasswd -B
  --tls-authentication     the common name of the client's certificate
  --anonymous-user-role ROLE
                           the role of those who do not prove who they are by any of these, in the
                           place of being hung up on
  --restrict-metrics       /metrics tells a role of the topics alone that it may use
  --superuser ROLE         may do everything; others what they were granted (pulsarx namespaces
                           grant-permission). May be given more than once"""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# Python's own is 5 ms, which a message would wait for whenever it goes from thread to thread.
_SWITCH_SECONDS = 0.0005
_FILES_MAX = 1 << 16  # that are open at once, where the process may have so many


class _Usage(Exception):
    """The command line cannot be understood."""


def main(arguments: list[str]) -> int:
    """The exit status. arguments: behind `serve`. The main thread alone may call."""
    if any(each in ("-h", "--help") for each in arguments):
        print(USAGE)
        return 0
    try:
        folder, options, several = _parse(arguments)
        broker_options = _broker_options(several["--broker-option"])
        listeners = _listeners(several["--advertised-listener"])
    except _Usage as error:
        print(f"{error}\n\n{USAGE}", file=sys.stderr)
        return 2
    sys.setswitchinterval(_SWITCH_SECONDS)
    _raise_files_max()
    # They wait until it is served, so that neither opening nor closing is cut in half.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        return _serve(folder, options, several["--superuser"], listeners, broker_options)
    except ImportError as error:
        alone = "" if "--no-http" in options else "; or serve with --no-http"
        print(f"{error}{alone}", file=sys.stderr)
        return 1
    except PulsarException as error:
        print(detail_of(error), file=sys.stderr)
        return 2 if isinstance(error, InvalidConfiguration) else 1
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _raise_files_max() -> None:
    """Let the process open as many files as it may: each connection takes one."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, _FILES_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _serve(
    folder: str,
    options: dict[str, str],
    superusers: list[str],
    listeners: dict[str, list[str]],
    broker_options: BrokerOptions | None,
) -> int:
    from contextlib import ExitStack

    from pulsarx.access.service_settings import DEFAULT_PORT
    from pulsarx.cli.service_manager import READY, STOPPING, tell_manager
    from pulsarx.client import Client
    from pulsarx.server.broker_service import serve

    host = options.get("--host", "127.0.0.1")
    free = options.get("--port") == "0"
    access, tls = _access(options, superusers), _tls(options)
    tls_port = options.get("--tls-port", "0" if free and tls is not None else None)
    shared: dict[str, Any] = {
        "host": host,
        "allow_anonymous": "--allow-anonymous" in options,
        "access": access,
        "tls": tls,
        "advertised_address": options.get("--advertised-address"),
        "advertised_listeners": listeners,
    }
    with ExitStack() as stack:
        client = stack.enter_context(Client(folder, broker_options=broker_options))
        service = stack.enter_context(
            serve(
                client,
                port=None if "--tls-only" in options else int(options.get("--port", DEFAULT_PORT)),
                tls_port=None if tls_port is None else int(tls_port),
                **shared,
            )
        )
        told = [f"{folder} is served at {service.service_url}"]
        if service.service_url_tls not in (None, service.service_url):
            told.append(f"{folder} is served at {service.service_url_tls}")
        if "--no-http" not in options:
            from pulsarx.rest.http_service import DEFAULT_PORT as HTTP_PORT
            from pulsarx.rest.http_service import DEFAULT_PORT_TLS, serve_http

            ports: dict[str, Any] = {
                "broker_port": None if "--tls-only" in options else service.port,
                "broker_tls_port": service.tls_port,
            }
            found = []
            if "--tls-only" not in options:
                # Nobody shows a certificate there.
                without_tls = {**shared, "tls": None, "access": _access(options, superusers, False)}
                if (access is None) == (without_tls["access"] is None):
                    port = int(options.get("--http-port", 0 if free else HTTP_PORT))
                    http = serve_http(client, port=port, **ports, **without_tls)
                    found.append(stack.enter_context(http))
            if tls is not None:
                port = int(options.get("--https-port", 0 if free else DEFAULT_PORT_TLS))
                https = serve_http(client, port=port, **ports, **shared)
                found.append(stack.enter_context(https))
            told += [f"{folder} is administered at {each.url}" for each in found]
        print("\n".join(told), flush=True)
        tell_manager(READY)
        signal.sigwait(_SIGNALS)
        tell_manager(STOPPING)
    # All is closed: a second signal is not to end it with the status of one that was killed.
    while signal.sigtimedwait(_SIGNALS, 0) is not None:
        pass
    return 0


def _access(
    options: dict[str, str], superusers: list[str], with_certificates: bool = True
) -> AccessSettings | None:
    """with_certificates False: clients prove who they are by other means. None: they need not, or
    there is none."""
    from pulsarx.access import AccessSettings

    named = ("token-secret-key", "token-public-key", "token-audience", "basic-auth-conf")
    with_default = ("token-auth-claim", "token-audience-claim")
    given: dict[str, Any] = {
        name.replace("-", "_"): options[f"--{name}"]
        for name in (*named, *with_default)
        if f"--{name}" in options
    }
    asked = "--tls-authentication" in options
    by_certificate = asked and with_certificates
    anonymous = options.get("--anonymous-user-role")
    restricts = "--restrict-metrics" in options
    wanted = by_certificate or superusers or anonymous is not None or restricts
    if not given and (asked != by_certificate or not wanted):
        return None
    return AccessSettings(
        tls_authentication=by_certificate,
        superuser_roles=superusers,
        anonymous_user_role=anonymous,
        restrict_metrics=restricts,
        **given,
    )


def _tls(options: dict[str, str]) -> TlsSettings | None:
    from pulsarx.access import TlsSettings

    if "--tls-certificate" not in options:
        return None
    return TlsSettings(
        options["--tls-certificate"],
        options["--tls-key"],
        trust_certs_file=options.get("--tls-trust-certs"),
        require_client_certificate="--tls-require-client-certificate" in options,
    )


_FLAGS = (
    "--allow-anonymous", "--no-http", "--tls-only", "--tls-require-client-certificate",
    "--tls-authentication", "--restrict-metrics",
)  # fmt: skip
_PORTS = ("--port", "--http-port", "--tls-port", "--https-port")
_VALUES = (
    "--host", *_PORTS, "--advertised-address", "--tls-certificate", "--tls-key",
    "--tls-trust-certs", "--token-secret-key", "--token-public-key", "--token-auth-claim",
    "--token-audience", "--token-audience-claim", "--basic-auth-conf",
    "--anonymous-user-role",
)  # fmt: skip
_SEVERAL = ("--superuser", "--broker-option", "--advertised-listener")
_TLS = (
    "--tls-key", "--tls-port", "--https-port", "--tls-only", "--tls-trust-certs",
    "--tls-require-client-certificate", "--tls-authentication",
)  # fmt: skip


def _parse(arguments: list[str]) -> tuple[str, dict[str, str], dict[str, list[str]]]:
    """The folder, the options that are given, and those that may be more than once."""
    folders: list[str] = []
    found: dict[str, str] = {}
    several: dict[str, list[str]] = {each: [] for each in _SEVERAL}
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name in _FLAGS and not equals:
            found[name] = ""
        elif name in _VALUES or name in _SEVERAL:
            if not equals and not rest:
                raise _Usage(f"{name} needs a value")
            given = value if equals else rest.pop(0)
            if name in several:
                several[name].append(given)
            else:
                found[name] = given
        elif name.startswith("-"):
            raise _Usage(f"there is no option {name}")
        else:
            folders.append(name + equals + value)
    if len(folders) != 1:
        raise _Usage("which folder? Give one")
    if folders[0].partition("://")[0].lower() in CLUSTER_SCHEMES:
        raise _Usage(f"{folders[0]} is served already; give a folder, or memory:")
    _check(found)
    return folders[0], found, several


def _listeners(given: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in given:
        name, equals, url = each.partition("=")
        if not equals:
            raise _Usage(f"--advertised-listener {each}: give NAME=URL")
        found.setdefault(name, []).append(url)
    return found


def _broker_options(given: list[str]) -> BrokerOptions | None:
    """None: the owner's defaults, or those of the owner there is."""
    if not given:
        return None
    from pulsarx.broker_options import BrokerOptions, option_of_text

    values = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals:
            raise _Usage(f"--broker-option {each}: give NAME=VALUE")
        try:
            values[name] = option_of_text(name, text)
        except ValueError as error:
            raise _Usage(f"--broker-option {each}: {error}") from None
    return BrokerOptions(**values)


def _check(found: dict[str, str]) -> None:
    for name in _PORTS:
        port = found.get(name, "0")
        if not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise _Usage(f"{name} {port}: give a number from 0 to 65535")
    for name, other in (
        ("--http-port", "--no-http"), ("--https-port", "--no-http"),
        ("--port", "--tls-only"), ("--http-port", "--tls-only"),
    ):  # fmt: skip
        if name in found and other in found:
            raise _Usage(f"give either {name} or {other}")
    if "--tls-certificate" in found and "--tls-key" not in found:
        raise _Usage("--tls-certificate needs --tls-key")
    for name in _TLS:
        if name in found and "--tls-certificate" not in found:
            raise _Usage(f"{name} needs --tls-certificate")
    if "--token-audience-claim" in found and "--token-audience" not in found:
        raise _Usage("--token-audience-claim needs --token-audience")

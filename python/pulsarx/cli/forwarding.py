"""`pulsarx forward` and `pulsarx fetch`: topics go to a cluster or another folder, or come from a
cluster, until SIGTERM or SIGINT."""

from __future__ import annotations

import os
import re
import signal

from pulsarx.cli.command import command
from pulsarx.cli.declared import Choice, Failed, argument, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.cli.folder import Folder

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_LOOK_SECONDS = 0.5  # whether all topics have stopped
_PATTERN = re.compile(r"[*+?\[\](){}|^$\\]")  # what no name of a topic is usual to have

_OPTIONS = (
    option(
        "-t",
        "--topics",
        multiple=True,
        required=True,
        metavar="NAME|PATTERN",
        help="A topic, or a pattern such as persistent://public/default/.*, which follows new "
        "ones.",
    ),
    option(
        "--name",
        default="forward",
        show_default=True,
        metavar="NAME",
        help="Of the subscriptions at the source, and of the producers.",
    ),
    option(
        "--admin-url",
        metavar="URL",
        help="The cluster's admin REST API, http://host:8080: makes topics, enables deduplication.",
    ),
    option(
        "--target-namespace",
        metavar="TENANT/NAMESPACE",
        help="Of the topics at the target; else as at the source.",
    ),
    option(
        "--compression-type",
        type=Choice(("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"), case_sensitive=False),
        default="NONE",
        show_default=True,
        help="How batches are compressed for the target.",
    ),
    option(
        "--key-based",
        is_flag=True,
        help="A batch holds messages of one key, for Key_Shared consumers at the target.",
    ),
    option(
        "--at-least-once",
        is_flag=True,
        help="Forward to a target without deduplication; a message may be stored twice.",
    ),
    option(
        "--accept-target",
        is_flag=True,
        help="Go on though the other side is another one than before, or has lost messages.",
    ),
)


def _with_options(function: Callable[..., None]) -> Callable[..., None]:
    for each in reversed(_OPTIONS):
        function = each(function)
    return function


@command("pulsarx forward events pulsar://centre:6650 --topics readings")
@argument("source", metavar="FOLDER")
@argument("target", metavar="URL|FOLDER")
@_with_options
def forward(folder: Folder, source: str, target: str, **options: Any) -> None:
    """Forward topics of FOLDER to a cluster or another folder, until SIGTERM or SIGINT.

    Each message is stored there once, in the order of the topic, whatever is away or killed
    meanwhile. The place is a subscription of each topic. PULSARX_TOKEN has the token of a cluster.
    The exit status is 1 when all topics have stopped by errors.
    """
    _forward(folder, source, target, options)


@command("pulsarx fetch pulsar://centre:6650 events --topics commands")
@argument("source", metavar="URL")
@argument("target", metavar="FOLDER")
@_with_options
def fetch(folder: Folder, source: str, target: str, **options: Any) -> None:
    """Fetch topics of a cluster into FOLDER, until SIGTERM or SIGINT.

    As forward does it the other way round: a message is acknowledged at the cluster when it is
    durable in FOLDER, and stored there once.
    """
    _forward(folder, source, target, options)


def _errors_of(status: dict[str, dict[str, Any]]) -> str:
    return "\n".join(f"{topic}: {each['last_error']}" for topic, each in status.items())


def _forward(folder: Folder, source: str, target: str, options: dict[str, Any]) -> None:
    import logging

    from pulsarx.cli.folder import given_authentication
    from pulsarx.cli.service_manager import READY, STOPPING, tell_manager
    from pulsarx.client import Client
    from pulsarx.enumerations import BatchingType, CompressionType
    from pulsarx.forwarding import Forwarder
    from pulsarx.options.service_url import leads_to_cluster

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    for place in (source, target):
        if not leads_to_cluster(place):
            Client(place, read_only=True).close()  # refuses what would become a data directory
    kinds = {name.upper(): each for name, each in CompressionType.__members__.items()}
    by_key = options.pop("key_based")
    forwarder = Forwarder(
        source,
        target,
        [re.compile(each) if _PATTERN.search(each) else each for each in options.pop("topics")],
        authentication=given_authentication(),
        tls_trust_certs_file_path=os.environ.get("SSL_CERT_FILE") or None,
        compression_type=kinds[options.pop("compression_type").upper()],
        batching_type=BatchingType.KeyBased if by_key else BatchingType.Default,
        **options,
    )
    # They wait until it has begun, so that neither opening nor closing is cut in half.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        with forwarder:
            folder.output.record({"source": source, "target": target, "name": options["name"]})
            folder.output.flush()
            tell_manager(READY)
            while signal.sigtimedwait(_SIGNALS, _LOOK_SECONDS) is None:
                if forwarder.wait(0):
                    raise Failed(_errors_of(forwarder.status()))
            tell_manager(STOPPING)
        # All is closed: a second signal is not to end it with the status of one that was killed.
        while signal.sigtimedwait(_SIGNALS, 0) is not None:
            pass
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

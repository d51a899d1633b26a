"""The policies about how fast messages are published and dispatched, and how often consumers
subscribe, in pulsar-admin's grammar."""

from __future__ import annotations

import click

from pulsarx.cli.command import SIZE
from pulsarx.cli.policy import Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _number(names: str, into: str, default: int, said: str) -> click.Option:
    return click.Option(
        [*names.split(), into], type=int, default=default, show_default=True, help=said
    )


def _bytes(names: str, said: str) -> click.Option:
    return click.Option(
        [*names.split(), "size"], type=SIZE, default=-1, show_default=True, help=said
    )


def _dispatch(name: str, said: str) -> Policy:
    verb = name.replace("-", "_")

    def set_rate(
        group: Any, target: str, msgs: int, size: int, period: int, relative: bool
    ) -> None:
        getattr(group, f"set_{verb}")(target, msgs, size, period, relative)

    return Policy(
        name,
        [
            _number("-md --msg-dispatch-rate", "msgs", -1, f"Messages {said}; -1: any number."),
            _bytes("-bd --byte-dispatch-rate", f"Bytes {said}: 10M; -1: any number."),
            _number("-dt --dispatch-rate-period", "period", 1, "Seconds of a period."),
            click.Option(
                ["-rp", "--relative-to-publish-rate", "relative"],
                is_flag=True,
                help="The publish rate of the topic is added.",
            ),
        ],
        set_rate,
        lambda group, target: getattr(group, f"get_{verb}")(target),
        lambda group, target: getattr(group, f"remove_{verb}")(target),
        "-md 1000 -bd 1M",
    )


RATES = [
    Policy(
        "publish-rate",
        [
            _number(
                "-m --msg-publish-rate", "msgs", -1, "Messages a topic a second; -1: any number."
            ),
            _bytes("-b --byte-publish-rate", "Bytes a topic a second: 10M; -1: any number."),
        ],
        lambda group, target, msgs, size: group.set_publish_rate(target, msgs, size),
        lambda group, target: group.get_publish_rate(target),
        lambda group, target: group.remove_publish_rate(target),
        "-m 1000",
    ),
    _dispatch("dispatch-rate", "a topic dispatches in a period"),
    _dispatch("subscription-dispatch-rate", "each subscription is dispatched in a period"),
    Policy(
        "subscribe-rate",
        [
            _number("-sr --subscribe-rate", "count", 0, "How often a consumer may; 0: any number."),
            _number("-st --subscribe-rate-period", "period", 30, "Seconds of a period."),
        ],
        lambda group, target, count, period: group.set_subscribe_rate(target, count, period),
        lambda group, target: group.get_subscribe_rate(target),
        lambda group, target: group.remove_subscribe_rate(target),
        "-sr 10 -st 60",
    ),
]

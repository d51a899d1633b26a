"""The base of the groups of `client.admin`: the calls that they need to set, get and remove
policies."""

from __future__ import annotations

from pulsarx.options.argument_check import check_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.admin.channel import Channel


class PolicyGroup:
    """Base of the groups, which have a level and a channel."""

    _channel: Channel
    _LEVEL: str  # what the verbs call the level: namespace or topic

    def _set_policy(self, target: str, name: str, value: object) -> None:
        if value is None:
            raise ValueError("None is no value of a policy; use the method that removes it")
        self._put_policy(target, name, value)

    def _get_policy(self, target: str, name: str) -> Any:
        arguments = {self._LEVEL: target, "name": name}
        return self._channel.perform(f"{self._LEVEL}s.get_policy", arguments)

    def _remove_policy(self, target: str, name: str) -> None:
        self._put_policy(target, name, None)

    def _put_policy(self, target: str, name: str, value: object) -> None:
        arguments = {self._LEVEL: target, "policy": {name: value}}
        self._channel.perform(f"{self._LEVEL}s.set_policy", arguments)


# Arguments of a wrong type, told by their names: what is out of bounds the verb tells. ------------


def whole(name: str, value: object) -> int:
    return check_integer(value, name)


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be a bool, not {type(value).__name__}")
    return value


def words(name: str, value: Iterable[str]) -> list[str]:
    if isinstance(value, str):
        raise ValueError(f"{name} is a str; give a list of names")
    return list(value)

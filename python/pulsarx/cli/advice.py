"""Advice about an error, in the words of the command line: its options in the place of Python's
arguments, and names that may have been meant."""

from __future__ import annotations

import os
import re

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.admin import Admin
    from pulsarx.cli.declared import Command, Parameter
    from pulsarx.cli.folder import Folder

_NEAR_MAX = 3
_NAME = r"[A-Za-z_][\w.]*|'[^']*'|\"[^\"]*\"|-?\d+"


def advised(error: Exception, command: Command, given: dict[str, Any], folder: Folder) -> str:
    """Return the text of an error. given: the values of the command's parameters, by name."""
    text = _in_options(errors.detail_of(error), command)
    is_folder_error = isinstance(error, errors.FolderError) and not folder.is_cluster
    if is_folder_error and not os.path.exists(folder.path):
        if f"{folder.path} does not exist" in text:
            text = f"{text.removesuffix('.')}; or make it: pulsarx init {folder.path}"
        return text
    question = _meant_by(error, given, folder)
    return f"{text.removesuffix('.')}.{question}" if question else text


def meant(asked: str, known: Iterable[str]) -> str:
    """Return a question behind a sentence: the known names that are near to what was asked for;
    empty: there are none."""
    import difflib

    near = difflib.get_close_matches(asked, list(known), _NEAR_MAX)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


# Options ------------------------------------------------------------------------------------------


def _in_options(text: str, command: Command) -> str:
    for each in command.parameters:
        if each.is_option and not each.role:
            for name in {each.name, *each.api.split()}:
                text = _in_option(text, name, each)
    # Where both are told, how to do it in Python and here.
    return re.sub(r"client\.admin\.[\w.]+, (?=`pulsarx )", "", text)


def _in_option(text: str, name: str, option: Parameter) -> str:
    """In an error a value is given as `name=value`, and a name with an underscore is Python's."""
    alike = f"--{name.replace('_', '-')}"
    said = alike if alike in option.options else max(option.options, key=len)

    def with_value(found: re.Match[str]) -> str:
        value = (found[1] or "").strip("'\"").rpartition(".")[2]
        if option.is_flag:
            return said if value != "False" else f"no {said}"
        return f"{said} {value}".rstrip()

    text = re.sub(rf"(?<![\w.-])`?{name}=({_NAME})?`?", with_value, text)
    return re.sub(rf"(?<![\w.-])`?{name}`?(?![\w=(.-])", said, text) if "_" in name else text


# Names --------------------------------------------------------------------------------------------


def _meant_by(error: Exception, given: dict[str, Any], folder: Folder) -> str:
    """Names near to the one that was not found. The error stays, whatever comes of asking."""
    try:
        return _near(error, given, folder)
    except (errors.PulsarException, OSError, ValueError):
        return ""


def _near(error: Exception, given: dict[str, Any], folder: Folder) -> str:
    if not isinstance(error, errors.TopicNotFound | errors.SubscriptionNotFound):
        return ""
    admin = folder.admin()
    topic = str(given.get("topic") or given.get("target") or folder.asked_topic)
    if isinstance(error, errors.SubscriptionNotFound):
        return meant(str(given.get("subscription")), admin.topics.get_subscriptions(topic))
    namespace = str(given.get("namespace") or "")
    if not namespace and topic.count("/") == 1 and "://" not in topic:
        namespace = topic  # of the commands about policies of namespaces
    if namespace:
        return meant(namespace, _namespaces(admin))
    if not topic:
        return meant(str(given.get("tenant") or ""), admin.tenants.get_tenants())
    return _near_topic(admin, topic)


def _namespaces(admin: Admin) -> list[str]:
    from pulsarx.cli.listing import all_namespaces

    return all_namespaces(admin, False)


def _near_topic(admin: Admin, topic: str) -> str:
    from pulsarx.cli.listing import listed
    from pulsarx.topic_name import TopicName

    name = TopicName.of(topic)
    namespaces = _namespaces(admin)
    if name.namespace_name not in namespaces:
        return meant(name.namespace_name, namespaces)
    known = {each["topic"] for each in listed(admin, [name.namespace_name], False)}
    if str(name) in known:
        return ""  # something else is missing
    if "/" in topic:
        return meant(str(name), known)
    return meant(topic, [each.rpartition("/")[2] for each in known])

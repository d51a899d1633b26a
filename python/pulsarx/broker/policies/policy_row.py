"""A row of the table of policies: a policy, with its methods, its commands and its form in the REST
API."""

from __future__ import annotations

from pulsarx.broker.policies.policy_value import REQUIRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.policies.policy_value import Kind
    from pulsarx.broker_options import BrokerOptions

NAMESPACE, TOPIC = "namespace", "topic"  # the levels, as verbs name them
# What has to be told when a policy changes; nothing: it is looked up when it matters.
MESSAGES, DEDUPLICATION, COMPACTION = "messages", "deduplication", "compaction"
# What an amount on the command line may be followed by.
DURATION, SIZE, NUMBER = "duration", "size", "number"


class Rest:
    """How Pulsar's admin REST API has a policy. A value."""

    __slots__ = (
        "body", "by_cluster", "field", "invalid", "methods", "paths", "query", "unset", "wrapped",
    )  # fmt: skip

    def __init__(
        self,
        namespace: str,
        topic: str | None,
        *,
        methods: tuple[str, str] = ("POST", "POST"),
        query: str | None = None,
        body: str = "",
        wrapped: str = "",
        field: str = "",
        by_cluster: bool = False,
        unset: dict[str, Any] | None = None,
        invalid: int = 412,
    ) -> None:
        """namespace, topic: the last part of its path; None: that level does not have it. methods:
        that set it, of namespaces and topics. query: a parameter that has it in place of the body,
        as Pulsar wants it of topics. body: what the JSON is called, where that is not its kind.
        wrapped: the field of an object that has the value. field: of the document of all policies
        of a namespace, where that is not our name; by_cluster: in which it stands by cluster.
        unset: what Pulsar answers where nothing is set, by level. invalid: the status of a wrong
        value."""
        self.paths: dict[str, str | None] = {NAMESPACE: namespace, TOPIC: topic}
        self.methods: dict[str, str] = dict(zip((NAMESPACE, TOPIC), methods))
        self.query: str | None = query
        self.body: str = body
        self.wrapped: str = wrapped
        self.field: str = field
        self.by_cluster: bool = by_cluster
        self.unset: dict[str, Any] = unset or {}
        self.invalid: int = invalid


class Methods:
    """The methods of `client.admin` that set, get and remove a policy. A value."""

    __slots__ = (
        "answer", "argument", "arguments", "doc", "is_checked", "is_tuple", "name", "raises",
        "target", "topic_doc",
    )  # fmt: skip

    def __init__(
        self,
        doc: str,
        *,
        name: str = "",
        argument: str = "",
        args: dict[str, str],
        raises: dict[str, str] | None = None,
        get: str = "the value",
        topic: str = "",
        target: str = "target",
        is_checked: bool = True,
        is_tuple: bool = False,
    ) -> None:
        """name: behind set_, where that is not the policy's. argument: of a value that is no
        record. doc: the first paragraphs of the docstring of set_; topic: where they are others
        for topics. args: what its arguments are, with their units. raises: when it raises what,
        besides what all do. get: what get_ returns. target: what the first argument is called;
        empty: as the level. is_checked: a wrong type is told under the name of the argument, else
        by the verb. is_tuple: a record is given back as one."""
        self.name: str = name
        self.argument: str = argument
        self.doc: str = doc.strip()
        self.arguments: dict[str, str] = args
        self.raises: dict[str, str] = raises or {}
        self.answer: str = get
        self.topic_doc: str = topic.strip()
        self.target: str = target
        self.is_checked: bool = is_checked
        self.is_tuple: bool = is_tuple


class Option:
    """An option of the command that sets a policy. A value."""

    __slots__ = (
        "any_case", "argument", "default", "help", "kind", "names", "per", "shows", "times",
        "uneven",
    )  # fmt: skip

    def __init__(
        self,
        names: str,
        argument: str,
        kind: str,
        help: str,
        *,
        default: Any = REQUIRED,
        shows: bool = False,
        times: int = 1,
        per: int = 1,
        uneven: str = "",
        any_case: bool = False,
    ) -> None:
        """argument: of the method. kind: DURATION, SIZE or NUMBER; else its kind of value says what
        may be given. shows: the help names the default. times, per: what is given is so much more
        or less than the method wants; uneven: what is said of a number that does not divide."""
        self.names: str = names
        self.argument: str = argument
        self.kind: str = kind
        self.help: str = help
        self.default: Any = default
        self.shows: bool = shows
        self.times: int = times
        self.per: int = per
        self.uneven: str = uneven
        self.any_case: bool = any_case


class Switch:
    """Two options, of which one is given: the argument is True or False. A value."""

    __slots__ = ("argument", "off", "off_help", "on", "on_help")

    def __init__(
        self,
        argument: str,
        on_help: str,
        off_help: str,
        on: str = "-e --enable",
        off: str = "-d --disable",
    ) -> None:
        self.argument: str = argument
        self.on: str = on
        self.on_help: str = on_help
        self.off: str = off
        self.off_help: str = off_help


class Commands:
    """The commands that set, get and remove a policy, in pulsar-admin's grammar. A value."""

    __slots__ = ("example", "name", "options")

    def __init__(self, *options: Option | Switch, example: str, name: str = "") -> None:
        """example: options of set-. name: behind set-, where that is not the policy's."""
        self.options: tuple[Option | Switch, ...] = options
        self.example: str = example
        self.name: str = name


class Policy:
    """A row. A value."""

    __slots__ = (
        "effect", "for_kept", "kind", "levels", "methods", "name", "needs_store", "option", "rest",
        "_commands",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        kind: Kind,
        *,
        option: str = "",
        levels: tuple[str, ...] = (NAMESPACE, TOPIC),
        effect: str = "",
        for_kept: bool = False,
        needs_store: bool = False,
        rest: Rest | None = None,
        methods: Methods | None = None,
        commands: Commands | None = None,
        topic_commands: Commands | None = None,
    ) -> None:
        """name: of verbs, commits and checkpoints. option: the broker's that holds where no level
        sets it, or several, the first that is not None; of a record its fields have them. effect:
        what is told of a change. for_kept: it is about messages that are kept, so non-persistent
        topics are refused. needs_store: it is about an object store, which the folder must have.
        topic_commands: where topics have others. An end without its part does not have the policy,
        or has it by hand."""
        self.name: str = name
        self.kind: Kind = kind
        self.option: str = option
        self.levels: tuple[str, ...] = levels
        self.effect: str = effect
        self.for_kept: bool = for_kept
        self.needs_store: bool = needs_store
        self.rest: Rest | None = rest
        self.methods: Methods | None = methods
        self._commands = {NAMESPACE: commands, TOPIC: topic_commands or commands}

    def check(self, value: object) -> Any:
        """The value as it is kept. ValueError: the policy cannot have it."""
        return self.kind.check(self.name, value)

    def unset(self, options: BrokerOptions) -> Any:
        """The value in force if no level sets it."""
        return self.kind.unset(options, self.option)

    def shown(self, value: Any) -> Any:
        """A value as Pulsar's admin REST API writes it."""
        found = self.kind.shown(value)
        return {self.rest.wrapped: found} if self.rest and self.rest.wrapped else found

    def read(self, found: Any) -> Any:
        """The value that JSON of that API means; `check` looks at its bounds. ValueError: it means
        none."""
        if self.rest and self.rest.wrapped:
            if not isinstance(found, dict):
                raise ValueError("it must be a JSON object")
            found = found.get(self.rest.wrapped)
        return self.kind.read(found)

    @property
    def method(self) -> str:
        """The part of a method's name that follows set_, get_ and remove_."""
        return (self.methods and self.methods.name) or self.name

    def commands(self, level: str) -> Commands | None:
        """The commands of a level that has the policy; None: this one does not."""
        return self._commands[level] if level in self.levels else None

"""A verb: an operation that a caller can ask of an opened folder, in process or over a connection.

A function becomes one by `@verb(...)` above it, which is all that declares it: its arguments are
those of the function, and every end asks `VERBS` for the rest.
"""

from __future__ import annotations

from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from pulsarx.broker.verbs.http import Http

    Function = TypeVar("Function", bound=Callable[..., Any])

# What a role needs to perform it over a network, as Pulsar's broker asks it; see
# `access/verb_permissions`. What the verb is about is an argument of this name.
LOOKUP, PRODUCE, CONSUME = "lookup", "produce", "consume"
IN_NAMESPACE, TENANT_ADMIN, SUPERUSER = "in namespace", "tenant admin", "superuser"
_ABOUT: dict[str, tuple[str, ...]] = {
    LOOKUP: ("topic",),
    PRODUCE: ("topic",),
    CONSUME: ("topic",),
    IN_NAMESPACE: ("namespace",),
    TENANT_ADMIN: ("topic", "namespace", "tenant"),
    SUPERUSER: (),
}
# By the word in front of an annotation. Json is an object of it.
_KINDS: dict[str, type] = {
    "str": str, "int": int, "bool": bool, "list": list, "dict": dict, "Json": dict,
    "TopicName": TopicName,
}  # fmt: skip

VERBS: dict[str, Verb] = {}  # all of them, once `broker.verbs.table` is imported


class Verb:
    """A value. function(folder, **arguments) answers what JSON can say; it may be repeated, for the
    answer to a request may get lost, unless it is one that removes."""

    __slots__ = ("function", "http", "kinds", "needs", "optional", "reads", "removes")

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        needs: str,
        reads: bool = False,
        removes: bool = False,
        http: Http | None = None,
    ) -> None:
        """function: its arguments behind the first are the verb's, their annotations say what a
        caller has to give, a TopicName as its text, and those with a default need not be there.
        needs: LOOKUP or another of these. reads: changes nothing, so that a folder opened read_only
        can do it. removes: done once more it would take what has come since. http: where Pulsar's
        admin REST API has it.

        TypeError: an argument without such an annotation, or none that says what it is about."""
        code = function.__code__
        names = code.co_varnames[1 : code.co_argcount]
        kinds = {name: _kind_of(function, name) for name in names}
        about = _ABOUT[needs]
        if about and not any(each in kinds for each in about):
            raise TypeError(f"{function.__name__} needs {needs}, and has no {' or '.join(about)}")
        required = len(names) - len(function.__defaults__ or ())
        self.function: Callable[..., Any] = function
        self.http: Http | None = http
        self.kinds: dict[str, type] = kinds
        self.optional: frozenset[str] = frozenset(names[required:])
        self.needs: str = needs
        self.reads: bool = reads
        self.removes: bool = removes


def verb(
    name: str,
    *,
    needs: str,
    reads: bool = False,
    removes: bool = False,
    http: Http | None = None,
) -> Callable[[Function], Function]:
    """Makes the function below a verb of that name. The rest as Verb."""

    def declare(function: Function) -> Function:
        VERBS[name] = Verb(function, needs=needs, reads=reads, removes=removes, http=http)
        return function

    return declare


def _kind_of(function: Callable[..., Any], name: str) -> type:
    annotation = str(function.__annotations__.get(name))
    kind = _KINDS.get(annotation.partition("[")[0].partition(" ")[0])
    if kind is None:
        raise TypeError(f"{function.__name__}: {name} is {annotation}, which no caller can give")
    return kind

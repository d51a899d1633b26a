"""Writes what stands in files of its own and comes from the table of policies: the methods of
`client.admin`, and a table and a list of two documents. A tidy test compares.

    .venv/bin/python tools/write_policies.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from write_docstrings import Docstring

from pulsarx.broker.policies.policy_row import NAMESPACE, TOPIC
from pulsarx.broker.policies.policy_value import REQUIRED, Choices, Flag, Record, Whole
from pulsarx.broker.policies.table import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsarx.broker.policies.policy_row import Methods, Policy
    from pulsarx.broker.policies.policy_value import Kind

ROOT = Path(__file__).resolve().parent.parent
METHODS = ROOT / "python/pulsarx/admin/policy_methods.py"
VALUES = ROOT / "python/pulsarx/broker/README.md"
OVERVIEW = ROOT / "docs/options.md"
BEGIN = "<!-- policies: written by tools/write_policies.py -->"
END = "<!-- /policies -->"
WIDTH = 100

HEAD = '''"""The methods of `client.admin` that set, get and remove policies. Written by
tools/write_policies.py from the table in `broker/policies/table.py`: change it there."""

from __future__ import annotations

from pulsarx.admin.policy_group import PolicyGroup, flag, whole, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any
'''
CLASSES = {
    "": '''class PolicyMethods(PolicyGroup):
    """Base of the groups. A topic's policy wins over its namespace's, that over BrokerOptions; the
    partitions of a topic have its policies, each the whole limit or rate. A get_ call returns what
    is set at this level; None: nothing. A change is durable on return and takes effect at once, for
    open producers and consumers too; but limits of how many there may be, the creation of topics
    and subscriptions, types of subscriptions and schemas are asked for with what comes later: who
    is there stays. Topics whose own name begins with two underscores have none of the policies
    about messages and rates, and the options' limits. A limit of 0 is none, whatever is set above.

    As long as a period of a rate has permits left, an entry (a message, or a batch) passes as a
    whole; what it takes in excess is subtracted from the periods that follow. Permits that a period
    does not use are lost.
    """
''',
    NAMESPACE: '''class NamespacePolicies(PolicyMethods):
    """Base of `client.admin.namespaces`."""
''',
    TOPIC: '''class TopicPolicies(PolicyMethods):
    """Base of `client.admin.topics`."""
''',
}
TARGETS = {
    "": "The namespace, or the topic.",
    NAMESPACE: "The namespace.",
    TOPIC: "The topic, or a partition of it.",
}
MISSING = {
    "": "There is no such namespace, or topic.",
    NAMESPACE: "There is no such namespace.",
    TOPIC: "There is no such topic.",
}
REMOVING = "Take back what was set here: the level above applies again."
CHECKS: dict[type[Kind], str] = {Whole: "whole", Flag: "flag", Choices: "words"}


def methods_text(rows: Sequence[Policy]) -> str:
    """The module with the methods of these policies."""
    parts = [HEAD]
    for level, head in CLASSES.items():
        found = [text for row in rows for text in _methods_of(row, level)]
        parts.append("\n\n" + "\n".join([head, *found]))
    return "".join(parts)


def _methods_of(row: Policy, level: str) -> list[str]:
    """What a policy has in the class of a level; "": in that of both."""
    methods = row.methods
    if methods is None:
        return []
    shared = methods.target if row.levels == (NAMESPACE, TOPIC) else ""
    if (level == "") != bool(shared) or (level and level not in row.levels):
        return []
    target = shared or level
    arguments = _arguments(row)
    return [
        _method(
            f"set_{row.method}",
            [f"{target}: str", *arguments],
            "None",
            _set_docstring(row, level, target),
            _setting(row, target),
        ),
        _method(
            f"get_{row.method}",
            [f"{target}: str"],
            f"{_answer(row)} | None",
            _docstring(f"Return {methods.answer} as set here; None: nothing is.", level, target),
            _getting(row, target),
        ),
        _method(
            f"remove_{row.method}",
            [f"{target}: str"],
            "None",
            _docstring(REMOVING, level, target, is_change=True),
            [f'self._remove_policy({target}, "{row.name}")'],
        ),
    ]


def _set_docstring(row: Policy, level: str, target: str) -> Docstring:
    methods = row.methods
    assert methods is not None
    doc = methods.topic_doc if level == TOPIC and methods.topic_doc else methods.doc
    made = _docstring(doc, level, target, is_change=True)
    names = [each.split(":")[0] for each in _arguments(row)]
    if sorted(names) != sorted(methods.arguments):
        raise ValueError(f"{row.name}: args must be {names}, not {list(methods.arguments)}")
    made.entries["Args"] |= {name: methods.arguments[name] for name in names}
    made.entries["Raises"] |= {"ValueError": "An argument is out of bounds, or of no such value."}
    made.entries["Raises"] |= methods.raises
    if row.needs_store:
        made.entries["Raises"]["OperationNotSupported"] = "The folder has no object store."
    elif row.for_kept and TOPIC in row.levels and level != NAMESPACE:
        made.entries["Raises"]["OperationNotSupported"] = "The topic is non-persistent."
    return made


def _docstring(doc: str, level: str, target: str, is_change: bool = False) -> Docstring:
    """What the methods have in common. level: "" for both."""
    made = Docstring.of(doc)
    made.entries["Args"] = {target: TARGETS[level]}
    made.entries["Raises"] = {"TopicNotFound": MISSING[level]}
    if is_change:
        made.texts["Durability"] = "It is on the device when this returns."
    return made


def _arguments(row: Policy) -> list[str]:
    """Of set_, behind the target, as they are declared."""
    assert row.methods is not None
    if not isinstance(row.kind, Record):
        return [f"{row.methods.argument}: {row.kind.annotation}"]
    return [
        f"{each.argument}: {each.kind.annotation}"
        + ("" if each.default is REQUIRED else f" = {_literal(each.default)}")
        for each in row.kind.fields
    ]


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _answer(row: Policy) -> str:
    if row.methods is not None and row.methods.is_tuple and isinstance(row.kind, Record):
        return f"tuple[{', '.join(each.kind.answer for each in row.kind.fields)}]"
    return row.kind.answer


def _setting(row: Policy, target: str) -> list[str]:
    methods = row.methods
    assert methods is not None
    if not isinstance(row.kind, Record):
        value = _checked(row.kind, methods.argument, methods)
        return [f'self._set_policy({target}, "{row.name}", {value})']
    fields = [
        f'"{each.name}": {_checked(each.kind, each.argument, methods)}' for each in row.kind.fields
    ]
    made = [f"value = {{{', '.join(fields)}}}"]
    if len(made[0]) + 8 > WIDTH:
        made = ["value = {", *(line for field in fields for line in _wrapped(field)), "}"]
    return [*made, f'self._set_policy({target}, "{row.name}", value)']


def _wrapped(field: str) -> list[str]:
    """A line of a dict that has one for each field."""
    if len(field) + 13 <= WIDTH:
        return [f"    {field},"]
    head, _, inner = field.partition("(")
    return [f"    {head}(", f"        {inner[:-1]}", "    ),"]


def _checked(kind: Kind, argument: str, methods: Methods) -> str:
    check = CHECKS.get(type(kind)) if methods.is_checked else None
    return argument if check is None else f'{check}("{argument}", {argument})'


def _getting(row: Policy, target: str) -> list[str]:
    asked = f'self._get_policy({target}, "{row.name}")'
    if row.methods is not None and row.methods.is_tuple and isinstance(row.kind, Record):
        parts = ", ".join(f'found["{each.name}"]' for each in row.kind.fields)
        return [f"found: Any = {asked}", f"return None if found is None else ({parts})"]
    return [f"found: {row.kind.answer} | None = {asked}", "return found"]


def _method(name: str, arguments: list[str], answer: str, doc: Docstring, body: list[str]) -> str:
    """As ruff formats it."""
    whole = ", ".join(["self", *arguments])
    lines = [f"    def {name}({whole}) -> {answer}:"]
    if len(lines[0]) > WIDTH:
        lines = [f"    def {name}(", f"        {whole}", f"    ) -> {answer}:"]
        if len(lines[1]) > WIDTH:
            lines[1:2] = [f"        {each}," for each in ["self", *arguments]]
    lines += doc.lines(8)
    return "\n".join([*lines, *(f"        {each}" for each in body), ""])


# The documents ------------------------------------------------------------------------------------


def values_table(rows: Iterable[Policy]) -> list[str]:
    """What the value of each policy is, as verbs, commits and checkpoints have it."""
    found = ["| policy | value |", "|---|---|"]
    for row in rows:
        levels = "" if TOPIC in row.levels else " (of namespaces)"
        found.append(f"| `{row.name}`{levels} | {row.kind.unit} |")
    return found


def overview_list(rows: Iterable[Policy]) -> list[str]:
    """How users set each policy: the method, the command, the option that holds else."""
    found = []
    for row in rows:
        if row.methods is None:
            continue
        names = [each.split(":")[0].split(" =")[0] for each in _arguments(row)]
        levels = "" if TOPIC in row.levels else ", of namespaces"
        commands = dict.fromkeys(_command(row, level) for level in row.levels)
        found += [
            f"- `set_{row.method}({', '.join(['target', *names])})`{levels}\\",
            f"  command {', of topics '.join(commands)}"
            + (f"; else the option {', '.join(options)}" if (options := _options(row)) else ""),
        ]
    return found


def _command(row: Policy, level: str) -> str:
    found = row.commands(level)
    return "-" if found is None else f"`set-{found.name or row.name.replace('_', '-')}`"


def _options(row: Policy) -> list[str]:
    names = [row.option]
    if isinstance(row.kind, Record):
        names = [each.option for each in row.kind.fields]
    return [f"`{name}`" for each in names for name in each.split()]


def replaced(text: str, lines: list[str]) -> str:
    """A document with these lines between its marks."""
    return between(text, BEGIN, END, lines)


def between(text: str, begin: str, end: str, lines: list[str]) -> str:
    """A document with these lines between two marks."""
    before, _, rest = text.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise ValueError(f"the document lacks {begin} or {end}")
    return "\n".join([before + begin, *lines, end + after])


def outputs(rows: Sequence[Policy] = TABLE) -> dict[Path, str]:
    """Each file as it should be."""
    return {
        METHODS: methods_text(rows),
        VALUES: replaced(VALUES.read_text(encoding="utf-8"), values_table(rows)),
        OVERVIEW: replaced(OVERVIEW.read_text(encoding="utf-8"), overview_list(rows)),
    }


def main() -> int:
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

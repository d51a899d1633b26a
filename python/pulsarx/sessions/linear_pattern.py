"""Regular expressions given by clients, matched in time that grows with the length of a name and no
faster, whatever the pattern is: all ways through it are gone at once, as in RE2, which Pulsar uses.

Every character that a pattern takes is a position, a bit of an integer: which may come first, which
may follow which, and behind which the name may end. Matching never holds the interpreter for long.
"""

from __future__ import annotations

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Ranges = tuple[tuple[str, str], ...]
    # ("one", ranges, whether they are excluded), ("all", nodes), ("any", nodes),
    # ("again", node, least, most or None)
    Node = tuple[Any, ...]

SIZE_MAX = 1024  # characters
POSITIONS_MAX = 256
_DEPTH_MAX = 50  # of groups
_STEPS_MAX = 20_000  # of what makes the positions
_SETS_MAX = 10_000  # that are remembered, until all are forgotten
_DIGITS: Ranges = (("0", "9"),)
_WORD: Ranges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_SPACE: Ranges = (("\t", "\n"), ("\f", "\r"), (" ", " "))
_ANYTHING: Ranges = ()
_NAMED = {"d": _DIGITS, "w": _WORD, "s": _SPACE}


class LinearPattern:
    """One pattern, which is matched against whole names. Any thread, one at a time."""

    def __init__(self, text: str) -> None:
        """InvalidTopicName: it is none, is too large, or has what is not matched in that time."""
        self._positions: list[tuple[Ranges, bool]] = []
        self._after: list[int] = []
        self._taking: dict[str, int] = {}  # which positions take a character
        self._behind: dict[int, int] = {}  # which positions may follow some of a set
        # The same of eight positions: of which eight, and which of them.
        self._behind_some: dict[tuple[int, int], int] = {}
        self._steps = 0
        self._text = text
        self._is_empty, self._first, self._last = self._build(_Parser(text).parse())

    def forget(self) -> None:
        """Forget the states remembered to be fast with many names."""
        self._taking.clear()
        self._behind.clear()
        self._behind_some.clear()

    def matches(self, name: str) -> bool:
        at, may_come = 0, self._first
        for each in name:
            takes = self._taking.get(each)
            if takes is None:
                takes = self._taking[each] = self._positions_of(each)
            at = may_come & takes
            if not at:
                return False
            behind = self._behind.get(at)
            if behind is None:
                behind = self._follow(at)
            may_come = behind
        return bool(at & self._last) if name else self._is_empty

    def _positions_of(self, character: str) -> int:
        found = 0
        for number, (ranges, excluded) in enumerate(self._positions):
            if any(low <= character <= high for low, high in ranges) != excluded:
                found |= 1 << number
        return found

    def _follow(self, positions: int) -> int:
        if len(self._behind) >= _SETS_MAX:
            self._behind.clear()
        found = 0
        for eight in enumerate(positions.to_bytes(-(-positions.bit_length() // 8), "little")):
            if eight[1]:
                behind = self._behind_some.get(eight)
                if behind is None:
                    behind = self._behind_some[eight] = self._follow_some(*eight)
                found |= behind
        self._behind[positions] = found
        return found

    def _follow_some(self, eight: int, which: int) -> int:
        found = 0
        for number, after in enumerate(self._after[8 * eight : 8 * eight + 8]):
            if which >> number & 1:
                found |= after
        return found

    # Making the positions -------------------------------------------------------------------------

    def _build(self, node: Node) -> tuple[bool, int, int]:
        """Whether it takes nothing, too; the positions that come first in it, and last."""
        self._steps += 1
        if self._steps > _STEPS_MAX or (node[0] == "one" and len(self._after) == POSITIONS_MAX):
            _refuse(
                self._text,
                f"it takes more than {POSITIONS_MAX} characters, its repetitions written out",
            )
        if node[0] == "one":
            here = 1 << len(self._positions)
            self._positions.append((node[1], node[2]))
            self._after.append(0)
            return False, here, here
        if node[0] == "any":
            is_empty, first, last = False, 0, 0
            for each in node[1]:
                found = self._build(each)
                is_empty, first, last = is_empty or found[0], first | found[1], last | found[2]
            return is_empty, first, last
        if node[0] == "all":
            whole = (True, 0, 0)
            for each in node[1]:
                whole = self._join(whole, self._build(each))
            return whole
        return self._repeat(node[1], node[2], node[3])

    def _repeat(self, node: Node, least: int, most: int | None) -> tuple[bool, int, int]:
        whole = (True, 0, 0)
        for _ in range(least if most is not None else max(least - 1, 0)):
            whole = self._join(whole, self._build(node))
        if most is None:
            is_empty, first, last = self._build(node)
            self._connect(last, first)
            return self._join(whole, (is_empty or least == 0, first, last))
        for _ in range(most - least):
            _, first, last = self._build(node)
            whole = self._join(whole, (True, first, last))
        return whole

    def _join(
        self, one: tuple[bool, int, int], other: tuple[bool, int, int]
    ) -> tuple[bool, int, int]:
        self._connect(one[2], other[1])
        first = one[1] | (other[1] if one[0] else 0)
        last = other[2] | (one[2] if other[0] else 0)
        return one[0] and other[0], first, last

    def _connect(self, last: int, first: int) -> None:
        while last:
            lowest = last & -last
            self._after[lowest.bit_length() - 1] |= first
            last ^= lowest


class _Parser:
    """Reads what clients write: characters, `.`, classes, groups, `|` and repetitions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def parse(self) -> Node:
        if len(self._text) > SIZE_MAX:
            self._refuse(f"it has {len(self._text)} characters; at most {SIZE_MAX} are taken")
        if self._next() == "^":
            self._at += 1
        found = self._alternatives()
        if self._at < len(self._text):
            self._refuse("a group ends that did not begin")
        return found

    def _next(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _take(self, what: str) -> bool:
        if self._next(len(what)) != what:
            return False
        self._at += len(what)
        return True

    def _refuse(self, why: str) -> NoReturn:
        _refuse(self._text, why)

    def _alternatives(self) -> Node:
        found = [self._sequence()]
        while self._take("|"):
            found.append(self._sequence())
        return found[0] if len(found) == 1 else ("any", found)

    def _sequence(self) -> Node:
        found: list[Node] = []
        while self._next() not in ("", "|", ")"):
            if self._next() == "$" and self._at == len(self._text) - 1:
                self._at += 1
            elif self._take("\\Q"):
                end = self._text.find("\\E", self._at)
                end = len(self._text) if end < 0 else end
                found += [_one(each) for each in self._text[self._at : end]]
                self._at = min(end + 2, len(self._text))
            else:
                found.append(self._repeated(self._atom()))
        return ("all", found)

    def _atom(self) -> Node:
        if self._take("("):
            return self._group()
        if self._take("["):
            return self._class()
        if self._take("\\"):
            ranges, excluded = self._escaped()
            return ("one", ranges, excluded)
        if self._take("."):
            return ("one", _ANYTHING, True)
        character = self._next()
        if character in "*+?{^$":
            self._refuse(f"{character!r} at {self._at} repeats nothing, or stands inside")
        self._at += 1
        return _one(character)

    def _group(self) -> Node:
        if not self._take("?:") and self._next() == "?":
            self._refuse("a group begins with (?, which is only taken as (?:")
        self._depth += 1
        if self._depth > _DEPTH_MAX:
            self._refuse(f"more than {_DEPTH_MAX} groups inside of one another")
        found = self._alternatives()
        self._depth -= 1
        if not self._take(")"):
            self._refuse("a group does not end")
        return found

    def _escaped(self) -> tuple[Ranges, bool]:
        character = self._next()
        if not character:
            self._refuse("it ends with a backslash")
        self._at += 1
        if character.lower() in _NAMED:
            return _NAMED[character.lower()], character.isupper()
        if character.isalnum():
            self._refuse(f"\\{character} is not taken")
        return ((character, character),), False

    def _class(self) -> Node:
        excluded = self._take("^")
        found: list[tuple[str, str]] = []
        is_first = True
        while is_first or self._next() != "]":
            is_first = False
            low = self._next()
            if not low:
                self._refuse("a class does not end")
            if low in "[&" and self._next(2) in ("[:", "&&"):
                self._refuse(f"{self._next(2)} in a class is not taken")
            self._at += 1
            if low == "\\":
                ranges, outside = self._escaped()
                if outside:
                    self._refuse("what excludes, in a class, is not taken")
                found += ranges
                if len(ranges) > 1 or ranges[0][0] != ranges[0][1]:
                    continue
                low = found.pop()[0]
            high = low
            if self._next() == "-" and self._next(2) not in ("-", "-]"):
                self._at += 1
                high = self._next()
                self._at += 1
                if high == "\\":
                    ranges, outside = self._escaped()
                    if outside or len(ranges) > 1 or ranges[0][0] != ranges[0][1]:
                        self._refuse("a range that ends with a class")
                    high = ranges[0][0]
                if high < low:
                    self._refuse(f"the range {low}-{high}")
            found.append((low, high))
        self._at += 1
        return ("one", tuple(found), excluded)

    def _repeated(self, node: Node) -> Node:
        least, most = 1, None
        if self._take("*"):
            least = 0
        elif self._take("?"):
            least, most = 0, 1
        elif self._take("{"):
            least, most = self._bounds()
        elif not self._take("+"):
            return node
        self._take("?")  # as few as possible: the same names match
        if self._next() in ("*", "+", "?", "{") and self._next():
            self._refuse(f"{self._next()!r} at {self._at} repeats a repetition")
        return ("again", node, least, most)

    def _bounds(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._at)
        low, comma, high = self._text[self._at : max(end, self._at)].partition(",")
        if end < 0 or not _is_count(low) or not (high == "" or _is_count(high)):
            self._refuse("braces that are not {N}, {N,} or {N,M}")
        self._at = end + 1
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if most is not None and most < least:
            self._refuse(f"the bounds {least},{most}")
        return least, most


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _one(character: str) -> Node:
    return ("one", ((character, character),), False)


def _refuse(text: str, why: str) -> NoReturn:
    raise errors.InvalidTopicName(detail=f"the pattern {text[:100]}: {why}")

"""Patterns of clients: the same names match as by Python's `re`, and none takes long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import scaled

from pulsarx.errors import InvalidTopicName
from pulsarx.sessions.linear_pattern import SIZE_MAX, LinearPattern

ATOMS = ["a", "b", "-", r"\.", ".", "[ab]", "[^a]", "[a-c-]", r"[\d\-]", r"\d", r"\W", "[]a]", ""]
PARTS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map("|".join).map("({})".format),
        st.tuples(
            inner, st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{0,2}", "{0}", "*?", "+?"])
        ).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)
NAMES = st.text("abc-.1", max_size=7)


@given(text=PARTS, names=st.lists(NAMES, min_size=1, max_size=20))
@settings(max_examples=scaled(500), deadline=None)
def test_the_same_names_match_as_by_re(text: str, names: list[str]) -> None:
    made, expected = LinearPattern(text), re.compile(text)
    for name in names:
        assert made.matches(name) == (expected.fullmatch(name) is not None), (text, name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (r"\Qa.b*\E-.*", "a.b*-x"),
        ("^a$", "a"),
        ("(a+)+b", "aab"),
        ("public/default/w-[0-9]{2}", "public/default/w-07"),
        (".*", "ü\n"),
    ],
)
def test_what_clients_write_besides(text: str, name: str) -> None:
    assert LinearPattern(text).matches(name)
    assert not LinearPattern(f"(?:{text.strip('^$')})z").matches(name)


@pytest.mark.parametrize(
    "text",
    ["[", "(", ")", "a)", "*a", "a**", "a*+", "(?=x).*", r"(a)\1", r"\bx", "a\\", "[b-a]", "a{2,1}",
     "a{x}", "a{99999}", "x{257}", "(x{40}){40}", "((((){999}){999}){999}){999}", "[[:alpha:]]",
     "[a-z&&b]", "x" * (SIZE_MAX + 1), "(" * 200 + ")" * 200, "a^b", "a$b", r"[\D]"],
)  # fmt: skip
def test_what_is_none_or_too_large_is_refused(text: str) -> None:
    with pytest.raises(InvalidTopicName, match="the pattern"):
        LinearPattern(text)


@pytest.mark.parametrize(
    "text", ["a*a*a*b", "(a*)*b", "(a|a)*b", "(a?){200}b", "(a|b|c)*a(a|b){120}c", ".*.*.*.*.*x"]
)
def test_a_step_is_taken_for_each_character_and_no_more(text: str) -> None:
    """What a backtracking one takes years for. Each set of positions is looked at once."""
    made = LinearPattern(text)
    followed = 0
    follow = made._follow

    def counted(positions: int) -> int:
        nonlocal followed
        followed += 1
        return follow(positions)

    made._follow = counted  # type: ignore[method-assign]
    name = "a" * 32_767
    assert not made.matches(name)
    assert followed <= 1000

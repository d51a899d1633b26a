"""Facts about randomness."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsarx.randomness import TOKEN_ALPHABET, Randomness


@pytest.mark.parametrize("seed", [None, 1, "seed", b"seed"])
def test_ids_numbers_and_tokens_have_their_shape(seed: int | str | bytes | None) -> None:
    randomness = Randomness(seed)
    made = uuid.UUID(bytes=randomness.uuid_bytes())
    assert made.version == 4
    assert made.variant == uuid.RFC_4122
    assert len({randomness.uuid_bytes() for _ in range(100)}) == 100
    token = randomness.token(10)
    assert len(token) == 10
    assert set(token) <= set(TOKEN_ALPHABET)
    assert randomness.token(0) == ""
    assert {randomness.integer(3) for _ in range(200)} == {0, 1, 2}
    assert randomness.integer(1) == 0


def test_the_same_seed_gives_the_same() -> None:
    first, second = Randomness(7), Randomness(7)
    for _ in range(10):
        assert first.uuid_bytes() == second.uuid_bytes()
        assert first.integer(1000) == second.integer(1000)
        assert first.token(5) == second.token(5)
    assert Randomness(7).uuid_bytes() != Randomness(8).uuid_bytes()


@given(st.integers(1, 2**70), st.one_of(st.none(), st.integers()))
def test_an_integer_is_below_its_bound(below: int, seed: int | None) -> None:
    assert 0 <= Randomness(seed).integer(below) < below


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="below 0"):
        Randomness().integer(0)
    with pytest.raises(ValueError, match="seed"):
        Randomness(1.5)  # type: ignore[arg-type]
    assert repr(Randomness()) == "Randomness()"
    assert repr(Randomness(5)) == "Randomness(5)"

"""DueIds: what has something due on a connection."""

from __future__ import annotations

from pulsarx._pycore.ground.due_ids import DueIds


class Number(int):
    """One that no dict takes, as where there is no memory to note it."""

    fails = True

    def __hash__(self) -> int:
        if self.fails:
            raise MemoryError
        return int.__hash__(self)


def test_numbers_come_once_in_the_order_in_which_they_became_due() -> None:
    due = DueIds(lambda: None)
    for number in (3, 1, 3, 2):
        due.mark(number)
    assert due.take({1, 2, 3, 4}) == [3, 1, 2]
    assert due.take({1, 2, 3, 4}) == []


def test_one_that_no_memory_is_there_to_note_has_all_looked_at() -> None:
    """Who marks it has just published: the send failed though its message was stored, and the
    others who waited for it were not told."""
    woken: list[None] = []
    due = DueIds(lambda: woken.append(None))
    due.mark(2)
    due.marking(Number(3))()
    assert len(woken) == 2
    assert due.take({1: "a", 2: "b", 3: "c"}) == [2, 1, 3]
    assert due.take({1: "a", 2: "b", 3: "c"}) == []

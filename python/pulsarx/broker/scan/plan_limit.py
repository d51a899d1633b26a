"""Measures what lies between two offsets, and how far a limited amount of it reaches. Used by
Planner alone.

A limit is shared among topics by what each has waiting, so that none is starved: each that has
something advances by one entry or message at least, and together they may pass the limit by that.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.scan.offsets import Offsets
    from pulsarx.broker.scan.plan_piece import Piece

MESSAGES, ENTRIES, BYTES = "messages", "entries", "bytes"


def _entry_at(piece: Piece, ordinal: int) -> int:
    """The id of the entry with a message; behind the last one of the ledger: how many there are."""
    offset = piece.file.find_message(ordinal, piece.end)
    frame = piece.file.frame(offset, piece.end)
    return int(frame["entry_id"]) if frame is not None else piece.ledger.entry_count


def _entries(piece: Piece) -> int:
    ledger = piece.ledger
    if ledger.state == "sealed" and (piece.first, piece.until) == (0, ledger.message_count):
        return ledger.entry_count
    return _entry_at(piece, piece.until - 1) - _entry_at(piece, piece.first) + 1


def _after_messages(piece: Piece, count: int) -> int:
    return piece.boundary(piece.first + count)


def _after_entries(piece: Piece, count: int) -> int:
    wanted = _entry_at(piece, piece.first) + count
    frame = piece.file.frame(piece.file.find_entry(wanted, piece.end), piece.end)
    return piece.until if frame is None else int(frame["first_message"])


def _after_bytes(piece: Piece, size: int) -> int:
    """About: the messages of a ledger count as equally large."""
    return piece.boundary(piece.first + (piece.until - piece.first) * size // piece.size)


_MEASURES: dict[str, tuple[Callable[[Piece], int], Callable[[Piece, int], int]]] = {
    MESSAGES: (lambda piece: piece.until - piece.first, _after_messages),
    ENTRIES: (_entries, _after_entries),
    BYTES: (lambda piece: piece.size, _after_bytes),
}


def amount(pieces: list[Piece], measure: str) -> int:
    """Messages, entries or bytes of the pieces."""
    size_of, _ = _MEASURES[measure]
    return sum(size_of(piece) for piece in pieces)


def limit_offsets(pieces: list[Piece], end: Offsets, measure: str, most: int) -> Offsets:
    """end, or nearer where about `most` from the beginning of the pieces are reached."""
    size_of, after = _MEASURES[measure]
    waiting: dict[str, list[tuple[Piece, int]]] = {}
    for piece in pieces:
        waiting.setdefault(piece.ledgers.name, []).append((piece, size_of(piece)))
    total = sum(size for found in waiting.values() for _, size in found)
    if total <= most:
        return end
    limited = dict(end)
    for name, found in waiting.items():
        share = max(most * sum(size for _, size in found) // total, 1)
        for turn, (piece, size) in enumerate(found):
            if size > share:
                until = after(piece, share)
                if until <= piece.first and turn == 0:
                    until = piece.first_entry_end()
                if until > piece.first:
                    limited[name] = (piece.ledger.ledger_id, until)
                break
            limited[name] = (piece.ledger.ledger_id, piece.until)
            share -= size
    return limited

"""A tracker asks its source at every fold, and hands over what it restored."""

from libc.stdlib cimport free

from pulsarx import errors
from pulsarx._core.cursor_record cimport CURSOR_SECTION_DUE, CURSOR_SECTION_REDELIVERY
from pulsarx._core.cursor_sections cimport RestoredMessage
from pulsarx._core.status cimport (
    STATUS_CLOSED, STATUS_DUPLICATE, STATUS_OK, STATUS_OUT_OF_RANGE,
)
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.cursor.sections_source cimport SectionsSource

from failing_files import PlainFiles
from pulsarx._pycore.cursor.cursor_store import CursorStore
from pulsarx._pycore.cursor.sections_source import encode_section


cdef class Source(SectionsSource):
    cdef list counts
    cdef list due
    cdef int asked

    cdef bytes redelivery_section(self):
        self.asked += 1
        return encode_section(CURSOR_SECTION_REDELIVERY, self.counts)

    cdef bytes due_section(self):
        return encode_section(CURSOR_SECTION_DUE, self.due)


cdef Source source_of(list counts, list due):
    cdef Source source = Source()
    source.counts, source.due = counts, due
    return source


cdef AckTracker opened(folder):
    tracker = AckTracker(CursorStore(PlainFiles(), str(folder / "7"), b"cursor 7 of here"))
    tracker.add_ledger(1)
    tracker.add_ledger(2)
    return tracker


cdef tuple taken(AckTracker tracker):
    cdef RestoredMessage* counts = NULL
    cdef RestoredMessage* due = NULL
    cdef size_t counted = 0
    cdef size_t due_count = 0
    tracker.take_restored(&counts, &counted, &due, &due_count)
    found = ([(counts[at].ledger_id, counts[at].message, counts[at].value)
              for at in range(counted)],
             [(due[at].ledger_id, due[at].message, due[at].value) for at in range(due_count)])
    free(counts)
    free(due)
    return found


def test_what_the_source_tells_is_kept_and_taken_over(tmp_path):
    cdef Source source = source_of([(1, 3, 2), (2, 5, 1)], [(1, 9, 1000), (2, 0, 900)])
    cdef AckTracker tracker = opened(tmp_path)
    tracker.sections_source = source
    tracker.fold()
    assert source.asked == 1
    assert tracker.record_redelivery(2, 5, 4) == STATUS_OK
    assert tracker.record_redelivery(2, 6, 70_000) == STATUS_OK
    tracker.abandon()
    tracker = opened(tmp_path)
    assert tracker.damage == ()
    source = source_of([(2, 5, 9)], [])
    tracker.sections_source = source
    assert taken(tracker) == ([(1, 3, 2), (2, 5, 4), (2, 6, 65535)], [(1, 9, 1000), (2, 0, 900)])
    tracker.fold()
    tracker.close()
    assert source.asked == 1
    tracker = opened(tmp_path)
    assert tracker.redelivery_counts() == [(2, 5, 9)] and tracker.due_times() == []
    tracker.close()


def test_an_error_of_the_source_leaves_everything_as_it_was(tmp_path):
    cdef AckTracker tracker = opened(tmp_path)
    tracker.fold()
    tracker.record_redelivery(1, 3, 2)
    tracker.sections_source = source_of([(1, 3), (1, 2)], [])
    try:
        tracker.fold()
    except ValueError:
        pass
    tracker.abandon()
    tracker = opened(tmp_path)
    assert tracker.redelivery_counts() == [(1, 3, 2)]
    tracker.close()


def test_what_is_not_recorded():
    cdef AckTracker tracker = AckTracker()
    tracker.add_ledger(4)
    tracker.seal_ledger(4, 10)
    tracker.acknowledge_messages(4, 2)
    assert tracker.record_redelivery(4, 2, 1) == STATUS_DUPLICATE
    assert tracker.record_redelivery(4, 10, 1) == STATUS_OUT_OF_RANGE
    assert tracker.record_redelivery(5, 0, 1) == STATUS_OUT_OF_RANGE
    assert tracker.record_redelivery(4, 3, 0) == STATUS_OUT_OF_RANGE
    assert tracker.record_redelivery(4, 3, 1) == STATUS_OK
    assert taken(tracker) == ([], [])
    tracker.forget_ledgers(5)
    assert tracker.record_redelivery(4, 3, 1) == STATUS_DUPLICATE
    tracker.close()
    assert tracker.record_redelivery(4, 3, 1) == STATUS_CLOSED
    try:
        taken(tracker)
    except errors.AlreadyClosed:
        return
    raise AssertionError("closed")

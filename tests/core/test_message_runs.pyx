"""message_runs: sets of messages beside sets of Python."""

import random

from seeds import seeds

from libc.stdint cimport uint64_t

from failing_calls cimport calls_succeed, memory_fails
from pulsarx._core.message_runs cimport (
    MessageRuns, message_runs_append, message_runs_cut, message_runs_cut_before,
    message_runs_find, message_runs_free, message_runs_has, message_runs_init, message_runs_meet,
    message_runs_union,
)
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK


cdef int fill(MessageRuns* runs, set model) except -1:
    for ledger_id, message in sorted(model):
        assert message_runs_append(runs, ledger_id, message, message + 1) == STATUS_OK
    return 0


cdef int check(MessageRuns* runs, set model) except -1:
    cdef size_t at
    held = set()
    before = (0, 0)
    for at in range(runs.count):
        run = runs.runs[at]
        assert run.first < run.end
        assert (run.ledger_id, run.first) > before or at == 0     # runs never touch
        before = (run.ledger_id, run.end)
        held.update((run.ledger_id, message) for message in range(run.first, run.end))
    assert held == model
    return 0


def test_runs_are_sets_of_messages():
    cdef MessageRuns one, other, joined
    cdef uint64_t ledger_id, message
    for seed in seeds(100):
        print("seed", seed)
        chance = random.Random(seed)
        models = [{(chance.randrange(1, 4), chance.randrange(12))
                   for _ in range(chance.randrange(25))} for _ in range(2)]
        message_runs_init(&one)
        message_runs_init(&other)
        message_runs_init(&joined)
        fill(&one, models[0])
        fill(&other, models[1])
        check(&one, models[0])
        assert message_runs_union(&one, &other, &joined) == STATUS_OK
        model = models[0] | models[1]
        check(&joined, model)
        for ledger_id in range(5):
            for message in range(13):
                assert message_runs_has(&joined, ledger_id, message) == (
                    (ledger_id, message) in model)
                assert message_runs_meet(&joined, ledger_id, message, message + 3) == any(
                    (ledger_id, each) in model for each in range(message, message + 3))
                assert (message_runs_find(&joined, ledger_id, message) == joined.count) == (
                    not any(each >= (ledger_id, message) for each in model))
        ledger_id, message = chance.randrange(5), chance.randrange(13)
        message_runs_cut(&joined, ledger_id, message)
        check(&joined, {each for each in model if each < (ledger_id, message)})
        message_runs_cut_before(&one, ledger_id, message)
        check(&one, {each for each in models[0] if each >= (ledger_id, message)})
        message_runs_free(&one)
        message_runs_free(&other)
        message_runs_free(&joined)


def test_nothing_is_added_as_a_run_without_messages():
    cdef MessageRuns runs
    message_runs_init(&runs)
    assert message_runs_append(&runs, 1, 5, 5) == STATUS_OK
    assert runs.count == 0


def test_memory_that_runs_out_changes_nothing():
    cdef MessageRuns one, other, joined
    cdef uint64_t message
    message_runs_init(&one)
    message_runs_init(&other)
    message_runs_init(&joined)
    for message in range(8):
        assert message_runs_append(&one, 1, 4 * message, 4 * message + 1) == STATUS_OK
        assert message_runs_append(&other, 1, 4 * message + 2, 4 * message + 3) == STATUS_OK
    try:
        memory_fails(b"realloc", 1)
        assert message_runs_append(&one, 2, 0, 1) == STATUS_NO_MEMORY
        memory_fails(b"realloc", 2)
        assert message_runs_union(&one, &other, &joined) == STATUS_NO_MEMORY
    finally:
        calls_succeed()
    check(&one, {(1, 4 * message) for message in range(8)})
    assert joined.count == 0
    assert message_runs_union(&one, &other, &joined) == STATUS_OK
    check(&joined, {(1, 2 * message) for message in range(16)})
    message_runs_free(&one)
    message_runs_free(&other)
    message_runs_free(&joined)

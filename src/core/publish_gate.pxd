"""The question that is asked of every entry before it is stored, where a policy asks one. For
ledger_append.

A topic without such a policy has no gate: NULL, and nothing is called. `ask` and `stored` run with
the ledger's append mutex held, so that what they decide and what they remember is of one order with
the entries; they wait for nothing.
"""

from libc.stdint cimport uint8_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame

cdef struct GateAnswer:
    uint64_t ledger_id                # of STATUS_DUPLICATE: where the entry is stored already
    uint64_t entry_id

cdef struct PublishGate:
    # STATUS_OK: store it. DUPLICATE: it is there already, see answer. FENCED: its producer may not
    # publish any more. OVER_QUOTA: not now. TERMINATED: nothing is ever stored here again.
    int (*ask)(PublishGate* self, const EntryFrame* frame, const uint8_t* entry,
               GateAnswer* answer) noexcept nogil
    # The entry was stored; frame holds its id.
    void (*stored)(PublishGate* self, const EntryFrame* frame, const uint8_t* entry) noexcept nogil

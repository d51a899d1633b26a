"""Chooses the active consumer of an Exclusive or Failover subscription. Called by the dispatchers
that have one, with the subscription's mutex held.

Source: Pulsar's AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer.
"""

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink


cdef EntrySink active_choice(list receivers, int partition_index)
"""Highest priority first (the lowest number). A topic alone: who came first; partitions: spread
over the names.

receivers: of EntrySink, in the order they came; None is returned where there is none.
partition_index: of the topic; -1: it is no partition.
"""

"""Store and forward: the topics of a folder are sent to a Pulsar cluster or another folder, or
fetched from a cluster into a folder, each message exactly once."""

from __future__ import annotations

from pulsarx.forwarding.forwarder import Forwarder

__all__ = ["Forwarder"]

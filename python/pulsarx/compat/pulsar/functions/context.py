"""`pulsar.functions.context`."""

from abc import abstractmethod

from pulsarx.functions.context import Context

"""`pulsar.functions.function`."""

from abc import abstractmethod

from pulsarx.functions.function import Function

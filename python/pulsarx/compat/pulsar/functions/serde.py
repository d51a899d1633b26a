"""`pulsar.functions.serde`."""

import pickle
from abc import abstractmethod

from pulsarx.functions.serde import IdentitySerDe, PickleSerDe, SerDe

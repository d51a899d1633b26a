"""`pulsar.tableview`."""

from typing import Any, Callable, Optional

import _pulsar

from pulsarx.schema.schema import Schema
from pulsarx.table_view import TableView

"""Facts about the options of a broker."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import pulsarx
from pulsarx import errors
from pulsarx.broker_options import BrokerOptions, option_table


def test_defaults_are_those_of_the_table() -> None:
    options = BrokerOptions()
    assert options.max_message_size == 5_242_880
    assert options.allow_auto_topic_creation is True
    assert options.default_retention_time_in_minutes == 0
    assert options.managed_ledger_max_entries_per_ledger == 50_000
    for name, row in option_table().items():
        assert getattr(options, name) == row.default == row.check(row.default)
        assert row.doc.endswith(".")
    annotated = [name for name in BrokerOptions.__annotations__ if name != "_values"]
    assert sorted(annotated) == sorted(option_table())


def test_given_values_count() -> None:
    options = BrokerOptions(max_message_size=1000, allow_auto_topic_creation=False)
    assert options.max_message_size == 1000
    assert options.allow_auto_topic_creation is False
    assert repr(options) == "BrokerOptions(max_message_size=1000, allow_auto_topic_creation=False)"
    assert options.replace(max_message_size=5_242_880) == BrokerOptions(
        allow_auto_topic_creation=False
    )


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="did you mean max_message_size"):
        BrokerOptions(max_mesage_size=5)
    with pytest.raises(ValueError, match="there are: max_message_size, "):
        BrokerOptions(zzz=5)
    with pytest.raises(AttributeError, match="did you mean max_message_size"):
        BrokerOptions().max_mesage_size


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("max_message_size", "5"),
        ("max_message_size", 5.0),
        ("max_message_size", None),
        ("max_message_size", True),
        ("max_message_size", 0),
        ("max_message_size", 2**30),
        ("allow_auto_topic_creation", 1),
        ("default_retention_size_in_mb", -2),
        ("managed_ledger_max_ledger_rollover_time_minutes", 0),
        ("retention_check_interval_in_seconds", 0),
    ],
)
def test_wrong_types_and_bounds_are_value_errors(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=name):
        BrokerOptions(**{name: wrong})


def test_options_compare_by_value_and_never_change() -> None:
    options, same = BrokerOptions(max_message_size=7), BrokerOptions(max_message_size=7)
    assert options == same
    assert hash(options) == hash(same)
    assert options != BrokerOptions()
    assert options != 5
    assert options.differences(BrokerOptions()) == {"max_message_size": (7, 5_242_880)}
    with pytest.raises(AttributeError):
        options.max_message_size = 8
    with pytest.raises(AttributeError):
        del options.max_message_size
    options.as_dict()["max_message_size"] = 9
    assert options.max_message_size == 7


def test_options_can_be_pickled_and_copied() -> None:
    options = BrokerOptions(max_message_size=7)
    assert pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == options


def test_a_read_only_client_agrees_with_the_owner_or_gives_none(tmp_path: Path) -> None:
    """They were passed over."""
    options = pulsarx.BrokerOptions(max_message_size=5000)
    with pulsarx.Client(tmp_path / "f", broker_options=options):
        pulsarx.Client(tmp_path / "f", read_only=True, broker_options=options).close()
        with pytest.raises(errors.InvalidConfiguration) as raised:
            other = pulsarx.BrokerOptions(max_message_size=6000)
            pulsarx.Client(tmp_path / "f", read_only=True, broker_options=other)
        assert raised.value.conflicts == {"max_message_size": (6000, 5000)}
    for given in ({"clock": pulsarx.ManualClock()}, {"broker_options": options}):
        with pytest.raises(errors.InvalidConfiguration, match=f"{next(iter(given))}: it is the"):
            pulsarx.Client(tmp_path / "f", read_only=True, **given)  # type: ignore[arg-type]
    pulsarx.Client(tmp_path / "f", read_only=True, durability="os").close()


def test_what_is_always_done_can_be_asked_for_and_not_refused():
    name = "acknowledgment_at_batch_index_level_enabled"
    assert BrokerOptions(**{name: True}) == BrokerOptions()
    with pytest.raises(ValueError, match=f"{name} cannot be turned off"):
        BrokerOptions(**{name: False})

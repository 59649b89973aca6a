"""Whatever a team passes around becomes plain JSON of a bounded size, in a bounded time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

import pytest
from pydantic import BaseModel

from dig._util.json_values import plain
from dig.adapters import as_payload
from dig.adapters.base import is_whole
from dig.adapters.base.payload import MOST_DEPTH, MOST_NUMBERS, MOST_PARTS
from dig.monitor.sanitize import MOST_BYTES

from .hostile_payloads import HOSTILE, Sulking, nested


class Kind(type):
    """A kind of class that does not say its name."""

    def __getattribute__(cls, name: str) -> Any:
        raise ValueError(name)


class Nameless(metaclass=Kind):
    """Of such a kind."""


class Reply(BaseModel):
    """May hold what it does not declare."""

    text: str


class Endless(list[int]):
    """Has no end."""

    def __iter__(self) -> Iterator[int]:
        while True:
            yield 1


class Fork:
    """Is told as three more of its kind."""

    def model_dump(self) -> Any:
        return [Fork(), Fork(), Fork()]


@dataclass(eq=False)
class Ring:
    """Holds itself."""

    next: Any = None


def cyclic() -> Any:
    ring = Ring()
    ring.next = [ring, {"again": ring}]
    return ring


ODD = {
    **HOSTILE,
    "without a name": Nameless(), "ring": cyclic(), "endless": Endless(), "fork": Fork(),
    "key raises": {"a": {Sulking(): 1}, "b": 2}, "long name": type("x" * 10_000, (), {})(),
    "raw": [1, 2.5] * 3, "numbers": [1.5, 1e999],
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_whatever_it_is_it_becomes_plain_json_and_has_an_end(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dig.adapters.base.payload.MOST_PARTS", 50_000)
    began = process_time()
    told = as_payload(ODD[name])
    assert process_time() - began < 20
    assert plain(told) == told
    json.dumps(told, allow_nan=False)


def test_what_stands_beside_something_that_cannot_be_told_is_told() -> None:
    """One part that raises takes no other with it."""
    unknown = {"$unserialisable": f"{Sulking.__module__}.Sulking"}
    assert as_payload({"a": [Sulking()], "b": "said"}) == {"a": [unknown], "b": "said"}


def test_a_value_inside_itself_is_told_once() -> None:
    unknown = {"$unserialisable": f"{__name__}.Ring"}
    assert as_payload(cyclic()) == {"next": [unknown, {"again": unknown}]}


def test_the_same_value_at_two_places_is_told_at_both() -> None:
    """It is not inside itself."""
    shared = ["x"]
    assert as_payload([shared, shared]) == [["x"], ["x"]]


def test_of_too_many_parts_both_ends_are_told() -> None:
    """What stands beside is told too; as a whole it is equal to nothing, whatever its middle is."""
    rows = [{"id": number} for number in range(MOST_PARTS)]
    told: Any = as_payload({"rows": rows, "title": "all", "set": set(range(5_000))})
    assert told.keys() == {"$too_many", "$told"} and not is_whole(told)
    some = told["$told"]
    assert some["title"] == "all"
    assert some["rows"] == [*rows[:5], {"$left_out": MOST_PARTS - 10}, *rows[-5:]]
    assert some["set"][5:] == [{"$left_out": 5_000 - 10}]
    table: Any = as_payload({f"{number}": "x" for number in range(MOST_PARTS + 1)})
    assert len(table["$told"]) == 11 and table["$told"]["$left_out"] == MOST_PARTS + 1 - 10


def test_as_many_parts_as_are_allowed_are_told_whole() -> None:
    """One more is too many, wherever it stands."""
    assert as_payload(["x"] * (MOST_PARTS - 1)) == ["x"] * (MOST_PARTS - 1)
    assert as_payload(["x"] * MOST_PARTS)["$too_many"] == MOST_PARTS
    pairs = [["x"] for _ in range(MOST_PARTS // 2)]
    assert as_payload(pairs)["$told"][5] == {"$left_out": MOST_PARTS // 2 - 10}


def test_a_list_that_is_too_long_is_not_walked() -> None:
    """Its length is asked for, and the items at both ends."""
    seen = 0

    class Counted(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            nonlocal seen
            for item in super().__iter__():
                seen += 1
                yield item

    as_payload({"rows": Counted([["x"]] * 100_000)})
    assert seen < 100


def test_a_list_of_numbers_is_one_part() -> None:
    """Up to a length; then it is a list like others."""
    numbers = list(range(MOST_NUMBERS))
    told = as_payload({"raw": numbers})
    assert told == {"raw": numbers} and told["raw"] is not numbers
    assert "$too_many" in as_payload([*numbers, 1])


def test_what_is_certainly_too_large_is_not_written_out() -> None:
    text = "x" * (MOST_BYTES // 10)
    assert as_payload([text] * 11) == {"$too_large": MOST_BYTES}


def test_a_framework_has_its_words_at_any_depth_and_they_are_bounded_too() -> None:
    """They are told as everything else is, and what they raise takes nothing with it."""

    def words(value: Any) -> Any:
        match value:
            case Ring():
                return {"ring": value.next}
            case Sulking():
                raise ValueError
            case Fork():
                return Fork()
        return value

    assert as_payload([Ring("x"), {"y": Ring(Ring(1))}], words) == [
        {"ring": "x"}, {"y": {"ring": {"ring": 1}}}
    ]  # fmt: skip
    assert as_payload([Sulking(), "said"], words)[1] == "said"
    assert as_payload(Fork(), words) == {"$unserialisable": f"{__name__}.Fork"}


def test_what_is_nested_too_deep_is_told_down_to_there() -> None:
    told: Any = as_payload(nested(MOST_DEPTH))
    for _ in range(MOST_DEPTH // 2):
        told = told["in"][0]
    assert told == {"$unserialisable": "builtins.dict"}


def test_a_model_that_holds_another_type_is_told_without_a_warning() -> None:
    """pydantic would warn, and quote the value, which may be secret; warnings are errors here."""
    wrong: Any = {"secret": "s3cret"}
    assert as_payload(Reply.model_construct(text=wrong)) == {"text": wrong}

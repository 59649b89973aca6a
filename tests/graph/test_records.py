"""Records to JSON and back: nothing is lost, and nothing that is no record gets in."""

from __future__ import annotations

import json
import random
import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig._util import json_text as reader
from dig.errors import RecordError
from dig.graph import records
from dig.graph.codec import decode, encode
from dig.graph.records import FATES, OUTCOMES, Fate, Limits, Record
from tests.oracle import Row
from tests.random_traces import REQUIRED

# -- every record that there can be ---

text = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates too
names = st.lists(text, max_size=3).map(tuple)
seconds = st.floats(1e-6, 1e9)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**4000), 10**4000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
numbers = st.integers(2, 2**70)
limits = st.builds(
    Limits,
    seconds,
    seconds,
    seconds,
    seconds,
    st.integers(1, 2**70),
    st.booleans(),
    st.none() | seconds,
    seconds,
    st.none() | seconds,
    st.none() | numbers,
    st.none() | numbers,
    numbers,
)
fates = st.builds(Fate, text, st.sampled_from([f for f in FATES if f != "reroute"])) | st.builds(
    Fate, text, st.just("reroute"), names
)
reasons = text.filter(bool)
usual = st.builds(
    records.Usual,
    st.integers(0, 2**70),
    st.dictionaries(text, st.lists(st.integers(0, 2**70), max_size=3).map(tuple), max_size=3),
)
begin = (st.integers(), st.integers(0, 10**15))  # 32 years
maybe = st.none() | text

STRATEGIES: dict[type, st.SearchStrategy[Record]] = {
    records.Run: st.builds(
        records.Run, *begin, text, names, values, values, st.booleans(), st.booleans(), limits,
        st.none() | usual, patterns=st.integers(1, 3),
    ),
    records.Emit: st.builds(
        records.Emit, *begin, text, maybe, names, text, st.booleans(), values,
        st.none() | reasons,
    ),
    records.Deliver: st.builds(records.Deliver, *begin, text, maybe),
    records.Start: st.builds(records.Start, *begin, text, text, names),
    records.End: st.builds(
        records.End, *begin, text, st.lists(fates, max_size=3).map(tuple), names, values,
        st.none() | reasons, st.none() | reasons, st.booleans(),
    ),
    records.Join: st.builds(records.Join, *begin, text),
    records.Leave: st.builds(records.Leave, *begin, text),
    records.Redirect: st.builds(records.Redirect, *begin, text, names),
    records.Expire: st.builds(records.Expire, *begin, text),
    records.FindingRow: st.builds(
        records.FindingRow, *begin, text, maybe, values, values, values, values
    ),
    records.HealRow: st.builds(
        records.HealRow, *begin, st.integers(), text, maybe, st.none() | names, maybe, maybe,
        values,
    ),
    records.IncidentRow: st.builds(records.IncidentRow, *begin, text, values),
    records.Finish: st.builds(
        records.Finish, *begin, st.sampled_from(OUTCOMES), values, values
    ),
}  # fmt: skip

KINDS: list[type[Record]] = list(get_args(Record))
any_record = st.one_of(*STRATEGIES.values())


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.kind)
@given(data=st.data())
def test_a_record_survives_the_way_to_its_line_and_back(
    cls: type[Record], data: st.DataObject
) -> None:
    """decode(encode(record)) is the record, whatever its kind and payload."""
    record = data.draw(STRATEGIES[cls])
    assert decode(reader.parse_row(encode(record).encode())) == record


@given(any_record)
def test_a_record_is_one_line_of_ascii(record: Record) -> None:
    """No payload can break a line, or depends on how a file is decoded."""
    line = encode(record)
    assert line.isascii()
    assert line.isprintable()


@given(any_record, st.randoms(use_true_random=False), values)
def test_a_record_has_one_line(record: Record, rng: random.Random, extra: Any) -> None:
    """Neither the order of the keys it came with nor unknown ones among them change its line."""
    line = encode(record)
    row = json.loads(line)
    pairs = [*row.items(), ("x-unknown", extra)]
    rng.shuffle(pairs)
    assert encode(decode(dict(pairs))) == line
    assert list(row)[:3] == ["t", "ts", "kind"]


def test_optional_keys_may_be_left_out_and_then_are() -> None:
    """What is empty and optional takes no room; defaults stand for what is missing."""
    run = decode({"t": 0, "ts": 0, "kind": "run", "version": 1, "run": "r", "agents": []})
    assert run == records.Run(0, 0, "r", ())
    assert encode(records.End(1, 500_000, "v", (Fate("e", "consume"),), ("x",))) == (
        '{"t":1,"ts":0.5,"kind":"end","activation":"v",'
        '"fates":[{"event":"e","fate":"consume"}],"outputs":["x"]}'
    )
    assert encode(records.Emit(1, 0, "e", None, ("a",), "problem")) == (
        '{"t":1,"ts":0.0,"kind":"emit","event":"e","by":null,"to":["a"],'
        '"type":"problem","final":false}'
    )


def test_an_optional_key_that_is_null_is_as_absent() -> None:
    """A writer may have a place for each key; a limit that is null has its default."""
    keys = ("session", "memory", "limits", "usual", "patterns", "task", "seed")
    assert decode({**VALID["run"], **dict.fromkeys(keys)}) == decode(VALID["run"])
    of_end = ("usage", "error", "because", "cancelled")
    assert decode({**VALID["end"], **dict.fromkeys(of_end)}) == decode(VALID["end"])
    run = decode({**VALID["run"], "limits": {"mc_window_s": None, "loop_limit": None}})
    assert isinstance(run, records.Run) and run.limits == records.Limits()


def test_the_first_edition_of_the_patterns_is_not_named() -> None:
    """A file of before there were editions is read as it was, and written as it was."""
    run = decode({**VALID["run"], "patterns": 1})
    assert run == decode(VALID["run"]) and "patterns" not in encode(run)
    assert '"patterns":2' in encode(decode({**VALID["run"], "patterns": 2}))


def test_an_error_says_whose_it_is_only_if_it_is_another_s() -> None:
    """`because` and `cancelled` stand in a file only where a host has said so."""
    end = records.End(1, 0, "v", error="no", because="w")
    assert '"error":"no","because":"w"}' in encode(end)
    assert '"error":"no","cancelled":true}' in encode(
        records.End(1, 0, "v", error="no", cancelled=True)
    )


def test_limits_that_are_not_given_have_their_defaults() -> None:
    """A run may set one limit and keep the others."""
    run = decode({**VALID["run"], "limits": {"dl_window_s": 2, "later_s": "?"}})
    assert isinstance(run, records.Run)
    assert run.limits == Limits(dl_window_s=2.0)


def test_times_are_rounded_to_the_nearest_microsecond() -> None:
    """`ts` has more digits than the unit in which times are compared."""
    record = decode({**VALID["join"], "ts": 0.123_456_7})
    assert (record.us, record.ts) == (123_457, 0.123457)


# -- what is no record ---

KEYS: dict[str, Row] = {
    "run": {"version": 1, "run": "r", "agents": ["a"]},
    "emit": {"event": "e", "by": None, "to": ["a"], "type": "problem", "final": False},
    "deliver": {"event": "e", "to": None},
    "start": {"activation": "v", "agent": "a", "inputs": ["e"]},
    "end": {"activation": "v", "fates": [{"event": "e", "fate": "delay"}], "outputs": ["x"]},
    "join": {"agent": "a"},
    "leave": {"agent": "a"},
    "redirect": {"event": "e", "to": ["a"]},
    "expire": {"event": "e"},
    "finding": {"pattern": "ET", "stage": None, "subject": {}, "evidence": {}},
    "heal": {"finding": 0, "action": "inject", "event": "e", "note": "n"},
    "incident": {"what": "w", "detail": None},
    "finish": {"outcome": "submitted"},
}
VALID = {kind: {"t": 1, "ts": 0.5, "kind": kind, **keys} for kind, keys in KEYS.items()}

SHARED_KEYS = ["t", "ts", "kind"]
NEEDED = [(kind, key) for kind in VALID for key in [*SHARED_KEYS, *REQUIRED[kind]]]

NO_STRING: list[Any] = [None, 1, True, ["a"], {}]
NO_STRINGS: list[Any] = [None, "a", {}, ["a", None], [1], [["a"]]]
NO_NUMBER: list[Any] = [None, "1", True, False, [], {}]
NO_WHOLE: list[Any] = [*NO_NUMBER, 1.0]
NO_FLAG: list[Any] = [0, 1, "true", []]
NO_NULL_OR_STRING: list[Any] = [1, False, ["a"], {}]

WRONG: list[tuple[str, str, list[Any]]] = [
    *((kind, "t", NO_WHOLE) for kind in VALID),
    *((kind, "ts", [*NO_NUMBER, -1, 1e16, 10**400, float("nan"), float("inf")]) for kind in VALID),
    *((kind, "kind", [*NO_STRING, "Run", ""]) for kind in VALID),
    ("run", "version", [*NO_WHOLE, 0, 2]),
    ("run", "run", NO_STRING),
    ("run", "agents", NO_STRINGS),
    ("run", "session", NO_FLAG),
    ("run", "memory", NO_FLAG),
    ("run", "patterns", [0, -1, "2", True, 1.5]),
    ("end", "because", ["", 1, []]),
    ("end", "cancelled", NO_FLAG),
    ("run", "limits", [[], "none", 3, True]),
    ("emit", "event", NO_STRING),
    ("emit", "by", NO_NULL_OR_STRING),
    ("emit", "to", NO_STRINGS),
    ("emit", "type", NO_STRING),
    ("emit", "final", [None, *NO_FLAG]),
    ("deliver", "event", NO_STRING),
    ("deliver", "to", NO_NULL_OR_STRING),
    ("start", "activation", NO_STRING),
    ("start", "agent", NO_STRING),
    ("start", "inputs", NO_STRINGS),
    ("end", "activation", NO_STRING),
    ("end", "fates", [None, "e", {}, ["e"], [None]]),
    ("end", "outputs", NO_STRINGS),
    ("join", "agent", NO_STRING),
    ("leave", "agent", NO_STRING),
    ("redirect", "event", NO_STRING),
    ("redirect", "to", NO_STRINGS),
    ("expire", "event", NO_STRING),
    ("incident", "what", NO_STRING),
    ("finish", "outcome", [*NO_STRING, "won"]),
]


def refused(row: Any) -> str:
    """The reason for which a row is refused."""
    with pytest.raises(RecordError) as caught:
        decode(row)
    return str(caught.value)


@pytest.mark.parametrize("kind", VALID)
def test_the_rows_below_are_right_but_for_what_a_test_changes(kind: str) -> None:
    """Each kind has a valid row to start from."""
    assert decode(VALID[kind]).kind == kind


@pytest.mark.parametrize(("kind", "key"), NEEDED)
def test_a_missing_key_is_named(kind: str, key: str) -> None:
    """No key that the format asks for may be left out."""
    row = {k: v for k, v in VALID[kind].items() if k != key}
    assert re.match(rf"`{key}` is missing", refused(row))


@pytest.mark.parametrize(("kind", "key", "values"), WRONG, ids=lambda x: x if str(x) == x else "")
def test_a_value_of_the_wrong_type_is_refused_and_its_key_is_named(
    kind: str, key: str, values: list[Any]
) -> None:
    """There is no guessing: `true` is no number, `"1"` neither, `null` is no text."""
    for value in values:
        assert refused({**VALID[kind], key: value}).startswith(f"`{key}`")


@pytest.mark.parametrize(
    ("key", "values"),
    [
        *((f"{name}_window_s", [*NO_NUMBER, 0, -1, 1e-7, 1e16]) for name in ("mc", "oe", "dl")),
        ("activation_limit_s", [*NO_NUMBER, 0, -1, 1e16]),
        ("reroute_limit", [*NO_WHOLE, 0, -1]),
        ("stall_factor", [*NO_NUMBER, 0, -1, 1e10]),
        ("stall_min_s", [*NO_NUMBER, 0, -1, 1e16]),
        ("late_window_s", [*NO_NUMBER, 0, -1]),
        ("loop_limit", [*NO_WHOLE, 1]),
        ("livelock_turns", [*NO_WHOLE, 1]),
        ("livelock_agents", [*NO_WHOLE, 1]),
        ("coverage", NO_FLAG),
    ],
)
def test_a_limit_must_make_sense(key: str, values: list[Any]) -> None:
    """Windows are longer than nothing, counts are whole and not too small; null is as absent."""
    for value in values:
        if value is None:
            continue  # as if the limit were not there
        assert refused({**VALID["run"], "limits": {key: value}}).startswith(f"`{key}`")


@pytest.mark.parametrize(
    "usual",
    [[], 3, {"runs": 20}, {"counts": {}}, {"runs": -1, "counts": {}}, {"runs": 20, "counts": []},
     {"runs": 20, "counts": {"ET": 3}}, {"runs": 20, "counts": {"ET": [-1]}}],
)  # fmt: skip
def test_what_is_usual_must_make_sense(usual: Any) -> None:
    """A number of runs, and for each pattern a list of numbers of runs."""
    assert refused({**VALID["run"], "usual": usual}).startswith(("`usual`", "`runs`", "`counts`"))


@pytest.mark.parametrize(
    ("fate", "key"),
    [
        ({"fate": "delay"}, "event"),
        ({"event": 1, "fate": "delay"}, "event"),
        ({"event": "e"}, "fate"),
        ({"event": "e", "fate": "eat"}, "fate"),
        ({"event": "e", "fate": True}, "fate"),
        ({"event": "e", "fate": "reroute"}, "to"),
        ({"event": "e", "fate": "reroute", "to": "a"}, "to"),
    ],
)
def test_a_fate_must_be_whole(fate: Row, key: str) -> None:
    """A fate names its event, one of the four words and, for a reroute, the recipients."""
    assert refused({**VALID["end"], "fates": [fate]}).startswith(f"`{key}`")


def test_a_healing_needs_a_note_or_a_reason() -> None:
    """A `heal` row says what was written, or why nothing was."""
    row = {k: v for k, v in VALID["heal"].items() if k != "note"}
    assert refused(row).startswith("`note` is missing")
    assert decode({**row, "reason": "too late"}).kind == "heal"


@pytest.mark.parametrize("row", [None, 1, "run", [], [{}], True])
def test_a_record_is_an_object(row: Any) -> None:
    """A line that holds some other JSON is no record."""
    assert refused(row) == "a record must be a JSON object"


def test_a_message_stays_short() -> None:
    """A megabyte in the wrong place is not quoted in full."""
    assert len(refused({**VALID["join"], "agent": ["x" * 1_000_000]})) < 200


# -- what is no line ---

LINE = json.dumps(VALID["incident"])


def with_detail(detail: str) -> bytes:
    """A record with some text, that need not be JSON, in the place of a free value."""
    return LINE.replace("null", detail).encode()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "not JSON"),
        (b"\n", "not JSON"),
        (b"{", "not JSON"),
        (LINE.encode() + b"{}", "not JSON"),
        (b"\xef\xbb\xbf" + LINE.encode(), "not JSON"),
        (b'{"t": 1, "ts": 0.5, \xff}', "not UTF-8 (byte 20)"),
        (with_detail("NaN"), "NaN"),
        (with_detail("Infinity"), "Infinity"),
        (with_detail("-Infinity"), "-Infinity"),
        (with_detail("1e999"), "1e999"),
        (with_detail("-1e999"), "-1e999"),
        (with_detail('{"a": [{"b": 1, "b": 2}]}'), "'b' stands twice"),
        (LINE.replace('"t"', '"t": 1, "t"').encode(), "'t' stands twice"),
        (with_detail("[" * 100_000 + "]" * 100_000), "nested too deeply"),
        (with_detail('{"a":' * 100_000 + "1" + "}" * 100_000), "nested too deeply"),
        (with_detail("9" * 5000), "number that cannot be read"),
        (with_detail("'x'"), "not JSON"),
        (with_detail('"a\nb"'), "not JSON"),
    ],
    ids=lambda x: None if isinstance(x, bytes) else x,
)
def test_a_line_that_is_not_strict_json_is_refused(line: bytes, reason: str) -> None:
    """What only some readers would take is taken by none."""
    with pytest.raises(RecordError, match=re.escape(reason)):
        decode(reader.parse_row(line))


def test_many_different_keys_before_a_double_one_take_no_longer() -> None:
    """A large object is not searched once for each of its keys: a hostile line cannot stall."""
    keys = ",".join(f'"{n}":0' for n in range(300_000))
    with pytest.raises(RecordError, match="'last' stands twice"):
        decode(reader.parse_row(with_detail(f'{{{keys},"last":0,"last":0}}')))


def test_a_line_may_be_as_long_as_the_cap_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cap counts bytes, the end of the line among them."""
    line = LINE.encode() + b"\n"
    monkeypatch.setattr(reader, "MOST_BYTES", len(line))
    assert decode(reader.parse_row(line)) == decode(VALID["incident"])
    monkeypatch.setattr(reader, "MOST_BYTES", len(line) - 1)
    with pytest.raises(RecordError, match="longer than"):
        decode(reader.parse_row(line))


def test_the_cap_leaves_room_for_the_largest_event() -> None:
    """An event of 16 MiB fits into one line with what stands around it."""
    record = records.Emit(1, 0, "e", None, ("a",) * 1000, "raw_data", False, "x" * 2**24)
    assert len(encode(record)) < reader.MOST_BYTES

"""Figures of an owner's work, for `digmon sessions` and as OpenTelemetry metrics."""

from __future__ import annotations

from typing import Any

from opentelemetry import metrics

from dig._version import __version__

INSTRUMENTS = {
    "lag": ("gauge", "dig.session.lag", "{message}", "raw messages that wait for the owner"),
    "batch": ("histogram", "dig.session.batch", "{request}", "requests in one append"),
    "append_ms": ("histogram", "dig.session.append", "ms", "time until an append is stored"),
    "hold_ms": ("histogram", "dig.session.hold", "ms", "longest time from read to release"),
    "rebuild_s": ("histogram", "dig.session.rebuild", "s", "time of a take-over"),
    "late": ("counter", "dig.session.late", "{decision}", "decisions without effect"),
    "fenced": ("counter", "dig.session.fenced", "{time}", "owners that found another one ahead"),
    "takeovers": ("counter", "dig.session.takeovers", "{time}", "take-overs"),
}  # fmt: skip
"""By figure: the kind of its instrument, name, unit and meaning; each has `dig.session`."""


def make_instruments(meter: metrics.Meter) -> dict[str, Any]:
    """Make the instrument of each figure."""
    return {
        figure: getattr(meter, f"create_{kind}")(name, unit=unit, description=text)
        for figure, (kind, name, unit, text) in INSTRUMENTS.items()
    }


_instruments = make_instruments(metrics.get_meter("dig", __version__))  # of any later provider


class SessionFigures(dict[str, Any]):
    """The latest figures of a session in one process; counters grow from zero."""

    def __init__(self, session: str) -> None:
        """Begin with nothing counted."""
        super().__init__(late=0, fenced=0)
        self._named = {"dig.session": session}

    def note(self, figure: str, value: float) -> None:
        """Note a value; of a counter, how much it has grown."""
        kind, instrument = INSTRUMENTS[figure][0], _instruments[figure]
        if kind == "counter":
            self[figure] = self.get(figure, 0) + value
            instrument.add(value, self._named)
        elif kind == "gauge":
            self[figure] = value
            instrument.set(value, self._named)
        else:
            self[figure] = round(value, 3)
            instrument.record(value, self._named)

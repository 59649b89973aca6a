"""The base classes of detectors and healers, and the table of patterns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from dig import Detector, Finding, Healer, InteractionGraph, Monitor, Record, Watch
from dig.detectors import PATTERNS, describe, standard, standard_healers
from dig.errors import SettingsError


class Quiet(Detector):
    """A detector that finds nothing."""

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        return ()


class Idle(Healer):
    """A healer that does nothing."""

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterable[Any]:
        return ()


@pytest.mark.parametrize(
    ("base", "slip", "hook"),
    [
        (Quiet, "kind", "kinds"),
        (Quiet, "forgets", "forget"),
        (Quiet, "expires", "expire"),
        (Idle, "cooldown", "cooldown_s"),
        (Idle, "prevents", "prevent"),
    ],
)
def test_a_slip_of_the_pen_in_the_name_of_a_hook_is_an_error(
    base: type, slip: str, hook: str
) -> None:
    """A hook under a wrong name would never be called; the class cannot be made."""
    with pytest.raises(TypeError, match=rf"Own\.{slip} looks like the hook `{hook}`"):
        type("Own", (base,), {slip: None})


def test_names_of_ones_own_are_free() -> None:
    """A name that no hook has, or that begins with an underscore, is no slip of the pen."""
    assert type("Own", (Quiet,), {"windows": 3, "_kind": 1})


def test_what_does_not_inherit_from_the_base_class_is_refused_at_once() -> None:
    """The error names the object and its cure, before the first record."""

    class Duck:
        def detect(self, graph: Any, record: Any) -> Any:
            return ()

        heal = detect

    duck: Any = Duck()
    with pytest.raises(SettingsError, match=r"Duck object .* must inherit from dig\.Detector"):
        Watch([duck])
    with pytest.raises(SettingsError, match=r"Duck object .* must inherit from dig\.Healer"):
        Monitor(["a"], clock=lambda: 0.0, healers={"ET": duck})


def test_a_method_that_is_required_is_asked_for_when_the_object_is_made() -> None:
    """Python says which one is missing."""
    with pytest.raises(TypeError, match="detect"):
        type("Own", (Detector,), {})()
    with pytest.raises(TypeError, match="heal"):
        type("Own", (Healer,), {})()


def test_a_pattern_is_one_row() -> None:
    """Detectors and healers are those of the table, in its order, each with the row's name."""
    names = [pattern.name for pattern in PATTERNS]
    assert [detector.pattern for detector in standard()] == names
    assert [*standard_healers()] == [*standard_healers(designate=True)] == names
    assert [type(detector) for detector in standard()] == [one.detector for one in PATTERNS]


@pytest.mark.parametrize("pattern", [pattern.name for pattern in PATTERNS])
def test_a_users_finding_with_the_name_of_a_standard_pattern_is_explained(pattern: str) -> None:
    """Its evidence has another shape; it is explained by what it names, and nothing raises."""
    found = Finding(pattern, 0, 0, {"mine": "m1"}, {"odd": 7})
    assert str(describe.explain(InteractionGraph(), found)) == "about mine m1; odd: 7"
    assert describe.finding_text(found) == "about mine m1; odd: 7"

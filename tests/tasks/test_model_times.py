"""The limits of a run whose agents ask a language model, on the run's clock."""

from __future__ import annotations

from typing import Any

import pytest

from dig.detectors.thresholds import Thresholds
from dig.runtime.setup import Setup
from dig.tasks.run.arrange import arrange, make_run, make_task


def setup(speed: float = 1.0, limit_s: float = 4000.0, **options: Any) -> Setup:
    """The setup of a run with a model."""
    options = {"base_url": "http://localhost:9/v1", **options}
    run = make_run(
        "count-frequency", Thresholds.load(options.pop("given", ()), None), agents=2, seed=1,
        agents_are="model m", options=options, limit_s=limit_s,
    )  # fmt: skip
    return arrange(run, make_task(run), speed).setup


@pytest.mark.parametrize(
    ("options", "activation_s"),
    [
        ({}, 9 * 30.0),
        ({"timeout_s": 100.0}, 900.0),
        ({"timeout_s": 1.0}, 60.0),
        ({"timeout_s": 100.0, "speed": 0.1}, 90.0),
        ({"activation_timeout_s": 50.0}, 50.0),
    ],
)
def test_an_activation_has_time_for_all_its_requests(
    options: dict[str, Any], activation_s: float
) -> None:
    """Eight rounds of tools and a decision, unless it is set; seconds on the run's clock."""
    assert setup(**options).activation_timeout_s == pytest.approx(activation_s)


@pytest.mark.parametrize(
    ("options", "limit_s"),
    [
        ({}, 300.0),
        ({"timeout_s": 100.0}, 900.0),
        ({"timeout_s": 100.0, "given": ["activation_limit_s=400"]}, 400.0),
    ],
)
def test_a_turn_that_may_go_on_is_no_reason_for_a_deadlock(
    options: dict[str, Any], limit_s: float
) -> None:
    """The threshold rises with the limit of an activation, unless the user has set it."""
    assert setup(**options).limits.activation_limit_s == limit_s

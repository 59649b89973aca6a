"""AutoGen, wrapped: what stands in place of its functions looks like them, and is called so."""

from __future__ import annotations

import inspect

import pytest

pytest.importorskip(
    "autogen_agentchat", reason="AutoGen is not installed: pip install .[dev,autogen]"
)

from autogen_agentchat.base import TerminationCondition

from dig.adapters.autogen.group import BounceableTermination

from .autogen_runtimes import RUNTIMES
from .autogen_teams import SCENARIOS
from .autogen_watch import Watched
from .framework_signatures import Pair, must_look_alike, must_take_keywords

pytestmark = pytest.mark.filterwarnings("ignore:Multiple handoffs detected")

ASKED = [*SCENARIOS, *RUNTIMES]


def others() -> list[Pair]:
    """The condition of a manager, which is an object."""
    return [Pair(TerminationCondition.__call__, BounceableTermination.__call__)]


def test_what_is_replaced_has_the_signature_of_what_was_there() -> None:
    """Names, kinds and defaults of parameters are the same, and so is what has to be awaited."""
    must_look_alike(Watched, ASKED, others)
    assert inspect.iscoroutinefunction(BounceableTermination.__call__)


def test_what_is_replaced_can_be_called_by_name() -> None:
    """Each argument may be given by its name, as without a monitor."""
    must_take_keywords(Watched, ASKED)

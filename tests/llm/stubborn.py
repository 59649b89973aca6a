"""A team whose second agent does nothing until it is told to, on a scripted server."""

from __future__ import annotations

import json
import os
from typing import Any

from dig.runtime.llm import Model, ModelAgent, ModelSettings
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.general_agent import GeneralBrief
from tests.llm.server import Answer, says
from tests.llm.solver import solve

SERVER = "TESTS_SCRIPTED_SERVER"
NAMES = ("agent-1", "agent-2", "agent-3")


def answer(request: dict[str, Any]) -> Answer:
    """As the solver; but agent-2 waits as long as no note lies before it."""
    here = json.loads(request["messages"][1]["content"])
    is_told = any(event["type"] == "system" for event in here["events"])
    if here["you"] == "agent-2" and not is_told:
        return says({"fates": [], "outputs": []})
    return solve(request)


def team() -> dict[str, ModelAgent]:
    """Three agents that the model on the server decides for."""
    goal = CountFrequency(size=60, seed=1).goal
    agent = ModelAgent(Model(ModelSettings("m", os.environ[SERVER])), GeneralBrief(goal))
    return dict.fromkeys(NAMES, agent)

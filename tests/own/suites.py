"""The frameworks' own test suites: where each comes from, and how it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """A framework's own tests.

    Attributes:
        packages: The distributions whose tests they are; each source has a folder `tests`.
        about: A word that stands in each test file that builds teams; empty: in all of them.
        part: Arguments for pytest that choose a part that takes seconds.
        arguments: What pytest is given besides.
        environment: What they need to run without servers.
        by_design: Tests that look at what a wrapper changes by design, and why.
        alarms: Tests whose teams are right to raise an alarm, or patterns that those of the suite
            are right to raise, and why.
        none: Why there are none, if there are none.
    """

    packages: tuple[str, ...]
    about: str = ""
    part: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    by_design: Mapping[str, str] = field(default_factory=dict)
    alarms: Mapping[str, str] = field(default_factory=dict)
    none: str = ""


SUITES = {
    "langgraph": Suite(
        ("langgraph",),
        part=(
            "tests/test_interruption.py",
            "tests/test_large_cases_async.py",
            "tests/test_strict_resume.py",
            "tests/test_subgraph_persistence_async.py",
        ),
        arguments=("-o", "addopts="),
        environment={"NO_DOCKER": "true", "LANGSMITH_TRACING": "false"},
    ),
    "openai-agents": Suite(
        ("openai-agents",),
        "Runner.run",
        ("tests/test_agent_runner.py",),
        by_design={
            "test_agent_is_released_after_run": "a wrapped agent is kept until it is unwrapped",
            "test_handoffs_lead_to_correct_agent_spans": "healed, the agent that dropped a handoff "
            "is asked once more, and the test counts the calls of its model",
            "test_multiple_handoff_doesnt_error": "healed, the same",
            "test_image_generation_options_reach_responses_request": "healed, an empty answer is "
            "asked for once more, and the test counts the calls of its model",
        },
        alarms={
            "test_handoffs_lead_to_correct_agent_spans": "the SDK drops a second handoff",
            "test_multiple_handoff_doesnt_error": "the SDK drops a second handoff",
            "VOID": "the models of these tests give back what they are asked, or nothing",
        },
    ),
    "autogen": Suite(
        ("autogen-agentchat", "autogen-core"),
        part=(
            "tests/test_group_chat_graph.py",
            "tests/test_group_chat_nested.py",
            "tests/test_intervention.py",
            "tests/test_routed_agent.py",
            "tests/test_subscription.py",
        ),
        environment={"OPENAI_API_KEY": "none"},
        alarms={
            "test_round_robin_group_chat_cancellation": "agents say the same up to 1,000 times",
            "test_register_receives_publish_cascade": "agents publish the same again and again",
            "VOID": "the agents of these tests give back what they hear",
        },
    ),
    "crewai": Suite(
        ("crewai",),
        "kickoff",
        (
            "tests/crew/test_async_crew.py",
            "tests/test_custom_llm.py",
            "tests/hooks/test_crew_scoped_hooks.py",
            "tests/hooks/test_deny_reaches_the_caller.py",
        ),
        arguments=("-p", "crewai_conftest", "-o", "asyncio_mode=auto", "-W", "ignore"),
        environment={"OPENAI_API_KEY": "none"},
    ),
    **{
        extra: Suite((package,), none="its source distribution has no tests")
        for extra, package in {
            "a2a": "a2a-sdk",
            "ag2": "ag2",
            "agent-framework": "agent-framework-core",
            "google-adk": "google-adk",
            "llama-index": "llama-index-core",
            "pydantic-ai": "pydantic-ai-slim",
        }.items()
    },
}
"""By the name of the extra that installs the framework."""

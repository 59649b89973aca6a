"""`python -m bench.decisions --base-url URL --model NAME`: how many first decisions are usable?

Asks a model, COUNT times, for the first decision of a run of CountFrequency, as an agent of
`digmon run count-frequency` does, and counts the first replies that can be carried out as they are:
a call of a tool with arguments that the tool takes, or a decision. No reply is asked for again.

An older state of the code is measured by the same program, for a comparison:

    git worktree add ../before COMMIT && cp bench/decisions.py ../before/bench/
    cd ../before && python -m bench.decisions --base-url URL --model NAME
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import anyio

from dig.errors import ModelError
from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, Tool, View
from dig.runtime.llm import Model, ModelAgent, ModelSettings
from dig.runtime.llm import model as model_module
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.general_agent import GeneralBrief


class Called(BaseException):
    """The model called a tool, with arguments that the tool takes; ends the activation."""


class FirstReply(Model):
    """A model that is asked once an activation."""

    most_reply = 0
    is_asked = False

    async def ask(self, *args: Any, **options: Any) -> Any:
        if self.is_asked:
            raise ModelError("a call that the tool refuses, or of a tool that there is not")
        self.is_asked = True
        return await super().ask(*args, **options)

    def _request(self, question: Any) -> dict[str, Any]:
        request = super()._request(question)
        is_bounded = request.keys() & {"max_completion_tokens", "max_tokens"}
        return request if is_bounded else {**request, "max_tokens": self.most_reply}


def ends(name: str, tool: Tool) -> Tool:
    """The tool, which ends the activation once it has a result."""

    @functools.wraps(tool)
    def call(*args: Any, **named: Any) -> Any:
        tool(*args, **named)
        raise Called(name)

    return call


def kind(decision: Decision) -> str:
    """The canonical action that a decision comes next to."""
    if any(output.final for output in decision.outputs):
        return "submit"
    if decision.outputs:
        return "respond"
    fates = {fate.fate for fate in decision.fates} - {"delay"}
    return next(iter(sorted(fates)), "wait")


async def first_reply(agent: ModelAgent, view: View) -> tuple[bool, str]:
    """Whether the first reply to a view is usable, and what it is."""
    try:
        return True, kind(await agent.act(view))
    except Called as call:
        return True, f"call of {call}"
    except ModelError as error:
        return False, str(error)


async def measure(options: argparse.Namespace, tell: Callable[[str], None]) -> Counter[str]:
    """Ask, and count the replies by what they are."""
    model_module.ATTEMPTS = 1  # type: ignore[attr-defined]  # of code before it was a setting
    more = {"attempts": 1, "max_reply": options.max_reply, "json_mode": options.json_mode}
    known = {field.name for field in fields(ModelSettings)}
    settings = ModelSettings(
        options.model, options.base_url, options.api_key_env, timeout_s=options.request_timeout,
        temperature=options.temperature, **{key: more[key] for key in more.keys() & known},
    )  # fmt: skip
    task = CountFrequency(options.size, 1)
    team = tuple(f"agent-{i + 1}" for i in range(options.agents))
    problem = task.problem(team[0])
    view = View(
        team[0], team, 1, 0.0, (Pending("e1", "problem", None, problem.payload),),
        {name: ends(name, tool) for name, tool in task.tools().items()},
    )  # fmt: skip
    counts: Counter[str] = Counter()
    model = FirstReply(settings)
    async with model:
        model.most_reply = options.max_reply
        agent = ModelAgent(model, GeneralBrief(task.goal))
        for number in range(1, options.count + 1):
            model.is_asked = False
            usable, reason = await first_reply(agent, view)
            counts["usable"] += usable
            counts[f"{'usable' if usable else 'unusable'}: {reason}"] += 1
            tell(f"{number}: {'usable' if usable else 'unusable'}, {reason}")
        counts["tokens"] = model.spending.tokens
    return counts


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.decisions")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--api-key-env", default="OPENAI_API_KEY")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--agents", type=int, default=3)
    parser.add_argument("--size", type=int, default=20)
    parser.add_argument("--json-mode", default="auto")
    parser.add_argument("--temperature", type=float)
    parser.add_argument("--max-reply", type=int, default=400)
    parser.add_argument("--request-timeout", type=float, default=600.0)
    options = parser.parse_args()
    counts = anyio.run(
        measure, options, lambda line: print(line[:300], file=sys.stderr, flush=True)
    )
    print(f"{counts['usable']} of {options.count} first replies are usable", end="")
    print(f" ({counts['tokens']:,} tokens)")
    for reason, number in counts.most_common():
        if ": " in reason:
            print(f"{number:>5}  {reason[:200]}")


if __name__ == "__main__":
    main()

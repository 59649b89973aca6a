"""Scripted workflows: one for each feature of agent-framework that a wrapper could disturb."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import agent_framework as af

import dig
from dig.adapters import agent_framework

from .framework_watch import Watched as Framework
from .harness import Scenario, Script


class Watched(Framework):
    """Wraps workflows."""

    adapter = agent_framework


Act = Callable[[Any, int, Any], Any]
"""What an executor does: it gets its data, the number of its turn and the framework's context."""


@dataclass(frozen=True)
class Part:
    """A piece of work; not what an agent understands."""

    what: str


class Scripted(af.Executor):  # type: ignore[misc]
    """An executor that tells the script of its turn, and does what it is told."""

    def __init__(self, script: Script, id: str, act: Act) -> None:
        super().__init__(id)
        self._script = script
        self._act = act

    @af.handler  # type: ignore[untyped-decorator]
    async def on_text(self, data: str, ctx: af.WorkflowContext[Any, Any]) -> None:
        """A text comes."""
        await self._work(data, ctx)

    @af.handler  # type: ignore[untyped-decorator]
    async def on_part(self, data: Part, ctx: af.WorkflowContext[Any, Any]) -> None:
        """A part comes."""
        await self._work(data, ctx)

    @af.handler  # type: ignore[untyped-decorator]
    async def on_list(self, data: list[Any], ctx: af.WorkflowContext[Any, Any]) -> None:
        """What a join has put together comes."""
        await self._work(data, ctx)

    @af.response_handler  # type: ignore[untyped-decorator]
    async def on_response(self, asked: str, said: str, ctx: af.WorkflowContext[Any, Any]) -> None:
        """Somebody outside has answered."""
        await self._work(said, ctx)

    async def _work(self, data: Any, ctx: Any) -> None:
        async with self._script.turn(self.id, (data, ctx.source_executor_ids)) as number:
            done = self._act(data, number, ctx)
            if isinstance(done, Awaitable):
                await done


class Model(af.BaseChatClient[Any]):  # type: ignore[misc]
    """A scripted model; `act` gets the texts that it is given, and the number of the turn."""

    def __init__(self, script: Script, name: str, act: Callable[[list[str], int], str]) -> None:
        super().__init__()
        self._script = script
        self._name = name
        self._act = act

    def _inner_get_response(
        self,
        *,
        messages: Sequence[af.Message],
        stream: bool,
        options: Mapping[str, Any],
        **more: Any,
    ) -> Any:
        texts = [message.text for message in messages]

        async def respond() -> str:
            async with self._script.turn(self._name, texts) as number:
                return self._act(texts, number)

        async def whole() -> af.ChatResponse[Any]:
            return af.ChatResponse(messages=[af.Message("assistant", [await respond()])])

        async def pieces() -> AsyncIterator[af.ChatResponseUpdate]:
            for word in (await respond()).split(" "):
                await asyncio.sleep(0.1)
                yield af.ChatResponseUpdate(
                    role="assistant", contents=[{"type": "text", "text": word}]
                )

        if not stream:
            return whole()
        return af.ResponseStream(pieces(), finalizer=af.ChatResponse.from_updates)


def send(data: Any, *to: str) -> Act:
    """Sends the same thing to each of some executors, or along all edges."""

    async def act(given: Any, number: int, ctx: Any) -> None:
        for target in to or (None,):
            await ctx.send_message(data, target)

    return act


def put_out(data: Any = "done") -> Act:
    return lambda given, number, ctx: ctx.yield_output(data)


def ends(given: Any, number: int, ctx: Any) -> Any:
    return ctx.yield_output(f"{given} done")


def passes_on(given: Any, number: int, ctx: Any) -> Any:
    return ctx.send_message(given)


class Parts:
    """Executors by name, made as they are asked for."""

    def __init__(self, script: Script, **acts: Act) -> None:
        self._made = {name: Scripted(script, name, act) for name, act in acts.items()}

    def __getattr__(self, name: str) -> Any:
        return self._made[name]

    def build(self, start: str, **more: Any) -> af.WorkflowBuilder:
        return af.WorkflowBuilder(start_executor=self._made[start], name="team", **more)

    def line(self, **more: Any) -> af.Workflow:
        """A workflow of all of them, one after the other."""
        built = self.build(next(iter(self._made)), **more)
        for one, following in pairwise(self._made.values()):
            built.add_edge(one, following)
        return built.build()


def joined(script: Script, b: Act, c: Act, j: Act = ends, **more: Any) -> af.Workflow:
    """Two branches, `b` and `c`, which `j` joins."""
    p = Parts(script, a=send("go"), b=b, c=c, j=j)
    built = p.build("a", **more).add_fan_out_edges(p.a, [p.b, p.c])
    return built.add_fan_in_edges([p.b, p.c], p.j).build()


async def fails(given: Any, number: int, ctx: Any) -> None:
    raise ValueError("no")


def asks(name: str) -> Act:
    """Asks somebody outside, and sends on what that says."""

    async def act(given: Any, number: int, ctx: Any) -> None:
        if number == 1:
            await ctx.request_info(f"What does {name} need?", str, request_id=name)
        else:
            await ctx.send_message(given)

    return act


# --- teams ------------------------------------------------------------------------------------


def chain(script: Script) -> af.Workflow:
    return Parts(script, a=send("to b"), b=send("to c"), c=ends).line()


def fan(script: Script) -> af.Workflow:
    """Branches that are joined; in one of them are two steps."""
    p = Parts(script, a=send("go"), b=send("b's"), c=send("c's"), d=send("d's"), j=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c]).add_edge(p.c, p.d)
    return built.add_fan_in_edges([p.b, p.d], p.j).build()


def conditional(script: Script) -> af.Workflow:
    def act(given: Any, number: int, ctx: Any) -> Any:
        return ctx.send_message(Part("again" if number < 3 else "good"))

    p = Parts(script, writer=send("a text"), critic=act, press=ends)
    built = p.build("writer").add_edge(p.writer, p.critic)
    built = built.add_edge(p.critic, p.writer, condition=lambda part: part.what == "again")
    return built.add_edge(p.critic, p.press, condition=lambda part: part.what == "good").build()


def async_condition(script: Script) -> af.Workflow:
    async def slowly(data: Any) -> bool:
        await asyncio.sleep(0.5)
        return "x" in data

    p = Parts(script, a=send("xy"), b=ends, c=ends)
    built = p.build("a").add_edge(p.a, p.b, condition=slowly)
    return built.add_edge(p.a, p.c, condition=lambda data: "y" in data).build()


def switch(script: Script) -> af.Workflow:
    async def several(given: Any, number: int, ctx: Any) -> None:
        for text in ("red", "blue", "other"):
            await ctx.send_message(text)

    p = Parts(script, a=several, red=ends, blue=ends, rest=ends)
    cases = [
        af.Case(condition=lambda text: text == "red", target=p.red),
        af.Case(condition=lambda text: text == "blue", target=p.blue),
        af.Default(target=p.rest),
    ]
    return p.build("a").add_switch_case_edge_group(p.a, cases).build()


def selection(script: Script) -> af.Workflow:
    async def twice(given: Any, number: int, ctx: Any) -> None:
        await ctx.send_message("b c")
        await ctx.send_message("d", "d")

    p = Parts(script, a=twice, b=ends, c=ends, d=ends)
    built = p.build("a").add_multi_selection_edge_group(
        p.a, [p.b, p.c, p.d],
        selection_func=lambda text, ids: [name for name in ids if name in text.split()],
    )  # fmt: skip
    return built.build()


def several_at_once(script: Script) -> af.Workflow:
    """Two sources send to one executor, whose own messages go along conditional edges."""
    p = Parts(script, a=send("go"), b=send("b's"), c=send("c's"), d=passes_on, e=ends, f=ends)
    built = p.build("a").add_fan_out_edges(p.a, [p.b, p.c]).add_edge(p.b, p.d).add_edge(p.c, p.d)
    built = built.add_edge(p.d, p.e, condition=lambda text: text == "b's")
    return built.add_edge(p.d, p.f, condition=lambda text: text != "b's").build()


def turned_down(script: Script) -> af.Workflow:
    """No condition holds, and nothing is put out."""
    p = Parts(script, a=send("x"), b=ends)
    return p.build("a").add_edge(p.a, p.b, condition=lambda text: False).build()


def typed(script: Script) -> af.Workflow:
    """What an executor cannot take, its edge leaves out."""
    p = Parts(script, a=send(17), b=ends, c=ends)
    built = p.build("a").add_edge(p.a, p.b)
    return built.add_edge(p.a, p.c).build()


def failing(script: Script) -> af.Workflow:
    p = Parts(script, a=send("go"), b=fails, c=send("c's"), d=ends)
    return p.build("a").add_fan_out_edges(p.a, [p.b, p.c]).add_edge(p.c, p.d).build()


def raises(data: Any) -> bool:
    raise ValueError("no")


def bad_condition(script: Script) -> af.Workflow:
    p = Parts(script, a=send("go"), b=ends, c=ends)
    built = p.build("a").add_edge(p.a, p.b, condition=lambda data: True)
    return built.add_edge(p.a, p.c, condition=raises).build()


def endless(script: Script) -> af.Workflow:
    p = Parts(script, a=send("to b"), b=send("to a"))
    return p.build("a", max_iterations=5).add_edge(p.a, p.b).add_edge(p.b, p.a).build()


def half_join(script: Script) -> af.Workflow:
    """A join waits for somebody who says nothing."""
    return joined(script, send("b's"), lambda *given: None)


def asking(script: Script) -> af.Workflow:
    return Parts(script, a=asks("name"), b=ends).line()


def asking_both(script: Script) -> af.Workflow:
    """Two branches ask somebody outside, and are joined when he has replied."""
    return joined(script, asks("b"), asks("c"))


def on_a_thread(script: Script) -> af.Workflow:
    """A plain function, which the framework calls on a thread."""

    def note(text: str, ctx: af.WorkflowContext[Any, Any]) -> None:
        script.log.append(("b", text, repr(dig.notes())))

    note.__annotations__ = {"text": str, "ctx": af.WorkflowContext[Any, Any]}  # it looks for types
    p = Parts(script, a=send("go"))
    return p.build("a").add_edge(p.a, af.FunctionExecutor(note, id="b")).build()


def remembering(script: Script) -> af.Workflow:
    storage = af.InMemoryCheckpointStorage()
    return joined(script, send("b's"), send("c's"), checkpoint_storage=storage)


def around(script: Script, inner: af.Workflow, **more: Any) -> af.Workflow:
    """A workflow of which another one is an executor."""
    p = Parts(script, start=send("go"), end=ends)
    one = af.WorkflowExecutor(inner, id="inner", **more)
    return p.build("start").add_edge(p.start, one).add_edge(one, p.end).build()


def nested(script: Script) -> af.Workflow:
    return around(script, chain(script))


def designated(script: Script) -> af.Workflow:
    async def both(given: Any, number: int, ctx: Any) -> None:
        await ctx.yield_output("on the way")
        await ctx.send_message("go")

    p = Parts(script, a=both, b=ends)
    built = p.build("a", output_from=[p.b], intermediate_output_from=[p.a])
    return built.add_edge(p.a, p.b).build()


def agents(script: Script, **acts: Callable[[list[str], int], str]) -> dict[str, af.Agent[Any]]:
    """Agents with scripted models."""
    return {name: af.Agent(Model(script, name, act), name=name) for name, act in acts.items()}


def talking(script: Script) -> af.Workflow:
    team = agents(
        script, ann=lambda texts, number: "A first text", bob=lambda texts, number: "A better text"
    )
    built = af.WorkflowBuilder(start_executor=team["ann"])
    return built.add_edge(team["ann"], team["bob"]).build()


# --- what they are asked, in every way in which a workflow can be called ---


def told(events: Any) -> list[str]:
    """What a host sees of events: types, executors, and data."""
    return [f"{event.type} {event.executor_id} {_plain(event.data)!r}" for event in events]


def _plain(data: Any) -> Any:
    if isinstance(data, list):
        return [_plain(one) for one in data]
    return data.to_dict() if hasattr(data, "to_dict") else data


async def ask(team: af.Workflow) -> Any:
    result = await team.run("?")
    return [told(result), told(result.status_timeline()), _plain(result.get_outputs())]


async def ask_twice(team: af.Workflow) -> Any:
    return [await ask(team), await ask(team)]


async def stream(team: af.Workflow) -> Any:
    pieces = team.run("?", stream=True)
    seen = [told([event]) async for event in pieces]
    return [seen, told(await pieces.get_final_response())]


async def look_at_some(team: af.Workflow) -> Any:
    seen = []
    async for event in team.run("?", stream=True):
        seen.append(event.type)
        if event.type == "executor_completed":
            break
    return seen


async def answer_back(team: af.Workflow) -> Any:
    return [await ask(team), told(await team.run(responses={"name": "Ada"}))]


async def kept_of(team: af.Workflow) -> list[Any]:
    """The checkpoints of a workflow, in order."""
    storage: Any = team._runner.context._get_effective_checkpoint_storage()
    return sorted(await storage.list_checkpoints(workflow_name="team"), key=lambda c: c.timestamp)


async def branch_off(team: af.Workflow) -> Any:
    first, kept = await ask(team), await kept_of(team)
    return [first, *[told(await team.run(checkpoint_id=one.checkpoint_id)) for one in kept]]


async def drop_and_restore(team: af.Workflow) -> Any:
    """A stream is dropped after the first step, and another run takes up what it has left."""
    stream = team.run("?", stream=True)
    async for event in stream:
        if event.type == "superstep_completed":
            break
    del stream
    return told(await team.run(checkpoint_id=(await kept_of(team))[-1].checkpoint_id))


async def drop_and_ask(team: af.Workflow) -> Any:
    """The framework refuses another run, since the messages of the first are there still."""
    await look_at_some(team)
    try:
        return await ask(team)
    except RuntimeError as error:
        return repr(error)


async def answer_both(team: af.Workflow) -> Any:
    await team.run("?")
    return told(await team.run(responses={"b": "Ada", "c": "Rome"}))


async def as_agent(team: af.Workflow) -> Any:
    response = await team.as_agent("all").run("?")
    return [message.text for message in response.messages]


async def refused(team: af.Workflow) -> Any:
    """A second run at the same time is refused by the framework."""
    first = asyncio.ensure_future(ask(team))
    await asyncio.sleep(0)
    try:
        await ask(team)
    except Exception as error:
        return [repr(error), await first]


ASKED: dict[Callable[[Any], Awaitable[Any]], tuple[Callable[[Script], Any], ...]] = {
    ask: (
        chain, fan, conditional, async_condition, switch,
        selection, several_at_once, turned_down, failing,
        bad_condition, endless, half_join, nested, designated,
        talking, typed, on_a_thread,
    ),
    ask_twice: (chain, fan, half_join),
    stream: (fan, conditional, designated, talking, failing),
    look_at_some: (fan,),
    answer_back: (asking,),
    answer_both: (asking_both,),
    branch_off: (remembering,),
    drop_and_ask: (fan,),
    drop_and_restore: (remembering,),
    as_agent: (talking,),
    refused: (chain,),
}  # fmt: skip


def team(build: Callable[[Script], Any], drive: Any = ask) -> Scenario:
    return Scenario(f"{build.__name__}-{drive.__name__}", build, drive)


SCENARIOS = [team(build, drive) for drive, builds in ASKED.items() for build in builds]


def two_workers(script: Script) -> af.Workflow:
    p = Parts(script, a=send("go", "b"), b=ends, c=put_out("c did it"), d=passes_on)
    built = p.build("a").add_edge(p.a, p.b)
    return built.add_edge(p.a, p.c).add_edge(p.b, p.d).build()


def inside(build: Callable[[Script], af.Workflow], drive: Any = ask, **more: Any) -> Scenario:
    """The workflow is an executor of another one, which is wrapped."""

    def within(script: Script) -> af.Workflow:
        return around(script, build(script), **more)

    return Scenario(f"inside-{build.__name__}-{drive.__name__}", within, drive)


def deep(script: Script) -> af.Workflow:
    """A workflow in a workflow, to be put into a third one."""
    return around(script, chain(script))


INSIDE = [
    *map(inside, (chain, deep, fan, failing, endless)),
    inside(asking, answer_back, propagate_request=True),
    inside(chain, ask_twice),
    inside(fan, stream, allow_direct_output=True),
]
"""Workflows with others in them, in which nothing can be healed."""

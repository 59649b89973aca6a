"""Options of the commands to start runs."""

import os
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dig.errors import SettingsError

from .options import Config, Further, Given, Habit, Judge, UsualFile, further, policy

if TYPE_CHECKING:
    from dig.tasks.run.team_run import TeamRun


JsonMode = StrEnum("JsonMode", ["strict", "object", "text"])
"""strict: a JSON schema. object: any JSON object. text: neither; both have it in the prompt."""


@dataclass(frozen=True)
class ModelOptions:
    """The language model behind the agents: name, server and budget."""

    model: Annotated[
        str | None, typer.Option(help="The language model that decides for the agents.")
    ] = None
    base_url: Annotated[
        str | None,
        typer.Option(help="An OpenAI-compatible server, such as http://localhost:8000/v1."),
    ] = None
    api_key_env: Annotated[
        str | None, typer.Option(help="The environment variable that has the server's key.")
    ] = None
    json_mode: Annotated[
        JsonMode | None,
        typer.Option(
            help="How its answers are asked for; by default strict, and the next if it is refused."
        ),
    ] = None
    temperature: Annotated[float | None, typer.Option(help="Sent to the model, if given.")] = None
    request_timeout: Annotated[
        float | None, typer.Option(help="Seconds that one request to the model may take.")
    ] = None
    activation_timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that one turn of an agent may take; by default nine requests."),
    ] = None
    max_reply: Annotated[
        int | None, typer.Option(help="Tokens that one reply may have; by default 2,000.")
    ] = None
    attempts: Annotated[
        int | None,
        typer.Option(help="How many replies are asked for, until one is usable; 2 by default."),
    ] = None
    concurrency: Annotated[
        int | None, typer.Option(help="How many requests may be under way at once.")
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option(
            help="Stop after so many tokens, sent and received: the run, or the whole experiment."
        ),
    ] = None
    max_usd: Annotated[
        float | None,
        typer.Option(help="Stop after so many US dollars: the run, or the whole experiment."),
    ] = None
    price_in: Annotated[
        float | None, typer.Option(help="US dollars for a million tokens sent.")
    ] = None
    price_out: Annotated[
        float | None, typer.Option(help="US dollars for a million tokens received.")
    ] = None

    def model_values(self) -> dict[str, Any]:
        """Return the given settings of the model; an empty dict without a model.

        Raises:
            SettingsError: Other options are given than the model's name, but not that.
        """
        named = {option.name: getattr(self, option.name) for option in _MODEL_FIELDS}
        named = {name: _plain(value) for name, value in named.items() if value is not None}
        if self.model is None and named:
            option = next(iter(named)).replace("_", "-")
            raise SettingsError(f"--{option} is about a language model; name it with --model")
        values = {_NAMES.get(name, name): value for name, value in named.items()}
        if values and "base_url" not in values and os.environ.get(BASE_URL):
            values["base_url"] = os.environ[BASE_URL]
        return values

    def of_run(
        self, *, virtual: bool, speed: float, limit_s: float | None = None
    ) -> dict[str, Any]:
        """`agents_are` and `options` of a run; an empty dict if no model is named.

        Args:
            virtual: Whether the run is in virtual time.
            speed: The speed of its clock.
            limit_s: Seconds on its clock after which it is ended; ``None``: not known.

        Raises:
            SettingsError: The options contradict each other, or the server's key is missing.
        """
        values = self.model_values()
        if not values:
            return {}
        from dig.runtime.llm import ModelSettings  # slow to import

        if virtual:
            raise SettingsError("a language model takes real time to decide; leave --virtual out")
        if speed > 1:
            raise SettingsError(
                "a language model thinks at its own speed, so --speed must be at most 1, "
                f"got {speed:g}"
            )
        model = values.pop("model")
        settings = ModelSettings(model, **values)
        settings.key()  # a missing key is told before the run begins
        # With the default timeout, a short run ends in the midst of a request: as it was asked to.
        if limit_s is not None and self.request_timeout is not None:
            settings.check_limit(limit_s / speed, "the run (--limit)")
        return {"agents_are": f"model {model}", "options": values}


_MODEL_FIELDS = fields(ModelOptions)


BASE_URL = "OPENAI_BASE_URL"


_NAMES = {"request_timeout": "timeout_s", "activation_timeout": "activation_timeout_s"}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, StrEnum) else value


Recipients = StrEnum("Recipients", ["one", "all"])
"""The agents that get the problem."""


@dataclass(frozen=True)
class RunOptions:
    """A team, the data of the problem, and the method against failures."""

    team: Annotated[
        str | None, typer.Option(help="The team: `module:team`; else simulated agents.")
    ] = None
    agents: Annotated[int, typer.Option(min=1, help="How many agents there are.")] = 6
    size: Annotated[
        int | None,
        typer.Option(min=1, max=10_000_000, help="How many numbers, or posts, there are."),
    ] = None
    data: Annotated[
        Path | None, typer.Option(help="The folder of the newsgroups, else DIG_NEWSGROUPS.")
    ] = None
    to: Annotated[Recipients, typer.Option(help="The problem's recipients.")] = Recipients.one
    seed: Annotated[int, typer.Option(help="The seed of all random numbers.")] = 1
    method: Annotated[
        str,
        typer.Option(
            help="mas: only find failures. watchdog: after 10 s of silence, tell all agents to "
            "continue. retry: give an idle one the problem again. judge: a judge reads along. "
            "dig: heal what is found, as in the paper. dig+: heal step by step, until it helps. "
            "MODULE:OBJECT: your own."
        ),
    ] = "dig+"
    judge: Judge = None
    habit: Habit = None
    limit: Annotated[float, typer.Option(help="Seconds after which the run is ended.")] = 120.0
    given: Given = None
    config: Config = None
    detector: Further = None
    usual: UsualFile = None

    def of_task(self, task: str, model_options: dict[str, Any]) -> "TeamRun":
        """The run of a task.

        Args:
            task: The task's name.
            model_options: The return value of `ModelOptions.of_run`.

        Raises:
            SettingsError: An option is wrong; the message names it.
        """
        from dig.detectors.settings_file import find_settings
        from dig.detectors.team_usual import TeamUsual
        from dig.detectors.thresholds import Thresholds
        from dig.tasks.run.arrange import make_run, make_task, members
        from dig.tasks.run.judging import Judging
        from dig.tasks.simulated.profile import Profile

        if model_options and self.team is not None:
            raise SettingsError("--team and --model both say who works on it; leave one out")
        config, detectors = find_settings(self.config), further(self.detector)
        run = make_run(
            task, Thresholds.load(self.given or (), config), policy=policy(config, detectors),
            size=self.size, data=str(self.data) if self.data else None, agents=self.agents,
            seed=self.seed, method=self.method, limit_s=self.limit, detectors=detectors,
            to=self.to.value, judging=Judging.of(self.judge or ()),
            profile=Profile.of(self.habit or ()), **(model_options or {"agents_are": self.team}),
        )  # fmt: skip
        if self.usual is None:
            return run
        # Usual findings are fitted to one team: for an unknown agent nothing is usual.
        team = members(run, make_task(run))
        return replace(run, usual=TeamUsual.read(self.usual).of_team(team, run.limits))

"""Options about the logs of conversations."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dig._util.files import read_file
from dig.errors import SettingsError, file_errors

from .app import INTERRUPTED, warn
from .options import ReportFile
from .run_options import ModelOptions

if TYPE_CHECKING:
    from dig.diagnosis.stages.pipeline import ModelMethod

SourceLayout = StrEnum("SourceLayout", ["run", "trace", "whowhen", "messages", "conversation"])
"""run, trace: a recorded run. The others: the layouts of conversations."""


Method = StrEnum(
    "Method",
    {
        "structural": "structural",
        "model": "model",
        "all_at_once": "all-at-once",
        "step_by_step": "step-by-step",
        "binary_search": "binary-search",
    },
)
"""structural: no model. model: the pipeline. The others: plain ways to ask a model."""


Part = StrEnum("Part", ["backtrack", "screening"])
"""A part of the pipeline."""


@dataclass(frozen=True)
class ConversationModelOptions(ModelOptions):
    """The model to ask for agent and step, and the way of asking."""

    model: Annotated[
        str | None,
        typer.Option(help="A language model to ask; its server is sent what is explained."),
    ] = None
    method: Annotated[
        Method | None, typer.Option(help="How: with --model by default the pipeline, `model`.")
    ] = None
    without: Annotated[
        list[Part] | None, typer.Option(help="Leave out a part of the pipeline; repeatable.")
    ] = None
    exemplars: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Tasks with their steps, for the model: JSON lines."),
    ] = None
    max_prompt: Annotated[
        int, typer.Option(min=1000, help="Characters of a request; longer texts are cut.")
    ] = 120_000
    cache: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep the model's answers; they are not asked for again."),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="A stage that fails is an error (exit status 2).")
    ] = False

    def chosen(self, *, has_other_use: bool = False) -> "ModelMethod | None":
        """Return the way of asking the model; ``None``: no model is asked.

        Args:
            has_other_use: Whether the model has a use besides, so that it may be left out here.

        Raises:
            SettingsError: An option is wrong, or the server's key is missing.
        """
        values = self.model_values()
        method = self.method.value if self.method is not None else None
        if not values:
            if method not in (None, "structural"):
                raise SettingsError(f"--method {method} asks a model; name it with --model")
            return None
        if method == "structural" and has_other_use:
            return None
        from dig.diagnosis.stages.pipeline import METHODS, PARTS, ModelMethod
        from dig.diagnosis.stages.requests import read_exemplars
        from dig.runtime.llm import ModelSettings  # slow to import
        from dig.runtime.llm.model import Spending

        if method == "structural":
            raise SettingsError("--method structural asks no model; leave --model out")
        settings = ModelSettings(**values)
        settings.key()
        return ModelMethod(
            settings,
            next(name for name in METHODS if name == (method or "model")),
            frozenset(p for p in PARTS if p in {part.value for part in self.without or ()}),
            read_exemplars(self.exemplars) if self.exemplars is not None else (),
            self.max_prompt, self.cache, self.strict, Spending(settings),
        )  # fmt: skip


@dataclass(frozen=True)
class ConversationOptions(ConversationModelOptions):
    """Options for reading and explaining a conversation."""

    layout_: Annotated[
        SourceLayout | None,
        typer.Option(
            "--as",
            help="What a source is, if it is not to be guessed: a recorded run, or a conversation "
            "(whowhen: a benchmark's file; messages: a list of messages; conversation: a trace "
            "made by `digmon import`).",
        ),
    ] = None
    report: ReportFile = None
    graph: Annotated[
        bool, typer.Option("--graph", help="With --json: the hierarchical graph, too.")
    ] = False
    expected: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT|@FILE|from-file",
            help="The right answer of a conversation; without it, one in the file is not read.",
        ),
    ] = None

    def explain(
        self, source: Path, task: str | None, top: int, *, as_json: bool, needs_run: bool
    ) -> bool:
        """Explain a conversation and print the answer; return False for a run.

        Args:
            source: A run directory, a trace, or the log of a conversation.
            task: The text of the conversation's task, if it is given.
            top: The number of candidates that are listed.
            as_json: Whether the document is printed.
            needs_run: Whether an option is given that only a recorded run can have.

        Raises:
            TraceError: The file cannot be read, or holds no conversation.
            SettingsError: An option is wrong.
        """
        from dig.diagnosis.conversations.explaining import explain
        from dig.diagnosis.conversations.ranking import rank
        from dig.diagnosis.conversations.reading import LAYOUTS, layout_of, read_conversation
        from dig.diagnosis.telling import tell

        layout_name = self.layout_ and self.layout_.value
        layout = next((name for name in LAYOUTS if name == layout_name), None)
        layout = layout_of(source) if layout_name is None else layout
        if layout is None:
            return False
        if needs_run:
            raise SettingsError(
                f"{source} is a conversation: --try, --good, --peers, --accounting and suspects "
                "other than attribution are about recorded runs"
            )
        try:
            diagnosis = explain(
                source, layout, task=task, expected=text_of(self.expected),
                attribute=self.chosen() or rank, has_graph=self.graph or self.report is not None,
                top=top,
            )  # fmt: skip
        except KeyboardInterrupt:
            warn("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        # The page needs the graph, a document has it only if that is asked for.
        shown = diagnosis if self.graph else diagnosis.model_copy(update={"graph": None})
        for line in [shown.to_json()] if as_json else tell(shown):
            print(line)
        if self.report is not None:
            from dig.diagnosis.pictures import draw_conversation

            draw_conversation(read_conversation(source, layout, task=task), diagnosis, self.report)
        return True


def text_of(text: str | None) -> str | None:
    """Return a text, or the content of the file named after an `@`."""
    if text is None or not text.startswith("@"):
        return text
    path = Path(text[1:])
    with file_errors(path, "read"):
        return read_file(path).decode("utf-8").strip()

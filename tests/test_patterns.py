"""No text from outside makes a regular expression slow: each takes time in line with the text."""

from __future__ import annotations

import ast
import re
import re._parser as sre  # type: ignore[import-not-found]
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from dig._util import redaction
from dig.cli.app import _BLANKS, _COMMAND
from tests.test_architecture import ROOT, parse, python_files

FOREIGN = {
    "dig/_util/redaction.py _compile": 1,
    "dig/_util/text.py _UNSAFE": 1,
    "dig/adapters/nats/names.py _SESSION": 1,
    "dig/adapters/openai_agents/messages.py tool_name": 1,
    "dig/adapters/langgraph/routes.py _QUESTION": 1,
    "dig/cli/app.py _COMMAND": 1,
    "dig/cli/app.py write": 1,
    "dig/detectors/error_causes.py _STATUS": 1,
    "dig/detectors/error_causes.py _WAIT": 1,
    "dig/detectors/headline.py _TYPED": 1,
    "dig/diagnosis/conversations/flow.py _CODE": 1,
    "dig/diagnosis/conversations/flow.py _EXIT": 1,
    "dig/diagnosis/conversations/flow.py _NAME": 1,
    "dig/diagnosis/conversations/flow.py _NUMBER": 1,
    "dig/diagnosis/conversations/flow.py _QUOTED": 1,
    "dig/diagnosis/conversations/flow.py _URL": 1,
    "dig/diagnosis/conversations/flow.py _WORD": 1,
    "dig/diagnosis/conversations/reading.py _AFTER_NAME": 1,
    "dig/diagnosis/conversations/reading.py _TO": 1,
    "dig/diagnosis/conversations/reading.py _WORDS": 1,
    "dig/diagnosis/conversations/wording.py __init__": 1,
    "dig/diagnosis/goal.py _AND": 1,
    "dig/diagnosis/goal.py _COMPARISON": 1,
    "dig/diagnosis/interventions/model_proposals.py merge_attempts": 1,
    "dig/diagnosis/interventions/secrecy.py __init__": 3,
    "dig/diagnosis/interventions/secrecy.py _numbers": 1,
    "dig/diagnosis/interventions/secrecy.py refusal": 1,
    "dig/lab/benchmark/scores_detectors.py _fault_free": 1,
    "dig/graph/records.py _INSTANCE": 1,
    "dig/runtime/llm/encoding.py _ROLE_MARK": 1,
    "dig/runtime/llm/faults.py _SHAPE": 1,
    "dig/show/gate/junit.py _NO_XML": 1,
    "dig/show/runs/pruning.py _MADE": 1,
    "dig/tasks/newsgroups_posts.py _NAMES_GROUPS": 1,
    "dig/tasks/run/team_run.py name": 1,
    "dig/tasks/simulated/classifying.py _WORD": 1,
    "dig/traces/interchange/exports.py _NOT_XML": 1,
    "dig/traces/interchange/workflow_spans.py _ESCAPE": 1,
    "dig/traces/interchange/workflow_spans.py _PRINTED": 1,
    "dig/traces/journal/reader.py _CHECKSUM": 1,
    "dig/traces/journal/segments.py _LATER": 1,
    "dig/traces/otel/ids.py _TRACEPARENT": 1,
}
"""The patterns that see text of agents, models, servers or files, and how many stand in a place."""

OWN = {
    "dig/_util/extras.py version_numbers": 1,  # the version of a package
    "dig/cli/start.py _BOUND": 1,  # the metadata of this package
    "dig/cli/start.py _REQUIREMENT": 1,
    "dig/show/figure/palette.py COLOURS": 1,  # our style sheet
    "dig/show/page/html_page.py _EXPORT": 1,  # our scripts
    "dig/show/page/html_page.py _IMPORT": 1,
    "dig/show/page/html_page.py _page": 1,  # our page
}
"""The patterns that see only what the package itself brings."""

HANDED_IN = {
    "dig/_util/redaction.py _compile": [
        (redaction._SECRET, "sub"),
        (redaction._RARE, "sub"),
        (redaction._NAME, "fullmatch"),
    ],
    "dig/cli/app.py _COMMAND": [(_COMMAND.pattern, "sub")],
    "dig/cli/app.py write": [(_BLANKS, "fullmatch")],
}
"""The patterns whose text does not stand in the call."""

USES = ("search", "match", "fullmatch", "findall", "finditer", "sub", "split")
CALLS = {f"re.{name}" for name in ("compile", "subn", *USES)}
FUNNEL = ((1, 200), (4, 100), (16, 20), (64, 0))
"""Sizes in kilobytes, and how many texts, the slowest of that size, go on to the next."""
MOST_S = 0.5
"""A linear pattern takes some milliseconds for 64 KB, one with a square in it many seconds."""


@dataclass(frozen=True)
class Pattern:
    """A pattern in the code.

    Attributes:
        place: The file, and the name or function that has it.
        text: Its text; what it takes from a variable is the word `name`.
        flags: Its flags.
        use: The method that is called.
    """

    place: str
    text: str
    flags: int = 0
    use: str = "findall"

    def run(self) -> Callable[[str], object]:
        """The pattern, at work on a text."""
        compiled = re.compile(self.text, self.flags)
        if self.use == "sub":
            return lambda text: compiled.sub("", text)
        method = getattr(compiled, self.use)
        return (lambda text: [*method(text)]) if self.use == "finditer" else method


def patterns() -> Iterator[Pattern]:
    """Each pattern of the package, once for each use."""
    for path in python_files("dig"):
        # Each worker collects these patterns, and to parse all of the package takes seconds.
        if "import re\n" not in (ROOT / path).read_text(encoding="utf-8"):
            continue
        tree = parse(path)
        for call, name in _calls(tree, "module"):
            place = f"{path} {name}"
            if place in HANDED_IN:
                yield from (Pattern(place, text, use=use) for text, use in HANDED_IN[place])
                continue
            assert isinstance(call.func, ast.Attribute)
            flags = [*call.args[1:], *(word.value for word in call.keywords)]
            is_flag = [one for one in flags if "re." in ast.unparse(one)]
            flag = eval(ast.unparse(is_flag[0]), {"re": re}) if is_flag else 0
            uses = [call.func.attr] if call.func.attr in USES else _uses(tree, name)
            yield from (Pattern(place, _text(call.args[0], place), flag, use) for use in uses)


def _calls(node: ast.AST, name: str) -> Iterator[tuple[ast.Call, str]]:
    """The calls of `re`, each with the function or the variable that it stands in."""
    for child in ast.iter_child_nodes(node):
        inner = name
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = child.name
        elif isinstance(child, ast.Assign | ast.AnnAssign) and name == "module":
            target = child.targets[0] if isinstance(child, ast.Assign) else child.target
            inner = ast.unparse(target)
        if isinstance(child, ast.Call) and ast.unparse(child.func) in CALLS:
            yield child, inner
        yield from _calls(child, inner)


def _text(node: ast.expr, place: str) -> str:
    if isinstance(node, ast.JoinedStr):
        parts = [one.value if isinstance(one, ast.Constant) else "name" for one in node.values]
        return "".join(map(str, parts))
    assert isinstance(node, ast.Constant), f"{place}: add the pattern to HANDED_IN"
    return str(node.value)


def _uses(tree: ast.Module, name: str) -> list[str]:
    """The methods of a compiled pattern that are called; all matches, if none is seen."""
    found = {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and ast.unparse(node.func.value) == name and node.func.attr in USES
    }  # fmt: skip
    return sorted(found) or ["findall"]


FILLERS = (" ", "\n", "a", "A", "7", "1,", '"', "'", "`", "(", "[", "{", "<", "=", "-", ".", "\\",
           "é", "\u2028", "a ", "a.", "-a", "\n\n ", "://", "```\n")  # fmt: skip
BEHIND = ("", " ", "\n", "a", "7")


def bad_texts(pattern: str, size: int) -> Iterator[str]:
    """Texts of this size: repeated openers, blanks, and what nearly is a match."""
    for filler in FILLERS:
        yield _full(filler, size)
        yield _full(filler, size) + "\0"
    for sample in sorted({*_samples(sre.parse(pattern))} - {""}):
        yield _full(sample, size)
        for end in (1, 2, 3, 4, 6, len(sample) // 2, len(sample) - 1, len(sample)):
            for filler in BEHIND if 0 < end <= len(sample) else ():
                yield _full(sample[:end] + filler, size)
                yield sample[:end] + _full(filler or " ", size) + "\0"


def _samples(parsed: Any) -> Iterator[str]:
    """Texts that fit a pattern but for what it looks at without taking it: one for each branch."""
    made = [""]
    for kind, what in parsed:
        made = [(text + one)[:200] for text in made for one in _part(str(kind), what)][:40]
    yield from made


def _part(kind: str, what: Any) -> list[str]:
    match kind:
        case "LITERAL":
            return [chr(what)]
        case "ANY" | "NOT_LITERAL" | "CATEGORY":
            return [" " if str(what).endswith("CATEGORY_SPACE") else "7"]
        case "RANGE":
            return [chr(what[0])]
        case "IN":
            is_negated = str(what[0][0]) == "NEGATE"
            return ["x"] if is_negated else _part(str(what[0][0]), what[0][1])
        case "SUBPATTERN":
            return [*_samples(what[3])]
        case "ATOMIC_GROUP":
            return [*_samples(what)]
        case "BRANCH":
            return [text for branch in what[1] for text in _samples(branch)]
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            least = what[0]
            return [one * count for one in _samples(what[2]) for count in {least, max(1, least)}]
    return [""]  # an assertion, a group that was seen


def _full(piece: str, size: int) -> str:
    return (piece * (size // len(piece) + 1))[:size]


def test_each_pattern_is_listed() -> None:
    """A new one has to be put down as one that sees text from outside, or as one that does not."""
    texts = {(one.place, one.text) for one in patterns()}
    found = Counter(place for place, _ in texts if place not in HANDED_IN)
    found.update(HANDED_IN.keys())
    assert dict(found) == FOREIGN | OWN
    assert not FOREIGN.keys() & OWN.keys()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "pattern",
    [one for one in patterns() if one.place in FOREIGN],
    ids=lambda one: f"{one.place.rpartition('/')[2]}-{one.use}",
)
def test_no_text_from_outside_makes_it_slow(pattern: Pattern) -> None:
    """64 KB of the worst texts take it no longer than some milliseconds each."""
    run = pattern.run()
    slowest = [*range(len([*bad_texts(pattern.text, 8)]))]
    for kilobytes, most in FUNNEL:  # the small first: what is cubic would not end
        texts = [*bad_texts(pattern.text, kilobytes * 1024)]
        taken = {}
        for number in slowest:
            began = time.process_time()
            run(texts[number])
            taken[number] = time.process_time() - began
            said = f"{kilobytes} KB of {texts[number][:40]!r} ..."
            assert taken[number] < MOST_S, f"{said} took {taken[number]:.1f} s"
        slowest = sorted(slowest, key=taken.__getitem__, reverse=True)[:most]

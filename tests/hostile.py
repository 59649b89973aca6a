"""Texts and runs that try to become something else: markup, script, a template, a command.

Whatever is shown to a person is shown these: in a browser a text that is carried out sets
`window.pwned`, asks for an address or makes an element; on a terminal it steers it.
"""

from __future__ import annotations

import random
from typing import Any

from tests.histories import deliver, row, trace
from tests.oracle import Row

_RUN = "window.pwned=1"
_ADDRESS = "http://hostile.invalid/x"

MOST_LENGTH = 300

ATTACKS = (
    # markup and script
    f"<script>{_RUN}</script>",
    f"</script><script>{_RUN}</script>",
    f"</SCRIPT\t><svg><script>{_RUN}</script></svg>",
    f"<img src=x onerror={_RUN}>",
    f'<img src="{_ADDRESS}">',
    f"<svg onload={_RUN}>",
    f"<svg><animate onbegin={_RUN} attributeName=x></svg>",
    f'<a href="javascript:{_RUN}">x</a>',
    "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    f'<link rel=stylesheet href="{_ADDRESS}.css">',
    f'<meta http-equiv="refresh" content="0;url={_ADDRESS}">',
    f'<base href="{_ADDRESS}">',
    f"<style>*{{background:url({_ADDRESS})}}</style>",
    "<!--",
    "<!--<script>",
    "-->",
    "]]>",
    "<![CDATA[<b>]]>",
    "</text></svg><h1>out</h1>",
    "</div></main></body></html>",
    "</title><h1>out</h1>",
    "</textarea><h1>out</h1>",
    f"<details open ontoggle={_RUN}>",
    f"<input autofocus onfocus={_RUN}>",
    f'"><b onmouseover={_RUN}>',
    f"' onmouseover='{_RUN}",
    f"javascript:{_RUN}",
    "&lt;script&gt;&#60;b&#62;&amp;",
    # templates, and what languages read into a text
    "{{SCRIPT}}",
    "{{DATA}}",
    f"${{{_RUN}}}",
    f"`${{{_RUN}}}`",
    "{{constructor.constructor('window.pwned=1')()}}",
    "<%= 7 * 7 %>",
    "{0.__class__} %s %(x)s %n",
    "\\u003cscript\\u003e",
    '"};window.pwned=1;//',
    "';window.pwned=1;//",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "[bold red]x[/bold red]",
    "[link=http://hostile.invalid]x[/link]",
    # spreadsheets
    '=HYPERLINK("http://hostile.invalid")',
    "@SUM(1+1)",
    "+1+1",
    # what steers a terminal, or is not to be seen
    "\x1b[2J\x1b[31m",
    "\x1b]0;pwned\x07",
    "\x1b]8;;http://hostile.invalid\x07x\x1b]8;;\x07",
    "\x9b31m\x90q\x9c",
    "\r\n\x00\x08\x0b\x0c\x7f",
    "\u202eevil\u202c",
    "\u2066\u2067\u2069",
    "\u200b\u200d\ufeff\u2060",
    "\u2028\u2029\x85",
    "\U000e0041\U000e0042",
    "\ud800",
    "\udfff\ud83d",
    "e\u0301" * 20,
    "Z\u0351\u036b\u0343\u036a" * 20,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\u05d0\u0628\u202e<b>",
    "\ufdfd" * 10,
    # names that lead elsewhere
    "../../../../etc/passwd",
    "file:///etc/passwd",
    _ADDRESS,
    "#at=1&focus=x",
    "%3Cscript%3E%00",
    "",
    " ",
    # commands to the runner of a CI, which reads what is printed
    "::error file=a,line=1::pwned",
    "a\n::stop-commands::pwned",
    "a\r\u2003::add-mask::e",
    "word " * 12 + "::set-output name=x::y " * 3,
    "w" * 70 + "::notice::" * 9,
    "##[error]pwned",
    "a ##[add-mask]e",
)


def texts(count: int, seed: int = 0) -> list[str]:
    """Hostile texts: each attack by itself, some that are very long, then several joined."""
    draw = random.Random(seed)
    found = [*ATTACKS, *(attack * 2000 for attack in ATTACKS[:3])][:count]
    while len(found) < count:
        parts = draw.sample(ATTACKS, draw.randint(2, 4))
        joined = draw.choice(["", " ", "\n", "\u2028", '"', "'>"]).join(parts)
        cut = joined[: draw.choice([len(joined), draw.randint(1, 60)])]
        found.append(cut[:MOST_LENGTH])
    return found


def payload(text: str, draw: random.Random) -> Any:
    """A payload with a text somewhere in it."""
    return draw.choice([text, [text], {text: text}, {"a": {text: [text, 1, None]}}])


def hostile_run(count: int = 1000, seed: int = 0, agents: int = 12) -> list[Row]:
    """A valid trace in which everything that is a text is a hostile one.

    Each text is the payload of an event, part of its id, the note of an intervention, and one
    of them in turn an agent's name, a type, a pattern, an error or a reason.
    """
    draw = random.Random(seed)
    given = texts(count, seed)
    names = list(dict.fromkeys(f"{i} {given[i % count]}" for i in range(agents)))
    rows: list[Row] = []
    for n, text in enumerate(given):
        rows += _episode(n, text, names[n % agents], payload(text, draw))
    rows.append(row(count, "finish", outcome="error", answer={given[0]: given}))
    first, *rest = trace(rows, task=given[1], agents=names)
    return _numbered([first | {"run": given[0]}, *rest])


def _episode(n: int, text: str, agent: str, said: Any) -> list[Row]:
    """An event that comes from outside, with a note beside it, and is used in an activation."""
    event, activation = f"e{n} {text}", f"a{n} {text}"
    return [
        row(n, "emit", event=event, by=None, to=[agent], type=text, final=False, payload=said),
        row(n, "finding", pattern=text if n % 2 else "ET", stage=text if n % 3 else None,
            subject={"event": event, text: text}, evidence={"unresolved": [event], text: [text]}),
        row(n, "heal", finding=-1, action="inject", event=event, to=[agent], note=text),
        row(n, "heal", finding=-1, action="refused", event=event, reason=text),
        row(n, "incident", what=text, detail={"who": text, "what": said}),
        deliver(n, event, agent),
        row(n, "start", activation=activation, agent=agent, inputs=[event]),
        row(n, "end", activation=activation, fates=[{"event": event, "fate": "consume"}],
            outputs=[], error=text or None, usage={text: 1}),
    ]  # fmt: skip


def _numbered(rows: list[Row]) -> list[Row]:
    """The rows with interventions that name the finding before them."""
    finding = -1
    for one in rows:
        if one["kind"] == "finding":
            finding = one["t"]
        elif one["kind"] == "heal":
            one["finding"] = finding
    return rows

"""The modules of the page as one script."""

from __future__ import annotations

import pytest

from dig.show.page.html_page import _EXPORT, _IMPORT, bundle, modules, policy


def test_a_module_comes_after_what_it_needs_and_once() -> None:
    """In one script, each in a function of its own."""
    script = bundle(
        {
            "main": 'import { a } from "./x.js";\nimport { b } from "./y.js";\nstart(a, b);',
            "x": 'import { b } from "./y.js";\nexport const a = b;',
            "y": "export function b() {}\nexport class $c {}",
        }
    )
    assert [script.count(f"M['{name}'] = ") for name in "xy"] == [1, 1]
    assert script.index("M['y'] =") < script.index("M['x'] =") < script.index("M['main'] =")
    assert "const { b } = M['y'];" in script
    assert "return { b, $c };" in script
    assert "import " not in script and "export " not in script


@pytest.mark.parametrize(
    ("sources", "what"),
    [
        (
            {"main": 'import { a } from "./x.js";', "x": 'import { b } from "./main.js";'},
            "in a cycle",
        ),
        ({"main": 'import x from "./x.js";', "x": ""}, "cannot be put together"),
        ({"main": "export default 1;"}, "cannot be put together"),
    ],
)
def test_what_cannot_be_put_together_is_refused(sources: dict[str, str], what: str) -> None:
    """While the package is built, not in a reader's browser."""
    with pytest.raises(ValueError, match=what):
        bundle(sources)


def test_modules_take_what_others_give_and_each_is_needed() -> None:
    """A name that is not exported would be undefined in the browser."""
    imports = [match for text in modules().values() for match in _IMPORT.finditer(text)]
    assert {match[2] for match in imports} == modules().keys() - {"main"}
    for match in imports:
        given = {export[2] for export in _EXPORT.finditer(modules()[match[2]])}
        assert {name.strip() for name in match[1].split(",")} <= given


def test_the_page_loads_nothing_and_makes_no_markup_of_text() -> None:
    """What would let a payload become an element, or a request, is used nowhere."""
    # The name of SVG's elements is no address that a browser asks.
    script = bundle(modules()).replace("http://www.w3.org/2000/svg", "")
    words = "innerHTML outerHTML insertAdjacentHTML document.write eval( import( http: https:"
    for word in words.split():
        assert word not in script
    # What a person writes goes to the page's own server; a report may connect to nothing.
    assert [name for name, text in modules().items() if "fetch(" in text] == ["acts"]
    assert "connect-src" not in policy() and "default-src 'none'" in policy()


def test_the_files_of_the_page_are_short() -> None:
    """As short as the others."""
    assert {name: n for name, text in modules().items() if (n := text.count("\n")) > 350} == {}

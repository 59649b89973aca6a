"""Run the library of team shapes: `python -m tests.library [--framework NAME] [--json]`."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence

from .report import FRAMEWORKS, is_installed, look, tables


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of each framework that this interpreter has."""
    parser = ArgumentParser(prog="python -m tests.library", description=__doc__)
    parser.add_argument("--framework", choices=FRAMEWORKS, help="only this one")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each shape")
    options = parser.parse_args(arguments)
    for name in [options.framework] if options.framework else FRAMEWORKS:
        title = FRAMEWORKS[name][0]
        if not is_installed(name):
            if not options.json:
                print(f"## {title}\n\nNot installed here, so skipped.\n")
            continue
        rows = look(name)
        if options.json:
            for one in rows:
                print(json.dumps(one.to_json()))
        else:
            quiet = sum(not one.healthy for one in rows)
            noticed = sum(bool(one.broken) for one in rows)
            print(f"## {title}\n\n{tables(rows)}\n")
            print(f"{quiet} of {len(rows)} healthy teams raise no alarm;", end=" ")
            print(f"{noticed} of {len(rows)} broken ones raise one.\n")


if __name__ == "__main__":
    main()

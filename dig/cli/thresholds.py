"""`digmon thresholds`: the thresholds of the patterns, and why they are so."""

from __future__ import annotations

import json
from textwrap import indent

from .app import app
from .options import AsJson, Config, Given


@app.command()
def thresholds(given: Given = None, config: Config = None, as_json: AsJson = False) -> None:
    """Show what "a reasonable time" and "a reasonable number" are, and why.

    Each comes from --set, from the environment (DIG_MC_WINDOW_S=20), from --config, or is the
    default, in this order.
    """
    from dig.detectors.thresholds import Thresholds

    values = Thresholds.load(given or (), config)
    if as_json:
        print(values.model_dump_json())
        return
    for name, field in Thresholds.model_fields.items():
        value = getattr(values, name)
        default = "" if value == field.default else f"  (default {field.default})"
        print(f"{name} = {json.dumps(value)}{default}")
        print(indent(field.description or "", "    "), end="\n\n")

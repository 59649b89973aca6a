"""Shapes as OpenAI's strict mode takes them."""

from __future__ import annotations

from functools import cache
from typing import Any

from .replies import M


@cache
def strictly(schema: type[M]) -> type[M]:
    """The same shape, for a model to be asked for: its schema tells of no defaults.

    Strict mode requires every field and refuses the word `default`. A field with a default may
    still be missing when a reply is read with `schema` itself: not every server is strict.
    """

    class Strict(schema):  # type: ignore[valid-type, misc]
        __doc__ = schema.__doc__

        @classmethod
        def model_json_schema(cls, *args: Any, **more: Any) -> dict[str, Any]:
            found: dict[str, Any] = _without_defaults(super().model_json_schema(*args, **more))
            return found

    Strict.__name__ = schema.__name__
    return Strict


def _without_defaults(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_defaults(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    fields = schema.get("properties")  # one of them may be called `default`
    kept = {
        k: _without_defaults(v) for k, v in schema.items() if k not in ("default", "properties")
    }
    if isinstance(fields, dict):
        kept["properties"] = {name: _without_defaults(field) for name, field in fields.items()}
    return kept

"""Language models behind OpenAI-compatible servers, and agents with such a model.

- `model`: `Model` asks for an answer of a given shape, counts what it costs and keeps each
  exchange. `settings`: which one, where, how patiently.
- `replies`: how it is asked, and what comes back. `faults`: what can go wrong. `sdk`: the client.
- `model_agent`: `ModelAgent` decides by a model, with tools. `decisions`: the shape of a decision,
  worked examples, and complaints. `encoding`: text that nothing from
  outside can speak out of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dig._util.on_demand import names_on_demand

if TYPE_CHECKING:
    from .model import Keep, Model
    from .model_agent import ModelAgent
    from .replies import Reply
    from .settings import ModelSettings

__all__ = ["Keep", "Model", "ModelAgent", "ModelSettings", "Reply"]

# The import of `openai` takes a while, and settings need none of it.
_HOME, __getattr__, __dir__ = names_on_demand(
    __name__,
    {
        ".model": "Keep Model",
        ".model_agent": "ModelAgent",
        ".replies": "Reply",
        ".settings": "ModelSettings",
    },
)

"""Language models behind OpenAI-compatible servers, and agents that decide by them.

- `model`: `Model` asks for an answer of a given shape. `settings`: which one, where, how patiently.
- `replies`: what comes back. `strictness`: how it is asked for. `faults`: what can go wrong.
  `spending`: budgets.
- `exchange`: what is kept of each request.
- `agent`: `ModelAgent` decides by a model. `wire`: the shape of its decisions. `tools`: what it may
  call. `encoding`: text that nothing from outside can speak out of.
"""

from __future__ import annotations

from .agent import ModelAgent
from .exchange import Keep
from .model import Model
from .replies import Reply
from .settings import ModelSettings

__all__ = ["Keep", "Model", "ModelAgent", "ModelSettings", "Reply"]

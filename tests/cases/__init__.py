"""Short traces with all that must be found in them, derived by hand from docs/meaning.md.

The cases are data: the oracle must find what they say, and so must `digmon check`.
"""

from __future__ import annotations

from .case import Case
from .fail import FAILS, VOIDS
from .idle import IDLES
from .late import LATES
from .loop import LOOPS
from .stall import STALLS
from .turns import LIVELOCKS, REROUTES
from .worth import BOUNDED, MENDED, SEVERITIES, USUALS

PATTERNS: list[Case] = [*STALLS, *LATES, *LOOPS, *LIVELOCKS, *REROUTES, *VOIDS, *FAILS, *IDLES]
WORTH: list[Case] = [*SEVERITIES, *USUALS, *MENDED, *BOUNDED]
CASES = [*PATTERNS, *WORTH]

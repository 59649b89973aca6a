"""Where the browser is, and how it is started: alone, and without a way out."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",  # a container's root has none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NONE = "no browser: set DIG_BROWSER, or install Chromium"


def browser_path() -> str | None:
    """The browser: what DIG_BROWSER says, or the first that is found on the path."""
    named = os.environ.get("DIG_BROWSER")
    candidates = [named] if named else NAMES
    return next((path for name in candidates if (path := shutil.which(name))), None)


def is_required() -> bool:
    """Whether it is a failure if there is no browser, as it is in CI."""
    return os.environ.get("DIG_BROWSER_REQUIRED", "") not in ("", "0")

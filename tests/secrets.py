"""Secrets as issuers make them, and the places in which they get into what agents say."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from typing import Any

_LETTERS = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + string.digits

Draw = random.Random


def _some(draw: Draw, count: int, of: str = _LETTERS) -> str:
    return "".join(draw.choices(of, k=count))


def _jwt(draw: Draw) -> str:
    parts = [{"alg": "HS256", "typ": "JWT"}, {"sub": _some(draw, 8), "iat": draw.randrange(10**9)}]
    body = [base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts]
    return ".".join([*body, _some(draw, 43, _LETTERS + "-_")])


def _pem(draw: Draw) -> str:
    lines = "\n".join(_some(draw, 64, _LETTERS + "+/") for _ in range(3))
    kind = draw.choice(["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY",
                        "PGP PRIVATE KEY BLOCK"])  # fmt: skip
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"


SHAPED: dict[str, Callable[[Draw], str]] = {
    "openai": lambda d: f"sk-{_some(d, 20)}T3BlbkFJ{_some(d, 20)}",
    "project": lambda d: f"sk-proj-{_some(d, 64, _LETTERS + '-_')}",
    "anthropic": lambda d: f"sk-ant-api03-{_some(d, 93, _LETTERS + '-_')}AA",
    "github": lambda d: f"gh{d.choice('opsur')}_{_some(d, 36)}",
    "github, fine-grained": lambda d: f"github_pat_{_some(d, 22)}_{_some(d, 59)}",
    "gitlab": lambda d: f"glpat-{_some(d, 20, _LETTERS + '-_')}",
    "slack": lambda d: f"xox{d.choice('bp')}-{_some(d, 12, string.digits)}-{_some(d, 24)}",
    "aws": lambda d: d.choice(["AKIA", "ASIA"]) + _some(d, 16, _UPPER),
    "google": lambda d: f"AIza{_some(d, 35, _LETTERS + '-_')}",
    "stripe": lambda d: f"{d.choice(['sk', 'rk'])}_live_{_some(d, 24)}",
    "npm": lambda d: f"npm_{_some(d, 36)}",
    "pypi": lambda d: f"pypi-AgEIcHlwaS5vcmc{_some(d, 60, _LETTERS + '-_')}",
    "hugging face": lambda d: f"hf_{_some(d, 34)}",
    "sendgrid": lambda d: f"SG.{_some(d, 22, _LETTERS + '-_')}.{_some(d, 43, _LETTERS + '-_')}",
    "vault": lambda d: f"hvs.CAESI{_some(d, 86, _LETTERS + '-_')}",
    "digitalocean": lambda d: f"do{d.choice('opr')}_v1_{_some(d, 64, '0123456789abcdef')}",
    "databricks": lambda d: f"dapi{_some(d, 32, '0123456789abcdef')}{d.choice(['', '-2'])}",
    "telegram": lambda d: f"{d.randrange(10**8, 10**10)}:AA{_some(d, 33, _LETTERS + '-_')}",
    "jwt": _jwt,
    "private key": _pem,
}
"""By their shape alone."""

NAMED: dict[str, Callable[[Draw], str]] = {
    "password": lambda d: _some(d, d.randint(8, 20), _LETTERS + "!?#$%-_."),
    "hex": lambda d: _some(d, 32, "0123456789abcdef"),
    "base64": lambda d: _some(d, 40, _LETTERS + "+/"),
    "words": lambda d: "-".join(_some(d, 5, string.ascii_lowercase) for _ in range(4)),
}
"""By the name that stands before them."""

NAMES = (
    "password", "API_KEY", "api-key", "apiKey", "clientSecret", "access_token", "DB_PASSWORD",
    "aws_secret_access_key", "Authorization", "refreshToken",
)  # fmt: skip

_OPEN: tuple[Callable[[str, str], Any], ...] = (
    lambda name, it: it,
    lambda name, it: f"use {it} for it, please",
    lambda name, it: ["a", {"said": [f"({it})"]}],
    lambda name, it: {"text": f"first line\n{it}\nlast line"},
    lambda name, it: json.dumps({"a": it}),
)
_BEHIND: tuple[Callable[[str, str], Any], ...] = (
    lambda name, it: {name: it},
    lambda name, it: [{"headers": {name: it}}],
    lambda name, it: f"export {name}={it}",
    lambda name, it: f'set {name}: "{it}" and go on',
    lambda name, it: json.dumps({"deep": json.dumps({name: it})}),
)


def planted(seed: int) -> list[tuple[str, Any]]:
    """A secret, ten times, in as many places: what must not be seen, and what it stands in."""
    draw = random.Random(f"secret {seed}")
    kinds = {**SHAPED, **NAMED}
    kind = list(kinds)[seed % len(kinds)]
    secret, name = kinds[kind](draw), draw.choice(NAMES)
    places = (*_OPEN, *_BEHIND) if kind in SHAPED else (*_BEHIND, *_BEHIND)
    return [(secret, place(draw.choice(NAMES) if i > 4 else name, secret))
            for i, place in enumerate(places)]  # fmt: skip

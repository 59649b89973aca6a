"""The guard of the local server: only requests with the printed address pass.

Any page that is open in a browser can send requests to any port of the machine, and by
a name of its own that it lets point to 127.0.0.1 (DNS rebinding) read the answers. So the names
`Host` and `Origin` are compared with those that the server has, and the path begins with a secret.
A request that writes must name this origin, and have a type that no form can send.
"""

from __future__ import annotations

import hmac
import secrets
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from dig.errors import RefusedError

METHODS = ("GET", "HEAD", "POST")
JSON_TYPE = "application/json"
MOST_TARGET = 2000
ADDRESS = "127.0.0.1"
_TOKEN_BYTES = 16


class RequestGuard:
    """Lets requests through, or not.

    Attributes:
        token: The secret with which each path begins.
        root: The address below which all pages are.
    """

    def __init__(self, port: int, token: str | None = None) -> None:
        """Guard a port.

        Args:
            port: The port on which the server listens.
            token: The secret; ``None``: a new one of 128 random bits.
        """
        self.token = token or secrets.token_urlsafe(_TOKEN_BYTES)
        self._hosts = [f"{name}:{port}" for name in (ADDRESS, "localhost")]
        self.root = f"http://{self._hosts[0]}/{self.token}/"
        self._tickets: set[str] = set()

    def invitation(self) -> str:
        """Make an address of the pages for a single request.

        A browser is started with it, since every user of the machine can read the arguments of a
        program.
        """
        ticket = secrets.token_urlsafe(_TOKEN_BYTES)
        self._tickets.add(ticket)
        return f"http://{self._hosts[0]}/{ticket}"

    def check(self, method: str, target: str, headers: Message) -> tuple[bytes, ...]:
        """Check a request.

        Args:
            method: Its HTTP method.
            target: Its path and query.
            headers: Its headers.

        Returns:
            The decoded parts of the path after the token; a path with a slash at the end has an
            empty last part. No parts at all: a visit by `invitation`.

        Raises:
            RefusedError: The request is refused; the message says why.
        """
        if method not in METHODS:
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, f"only {', '.join(METHODS)}")
        hosts = headers.get_all("Host") or ()
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST, "this is not the name of this server"
            )
        allowed = [f"http://{host}" for host in self._hosts]
        origins = headers.get_all("Origin") or ()
        is_foreign = any(origin not in allowed for origin in origins)
        if method == "POST":
            # A browser names the origin of every such request, and sends none of this type to
            # another origin without asking that first; this server never says yes.
            is_ours = len(origins) == 1 and origins[0] == f"http://{hosts[0]}"
            is_same = headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"
            is_foreign = not (is_ours and is_same and headers.get_content_type() == JSON_TYPE)
        if is_foreign:
            raise RefusedError(HTTPStatus.FORBIDDEN, "not for pages from elsewhere")
        if not target.startswith("/") or len(target) > MOST_TARGET:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "this is no path")
        _, token, *parts = target.partition("?")[0].split("/")
        if not parts and self._is_invited(token):
            return ()
        # In constant time, so that no one finds the token letter by letter.
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            raise RefusedError(HTTPStatus.FORBIDDEN, "the address is not the one that was printed")
        return tuple(map(unquote_to_bytes, parts))

    def _is_invited(self, ticket: str) -> bool:
        with suppress(KeyError):
            self._tickets.remove(ticket)  # atomic: of two simultaneous visits only one succeeds
            return True
        return False

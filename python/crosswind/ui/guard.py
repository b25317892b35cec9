"""Authorises requests: a browser with the token, under this server's own name, from its own page.

The token comes in the address printed by `crosswind ui`. The page keeps it (static/token.js) and sends it in a header:
a cookie would go to every server on this machine, since cookies know no ports. Requests without the page's headers, as
for a report in its own tab, have a key in their address, made from the token and this address. The name (Host) is
checked against DNS rebinding; the origin, and the browser's site header, against other pages.
"""

import hmac
from collections.abc import Collection, Mapping

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_READING = ("GET", "HEAD")
_OWN_SITES = ("same-origin", "none")
"""Values of Sec-Fetch-Site for the page itself, and for a typed address."""
_OPEN = "open the address that `crosswind ui` printed"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""The content policy: nothing from elsewhere."""

REPORT_POLICY = "sandbox allow-scripts allow-downloads; frame-ancestors 'none'"
"""Isolates a report from the page: a report has a policy of its own, and cannot send requests as the page."""

_HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class Guard:
    """Refuses requests without the token, under another name or from another page with 403; adds headers to answers."""

    def __init__(self, app: ASGIApp, *, token: str, port: int, to_all: Collection[str]) -> None:
        """Args: to_all: public paths: the page itself, bringing the token."""
        self._app = app
        self._token = token.encode()
        self._to_all = to_all
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                more = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in more if pair[0] not in known)]
            await send(message)

        answer = self._refusal(scope)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request is not looked at; None where it is the page's own."""
        headers = _headers(scope)
        if headers.get("host") not in self._hosts:
            return _refused("this name is not that of the server", _OPEN)
        origin = headers.get("origin")
        own = origin is not None and origin.removeprefix("http://") in self._hosts and origin.startswith("http://")
        if (
            (origin is None and scope["method"] not in _READING)
            or (origin is not None and not own)
            or headers.get("sec-fetch-site", "none") not in _OWN_SITES
        ):
            return _refused("the request is from another page", "type the address that `crosswind ui` printed")
        if scope["path"] in self._to_all or self._has_token(headers) or self._has_key(scope):
            return None
        return _refused("the token is missing or wrong", _OPEN)

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("authorization", "").encode("latin-1")
        return hmac.compare_digest(given, b"Bearer " + self._token)

    def _has_key(self, scope: Scope) -> bool:
        """Whether it reads an address ending with its key (`withKey` in static/token.js)."""
        if scope["method"] not in _READING:
            return False
        address, _, given = (scope["raw_path"] + b"?" + scope["query_string"]).rpartition(b"key=")
        key = hmac.digest(self._token, address[:-1], "sha256").hex()
        return hmac.compare_digest(given, key.encode())


def _headers(scope: Scope) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _refused(message: str, hint: str) -> Response:
    return JSONResponse({"error": message, "hint": hint}, 403)

"""Who is answered: a browser that was given the token, under this server's own name, from its own page.

The token comes once, in the address that `crosswind ui` prints, and goes into a cookie that scripts cannot read and
that other sites cannot have sent. The name (Host) is checked against DNS rebinding, the origin against other pages.
"""

import hmac
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_READING = ("GET", "HEAD")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
"""What a browser lets the page do: nothing that is from elsewhere."""

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
    """Refuses with 403 who has no token, another name or another origin; adds headers to what is answered."""

    def __init__(self, app: ASGIApp, *, token: str, port: int) -> None:
        self._app = app
        self._token = token
        # Cookies know no ports: two servers on one machine would share one.
        self._cookie = f"crosswind-{port}"
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

        answer = self._refusal(scope) or self._welcome(scope)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why a request is not looked at; None where its name and origin are right."""
        headers = _headers(scope)
        if headers.get("host") not in self._hosts:
            return _refused("this name is not that of the server", "open the address that `crosswind ui` printed")
        origin = headers.get("origin")
        own = origin is not None and origin.removeprefix("http://") in self._hosts and origin.startswith("http://")
        if (origin is None and scope["method"] not in _READING) or (origin is not None and not own):
            return _refused("the request is from another page", "work in the page that `crosswind ui` printed")
        return None

    def _welcome(self, scope: Scope) -> Response | None:
        """The answer to who brings the token, or has none; None for who is known."""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and self._is_token(given):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict")
            return answer
        try:
            cookie = SimpleCookie(_headers(scope).get("cookie", "")).get(self._cookie)
        except CookieError:
            cookie = None
        if cookie is None or not self._is_token(cookie.value):
            return _refused("the token is missing or wrong", "open the address that `crosswind ui` printed")
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _headers(scope: Scope) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def _refused(message: str, hint: str) -> Response:
    return JSONResponse({"error": message, "hint": hint}, 403)

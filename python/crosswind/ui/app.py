"""The addresses of `crosswind ui`: the page, and its JSON."""

import asyncio
import errno
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from crosswind.api.results import REPORT
from crosswind.errors import CrosswindError, StoreError, UsageError
from crosswind.files.inside import read_inside
from crosswind.store.listing import examine_directory
from crosswind.store.lock import in_use, used_by_another
from crosswind.store.removal import remove_run
from crosswind.study.files import MAX_FILE_BYTES
from crosswind.text.visible import no_utf8_in, visible
from crosswind.ui import by_hand, commands, runs, studies
from crosswind.ui.guard import REPORT_POLICY, Guard
from crosswind.ui.watch import Watch

_STATIC = {
    "/app.js": ("crosswind.ui", "static/app.js", "text/javascript"),
    **{
        f"/{name}.js": ("crosswind.ui", f"static/{name}.js", "text/javascript")
        for name in ("dom", "heat", "live", "token")
    },
    "/ui.css": ("crosswind.ui", "static/ui.css", "text/css"),
    "/style.css": ("crosswind.report", "style.css", "text/css"),
    "/": ("crosswind.ui", "static/index.html", "text/html"),
}
_LOOK_S = 0.5
"""Between two looks at a watched run."""
_READING_S = 0.02
"""The same while there is more to read."""
_LONGEST_LIVE_S = 3600
_MOST_WATCHED = 8
"""Runs kept in memory."""

_MOST_DIGITS = 18
"""In a count: it fits into 64 bits."""

Endpoint = Callable[[Request], Awaitable[Response]]


def application(root: Path, *, token: str, port: int) -> Guard:
    """The application. Args: root: the runs'."""

    one_path = asyncio.Lock()

    def place_of(request: Request) -> Path:
        return runs.run_named(request.path_params["name"], root)

    async def all_runs(_: Request) -> Response:
        return _Json(await run_in_threadpool(runs.listed, root))

    async def choices(_: Request) -> Response:
        return _Json(await run_in_threadpool(studies.choices))

    async def builtin(request: Request) -> Response:
        text = await run_in_threadpool(studies.builtin_text, request.path_params["name"])
        if text is None:
            raise StoreError("there is no built-in study of this name", hint="`crosswind studies` lists them")
        return _Json({"toml": text})

    async def study_of_form(request: Request) -> Response:
        return _Json({"toml": await run_in_threadpool(studies.text_of, await _body(request))})

    async def check(request: Request) -> Response:
        body = await _body(request)
        text = _text(body)
        form = await run_in_threadpool(studies.form_of, text)
        try:
            plan = await run_in_threadpool(studies.checked, text, quick=body.get("quick") is True)
            return _Json({"form": form, "plan": plan})
        except CrosswindError as error:
            return _Json({"form": form, **_problem(error)})

    async def path(request: Request) -> Response:
        body = await _body(request)
        async with one_path:
            return _Json(await run_in_threadpool(by_hand.measured, body))

    async def start(request: Request) -> Response:
        body = await _body(request)
        quick = body.get("quick") is True
        name, cluster = (str(body.get(key, "")).strip() for key in ("name", "on"))
        directory = await commands.start(_text(body), name, root=root, quick=quick, cluster=cluster)
        return _Json({"name": directory.name})

    watched: dict[Path, Watch] = {}

    async def events(request: Request) -> Response:
        directory = place_of(request)
        watch = watched[directory] = watched.pop(directory) if directory in watched else Watch(directory)
        while len(watched) > _MOST_WATCHED:
            del watched[next(iter(watched))]
        return StreamingResponse(_events(watch, lambda: watched.pop(directory, None)), media_type="text/event-stream")

    async def stop(request: Request) -> Response:
        commands.stop(place_of(request))
        return _Json({})

    async def resume(request: Request) -> Response:
        await commands.resume(place_of(request))
        return _Json({})

    async def remove(request: Request) -> Response:
        directory = place_of(request)
        if in_use(directory):
            raise used_by_another(str(directory))
        await run_in_threadpool(remove_run, directory)
        commands.log_of(directory).unlink(missing_ok=True)
        return _Json({})

    async def live(request: Request) -> Response:
        return StreamingResponse(_lines(request.query_params), media_type="text/event-stream")

    routes = [
        *(Route(path, _static(*asset)) for path, asset in _STATIC.items()),
        Route("/api/runs", all_runs),
        Route("/api/choices", choices),
        Route("/api/studies/{name}", builtin),
        Route("/api/form", study_of_form, methods=["POST"]),
        Route("/api/check", check, methods=["POST"]),
        Route("/api/path", path, methods=["POST"]),
        Route("/api/runs", start, methods=["POST"]),
        Route("/api/runs/{name}/events", events),
        Route("/api/runs/{name}/stop", stop, methods=["POST"]),
        Route("/api/runs/{name}/resume", resume, methods=["POST"]),
        Route("/api/runs/{name}/remove", remove, methods=["POST"]),
        Route("/api/live", live),
        *_pages(root),
    ]
    handlers = {CrosswindError: _failed, OSError: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(app, token=token, port=port, to_all=_STATIC.keys())


def _pages(root: Path) -> list[Route]:
    async def report(request: Request) -> Response:
        directory = runs.run_named(request.path_params["name"], root)
        run = runs.summary(await run_in_threadpool(examine_directory, directory))
        if run.get("status") == "done":
            # A missing or unreadable page in the run is made anew.
            with suppress(OSError, ValueError):
                return _page((await run_in_threadpool(read_inside, directory, REPORT)).decode())
        return _page(await commands.page_of("report", str(directory)))

    async def explain(request: Request) -> Response:
        asked = {key: request.query_params.get(key, "") for key in ("cell", "repetition", "message", "connection")}
        which = [word for key, value in asked.items() if value for word in (f"--{key}", str(_count(key, value)))]
        return _page(await commands.page_of("explain", *which, str(runs.run_named(request.path_params["name"], root))))

    async def compare(request: Request) -> Response:
        places = [str(runs.run_named(request.query_params.get(which, ""), root)) for which in ("a", "b")]
        return _page(await commands.page_of("compare", *places))

    return [
        Route("/runs/{name}/report", report),
        Route("/runs/{name}/explain", explain),
        Route("/compare", compare),
    ]


async def _events(watch: Watch, failed: Callable[[], object]) -> AsyncIterator[str]:
    """A run as server-sent events, until it is gone or nobody watches. Args: failed: is called where it is gone."""
    version = 0
    try:
        while True:
            version, news = await run_in_threadpool(watch.news, version)
            for name, data in news.items():
                yield _event(name, data)
            if not news:
                yield ": \n\n"  # Reveals a disconnected browser to the server.
            await asyncio.sleep(_READING_S if watch.behind else _LOOK_S)
    except (CrosswindError, OSError) as error:
        failed()
        yield _event("problem", _problem(error))


async def _lines(asked: Mapping[str, str]) -> AsyncIterator[str]:
    """Lines from `crosswind live`, as server-sent events, until it ends or nobody watches."""
    try:
        probes = ["--tcp", str(_count("TCP port", asked["tcp"]))] if asked.get("tcp") else []
        seconds = min(_count("seconds", asked.get("seconds", "")), _LONGEST_LIVE_S)
        words = ("--json", "--window", "1s", "--duration", f"{seconds}s", *probes, "--", asked.get("host", ""))
        async with aclosing(commands.lines_of("live", *words)) as lines:
            async for line in lines:
                yield f"event: line\ndata: {line}\n\n"
        yield _event("over", {})
    except (CrosswindError, OSError) as error:
        yield _event("problem", _problem(error))


def _event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n"


async def _failed(request: Request, error: Exception) -> Response:
    problem = _problem(error)
    if request.url.path.startswith("/api/"):
        return _Json(problem, 409)
    text = f"error: {problem['error']}\n" + (f"hint: {problem['hint']}\n" if problem["hint"] else "")
    return Response(text, 409, media_type="text/plain")


def _problem(error: Exception) -> dict[str, str | None]:
    """An error, in the words of the command line, or of the system, as for a full disk."""
    if isinstance(error, CrosswindError):
        return {"error": visible(error.message), "hint": error.hint and visible(error.hint)}
    assert isinstance(error, OSError)
    hint = "is there room on the disk?" if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
    where = f"{error.filename}: " if isinstance(error.filename, str) else ""
    return {"error": visible(f"{where}{error.strerror or error}"), "hint": hint}


class _Json(JSONResponse):
    """JSON in ASCII: foreign texts may have lone surrogates, and no other encoding takes these."""

    def render(self, content: object) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


async def _body(request: Request) -> dict[str, Any]:
    """A request's JSON object. Raises: UsageError."""
    taken = bytearray()
    try:
        async for part in request.stream():
            taken += part
            if len(taken) > 2 * MAX_FILE_BYTES:
                raise UsageError(f"more than {2 * MAX_FILE_BYTES:,} bytes", hint="a study is a short text")
        data = json.loads(taken)
    except (ValueError, RecursionError, ClientDisconnect):
        data = None
    if not isinstance(data, dict):
        raise UsageError("the request is no JSON object", hint="reload the page")
    return data


def _text(body: dict[str, Any]) -> str:
    text = body.get("toml")
    if not isinstance(text, str) or len(text.encode(errors="replace")) > MAX_FILE_BYTES:
        raise UsageError(f"no study of up to {MAX_FILE_BYTES:,} bytes", hint="a study is a short text")
    if hidden := no_utf8_in(text):
        raise UsageError(f"the study has the hidden character {hidden}", hint="remove it: readers cannot see it")
    return text


def _count(what: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise UsageError(f"{what}: {text[:20]} is no count", hint=f"a number from 0, of up to {_MOST_DIGITS} digits")
    return int(text)


def _page(html: str) -> Response:
    return HTMLResponse(html, headers={"content-security-policy": REPORT_POLICY})


def _static(package: str, name: str, media_type: str) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return Response(files(package).joinpath(name).read_bytes(), media_type=media_type)

    return endpoint

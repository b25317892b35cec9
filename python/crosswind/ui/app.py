"""The addresses of `crosswind ui`: the page, and what it asks for as JSON."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from crosswind.errors import CrosswindError, StoreError, UsageError
from crosswind.results import REPORT
from crosswind.store.listing import examine_directory
from crosswind.store.lock import in_use, used_by_another
from crosswind.store.removal import remove_run
from crosswind.study.files import MAX_FILE_BYTES
from crosswind.ui import by_hand, commands, runs, studies
from crosswind.ui.guard import REPORT_POLICY, Guard

_STATIC = {
    "/app.js": ("crosswind.ui", "static/app.js", "text/javascript"),
    "/dom.js": ("crosswind.ui", "static/dom.js", "text/javascript"),
    "/ui.css": ("crosswind.ui", "static/ui.css", "text/css"),
    "/style.css": ("crosswind.report", "style.css", "text/css"),
    "/": ("crosswind.ui", "static/index.html", "text/html"),
}
_LOOK_S = 0.5
"""Between two looks at a run that is watched."""

Endpoint = Callable[[Request], Awaitable[Response]]


def application(root: Path, *, token: str, port: int) -> Guard:
    """The application. Args: root: of the runs."""

    one_path = asyncio.Lock()

    def place_of(request: Request) -> Path:
        return runs.run_named(request.path_params["name"], root)

    async def all_runs(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(runs.listed, root))

    async def choices(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(studies.choices))

    async def builtin(request: Request) -> Response:
        text = await run_in_threadpool(studies.builtin_text, request.path_params["name"])
        if text is None:
            raise StoreError("there is no built-in study of this name", hint="`crosswind studies` lists them")
        return JSONResponse({"toml": text})

    async def study_of_form(request: Request) -> Response:
        return JSONResponse({"toml": await run_in_threadpool(studies.text_of, await _body(request))})

    async def check(request: Request) -> Response:
        body = await _body(request)
        text = _text(body)
        form = await run_in_threadpool(studies.form_of, text)
        try:
            plan = await run_in_threadpool(studies.checked, text, quick=body.get("quick") is True)
            return JSONResponse({"form": form, "plan": plan})
        except CrosswindError as error:
            return JSONResponse({"form": form, "error": error.message, "hint": error.hint})

    async def path(request: Request) -> Response:
        body = await _body(request)
        async with one_path:
            return JSONResponse(await run_in_threadpool(by_hand.measured, body))

    async def start(request: Request) -> Response:
        body = await _body(request)
        quick = body.get("quick") is True
        directory = await commands.start(_text(body), str(body.get("name", "")), root=root, quick=quick)
        return JSONResponse({"name": directory.name})

    async def events(request: Request) -> Response:
        watched = runs.Watched(place_of(request))
        return StreamingResponse(_events(watched), media_type="text/event-stream")

    async def stop(request: Request) -> Response:
        commands.stop(place_of(request))
        return JSONResponse({})

    async def resume(request: Request) -> Response:
        await commands.resume(place_of(request))
        return JSONResponse({})

    async def remove(request: Request) -> Response:
        directory = place_of(request)
        if in_use(directory):
            raise used_by_another(directory)
        await run_in_threadpool(remove_run, directory)
        commands.log_of(directory).unlink(missing_ok=True)
        return JSONResponse({})

    async def report(request: Request) -> Response:
        directory = place_of(request)
        kept = directory / REPORT
        run = runs.summary(await run_in_threadpool(examine_directory, directory))
        if run.get("status") == "done" and kept.is_file():
            return _page(await run_in_threadpool(kept.read_text, "utf-8"))
        return _page(await commands.page_of("report", str(directory)))

    async def explain(request: Request) -> Response:
        return _page(await commands.page_of("explain", str(place_of(request))))

    async def compare(request: Request) -> Response:
        places = [str(runs.run_named(request.query_params.get(which, ""), root)) for which in ("a", "b")]
        return _page(await commands.page_of("compare", *places))

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
        Route("/runs/{name}/report", report),
        Route("/runs/{name}/explain", explain),
        Route("/compare", compare),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={CrosswindError: _failed}), token=token, port=port)


async def _events(watched: runs.Watched) -> AsyncIterator[str]:
    """A run as server-sent events, until it is over or nobody watches."""
    try:
        yield _event("plan", await run_in_threadpool(watched.plan))
        while True:
            news = await run_in_threadpool(watched.news)
            for name, data in news.items():
                yield _event(name, data)
            if not news:
                yield ": \n\n"  # Tells the server that the browser is gone.
            await asyncio.sleep(_LOOK_S)
    except CrosswindError as error:
        yield _event("problem", {"error": error.message, "hint": error.hint})


def _event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=True)}\n\n"


async def _failed(request: Request, error: Exception) -> Response:
    """What went wrong, in the words that the command line has for it."""
    assert isinstance(error, CrosswindError)
    if not request.url.path.startswith("/api/"):
        text = f"error: {error.message}\n" + (f"hint: {error.hint}\n" if error.hint else "")
        return Response(text, 409, media_type="text/plain")
    return JSONResponse({"error": error.message, "hint": error.hint}, 409)


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request. Raises: UsageError."""
    taken = bytearray()
    async for part in request.stream():
        taken += part
        if len(taken) > 2 * MAX_FILE_BYTES:
            raise UsageError(f"more than {2 * MAX_FILE_BYTES:,} bytes", hint="a study is a short text")
    try:
        data = json.loads(taken)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise UsageError("the request is no JSON object", hint="reload the page")
    return data


def _text(body: dict[str, Any]) -> str:
    text = body.get("toml")
    if not isinstance(text, str) or len(text.encode(errors="replace")) > MAX_FILE_BYTES:
        raise UsageError(f"no study of up to {MAX_FILE_BYTES:,} bytes", hint="a study is a short text")
    return text


def _page(html: str) -> Response:
    return HTMLResponse(html, headers={"content-security-policy": REPORT_POLICY})


def _static(package: str, name: str, media_type: str) -> Endpoint:
    async def endpoint(_: Request) -> Response:
        return Response(files(package).joinpath(name).read_bytes(), media_type=media_type)

    return endpoint

"""The HTTP application: its routes."""

import asyncio
import contextlib
import functools
import time

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gateway import chat, completions, embeddings, message_answer, tokens
from gateway.admission import Admission
from gateway.backend import Coordinator
from gateway.config import Config
from gateway.errors import ApiError
from gateway.fleet import Fleet, unknown_model
from gateway.http import check_site, endpoint, guarded
from gateway.parent_reports import SERVES, report, report_life
from gateway.responses import Json
from gateway.service import Service
from gateway.template_pool import TemplatePool
from gateway.version import VERSION

_POSTS = {
    "/v1/chat/completions": chat.answer,
    "/v1/completions": completions.answer,
    "/v1/responses": chat.answer_response,
    "/v1/embeddings": embeddings.answer,
    "/tokenize": tokens.tokenize,
    "/detokenize": tokens.detokenize,
}
# Their errors are Anthropic's.
_MESSAGES = {
    "/v1/messages": chat.answer_message,
    "/v1/messages/count_tokens": chat.count_tokens,
}


def _for_browsers(origins: list[str]) -> list[Middleware]:
    """Pages of other origins may use the API only if a header says so (https://fetch.spec.whatwg.org/#http-cors-protocol)."""
    if not origins:
        return []
    return [Middleware(CORSMiddleware, allow_origins=origins, allow_methods=("GET", "POST"), allow_headers=("*",),
                       expose_headers=("retry-after", "x-request-id"))]


async def _report_serving(config: Config, fleet: Fleet) -> None:
    await fleet.until_serving()
    report(config.parent_reports_file, SERVES)


def make_app(config: Config) -> Starlette:
    """Connects to the coordinators when it starts."""
    started = int(time.time())

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette):
        service = Service(
            config=config,
            fleet=Fleet([Coordinator(address, config.served_model_name, config.chat_template,
                                     config.access) for address in config.servers]),
            templates=TemplatePool(limit_s=config.template_timeout_s))
        app.state.service = service
        app.state.admission = Admission(service.fleet)
        service.fleet.start()
        reporting = [asyncio.create_task(_report_serving(config, service.fleet)),
                     asyncio.create_task(report_life(config.parent_reports_file))]
        yield
        for task in reporting:
            task.cancel()
        await service.templates.close()
        await service.fleet.close()

    def models_of(request: Request) -> list[dict]:
        return [{"id": id, "object": "model", "created": started, "owned_by": "tandem",
                 "root": model.id, "parent": parent, "max_model_len": model.max_model_len}
                for model in request.app.state.service.fleet.models()
                for id, parent in ((model.id, None), *((one, model.id) for one in model.adapters))]

    async def models(request: Request) -> Response:
        return Json({"object": "list", "data": models_of(request)})

    async def model(request: Request) -> Response:
        found, id = models_of(request), request.path_params["id"]
        for one in found:
            if one["id"] == id:
                return Json(one)
        raise unknown_model(id, [one["id"] for one in found])

    async def health(request: Request) -> Response:
        return Response(status_code=200 if request.app.state.service.fleet.serving else 503)

    async def version(_: Request) -> Response:
        return Json({"version": VERSION})

    async def http_error(_: Request, error: HTTPException) -> Response:
        return Json(ApiError(error.status_code, error.detail).body(), error.status_code,
                    error.headers)

    def post(answer, error_body=ApiError.body):
        async def respond(request: Request) -> Response:
            service = request.app.state.service

            async def admit() -> None:
                check_site(request, config.allowed_origins)
                await request.app.state.admission.check()
            return await endpoint(functools.partial(answer, service), config.max_body_bytes, service.place, admit,
                                  error_body)(request)
        return respond

    def get(answer):
        async def respond(request: Request) -> Response:
            return await guarded(answer, request.app.state.admission.check)(request)
        return respond

    return Starlette(
        middleware=_for_browsers(config.allowed_origins),
        routes=[Route("/v1/models", get(models)), Route("/v1/models/{id:path}", get(model)),
                Route("/health", health), Route("/version", version),
                *(Route(path, post(answer), methods=["POST"]) for path, answer in _POSTS.items()),
                *(Route(path, post(answer, message_answer.error_body), methods=["POST"])
                  for path, answer in _MESSAGES.items())],
        exception_handlers={HTTPException: http_error}, lifespan=lifespan)

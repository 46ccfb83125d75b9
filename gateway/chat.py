"""POST /v1/chat/completions."""

from starlette.responses import Response

from gateway import chat_prompt, chat_request, sampling
from gateway.backend import Model
from gateway.chat_answer import ChatForm
from gateway.chat_request import ChatRequest
from gateway.errors import bad_request
from gateway.limits import check_prompts
from gateway.service import Service, new_id, respond
from gateway.tool_parsers import PARSERS, ToolParser, form_of_answers, has_channels
from tandem.v1 import generation_pb2 as api


async def answer(service: Service, body: object) -> Response:
    request = chat_request.read(body)
    coordinator = service.fleet.pick(request.model)
    model = coordinator.model
    parsers = _parsers(service, model, request)
    prompt = await chat_prompt.render(
        service.templates, model, request.messages, request.tools, request.add_generation_prompt,
        request.template_variables)
    check_prompts([prompt], request.choices, request.params.ByteSize())
    id = new_id("chatcmpl")
    requests = [
        api.GenerateRequest(
            request_id=f"{id}-{i}", text=prompt, sampling=sampling.for_choice(request.params, i),
            # The template writes BOS; calls may be between control tokens.
            add_special_tokens=False, parse_special_tokens=True, skip_special_tokens=not parsers,
            priority=request.priority)
        for i in range(request.choices)]
    form = ChatForm(id, model.id, request, parsers)
    return await respond(service, coordinator, id, requests, form, request.stream)


def _parsers(service: Service, model: Model, request: ChatRequest) -> list[ToolParser]:
    if request.params.WhichOneof("constraint"):
        _check_form(service, model, request)
        return []
    form = form_of_answers(model.chat_template, bool(request.tools), service.config.tool_parser)
    if request.tools and form is None:
        raise bad_request("this model's chat template has no tools, or asks for calls in a form "
                          "that this server does not know: see --tool-parser", "tools")
    return [PARSERS[form]() for _ in range(request.choices)] if form else []


def _check_form(service: Service, model: Model, request: ChatRequest) -> None:
    """The answer has the form that the request asks for, from its first character."""
    param = "tool_choice" if request.forced else None
    if has_channels(model.chat_template, bool(request.tools), service.config.tool_parser):
        raise bad_request("this model's answers are in channels, as gpt-oss's: no other form of "
                          "them, and no call, can be asked for", param)
    if request.forced and "tools" not in model.chat_template:
        raise bad_request("this model's chat template has no tools: it would not be told of them",
                          "tools")

"""POST /v1/chat/completions, /v1/responses and /v1/messages."""

from collections.abc import Callable

from starlette.responses import Response

from gateway import (chat_prompt, chat_request, conversation, message_request, response_output, response_request,
                     sampling)
from gateway.answer_layout import AnswerLayout
from gateway.answer_reader import AnswerReader
from gateway.backend import Coordinator, Model
from gateway.chat_answer import ChatForm
from gateway.chat_request import ChatRequest
from gateway.limits import check_prompts
from gateway.message_answer import MessageForm
from gateway.response_answer import ResponseForm
from gateway.responses import Json
from gateway.service import Form, Service, new_id, respond
from tandem.v1 import generation_pb2 as api

MakeForm = Callable[[str, list[AnswerReader]], Form]  # of the model's id and a reader per choice


async def answer(service: Service, body: object) -> Response:
    request, id = chat_request.read(body), new_id("chatcmpl")
    return await _generate(service, request, id,
                           lambda model, readers: ChatForm(id, model, request, readers))


async def answer_response(service: Service, body: object) -> Response:
    request, id = response_request.read(body), response_output.new_id("resp")
    return await _generate(service, request.chat, id,
                           lambda model, readers: ResponseForm(id, model, request, readers[0]))


async def answer_message(service: Service, body: object) -> Response:
    request, id = message_request.read(body), response_output.new_id("msg")
    return await _generate(service, request, id,
                           lambda model, readers: MessageForm(id, model, request, readers[0]), clips=True)


async def count_tokens(service: Service, body: object) -> Response:
    """Of the prompt that /v1/messages would make of the body."""
    request = message_request.read(body)
    coordinator = service.fleet.pick(request.model).coordinator
    prompt = await _render(service, coordinator.model, request)
    check_prompts([prompt])
    return Json({"input_tokens": await _num_tokens(coordinator, prompt)})


async def _render(service: Service, model: Model, request: ChatRequest) -> str:
    variables = chat_prompt.with_effort(request.template_variables, request.reasoning_effort,
                                        model.chat_template)
    return await chat_prompt.render(
        service.templates, model, request.messages, request.tools, request.add_generation_prompt,
        variables, request.continues)


async def _num_tokens(coordinator: Coordinator, prompt: str) -> int:
    """The template writes BOS."""
    return len((await coordinator.tokenize(prompt, add_special_tokens=False)).ids)


async def _clip(coordinator: Coordinator, prompt: str, params: api.SamplingParams) -> None:
    """max_tokens to what the context leaves: clients that have to give it ask for more than many contexts hold."""
    room = coordinator.model.max_model_len
    if params.max_tokens + len(prompt.encode()) <= room:  # a token has a byte at least
        return
    params.max_tokens = max(1, min(params.max_tokens, room - await _num_tokens(coordinator, prompt)))


async def _generate(service: Service, request: ChatRequest, id: str, make_form: MakeForm,
                    clips: bool = False) -> Response:
    served = service.fleet.pick(request.model)
    model = served.coordinator.model
    if conversation.takes_one_call(model.chat_template):
        request.allow_one_call()
    layout = AnswerLayout(service.config, model, request)
    prompt = await _render(service, model, request)
    if (reasoning := layout.room_for_thoughts(prompt)) is not None:
        request.params.reasoning.CopyFrom(reasoning)
    check_prompts([prompt], request.choices, request.params.ByteSize())
    if clips and request.params.HasField("max_tokens"):
        await _clip(served.coordinator, prompt, request.params)
    requests = [
        api.GenerateRequest(
            request_id=f"{id}-{i}", text=prompt, sampling=sampling.for_choice(request.params, i),
            # The template writes BOS.
            add_special_tokens=False, parse_special_tokens=True,
            skip_special_tokens=not layout.shows_control_tokens, priority=request.priority,
            adapter=served.adapter)
        for i in range(request.choices)]
    form = make_form(served.id, [layout.reader(prompt) for _ in requests])
    return await respond(service, served.coordinator, id, requests, form, request.stream)

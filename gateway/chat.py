"""POST /v1/chat/completions."""

from starlette.responses import Response

from gateway import chat_prompt, chat_request, sampling
from gateway.answer_layout import AnswerLayout
from gateway.chat_answer import ChatForm
from gateway.limits import check_prompts
from gateway.service import Service, new_id, respond
from tandem.v1 import generation_pb2 as api


async def answer(service: Service, body: object) -> Response:
    request = chat_request.read(body)
    coordinator = service.fleet.pick(request.model)
    model = coordinator.model
    layout = AnswerLayout(service.config, model, request)
    variables = chat_prompt.with_effort(request.template_variables, request.reasoning_effort,
                                        model.chat_template)
    prompt = await chat_prompt.render(
        service.templates, model, request.messages, request.tools, request.add_generation_prompt,
        variables)
    if (reasoning := layout.room_for_thoughts(prompt)) is not None:
        request.params.reasoning.CopyFrom(reasoning)
    check_prompts([prompt], request.choices, request.params.ByteSize())
    id = new_id("chatcmpl")
    requests = [
        api.GenerateRequest(
            request_id=f"{id}-{i}", text=prompt, sampling=sampling.for_choice(request.params, i),
            # The template writes BOS.
            add_special_tokens=False, parse_special_tokens=True,
            skip_special_tokens=not layout.shows_control_tokens, priority=request.priority)
        for i in range(request.choices)]
    answers = ChatForm(id, model.id, request, [layout.reader(prompt) for _ in requests])
    return await respond(service, coordinator, id, requests, answers, request.stream)

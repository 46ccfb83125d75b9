"""POST /v1/completions."""

from starlette.responses import Response

from gateway import completion_request, sampling
from gateway.backend import Coordinator
from gateway.completion_answer import CompletionForm, Prompt
from gateway.completion_request import CompletionRequest
from gateway.limits import check_prompts
from gateway.service import Service, new_id, respond
from tandem.v1 import generation_pb2 as api


async def answer(service: Service, body: object) -> Response:
    request = completion_request.read(body)
    served = service.fleet.pick(request.model)
    coordinator = served.coordinator
    check_prompts(request.prompts, request.choices, request.params.ByteSize())
    prompts = [await _prompt(coordinator, request, one) for one in request.prompts]
    id = new_id("cmpl")
    requests = [
        _generate_request(f"{id}-{i}-{choice}", served.adapter, request, prompts[i], prompt, choice)
        for i, prompt in enumerate(request.prompts) for choice in range(request.choices)]
    form = CompletionForm(id, served.id, request, prompts)
    first_ids = {one.ids[0] for one in prompts if one.ids}
    return await respond(service, coordinator, id, requests, form, request.stream, first_ids)


async def _prompt(coordinator: Coordinator, request: CompletionRequest,
                  prompt: str | list[int]) -> Prompt:
    """The text for an echo, and the ids where the echo has log-probabilities."""
    if not request.echo:
        return Prompt("", [])
    if not isinstance(prompt, str):
        return Prompt(await coordinator.detokenize(prompt), prompt)
    if not request.params.HasField("prompt_logprobs"):
        return Prompt(prompt, [])
    tokens = await coordinator.tokenize(prompt, request.add_special_tokens)
    return Prompt(prompt, list(tokens.ids))


def _generate_request(id: str, adapter: str, request: CompletionRequest, prompt: Prompt,
                      given: str | list[int], choice: int) -> api.GenerateRequest:
    """Control tokens that are written out in the text are parsed, as in vLLM."""
    message = api.GenerateRequest(
        request_id=id, sampling=sampling.for_choice(request.params, choice),
        add_special_tokens=request.add_special_tokens, parse_special_tokens=True,
        skip_special_tokens=request.skip_special_tokens, priority=request.priority,
        adapter=adapter)
    if prompt.ids or not isinstance(given, str):
        message.token_ids.ids.extend(prompt.ids or given)
    else:
        message.text = given
    return message

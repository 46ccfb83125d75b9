"""POST /tokenize and POST /detokenize, in vLLM's form."""

from starlette.responses import Response

from gateway import chat_prompt, chat_request
from gateway.fields import Fields
from gateway.responses import Json
from gateway.limits import check_prompts
from gateway.service import Service


async def tokenize(service: Service, body: object) -> Response:
    """Of a `prompt`, or of `messages` by the chat template."""
    fields = Fields(body)
    coordinator = service.fleet.pick(fields.text("model")).coordinator
    want_texts = fields.boolean("return_token_strs")
    if fields.take("messages") is not None:
        messages = chat_request.read_messages(fields)
        continues, add_generation_prompt = chat_request.read_end(fields, messages)
        text = await chat_prompt.render(
            service.templates, coordinator.model, messages, fields.array("tools") or [], add_generation_prompt,
            fields.object("chat_template_kwargs") or {}, continues)
        add_special_tokens = fields.boolean("add_special_tokens")
    else:
        text = fields.text("prompt")
        if text is None:
            raise fields.error("prompt", "is missing")
        add_special_tokens = fields.boolean("add_special_tokens", default=True)
    fields.refuse_others()
    check_prompts([text])
    answer = await coordinator.tokenize(text, add_special_tokens)
    texts = [one.decode(errors="replace") for one in answer.token_bytes] if want_texts else None
    return Json({"count": len(answer.ids), "max_model_len": coordinator.model.max_model_len,
                 "tokens": list(answer.ids), "token_strs": texts})


async def detokenize(service: Service, body: object) -> Response:
    fields = Fields(body)
    coordinator = service.fleet.pick(fields.text("model")).coordinator
    ids = fields.integers("tokens")
    fields.refuse_others()
    check_prompts([ids])
    return Json({"prompt": await coordinator.detokenize(ids)})

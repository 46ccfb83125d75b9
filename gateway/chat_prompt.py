"""Messages and tools to a prompt, by the model's chat template."""

import secrets

from gateway import conversation
from gateway.backend import Model
from gateway.errors import bad_request
from gateway.reasoning import markers_of_template
from gateway.template_pool import TemplatePool

_OURS = ("messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token")


async def render(pool: TemplatePool, model: Model, messages: list[dict], tools: list[dict],
                 add_generation_prompt: bool, more: dict, continues: bool = False) -> str:
    """`more` are a request's own variables for the template. If the answer `continues` the last message, the prompt
    ends with its content. Raises ApiError 400."""
    if not model.chat_template:
        raise bad_request("this model has no chat template: --chat-template gives it one; "
                          "completions need none")
    for name in more:
        if name in _OURS or not name.isidentifier():
            raise bad_request(f"chat_template_kwargs.{name[:60]} cannot be set",
                              "chat_template_kwargs")
    end = secrets.token_hex(16) if continues else ""  # of the last content: what no prompt has
    if continues:
        messages = [*messages[:-1], {**messages[-1], "content": messages[-1]["content"] + end}]
    prompt = await pool.render(model.chat_template, {
        **more,
        "messages": conversation.adapted(messages, model.chat_template),
        "tools": tools or None,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
        "bos_token": model.bos_token,
        "eos_token": model.eos_token,
    })
    return _until(prompt, end) if continues else prompt


def _until(prompt: str, end: str) -> str:
    before, found, _ = prompt.rpartition(end)
    if not found:
        raise bad_request("this model's chat template leaves the last message out: nothing can go on in it")
    return before.replace(end, "")


def with_effort(variables: dict, effort: str | None, template: str) -> dict:
    """`reasoning_effort` by the template's own variables; what the request sets itself wins. An effort is a hint,
    but none is not."""
    if effort is None:
        return variables
    none = effort == "none"
    if "reasoning_effort" in template and not (none and "enable_thinking" in template):
        return {"reasoning_effort": effort, **variables}
    if "enable_thinking" in template:
        return {"enable_thinking": not none, **variables}
    if none and markers_of_template(template):
        raise bad_request("this model's chat template cannot leave thoughts out: it has no variable for "
                          "reasoning_effort 'none'", "reasoning_effort")
    return variables

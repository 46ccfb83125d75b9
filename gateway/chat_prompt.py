"""Messages and tools to a prompt, by the model's chat template."""

from gateway.backend import Model
from gateway.errors import bad_request
from gateway.template_pool import TemplatePool

_OURS = ("messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token")


async def render(pool: TemplatePool, model: Model, messages: list[dict], tools: list[dict],
                 add_generation_prompt: bool, more: dict) -> str:
    """`more` are a request's own variables for the template. Raises ApiError 400."""
    if not model.chat_template:
        raise bad_request("this model has no chat template: --chat-template gives it one; "
                          "completions need none")
    for name in more:
        if name in _OURS or not name.isidentifier():
            raise bad_request(f"chat_template_kwargs.{name[:60]} cannot be set",
                              "chat_template_kwargs")
    return await pool.render(model.chat_template, {
        **more,
        "messages": _roles(messages, model.chat_template),
        "tools": tools or None,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
        "bos_token": model.bos_token,
        "eos_token": model.eos_token,
    })


def with_effort(variables: dict, effort: str | None, template: str) -> dict:
    """`reasoning_effort` as the template's own variable for it; what the request sets itself wins."""
    if effort is None:
        return variables
    if effort == "none" and "enable_thinking" in template:
        return {"enable_thinking": False, **variables}
    if "reasoning_effort" in template:
        return {"reasoning_effort": effort, **variables}
    raise bad_request(f"this model's chat template has no variable for reasoning_effort {effort[:20]!r}",
                      "reasoning_effort")


def _roles(messages: list[dict], template: str) -> list[dict]:
    """OpenAI's "developer" is "system" to templates that do not know it."""
    if "developer" in template:
        return messages
    return [{**one, "role": "system"} if one["role"] == "developer" else one for one in messages]

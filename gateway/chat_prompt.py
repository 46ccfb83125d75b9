"""Messages and tools to a prompt, by the model's chat template."""

from gateway import conversation
from gateway.backend import Model
from gateway.errors import bad_request
from gateway.reasoning import markers_of_template
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
        "messages": conversation.adapted(messages, model.chat_template),
        "tools": tools or None,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
        "bos_token": model.bos_token,
        "eos_token": model.eos_token,
    })


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

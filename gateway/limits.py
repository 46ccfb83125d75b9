"""How long prompts may be, before they are copied for each choice and sent."""

from gateway.errors import ApiError

MAX_MESSAGE_BYTES = 4 << 20  # gRPC's limit
MAX_PROMPT_BYTES = MAX_MESSAGE_BYTES - (64 << 10)  # with room for the rest
MAX_REQUEST_BYTES = 32 << 20  # of all prompts of a request, and of all parameters, one for each choice


def check_prompts(prompts: list[str | list[int]], choices: int = 1, params_bytes: int = 0) -> None:
    """Raises ApiError 413. `params_bytes`: of what each choice has besides, as stop strings."""
    sizes = [prompt_bytes(one) for one in prompts]
    if max(sizes) > MAX_PROMPT_BYTES:
        raise ApiError(413, f"a prompt has {max(sizes)} bytes, at most {MAX_PROMPT_BYTES}")
    if sum(sizes) * choices > MAX_REQUEST_BYTES:
        raise ApiError(413, f"the prompts of all choices have {sum(sizes) * choices} bytes, "
                       f"at most {MAX_REQUEST_BYTES}")
    if params_bytes * len(prompts) * choices > MAX_REQUEST_BYTES:
        raise ApiError(413, f"the parameters of all choices have {params_bytes * len(prompts) * choices} "
                       f"bytes, at most {MAX_REQUEST_BYTES}")


def check_messages(requests: list) -> None:
    """Raises ApiError 413: besides prompts, what stops or adjusts an answer may be long."""
    size = max(one.ByteSize() for one in requests)
    if size > MAX_MESSAGE_BYTES:
        raise ApiError(413, f"the request has {size} bytes for the server, at most {MAX_MESSAGE_BYTES}")


def prompt_bytes(prompt: str | list[int]) -> int:
    """Of token ids the most that they may take."""
    return len(prompt.encode()) if isinstance(prompt, str) else 5 * len(prompt)

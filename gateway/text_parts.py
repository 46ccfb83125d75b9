"""A message's content: a string, or parts of it, which are lines."""

from collections.abc import Callable

from gateway.fields import Fields


def read_text(fields: Fields, name: str, text_of: Callable[[dict], object]) -> str:
    """`text_of` a part: what is no string is refused."""
    content = fields.take(name)
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise fields.error(name, "must be a string or a list of parts")
    texts = []
    for part in content:
        if not (isinstance(part, dict) and isinstance(text := text_of(part), str)):
            raise fields.error(name, "may have text parts only: this server reads no images, audio or "
                               "files")
        texts.append(text)
    return "\n".join(texts)

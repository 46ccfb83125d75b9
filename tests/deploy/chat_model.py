"""Gives a model file a chat template: of those of the tree the demo model alone has one."""

import struct

_ALIGNMENT = 32  # of the tensors' data, if the file does not say another
_KEY = b"tokenizer.chat_template"
_STRING = 8  # GGUF's type
_HEADER = struct.Struct("<4sIQQ")  # magic, version, numbers of tensors and of pairs
_TEMPLATE = b"{{ bos_token }}{% for message in messages %}{{ message.content }}{% endfor %}"


def add_template(source, target):
    """Writes `source` with the template as its first pair, whose size keeps the tensors aligned; as it is if it has one."""
    with open(source, "rb") as file:
        content = file.read()
    if _KEY in content:
        with open(target, "wb") as file:
            file.write(content)
        return
    magic, version, tensors, pairs = _HEADER.unpack_from(content)
    assert magic == b"GGUF" and b"general.alignment" not in content[:1 << 16]
    pair = _pair(_TEMPLATE)
    comment = b"{#" + b" " * (-(len(pair) + 4) % _ALIGNMENT) + b"#}"
    with open(target, "wb") as file:
        file.write(_HEADER.pack(magic, version, tensors, pairs + 1) + _pair(_TEMPLATE + comment) + content[_HEADER.size:])


def _pair(text):
    return struct.pack("<Q", len(_KEY)) + _KEY + struct.pack("<IQ", _STRING, len(text)) + text

"""`tools` of /v1/responses, as those of a chat.

A function of a namespace, as Codex sends those of an MCP server, has a name of both parts there. Tools that are no
functions are left out, as other servers do: there are none here, and clients send them all the same.
"""

from gateway.fields import Fields
from gateway.tool_choice import note_left_out


class ResponseTools:
    """`chat`: as a chat has them."""

    def __init__(self, fields: Fields):
        self.chat: list[dict] = []
        self._parts: dict[str, tuple[str, str]] = {}  # (namespace, name) by the name in the chat
        self._add_all(fields)
        given = fields.take("input")
        for i, item in enumerate(given if isinstance(given, list) else []):
            if isinstance(item, dict) and item.get("type") == "additional_tools":
                self._add_all(Fields(item, f"input[{i}]."))

    def parts_of(self, name: str) -> dict:
        """The members of a call's item that tell its function."""
        namespace, own = self._parts.get(name, ("", name))
        return {"namespace": namespace, "name": own} if namespace else {"name": name}

    def _add_all(self, fields: Fields) -> None:
        for i, tool in enumerate(fields.array("tools") or []):
            entry = Fields(tool, fields.path(f"tools[{i}]."))
            if entry.text("type") == "namespace":
                self._add_namespace(entry)
            else:
                self._add(entry, tool)

    def _add_namespace(self, entry: Fields) -> None:
        namespace = entry.needed_text("name")
        for i, tool in enumerate(entry.array("tools") or []):
            self._add(Fields(tool, entry.path(f"tools[{i}].")), tool, namespace)

    def _add(self, entry: Fields, tool: dict, namespace: str = "") -> None:
        kind = entry.text("type") or ""
        if kind != "function":
            return note_left_out(kind)
        own = entry.needed_text("name")
        name = name_in_chat(namespace, own)
        if self._parts.setdefault(name, (namespace, own)) != (namespace, own):
            raise entry.error("name", "is that of another tool, together with its namespace")
        function = {key: tool[key] for key in ("description", "parameters", "strict") if tool.get(key) is not None}
        self.chat.append({"type": "function", "function": {"name": name, **function}})


def name_in_chat(namespace: str, name: str) -> str:
    if not namespace:
        return name
    return namespace + ("" if namespace.endswith("__") else "__") + name

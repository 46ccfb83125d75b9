"""The forms in which models write tool calls, and which one a model's chat template asks for.

A parser takes calls out of a text as it streams. Text before a call goes through at once, except for
what may be the beginning of a call. A call goes out when it is complete, with all its arguments. What
looks like a call and is none stays text.
"""

from collections.abc import Callable
from typing import Protocol

from gateway.gpt_oss_calls import GptOssParser
from gateway.hermes_calls import HermesParser
from gateway.lfm2_calls import Lfm2Parser
from gateway.llama_calls import LlamaParser
from gateway.mistral_calls import MistralParser
from gateway.object_calls import DeepseekV3Parser, DeepseekV31Parser, Gemma4Parser, KimiK2Parser
from gateway.parameter_calls import DeepseekV32Parser, Glm4Parser, MinimaxM2Parser, Qwen3XmlParser
from gateway.tool_calls import ToolCall


class ToolParser(Protocol):
    """One choice's answer."""

    def feed(self, text: str) -> tuple[str, list[ToolCall]]:
        """The text that is content, and the calls that are complete, since the last feed."""

    def finish(self) -> tuple[str, list[ToolCall]]:
        """The rest: no more text comes."""


def feed(parser: ToolParser, text: str, last: bool) -> tuple[str, list[ToolCall]]:
    """The same of a text that may be the `last` one."""
    content, calls = parser.feed(text)
    if not last:
        return content, calls
    rest, more = parser.finish()
    return content + rest, calls + more


# By name: what makes one for a request with these tools.
PARSERS: dict[str, Callable[[list[dict]], ToolParser]] = {
    "deepseek_v3": DeepseekV3Parser,
    "deepseek_v31": DeepseekV31Parser,
    "deepseek_v32": DeepseekV32Parser,
    "gemma4": Gemma4Parser,
    "glm4": Glm4Parser,
    "gpt_oss": lambda _: GptOssParser(),
    "hermes": HermesParser,
    "kimi_k2": KimiK2Parser,
    "lfm2": Lfm2Parser,
    "llama3_json": LlamaParser,
    "minimax_m2": MinimaxM2Parser,
    "mistral": lambda _: MistralParser(),
    "qwen3_xml": Qwen3XmlParser,
}
# Their answers have more parts than calls, so that those without tools are parsed, too.
_OF_EVERY_ANSWER = ("gpt_oss",)


def form_of_answers(template: str, has_tools: bool, chosen: str | None = None) -> str | None:
    """The form that answers are parsed by; None: they are content as they are. What is `chosen` is
    for tool calls: a gateway has one flag for all its models."""
    form = parser_of_template(template)
    if has_tools:
        return chosen or form
    return form if form in _OF_EVERY_ANSWER else None


def has_channels(template: str, has_tools: bool, chosen: str | None = None) -> bool:
    """Whether answers are messages in channels: then a form that is not the channels' cannot be that
    of the whole text."""
    forms = (parser_of_template(template), form_of_answers(template, has_tools, chosen))
    return any(one in forms for one in _OF_EVERY_ANSWER)


# What a template contains besides "tools", for each form; the first one counts that has all.
_SIGNS = (
    ("gpt_oss", ("<|channel|>", "<|message|>")),
    ("mistral", ("[TOOL_CALLS]",)),
    ("qwen3_xml", ("<tool_call>", "<function=", "<parameter=")),
    ("glm4", ("<tool_call>", "<arg_key>", "<arg_value>")),
    ("minimax_m2", ("<minimax:tool_call>", "<invoke name=")),
    ("deepseek_v32", ("｜DSML｜", "invoke name=", "parameter name=")),
    ("deepseek_v3", ("<｜tool▁call▁begin｜>", "```json")),
    ("deepseek_v31", ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>")),
    ("gemma4", ("<|tool_call>call:", "<tool_call|>")),
    ("kimi_k2", ("<|tool_call_begin|>", "<|tool_call_argument_begin|>")),
    ("lfm2", ("<|tool_call_start|>",)),
    ("lfm2", ("<|tool_list_start|>",)),
)


def parser_of_template(template: str) -> str | None:
    """The name of the form that a chat template asks its model for; None if unknown."""
    if "tools" not in template:
        return None
    for name, signs in _SIGNS:
        if all(one in template for one in signs):
            return name
    if "<tool_call>" in template and "<function=" not in template and "<arg_key>" not in template:
        return "hermes"
    if "<|start_header_id|>" in template and '"parameters"' in template:
        return "llama3_json"
    return None

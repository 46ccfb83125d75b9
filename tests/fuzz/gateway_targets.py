"""What the gateway reads from outside: functions of bytes, which raise AssertionError on what must not be."""

import json
import random
import signal
import sys

sys.path.insert(0, "tests/gateway")
from bodies import CHAT, COMPLETION, EMBEDDING, RESPONSE, TEMPLATE  # noqa: E402

from gateway import chat_request, completion_request, embedding_request, response_request  # noqa: E402
from gateway.errors import ApiError  # noqa: E402
from gateway.http import parse_json  # noqa: E402
from gateway.template_worker import answer  # noqa: E402
from gateway.tool_parsers import PARSERS  # noqa: E402

_BODIES = ((chat_request.read, CHAT), (completion_request.read, COMPLETION), (embedding_request.read, EMBEDDING),
           (response_request.read, RESPONSE))
_TEMPLATE_LIMIT_S = 2
_VARIABLES = {"messages": CHAT["messages"], "tools": CHAT["tools"], "bos_token": "<s>", "add_generation_prompt": True}
_FORMS = sorted(PARSERS)
_CALL = '{"name": "weather", "arguments": {"city": "K\u00f6ln", "days": 2}}'


def http_requests(data: bytes) -> None:
    """A body of a POST, after a byte that says which."""
    if not data:
        return
    read, _ = _BODIES[data[0] % len(_BODIES)]
    try:
        read(parse_json(data[1:]))
    except ApiError as error:
        assert error.status in (400, 413, 501), error.status
        assert error.message and "\n" not in error.message and len(error.message) < 2000, error.message
        error.message.encode()


class _TooLong(BaseException):
    """Not an Exception: rendering catches those."""


def _stop_rendering(*_):
    raise _TooLong


def chat_templates(data: bytes) -> None:
    """A template; or, before a zero byte, a conversation for one that has a bit of everything."""
    text = data.decode(errors="ignore")
    if "**" in text:
        return  # a power takes for ever without a look at signals: in the gateway the process ends
    variables, template = dict(_VARIABLES), text
    conversation, separator, _ = text.partition("\0")
    if separator:
        template = TEMPLATE
        try:
            variables["messages"] = json.loads(conversation)
        except (ValueError, RecursionError):
            return
    signal.signal(signal.SIGVTALRM, _stop_rendering)  # libFuzzer has SIGALRM
    signal.setitimer(signal.ITIMER_VIRTUAL, _TEMPLATE_LIMIT_S)
    try:
        result = answer({"template": template, "variables": variables})
    except _TooLong:
        return
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    assert set(result) in ({"text"}, {"error"}), result
    if "error" in result:
        assert result["error"] and "\n" not in result["error"], result
    json.dumps(result).encode()


def tool_calls(data: bytes) -> None:
    """What a model writes, after a byte that says which form: the same however the text is cut."""
    if not data:
        return
    make, text = PARSERS[_FORMS[data[0] % len(_FORMS)]], data[1:].decode(errors="ignore")
    rng, parts, at = random.Random(len(data)), [], 0
    while at < len(text):
        end = at + rng.randint(1, 8)
        parts.append(text[at:end])
        at = end
    assert _parse(make(CHAT["tools"]), [text]) == _parse(make(CHAT["tools"]), parts), text


def _parse(parser, parts):
    results = [parser.feed(part) for part in parts] + [parser.finish()]
    calls = [call for _, some in results for call in some]
    assert all(isinstance(json.loads(call.arguments), dict) for call in calls), calls
    return "".join(content for content, _ in results), [(call.name, call.arguments) for call in calls]


_ARGUMENTS = '{"city": "K\u00f6ln", "days": 2}'
_CALLS = {
    "deepseek_v3": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{_ARGUMENTS}\n```<｜tool▁call▁end｜>"
                   "<｜tool▁calls▁end｜>",
    "deepseek_v31": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{_ARGUMENTS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "deepseek_v32": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="a" string="true">x</｜DSML｜parameter>\n'
                    "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    "gemma4": 'So:<|tool_call>call:f{a:<|"|>x<|"|>,b:[1,{c:null}]}<tool_call|>',
    "glm4": "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
    "gpt_oss": "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}",
    "hermes": f"I look.<tool_call>{_CALL}</tool_call>\n<tool_call>{_CALL}",
    "kimi_k2": f"<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{_ARGUMENTS}<|tool_call_end|>"
               "<|tool_calls_section_end|>",
    "lfm2": "<|tool_call_start|>[f(a='x', b=[1, None]), g()]<|tool_call_end|>",
    "llama3_json": f"<|python_tag|>{_CALL}; {_CALL}",
    "minimax_m2": '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>\n</minimax:tool_call>',
    "mistral": f"[TOOL_CALLS][{_CALL}] [TOOL_CALLS]weather[ARGS]{{}}",
    "qwen3_xml": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>\n<function=weather>\n</function>",
}

# By name: the function, and inputs to begin with.
TARGETS = {
    "http_requests": (http_requests, [bytes([kind]) + json.dumps(body).encode() for kind, (_, body) in enumerate(_BODIES)]),
    "chat_templates": (chat_templates, [TEMPLATE.encode(), json.dumps(CHAT["messages"]).encode() + b"\0",
                                        b'[{"role": "user", "content": "\\ud800"}]\0']),
    "tool_calls": (tool_calls, [bytes([form]) + _CALLS[name].encode() for form, name in enumerate(_FORMS)]),
}

"""Chat templates give the same prompt as in Hugging Face's transformers: those of the families that are
served, as packages of PyPI have them, those of the model files beside the checkout, and one that uses what
templates use.

Skipped where transformers is not installed; templates where they are absent.
"""

import asyncio
import glob
import itertools
import json
import os
import struct
import subprocess
import sys
import unittest
from types import SimpleNamespace

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import chat_prompt  # noqa: E402
from gateway.template_environment import TemplateError, render  # noqa: E402

PYTHON = os.path.join(os.environ.get("TANDEM_VENV", "/none"), "bin", "python")
PACKAGES = os.path.join(os.environ.get("TANDEM_VENV", "/none"), "lib", f"python3.{sys.version_info[1]}", "site-packages")
VOCABULARIES = os.path.join(os.environ.get("TANDEM_SHARED", "/none"), "goldens", "tokenizers")

# Reads a line [[template, variables]...], prints a line [[text or null, error]...], until its input ends.
THEIRS = """
import json, sys
from transformers.utils.chat_template_utils import render_jinja_template

def one(template, variables):
    messages, tools = variables.pop("messages"), variables.pop("tools")
    try:
        made = render_jinja_template([messages], tools=tools, chat_template=template, **variables)
        return (made[0] if isinstance(made, tuple) else made)[0], None
    except Exception as error:
        return None, str(error)

for line in sys.stdin:
    print(json.dumps([one(*case) for case in json.loads(line)]), flush=True)
"""

# Blanks around blocks, loop controls, slices, namespaces, macros, filters and tests, as templates have.
FEATURES = """{%- macro line(role, text) -%}
  <|{{ role }}|>{{ text | trim }}
{% endmacro %}
{{- bos_token }}
{% set ns = namespace(seen=0, last=none) %}
{% if messages[0].role == 'system' %}
  {{ line('system', messages[0]['content']) }}
  {% set rest = messages[1:] %}
{% else %}
  {% set rest = messages %}
{% endif %}
{% if tools %}
  {% for tool in tools %}
    {{ tool | tojson(indent=4) }}
    {{- tool.function.name | upper }}
  {% endfor %}
{% endif %}
{% for message in rest %}
  {% if message.role == 'tool' and loop.last %}{% continue %}{% endif %}
  {% set ns.seen = ns.seen + 1 %}
  {% if message.content is string %}
    {{ line(message.role, message.content) }}
  {% elif message.content is iterable and message.content is not none %}
    {% for part in message.content if part.type == 'text' %}{{ part.text }}{{ "," if not loop.last }}{% endfor %}
  {% endif %}
  {% for call in message.tool_calls or [] %}
    {%- generation %}{{ call.function.arguments | tojson }}{% endgeneration %}
    {% for key, value in call.function.arguments | items %}{{ key ~ '=' ~ value }};{% endfor %}
  {% endfor %}
  {% if '</think>' in (message.content or '') %}
    {{ message.content.split('</think>')[-1].lstrip('\\n') }}
  {% endif %}
  {% if ns.seen > 4 %}{% break %}{% endif %}
{% endfor %}
{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}
  {{ raise_exception('a conversation has a user') }}
{% endif %}
{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}
{% if absent is defined %}never{% endif %}"""

TRL = "trl/chat_templates"
AXOLOTL = "axolotl/utils/chat_templates/templates"
# Each family's templates, and whether they tell a model of its tools.
FAMILIES = {
    f"{TRL}/llama3.jinja": False,
    f"{TRL}/llama3_1.jinja": True,
    f"{TRL}/llama3_2.jinja": True,
    f"{AXOLOTL}/llama4.jinja": True,
    f"{TRL}/qwen2_5.jinja": True,
    f"{TRL}/qwen3.jinja": True,
    f"{TRL}/qwen3_instruct_2507.jinja": True,
    f"{TRL}/qwen3_5_think.jinja": True,
    f"{AXOLOTL}/mistral_v1.jinja": False,
    f"{AXOLOTL}/mistral_v2v3.jinja": True,
    f"{AXOLOTL}/mistral_v3_tekken.jinja": True,
    f"{AXOLOTL}/mistral_v7_tekken.jinja": False,
    f"{TRL}/phi3.jinja": False,
    f"{TRL}/phi3_5.jinja": False,
    f"{AXOLOTL}/deepseek_v2.jinja": False,
    f"{TRL}/deepseekv3.jinja": False,
    f"{TRL}/deepseek_r1_distill.jinja": False,
    f"{TRL}/gemma.jinja": False,
    f"{TRL}/gemma3.jinja": False,
    f"{TRL}/gemma4.jinja": True,
    f"{TRL}/gptoss.jinja": True,
    f"{TRL}/glm4moe.jinja": True,
}

TOOL = {"type": "function", "function": {
    "name": "weather", "description": "The weather <now> & 'here', in °C.",
    "parameters": {"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "description": "A \"city\"."},
        "days": {"type": "integer", "enum": [1, 7], "default": 1}}}}}
# gpt-oss' template joins texts only.
TEXT_TOOL = {"type": "function", "function": {
    "name": "clock", "description": "The time.", "parameters": {"type": "object", "properties": {
        "zone": {"type": "string", "description": "Where.", "enum": ["UTC", "local"], "default": "UTC"}}}}}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "abcdefghi", "type": "function",
     "function": {"name": "weather", "arguments": {"city": "Zürich", "days": 7, "deep": [None, 0.5]}}}]}
# DeepSeek's templates take arguments as a client sends them.
TEXT_CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "abcdefghi", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Zürich\"}"}}]}
USER = {"role": "user", "content": " Hello, <b>wörld</b> & 你好\n"}
SYSTEM = {"role": "system", "content": "Be brief.\n\n"}
ANSWER = {"role": "assistant", "content": "<think>\nso\n</think>\n\nHi 🦙!"}
CONVERSATIONS = {
    "user": [USER],
    "system": [SYSTEM, USER],
    "turns": [SYSTEM, USER, ANSWER, USER, ANSWER, {"role": "user", "content": "And?"}],
    "no content": [USER, {"role": "assistant", "content": ""}, USER],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}],
    "call": [USER, CALL],
    "call as text": [USER, TEXT_CALL, {"role": "tool", "tool_call_id": "abcdefghi", "name": "weather", "content": "7"}],
    "call and result": [SYSTEM, USER, CALL, {"role": "tool", "tool_call_id": "abcdefghi", "name": "weather",
                                           "content": "{\"temperature\": 7}"}],
    "after a call": [USER, CALL, {"role": "tool", "tool_call_id": "abcdefghi", "name": "weather",
                                  "content": "7"}, ANSWER, USER],
    "two users": [USER, USER],
    "assistant first": [ANSWER, USER],
    "system alone": [SYSTEM],
}


def template_of(path):
    """The chat template of a GGUF file: key, type 8 (string), length, text."""
    with open(path, "rb") as file:
        data = file.read()
    key = b"tokenizer.chat_template"
    at = data.find(struct.pack("<Q", len(key)) + key)
    if at < 0:
        return None
    kind, length = struct.unpack_from("<IQ", data, at + 8 + len(key))
    assert kind == 8, f"{path}: a template of type {kind}"
    begin = at + 8 + len(key) + 12
    return data[begin:begin + length].decode()


def cases_of(template):
    for (name, messages), tools, generate in itertools.product(
            CONVERSATIONS.items(), (None, [TOOL], [TEXT_TOOL, TEXT_TOOL]), (False, True)):
        yield f"{name}, {len(tools or [])} tools, generate {generate}", [template, {
            "messages": messages, "tools": tools, "documents": None, "add_generation_prompt": generate,
            "bos_token": "<s>", "eos_token": "</s>"}]


@unittest.skipIf(subprocess.run([PYTHON, "-c", "import jinja2, transformers"], capture_output=True).returncode
                 if os.path.exists(PYTHON) else True, "needs transformers and jinja2 of PyPI")
class TransformersTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen([PYTHON, "-c", THEIRS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.process.communicate)

    def their_prompts(self, cases):
        print(json.dumps(cases), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def check(self, template, least):
        """The prompts, at least `least`; what theirs refuses ours refuses, in its words."""
        names, cases = zip(*cases_of(template))
        theirs = self.their_prompts(cases)
        for name, (_, variables), (text, error) in zip(names, cases, theirs, strict=True):
            with self.subTest(name):
                if error is None:
                    self.assertEqual(render(template, variables), text)
                else:
                    with self.assertRaises(TemplateError) as caught:
                        render(template, variables)
                    self.assertIn(" ".join(error.split())[:300], str(caught.exception))
        prompts = [text for text, error in theirs if error is None]
        self.assertGreaterEqual(len(prompts), least)
        return prompts

    def check_goes_on(self, template):
        """In the assistant's last message, without blanks at its end: many templates take them away, and theirs
        all."""
        class Pool:
            async def render(self, template, variables):
                return render(template, variables)
        variables = {"bos_token": "<s>", "eos_token": "</s>"}
        for messages in ([USER, {"role": "assistant", "content": "Hi 🦙!"}],
                         [USER, ANSWER, USER, {"role": "assistant", "content": "It\nis"}]):
            [[theirs, error]] = self.their_prompts([[template, {
                "messages": messages, "tools": None, "add_generation_prompt": False, "continue_final_message": True, **variables}]])
            self.assertIsNone(error)
            self.assertEqual(asyncio.run(chat_prompt.render(
                Pool(), SimpleNamespace(chat_template=template, **variables), messages, [], False, {}, continues=True)), theirs)

    def test_what_templates_use(self):
        self.check(FEATURES, least=60)

    def test_templates_of_families(self):
        if not os.path.isdir(os.path.join(PACKAGES, TRL)):
            self.skipTest("needs trl and axolotl of PyPI")
        for path, has_tools in FAMILIES.items():
            with self.subTest(path), open(os.path.join(PACKAGES, path), encoding="utf-8") as file:
                template = file.read()
                prompts = self.check(template, least=20)
                self.assertEqual(any("The time." in prompt for prompt in prompts), has_tools)
                self.check_goes_on(template)

    def test_templates_of_model_files(self):
        paths = sorted(glob.glob(os.path.join(VOCABULARIES, "*.gguf")))
        templates = {path: template for path in paths if (template := template_of(path))}
        if not templates:
            self.skipTest("the vocabularies are not beside the checkout")
        for path, template in templates.items():
            with self.subTest(os.path.basename(path)):
                self.check(template, least=12)


if __name__ == "__main__":
    unittest.main()

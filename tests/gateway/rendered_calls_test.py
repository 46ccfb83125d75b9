"""Calls as the models' own chat templates write them are found again, and each template names its form.

The templates are of packages of PyPI: what needs them is skipped where they are absent.
"""

import glob
import itertools
import json
import os
import sys
import unittest

sys.path[:0] = ["gateway/tandem_gateway", "tests/gateway"]
from call_templates import TEMPLATES  # noqa: E402
from gateway.template_environment import render  # noqa: E402
from gateway.tool_parsers import parser_of_template  # noqa: E402
from parsing import parse, tool  # noqa: E402

PACKAGES = os.path.join(os.environ.get("TANDEM_VENV", "/none"), "lib", f"python3.{sys.version_info[1]}", "site-packages")
TRL = os.path.join(PACKAGES, "trl/chat_templates")
AXOLOTL = os.path.join(PACKAGES, "axolotl/utils/chat_templates/templates")
# By what the names of templates begin with, the longest first; others have no form, or no tools.
FORMS_OF_TRL = {"gemma4": "gemma4", "diffusion_gemma": "gemma4", "glm4moe": "glm4", "gptoss": "gpt_oss", "llama3_1": "llama3_json",
                "lfm2": "lfm2", "llama3_2": "llama3_json", "nemotron_3": "qwen3_xml", "qwen2_5_vl": None, "qwen2_5": "hermes",
                "qwen3_5": "qwen3_xml", "qwen3_6": "qwen3_xml", "qwen3_8": "qwen3_xml", "qwen3": "hermes"}
FORMS_OF_AXOLOTL = {"exaone4": "hermes", "falcon_h1": "hermes", "gemma4": "gemma4", "llama3_2_vision": "llama3_json", "mistral_v2v3": "mistral",
                    "mistral_v3_tekken": "mistral", "qwen3": "hermes", "qwen_25": "hermes"}
# What calls begin and end with.
MARKERS = {"qwen3_xml": ("<tool_call>", "</tool_call>"), "glm4": ("<tool_call>", "</tool_call>"), "hermes": ("<tool_call>", "</tool_call>"),
           "gemma4": ("<|tool_call>", "<tool_call|>"), "deepseek_v3": ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
           "deepseek_v31": ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
           "deepseek_v32": ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
           "lfm2": ("<|tool_call_start|>", "<|tool_call_end|>"),
           "minimax_m2": ("<minimax:tool_call>", "</minimax:tool_call>"),
           "kimi_k2": ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")}
ARGUMENTS = {
    "nothing": {},
    "unicode": {"city": "Zürich 🦙 你好\u2028\u00a0"},
    "quotes": {"city": """say "hi" & 'ho', \\n, \\", {"a": 1}, <|" and "|>""", "b": '"5"'},
    "line ends": {"city": "\n begins and ends with them \n\n", "b": "\r\n", "c": "\t"},
    "numbers": {"a": 5, "b": -0.5, "c": 1e30, "d": 12345678901234567890, "e": 0},
    "texts that are numbers": {"a": "5", "b": "true", "c": "null", "d": "[1]", "e": "None"},
    "words": {"a": True, "b": False, "c": None},
    "nested": {"a": {"b": [1, {"c": None, "d d": "x\ny"}], "e": {}}, "f": [[], [True, "it's, [x] {y}: z"]]},
    "empty": {"a": "", "b": [], "c": {}},
    "markup": {"a": "<tool_call>\n<function=f>\n<parameter=b>\n", "b": "</tool_call></function> <arg_key>b</arg_key>",
               "c": "</parameter> </arg_value> </｜DSML｜parameter> <|tool_call>call:f{}<tool_call|> ```\n<｜tool▁call▁end｜>",
               "d": '<invoke name="f">\n<|tool_call_end|>'},
    "names": {"a.b-c": 1, "größe": "x", "with blank": [2]},
}
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", dict: "object", list: "array"}
USER = {"role": "user", "content": "How warm is it?"}


def in_packages(folder, *names):
    for name in names:
        with open(os.path.join(folder, name + ".jinja"), encoding="utf-8") as file:
            yield name, file.read()


class RenderedCallsTest(unittest.TestCase):

    def check(self, template, form, as_text=False):
        """What the template writes for one call and for two is that and no more. `as_text`: it takes arguments so."""
        for (name, arguments), num_calls, content in itertools.product(ARGUMENTS.items(), (1, 2), ("", "I look.")):
            types = {key: {"type": TYPES[type(value)]} for key, value in arguments.items()}
            tools = [tool("f-1.x", **types)]
            tools[0]["function"]["description"] = "It."
            given = json.dumps(arguments, ensure_ascii=False) if as_text else arguments
            calls = [{"id": f"functions.f-1.x:{i}", "type": "function", "function": {"name": "f-1.x", "arguments": given}}
                     for i in range(num_calls)]
            rendered = render(template, {
                "messages": [USER, {"role": "assistant", "content": content, "tool_calls": calls}], "tools": tools,
                "add_generation_prompt": False, "bos_token": "", "eos_token": ""})
            text = rendered.rpartition(USER["content"])[2]
            start, end = MARKERS[form]
            rest = text[text.rindex(end) + len(end):]
            with self.subTest(name, num_calls=num_calls, content=content):
                expected = text[:text.index(start)] + rest.lstrip("\n"), [("f-1.x", arguments)] * num_calls
                if not expected[0].strip("\n"):
                    expected = "", expected[1]
                for parts in ([text], text):
                    self.assertEqual(parse(form, *parts, tools=tools), expected, text)

    def test_calls_of_templates_of_packages(self):
        if not os.path.isdir(TRL):
            self.skipTest("needs trl of PyPI")
        for form, names in (
                ("qwen3_xml", ("qwen3_5_think", "qwen3_5_nothink", "qwen3_6", "qwen3_8", "nemotron_3_nano", "nemotron_3_super",
                               "nemotron_3_ultra", "nemotron_3_5_lightning")),
                ("glm4", ("glm4moe",)), ("gemma4", ("gemma4", "gemma4_v5")), ("deepseek_v3", ("deepseekv3",)), ("hermes", ("qwen2_5", "qwen3")),
                ("lfm2", ("lfm2_v2",))):
            for name, template in in_packages(TRL, *names):
                with self.subTest(name):
                    self.check(template, form, as_text=form == "deepseek_v3")

    def test_calls_of_other_templates(self):
        for form, template in TEMPLATES.items():
            with self.subTest(form):
                self.assertEqual(parser_of_template(template), form)
                self.check(template, form)

    def test_each_template_names_its_form(self):
        if not os.path.isdir(TRL) or not os.path.isdir(AXOLOTL):
            self.skipTest("needs trl and axolotl of PyPI")
        for folder, forms in ((TRL, FORMS_OF_TRL), (AXOLOTL, FORMS_OF_AXOLOTL)):
            paths = sorted(glob.glob(os.path.join(folder, "*.jinja")))
            self.assertGreater(len(paths), 30)
            for name, template in in_packages(folder, *(os.path.basename(path).removesuffix(".jinja") for path in paths)):
                expected = next((form for begin, form in forms.items() if name.startswith(begin)), None)
                self.assertEqual(parser_of_template(template), expected, name)


if __name__ == "__main__":
    unittest.main()

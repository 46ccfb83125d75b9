"""Tool calls whose arguments are text between markers."""

import sys
import unittest

sys.path[:0] = ["gateway/tandem_gateway", "tests/gateway"]
from gateway.tool_calls import MAX_CALL_CHARS  # noqa: E402
from gateway.tool_parsers import PARSERS  # noqa: E402
from parsing import ParsingTest, parse, tool  # noqa: E402

TOOLS = [tool("weather", city={"type": "string"}, days={"type": "integer"}), tool("now")]
FOUND = ("weather", {"city": "Köln", "days": 2})
QWEN = "<function=weather>\n<parameter=city>\nKöln\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>"
QWEN_CALL = f"<tool_call>\n{QWEN}\n</tool_call>"
GLM = ("<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Köln</arg_value>\n<arg_key>days</arg_key>\n"
       "<arg_value>2</arg_value>\n</tool_call>")
MINIMAX = ('<invoke name="weather">\n<parameter name="city">Köln</parameter>\n<parameter name="days">2</parameter>\n'
           "</invoke>")
MINIMAX_CALL = f"<minimax:tool_call>\n{MINIMAX}\n</minimax:tool_call>"
DSML = ('<｜DSML｜invoke name="weather">\n<｜DSML｜parameter name="city" string="true">Köln</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>')
DSML_CALL = f"<｜DSML｜function_calls>\n{DSML}\n</｜DSML｜function_calls>"
CALLS = {"qwen3_xml": QWEN_CALL, "glm4": GLM, "minimax_m2": MINIMAX_CALL, "deepseek_v32": DSML_CALL}


class ParameterCallsTest(ParsingTest):

    def test_calls(self):
        for name, call in CALLS.items():
            self.check(name, call, "", FOUND, tools=TOOLS)
            self.check(name, f"\n{call}\n{call}\n\n", "", FOUND, FOUND, tools=TOOLS)
            self.check(name, f"I look.\n{call} So?\n", "I look.\n So?\n", FOUND, tools=TOOLS)
            self.check(name, f"{call}{call}a{call}", "a", FOUND, FOUND, FOUND, tools=TOOLS)
            self.check(name, call.replace("\n", ""), "", FOUND, tools=TOOLS)
            if name != "qwen3_xml":  # where line ends are around values
                self.check(name, call.replace("\n", " \n\n"), "", FOUND, tools=TOOLS)

    def test_no_arguments(self):
        for name, call in (("qwen3_xml", "<tool_call>\n<function=now>\n</function>\n</tool_call>"),
                           ("glm4", "<tool_call>now\n</tool_call>"), ("glm4", "<tool_call>now</tool_call>"),
                           ("minimax_m2", '<minimax:tool_call>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>'),
                           ("deepseek_v32", '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="now">\n\n</｜DSML｜invoke>\n'
                                            "</｜DSML｜tool_calls>")):
            self.check(name, call, "", ("now", {}), tools=[tool("now")])
        text = "Write <tool_call>name</tool_call> to call a tool."
        self.check("glm4", text, text, tools=[tool("now")])

    def test_several_calls_between_the_outer_markers(self):
        for name, inner in (("qwen3_xml", QWEN), ("minimax_m2", MINIMAX), ("deepseek_v32", DSML)):
            start, end = CALLS[name].split(inner)
            self.check(name, f"{start}{inner}\n{inner}{end}", "", FOUND, FOUND, tools=TOOLS)
            self.check(name, f"{start}{inner}\n", "", FOUND, tools=TOOLS)  # ended before its last marker
            self.check(name, f"{start}{inner}\n{start}{inner}{end}", "", FOUND, FOUND, tools=TOOLS)

    def test_calls_without_the_outer_markers(self):
        for name, inner in (("qwen3_xml", QWEN), ("minimax_m2", MINIMAX), ("deepseek_v32", DSML)):
            end = CALLS[name].partition(inner)[2]
            self.check(name, f"So: {inner}\n{inner}\n", "So: ", FOUND, FOUND, tools=TOOLS)
            self.check(name, f"{inner}{end}", "", FOUND, tools=TOOLS)  # Qwen3-Coder's habit
            self.check(name, f"{inner}{end} x", f"{inner}{end} x")

    def test_functions_that_are_no_tools(self):
        for name, call in CALLS.items():
            self.check(name, call, "", FOUND)

    def test_what_is_no_call_stays_text(self):
        for name, text in (
                ("qwen3_xml", "<tool_call>weather?</tool_call> end"), ("qwen3_xml", "<tool_call>\n<function=>"),
                ("qwen3_xml", "<tool_call>\n<function=f>\nx\n</function>\n</tool_call>"),
                ("qwen3_xml", "a std::function<int> <function=f> <tool"), ("qwen3_xml", "\n\n<tool_call>\n\n"),
                ("qwen3_xml", QWEN_CALL[:60]), ("qwen3_xml", QWEN_CALL[:-25]),
                ("glm4", "<tool_call>\n</tool_call>"), ("glm4", '<tool_call>{"name": "f"}</tool_call>'),
                ("glm4", "<tool_call>f\n<arg_key>a</arg_key>\n</tool_call>"), ("glm4", "The tag <tool_call> is\n"),
                ("glm4", GLM[:50]), ("minimax_m2", "<minimax:tool_call>\nx\n</minimax:tool_call>"),
                ("minimax_m2", "<minimax:tool_call>\n<invoke>"), ("minimax_m2", '<invoke name="f"> a'),
                ("deepseek_v32", "<｜DSML｜function_calls>\n</｜DSML｜function_calls>"), ("deepseek_v32", "<｜DSML｜")):
            self.check(name, text, text)

    def test_a_call_behind_what_is_none(self):
        for name, call in CALLS.items():
            start = call[:call.index(">") + 1]
            self.check(name, f"{start} {start}{call}", f"{start} {start}", FOUND, tools=TOOLS)

    def test_values_that_look_like_markup(self):
        for name, call in CALLS.items():
            start = call[:call.index("Köln")]
            for value in (start, "</tool_call>", "</invoke> x", "</parameter> </arg_value> x", "<", "</", "</function>\n", "</｜DSML｜par",
                          "<parameter=days>\n3\n", "</｜DSML｜parameter></｜DSML｜", "\n a \n\n", '"1"', "{", "\t</arg_value>"):
                line_end = "\n" if name == "qwen3_xml" else ""
                text = call.replace(f"{line_end}Köln{line_end}", f"{line_end}{value}{line_end}")
                self.assertEqual(parse(name, text, tools=TOOLS), ("", [("weather", {"city": value, "days": 2})]), value)
                self.assertEqual(parse(name, *text, tools=TOOLS), ("", [("weather", {"city": value, "days": 2})]), value)

    def test_what_deepseek_says_of_a_value(self):
        for attribute, value, expected in (
                (' string="true"', "2", "2"), (' string="false"', "[2]", [2]), (' string="false"', '"2"', '"2"'),
                (' string="false"', "two", "two"), ("", "2", 2), ("", "two", "two")):
            text = DSML_CALL.replace(' string="false">2', f"{attribute}>{value}")
            self.check("deepseek_v32", text, "", ("weather", {"city": "Köln", "days": expected}), tools=TOOLS)

    def test_the_longest_call(self):
        for name, call in CALLS.items():
            end = PARSERS[name].MARKERS.call_end
            room = MAX_CALL_CHARS - call.index(end) - len(end)
            for more, calls in ((room, 1), (room + 1, 0)):
                text = call.replace("Köln", "Köln" + "x" * more)
                for parts in ([text], [text[at:at + 999] for at in range(0, len(text), 999)]):
                    content, found = parse(name, *parts, tools=TOOLS)
                    self.assertEqual((len(found), content), (calls, "" if calls else text), name)

    def test_many_calls(self):
        for name, call in CALLS.items():
            self.assertEqual(parse(name, f"{call}\n" * 5000, tools=TOOLS), ("", [FOUND] * 5000))


if __name__ == "__main__":
    unittest.main()

"""Tool calls whose arguments are one object."""

import json
import sys
import unittest

sys.path[:0] = ["gateway/tandem_gateway", "tests/gateway"]
from gateway.loose_values import parse_object  # noqa: E402
from gateway.tool_calls import MAX_CALL_CHARS  # noqa: E402
from gateway.tool_parsers import PARSERS  # noqa: E402
from parsing import ParsingTest, parse, tool  # noqa: E402

FOUND = ("weather", {"city": "Köln", "days": 2})
JSON = json.dumps(FOUND[1], ensure_ascii=False)
GEMMA = '{city:<|"|>Köln<|"|>,days:2}'
# Of each form: what is around calls, what is around the arguments of one, and the arguments.
FORMS = {
    "deepseek_v3": ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
                    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n", "\n```<｜tool▁call▁end｜>", JSON),
    "deepseek_v31": ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>weather<｜tool▁sep｜>",
                     "<｜tool▁call▁end｜>", JSON),
    "kimi_k2": ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>",
                "<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>", "<|tool_call_end|>", JSON),
    "gemma4": ("", "", "<|tool_call>call:weather", "<tool_call|>", GEMMA),
}


class ObjectCallsTest(ParsingTest):

    def test_calls(self):
        for name, (start, end, head, tail, arguments) in FORMS.items():
            call = head + arguments + tail
            self.check(name, start + call + end, "", FOUND)
            self.check(name, f"\n{start}{call}\n{call}{end}\n", "", FOUND, FOUND)
            self.check(name, f"{start}{call}{end}\n{start}{call}{end}", "", FOUND, FOUND)
            self.check(name, f"I look.\n{start}{call}{end} x", "I look.\n x", FOUND)
            self.check(name, start + call, "", FOUND)  # ended before its last markers
            self.check(name, start + head + arguments, "", FOUND)
            self.check(name, start + head + "{}" + tail + end, "", ("weather", {}))
            self.check(name, call + end, "", FOUND, tools=[tool("weather")])

    def test_what_is_no_call_stays_text(self):
        for name, (start, end, head, tail, arguments) in FORMS.items():
            for text in (start + end, start, start[:-1], head, start + head + arguments[:-1] + tail, f"{start}x{end}",
                         start + head + "[1]" + tail, start + head.replace("weather", "") + arguments + tail,
                         f"{start}{head}{arguments}{tail[:-1]}", f"{start}{head}{{a: }}{tail} x"):
                self.check(name, text, text)
            self.check(name, f"{start}{head}x{tail}\n{start}{head}{arguments}{tail}", f"{start}{head}x{tail}\n", FOUND)
        for name in ("deepseek_v3", "deepseek_v31", "kimi_k2"):
            _, _, head, tail, arguments = FORMS[name]
            self.check(name, head + arguments + tail, head + arguments + tail)  # of no tool, and without what is around calls

    def test_strings_that_look_like_markup(self):
        for name, (start, end, head, tail, arguments) in FORMS.items():
            for value in (tail, start + head + tail + end, f"a{tail}b{end}", "```", '<|"', "{[(", "\\", "\\n"):
                written = value if name == "gemma4" else json.dumps(value, ensure_ascii=False)[1:-1]
                text = start + head + arguments.replace("Köln", written) + tail + end
                self.check(name, text, "", ("weather", {"city": value, "days": 2}))
            if name != "gemma4":
                text = start + head + json.dumps({"a": f'"{tail}\\"'}, ensure_ascii=False) + tail
                self.check(name, text, "", ("weather", {"a": f'"{tail}\\"'}))

    def test_a_call_without_end_becomes_text(self):
        for name, (start, _, head, _, _) in FORMS.items():
            parser = PARSERS[name]([])
            self.assertEqual(parser.feed(f'{start}{head}{{"'), ("", []))
            content, calls = parser.feed("x" * MAX_CALL_CHARS)
            rest, more = parser.finish()
            self.assertEqual((len(content + rest), calls + more), (len(start + head) + 2 + MAX_CALL_CHARS, []))

    def test_kimis_ids(self):
        start, end, head, tail, _ = FORMS["kimi_k2"]
        second = head.replace(":0", ":1")
        _, calls = PARSERS["kimi_k2"]([]).feed(f"{start}{head}{{}}{tail}{second}{{}}{tail}{second}{{}}{tail}{end}")
        self.assertEqual([call.id for call in calls[:2]], ["functions.weather:0", "functions.weather:1"])
        self.assertRegex(calls[2].id, "^call_[0-9a-f]{24}$")  # each has its own

    def test_values(self):
        for text, expected in (
                ("{}", {}), ("{ }", {}), ('{a:<|"|><|"|>}', {"a": ""}), ("{a:[],b:{},c:[[],{}]}", {"a": [], "b": {}, "c": [[], {}]}),
                ("{a:true,b:false,c:null,d:None}", {"a": True, "b": False, "c": None, "d": None}),
                ("{a:-1,b:0.5,c:1e+20}", {"a": -1, "b": 0.5, "c": 1e20}),
                ('{a:[<|"|>x, y]<|"|>, 2],<|"|>b c<|"|>:{d:<|"|>}<|"|>}}', {"a": ["x, y]", 2], "b c": {"d": "}"}}),
                ('{a:Köln am Rhein,b:"c, \\"d\\"",e:1.2.3}', {"a": "Köln am Rhein", "b": 'c, "d"', "e": "1.2.3"}),
                ("{'a': 'it\\'s', \"b\": \"\\u00fc \\'\", 'c': [True, null]}", {"a": "it's", "b": "ü '", "c": [True, None]}),
                ("{'a': 'x\ny'}", {"a": "x\ny"}), ("{'a': 'x}", None), ("{'a': '\\x'}", None), ("{'a' 1}", None),
                ("[1]", None), ("{a}", None), ("{a:}", None), ("{a:1,}", None), ("{a:1]", None), ("{a:[1}", None), ("{a:1} x", None),
                ("{a:[1 }", None), ('{a:<|"|>x}', None), ("{a:" * 5000, None), ("{a:" + "[" * 5000, None), ("", None), ("a", None)):
            self.assertEqual(parse_object(text), expected, text[:50])

    def test_lfm2(self):
        start, end = "<|tool_call_start|>[", "]<|tool_call_end|>"
        call = "weather(city='Köln', days=2)"
        self.check("lfm2", start + call + end, "", FOUND)
        self.check("lfm2", f"I look. {start}{call}, now(){end}\n{start}{call}{end}\n", "I look. ", FOUND, ("now", {}), FOUND)
        self.check("lfm2", start + call + "]", "", FOUND)  # ended before its last marker
        for value, expected in (('"Köln"', "Köln"), (r"'it\'s \n\\'", "it's \n\\"), (repr(end), end), ("['a', {\"b\": null}]", ["a", {"b": None}]),
                                ("{}", {}), ("-0.5", -0.5), ("None", None), ("true", True), ("''", ""), ("'f(x=1)'", "f(x=1)")):
            self.check("lfm2", f"{start}a.f-1(b={value}, c = 1){end}", "", ("a.f-1", {"b": expected, "c": 1}))
        for inside in ("", "now", "now(1)", "now()x", "now(", "f(a=)", "f(a=1", "f(a='it's')", "now(),", "()", "f(a=1)) "):
            self.check("lfm2", start + inside + end, start + inside + end)
        self.check("lfm2", f"{start}x{end}{start}{call}{end}", f"{start}x{end}", FOUND)

    def test_arguments_that_are_no_json(self):
        for name in ("deepseek_v31", "kimi_k2"):
            start, _, head, tail, _ = FORMS[name]
            for arguments in ('{"a": NaN}', '{"a": 1e999}', '{"a": ' + "[" * 20000 + "}"):
                self.assertEqual(parse(name, start + head + arguments + tail), (start + head + arguments + tail, []))


class BrokenCallsTest(unittest.TestCase):

    def test_a_string_without_an_end_does_not_take_later_calls(self):
        for name, broken, good in (
                ("hermes", '<tool_call>{"name": "f", "arguments": {"a": "x}}</tool_call>', '<tool_call>{"name": "f"}</tool_call>'),
                ("deepseek_v31", '<｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": "x}<｜tool▁call▁end｜>',
                 "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{}<｜tool▁call▁end｜>"),
                ("gemma4", '<|tool_call>call:f{a:<|"|>x}<tool_call|>', "<|tool_call>call:f{}<tool_call|>"),
                ("lfm2", "<|tool_call_start|>[f(a='x)]<|tool_call_end|>", "<|tool_call_start|>[f()]<|tool_call_end|>")):
            for text in (broken + good, broken + " and " + good):
                for parts in ([text], list(text)):
                    parser = PARSERS[name]([{"type": "function", "function": {"name": "f"}}])
                    results = [parser.feed(part) for part in parts] + [parser.finish()]
                    content = "".join(one for one, _ in results)
                    calls = [one.name for _, some in results for one in some]
                    self.assertEqual((content, calls), (text.removesuffix(good), ["f"]), name)

    def test_a_marker_in_prose_is_text_at_once(self):
        for name, marker in (("hermes", "<tool_call>"), ("lfm2", "<|tool_call_start|>")):
            parser = PARSERS[name]([])
            content, calls = parser.feed(f"The tag {marker} begins a call. And so on.")
            self.assertEqual((content, calls), (f"The tag {marker} begins a call. And so on.", []))
        parser = PARSERS["hermes"]([])
        content, [call] = parser.feed('<tool_call>\n<tool_call>\n{"name": "f"}</tool_call>')
        self.assertEqual((content, call.name), ("<tool_call>\n", "f"))

    def test_line_ends_in_strings(self):
        parser = PARSERS["hermes"]([])
        _, [call] = parser.feed('<tool_call>{"name": "f", "arguments": {"a": "x\ny"}}</tool_call>')
        self.assertEqual(json.loads(call.arguments), {"a": "x\ny"})

    def test_half_a_character_is_no_call(self):
        text = '<tool_call>{"name": "f", "arguments": {"a": "\\ud800"}}</tool_call>'
        self.assertEqual(PARSERS["hermes"]([]).feed(text), (text, []))


if __name__ == "__main__":
    unittest.main()

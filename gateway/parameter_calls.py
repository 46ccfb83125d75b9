"""Tool calls whose arguments are parameters between markers, as text: Qwen 3.5, GLM, MiniMax, DeepSeek V3.2.

The forms are those of the models' chat templates; DeepSeek V3.2's is that of its encoding/encoding_dsv32.py.
"""

import re
from collections.abc import Generator

from gateway.argument_types import json_or_text
from gateway.call_scanner import BLANKS, MAX_TAG
from gateway.marked_calls import MarkedParser, Markers


class ParameterParser(MarkedParser):
    """A value ends where, behind its marker, another parameter begins or the call ends: it may contain either."""

    KEY_START: str
    KEY: re.Pattern  # from there to the value, with a group "key"
    VALUE_END: str

    def _read_arguments(self, function: str, at: int) -> Generator:
        scanner, end = self._scanner, self.MARKERS.call_end
        arguments = {}
        while True:
            at = yield from scanner.skip_blanks(at)
            if scanner.begins(at, end):
                return arguments, at + len(end)
            if scanner.may_begin(at, end):
                yield from scanner.wait()
                continue
            key = yield from scanner.match(self.KEY, self.KEY_START, at)
            value_end, at = yield from self._find_value_end(key.end())
            arguments[key["key"].strip()] = self._value(function, key, scanner.held[key.end():value_end])

    def _find_value_end(self, at: int) -> Generator:
        """(it, where what follows it begins)."""
        scanner, following = self._scanner, (self.KEY_START, self.MARKERS.call_end)
        while True:
            found = yield from scanner.find(self.VALUE_END, at)
            after = found + len(self.VALUE_END)
            after = BLANKS.match(scanner.held, after, min(after + MAX_TAG, scanner.limit)).end()
            if scanner.begins(after, *following):
                return found, after
            at = found
            if scanner.may_begin(after, *following):
                yield from scanner.wait()
            else:
                at += 1

    def _value(self, function: str, key: re.Match, text: str) -> object:
        return self._types.value(function, key["key"].strip(), text)


class Qwen3XmlParser(ParameterParser):
    """<tool_call> <function=NAME> <parameter=KEY> VALUE </parameter>... </function> </tool_call>, with line ends
    for blanks; Qwen3-Coder, Qwen 3.5, Nemotron 3."""

    MARKERS = Markers(call="<function=", head=re.compile(r"<function=(?P<name>[^<>\n]+)>"), call_end="</function>",
                      starts=("<tool_call>",), ends=("</tool_call>",))
    KEY_START, KEY, VALUE_END = "<parameter=", re.compile(r"<parameter=(?P<key>[^<>\n]+)>"), "</parameter>"

    def _value(self, function: str, key: re.Match, text: str) -> object:
        return super()._value(function, key, text.removeprefix("\n").removesuffix("\n"))


class Glm4Parser(ParameterParser):
    """<tool_call>NAME <arg_key>KEY</arg_key> <arg_value>VALUE</arg_value>... </tool_call>, with line ends for
    blanks, or none; GLM 4.5 to 4.7."""

    MARKERS = Markers(call="<tool_call>", head=re.compile(r'<tool_call>\s*(?P<name>[^\s<>{}\[\]"]+)\s*(?=<)'),
                      call_end="</tool_call>")
    KEY_START, VALUE_END = "<arg_key>", "</arg_value>"
    KEY = re.compile(r"<arg_key>(?P<key>[^<]+)</arg_key>\s*<arg_value>")

    def _read_arguments(self, function: str, at: int) -> Generator:
        """One word between the markers is no call of a function that is not among the tools."""
        arguments, end = yield from super()._read_arguments(function, at)
        return (arguments if arguments or function in self._types else None), end


class MinimaxM2Parser(ParameterParser):
    """<minimax:tool_call> <invoke name="NAME"> <parameter name="KEY">VALUE</parameter>... </invoke>...
    </minimax:tool_call>, with line ends for blanks; MiniMax M2."""

    MARKERS = Markers(call="<invoke name=", head=re.compile(r'<invoke name="(?P<name>[^"<>\n]+)">'),
                      call_end="</invoke>", starts=("<minimax:tool_call>",), ends=("</minimax:tool_call>",))
    KEY_START, VALUE_END = "<parameter name=", "</parameter>"
    KEY = re.compile(r'<parameter name="(?P<key>[^"\n]+)">')


class DeepseekV32Parser(ParameterParser):
    """<｜DSML｜function_calls> <｜DSML｜invoke name="NAME"> <｜DSML｜parameter name="KEY"
    string="true">VALUE</｜DSML｜parameter>... </｜DSML｜invoke>... </｜DSML｜function_calls>, with line ends for
    blanks; DeepSeek V3.2. V4 has tool_calls for function_calls."""

    MARKERS = Markers(
        call="<｜DSML｜invoke name=", head=re.compile(r'<｜DSML｜invoke name="(?P<name>[^"<>\n]+)">'),
        call_end="</｜DSML｜invoke>", starts=("<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"),
        ends=("</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"))
    KEY_START, VALUE_END = "<｜DSML｜parameter name=", "</｜DSML｜parameter>"
    KEY = re.compile(r'<｜DSML｜parameter name="(?P<key>[^"\n]+)"(?: string="(?P<is_text>true|false)")?>')

    def _value(self, function: str, key: re.Match, text: str) -> object:
        """The model says what a value is."""
        if key["is_text"] is None:
            return super()._value(function, key, text)
        return text if key["is_text"] == "true" else json_or_text(text)

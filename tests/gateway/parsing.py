"""What a parser of tool calls makes of a text, whole and cut at every place."""

import json
import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway.tool_parsers import PARSERS  # noqa: E402


def parse(name, *parts, tools=()):
    """(content, [(name, arguments)])."""
    parser = PARSERS[name](list(tools))
    results = [parser.feed(part) for part in parts] + [parser.finish()]
    calls = [call for _, some in results for call in some]
    assert len({call.id for call in calls}) == len(calls)
    return ("".join(content for content, _ in results),
            [(call.name, json.loads(call.arguments)) for call in calls])


def tool(name, **properties):
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


class ParsingTest(unittest.TestCase):

    def check(self, name, text, content, *calls, tools=()):
        """However the text is cut."""
        expected = (content, list(calls))
        self.assertEqual(parse(name, text, tools=tools), expected)
        self.assertEqual(parse(name, *text, tools=tools), expected)
        for cut in range(len(text)):
            self.assertEqual(parse(name, text[:cut], text[cut:], tools=tools), expected, text[cut:])

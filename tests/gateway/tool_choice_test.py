"""`tool_choice` that forces calls: the schema that the server is asked for, and what is refused."""

import json
import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import chat_request, errors  # noqa: E402
from gateway.tool_choice import ForcedCalls  # noqa: E402

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name, *parameters):
    return {"type": "function", "function": {"name": name, **{"parameters": one for one in parameters}}}


def function(name):
    return {"type": "function", "function": {"name": name}}


def read(tools, choice, **fields):
    return chat_request.read({"messages": [{"role": "user", "content": "hi"}], "tools": tools,
                              "tool_choice": choice, **fields})


class ToolChoiceTest(unittest.TestCase):

    def check_refused(self, message, param, *request, **fields):
        with self.assertRaises(errors.ApiError) as caught:
            read(*request, **fields)
        error = caught.exception
        self.assertEqual((error.status, error.message, error.param), (400, message, param))

    def schema(self, *request, **fields):
        return json.loads(read(*request, **fields).params.json_schema)

    def test_calls_that_are_not_forced(self):
        for choice, tools in (("auto", [tool("f")]), (None, [tool("f")]), ("none", [])):
            request = read([tool("f")], choice)
            self.assertEqual((request.forced, request.tools), (None, tools))
            self.assertIsNone(request.params.WhichOneof("constraint"))

    def test_a_named_function_gives_its_parameters(self):
        request = read([tool("f"), tool("weather", {"$schema": "s", "$id": "i", **WEATHER})], function("weather"))
        self.assertEqual(request.forced, ForcedCalls("weather"))
        self.assertEqual(len(request.tools), 2)
        self.assertEqual(request.params.json_schema, json.dumps(WEATHER, separators=(",", ":")))

    def test_parameters_that_say_little(self):
        for parameters, expected in (
                ((), {"type": "object", "properties": {}}), ((None,), {"type": "object", "properties": {}}),
                (({},), {"type": "object"}), (({"properties": {"a": {}}},),
                                              {"type": "object", "properties": {"a": {}}}),
                (({"$ref": "#/$defs/a", "$defs": {"a": WEATHER}},), {"$ref": "#/$defs/a", "$defs": {"a": WEATHER}})):
            self.assertEqual(self.schema([tool("f", *parameters)], function("f")), expected)

    def test_required_gives_a_list(self):
        request = read([tool("weather", WEATHER), tool("now")], "required")
        self.assertEqual(request.forced, ForcedCalls(None))
        self.assertEqual(json.loads(request.params.json_schema), {
            "type": "array", "minItems": 1,
            "items": {"anyOf": [
                {"type": "object", "properties": {"name": {"const": name}, "parameters": {"$ref": f"#/$defs/tool_{i}"}},
                 "required": ["name", "parameters"], "additionalProperties": False}
                for i, name in enumerate(("weather", "now"))]},
            "$defs": {"tool_0": WEATHER, "tool_1": {"type": "object", "properties": {}}}})
        # The reader needs names first.
        self.assertIn('"properties":{"name":{"const":"weather"},"parameters":', request.params.json_schema)
        one = self.schema([tool("weather", WEATHER)], "required", parallel_tool_calls=False)
        self.assertEqual((one["minItems"], one["maxItems"]), (1, 1))

    def test_references_follow_their_schema(self):
        parameters = {
            "type": "object", "$defs": {"$ref": {"type": "string"}, "list": {"items": {"$ref": "#"}}},
            "properties": {
                "$ref": {"$ref": "#/$defs/$ref"}, "const": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]},
                "other": {"$ref": "https://example.com/#/$defs/a"}, "anchor": {"$ref": "#a"},
                "data": {"const": {"$ref": "#"}, "enum": [{"$ref": "#"}], "default": {"$ref": "#"}},
                "properties": {"properties": {"$ref": {"type": "string"}, "x": {"$ref": "#"}}}}}
        moved = self.schema([tool("f"), tool("g", parameters)], "required")["$defs"]["tool_1"]
        root = "#/$defs/tool_1"
        self.assertEqual(moved, {
            "type": "object", "$defs": {"$ref": {"type": "string"}, "list": {"items": {"$ref": root}}},
            "properties": {
                "$ref": {"$ref": f"{root}/$defs/$ref"},
                "const": {"anyOf": [{"$ref": f"{root}/$defs/list"}, {"type": "null"}]},
                "other": {"$ref": "https://example.com/#/$defs/a"}, "anchor": {"$ref": "#a"},
                "data": parameters["properties"]["data"],
                "properties": {"properties": {"$ref": {"type": "string"}, "x": {"$ref": root}}}}})
        self.assertEqual(self.schema([tool("g", parameters)], function("g")), parameters)

    def test_choices_that_are_none(self):
        tools = [tool("f")]
        others = 'must be "auto", "none", "required" or an object that names a function'
        for choice, param, problem in (
                ("any", "tool_choice", others), (True, "tool_choice", others), ([], "tool_choice", others),
                ({}, "tool_choice.type", 'must be "function"'),
                ({"type": "allowed_tools", "allowed_tools": {}}, "tool_choice.type", 'must be "function"'),
                ({"type": "function"}, "tool_choice.function", "must be an object with a name"),
                ({"type": "function", "function": {"name": ""}}, "tool_choice.function",
                 "must be an object with a name"),
                ({"type": "function", "function": {"name": "f", "x": 1}}, "tool_choice.function.x",
                 "is not a field that this server knows"),
                ({"type": "function", "function": {"name": "f"}, "name": "f"}, "tool_choice.name",
                 "is not a field that this server knows"),
                (function("g"), "tool_choice.function.name", "is none of the tools' names")):
            self.check_refused(f"{param} {problem}", param, tools, choice)
        for choice in ("required", function("f")):
            self.check_refused("tool_choice forces a call, so it needs tools", "tool_choice", [], choice)

    def test_bad_parameters(self):
        deep = {}
        for _ in range(5000):
            deep = {"items": deep}
        where = "tools[0].function.parameters"
        for choice in ("required", function("f")):
            self.check_refused(f"{where} must be an object, it is true", where, [tool("f", True)], choice)
            with self.assertRaisesRegex(errors.ApiError, "nests too deeply"):
                read([tool("f", deep)], choice)
            with self.assertRaisesRegex(errors.ApiError, "is not a JSON schema"):
                read([tool("f", {"const": "\ud800"})], choice)

    def test_one_form(self):
        message = 'tool_choice must be "none": the answer is to have another form, which no call has'
        for fields in ({"guided_regex": "a"}, {"response_format": {"type": "json_object"}}):
            for choice in ("required", "auto", function("f")):
                self.check_refused(message, "tool_choice", [tool("f")], choice, **fields)
            request = read([tool("f")], "none", **fields)
            self.assertIsNotNone(request.params.WhichOneof("constraint"))
        read([tool("f")], "required", response_format={"type": "text"}, n=3)


if __name__ == "__main__":
    unittest.main()

"""Arguments as text, and the schemas that say what they are."""

import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway.argument_types import ArgumentTypes  # noqa: E402


def value(schema, text, **parameters):
    tools = [{"function": {"name": "f", "parameters": {"properties": {"a": schema}, **parameters}}}]
    return ArgumentTypes(tools).value("f", "a", text)


class ArgumentTypesTest(unittest.TestCase):

    def check(self, schema, *cases, **parameters):
        for text, expected in cases:
            found = value(schema, text, **parameters)
            self.assertEqual((found, type(found)), (expected, type(expected)), (schema, text))

    def test_types(self):
        self.check({"type": "string"}, ("5", "5"), ("true", "true"), ("null", "null"), ('"a"', '"a"'), (" a ", " a "), ("", ""))
        self.check({"type": "integer"}, ("5", 5), (" -5\n", -5), ("5.5", 5.5), ("five", "five"), ("", ""), ("[5]", "[5]"))
        self.check({"type": "number"}, ("5", 5), ("0.5", 0.5), ("1e3", 1000.0), ("NaN", "NaN"), ("1e999", "1e999"),
                   ("1" * 5000, "1" * 5000), ("true", "true"))
        self.check({"type": "boolean"}, ("true", True), ("False", False), ("0", "0"), ("yes", "yes"))
        self.check({"type": "null"}, ("null", None), ("None", None), ("", ""))
        self.check({"type": "object"}, ('{"b": [1]}', {"b": [1]}), ("{b: 1}", "{b: 1}"), ('{"b": NaN}', '{"b": NaN}'))
        self.check({"type": "array"}, ("[]", []), ("1, 2", "1, 2"), ("[" * 20000, "[" * 20000))

    def test_several_types(self):
        nullable = (("null", None), ("None", None), ("5", "5"), ("a", "a"), ("true", "true"))
        for schema in ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]},
                       {"oneOf": [{"enum": ["a", "b"]}, {"const": None}]}):
            self.check(schema, *nullable)
        self.check({"anyOf": [{"type": "integer"}, {"type": "string"}]}, ("5", 5), ("a", "a"), ('"5"', '"5"'))
        self.check({"allOf": [{"type": "array"}, {"minItems": 1}]}, ("[1]", [1]), ("1", "1"))

    def test_no_types(self):
        cases = (("5", 5), ("[1]", [1]), ("null", None), ("a", "a"), ('"a"', '"a"'), ("True", "True"))
        for schema in ({}, {"description": "x"}, {"type": "any"}, {"type": None}, {"type": [[]]}, True, None, 5):
            self.check(schema, *cases)

    def test_references(self):
        color = {"enum": ["1", "2"]}
        self.check({"$ref": "#/$defs/Color"}, ("1", "1"), **{"$defs": {"Color": color}})
        self.check({"anyOf": [{"$ref": "#/definitions/a~1b"}, {"type": "null"}]}, ("1", "1"), ("null", None),
                   definitions={"a/b": color})
        for reference in ("#/$defs/none", "x", "#/properties/a", "#/type/x", 5):  # none, or itself
            self.check({"$ref": reference}, ("1", 1), type="object")

    def test_parameters_of_parts(self):
        part = {"properties": {"a": {"type": "string"}}}
        for parameters in ({"allOf": [part]}, {"$ref": "#/$defs/p", "$defs": {"p": part}}, {"additionalProperties": {"type": "string"}}):
            types = ArgumentTypes([{"function": {"name": "f", "parameters": parameters}}])
            self.assertEqual(types.value("f", "a", "1"), "1")

    def test_what_is_no_schema(self):
        for parameters in (None, [], "x", {"properties": []}, {"properties": {"b": {}}}, {"additionalProperties": False}):
            types = ArgumentTypes([{"function": {"name": "f", "parameters": parameters}}, {"function": {"name": "g"}}])
            for name in ("f", "g", "h"):
                self.assertEqual(types.value(name, "a", "1"), 1)
            self.assertTrue("f" in types and "h" not in types)

    def test_schemas_that_branch(self):
        """Each part is looked at once, and of too many none counts."""
        schema = {"type": "string"}
        for _ in range(250):
            schema = {"anyOf": [schema, schema]}
        self.check(schema, ("1", "1"))
        self.check({"anyOf": [{"type": "string"}] + [{} for _ in range(300)]}, ("1", 1))


if __name__ == "__main__":
    unittest.main()

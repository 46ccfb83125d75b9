"""`response_format` and vLLM's fields of the same meaning: what the server is asked for, and what is refused."""

import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import chat_request, completion_request, errors  # noqa: E402
from tandem.v1 import generation_pb2 as api  # noqa: E402

CHAT = {"messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {"type": "object", "properties": {"z": {"const": "ü"}, "a": {"type": "integer"}}, "required": ["z"]}
TEXT = '{"type":"object","properties":{"z":{"const":"ü"},"a":{"type":"integer"}},"required":["z"]}'
NAMED = {"name": "n", "schema": SCHEMA}
DEEP = '{"items":' * 5000 + "{}" + "}" * 5000


def named(**fields):
    return {"response_format": {"type": "json_schema", "json_schema": {**NAMED, **fields}}}


class AnswerFormTest(unittest.TestCase):

    def check_form(self, fields, **expected):
        for read, body in ((completion_request.read, {"prompt": "x"}), (chat_request.read, CHAT)):
            params = read({**body, **fields}).params
            kind = params.WhichOneof("constraint")
            self.assertEqual({kind: getattr(params, kind)} if kind else {}, expected, fields)

    def check_refused(self, fields, message, param):
        for read, body in ((completion_request.read, {"prompt": "x"}), (chat_request.read, CHAT)):
            with self.assertRaises(errors.ApiError, msg=fields) as caught:
                read({**body, **fields})
            error = caught.exception
            self.assertEqual((error.status, error.message, error.param), (400, message, param))

    def test_none(self):
        for fields in ({}, {"response_format": None}, {"response_format": {"type": "text"}},
                       {"guided_json": None, "guided_regex": None, "guided_choice": None},
                       {"structured_outputs": None, "guided_grammar": None, "grammar": ""}):
            self.check_form(fields)

    def test_any_object(self):
        self.check_form({"response_format": {"type": "json_object"}}, json_object=True)
        self.check_form({"structured_outputs": {"json_object": True}}, json_object=True)
        self.check_form({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
                        json_object=True)

    def test_schemas_keep_the_order_of_their_keys(self):
        for fields in (named(), named(strict=True), named(strict=False, description="d", name="x" * 64),
                       {"guided_json": SCHEMA}, {"guided_json": TEXT.replace(":", " : ")},
                       {"structured_outputs": {"json": SCHEMA, "regex": None, "json_object": False}},
                       {"structured_outputs": {"json": TEXT, "disable_any_whitespace": False}}):
            self.check_form(fields, json_schema=TEXT)
        self.check_form({"guided_json": {}}, json_schema="{}")

    def test_other_forms(self):
        for fields in ({"guided_regex": "a+"}, {"structured_outputs": {"regex": "a+"}}):
            self.check_form(fields, regex="a+")
        for fields in ({"guided_choice": ["yes", "no"]}, {"structured_outputs": {"choice": ["yes", "no"]}}):
            self.check_form(fields, choice=api.Choices(texts=["yes", "no"]))
        grammar = 'root ::= "a"'
        for fields in ({"guided_grammar": grammar}, {"grammar": grammar}, {"structured_outputs": {"grammar": grammar}}):
            self.check_form(fields, grammar=grammar)

    def test_text_is_no_second_form(self):
        self.check_form({"response_format": {"type": "text"}, "guided_regex": "a"}, regex="a")

    def test_one_form(self):
        for fields, first, second in (
                ({"guided_regex": "a", **named()}, "response_format", "guided_regex"),
                ({"guided_choice": ["a"], "guided_json": {}}, "guided_json", "guided_choice"),
                ({"structured_outputs": {"regex": "a"}, "guided_regex": "a"}, "guided_regex",
                 "structured_outputs")):
            self.check_refused(fields, f"{second} is given beside {first}: an answer has one form", second)
        for given in ({}, {"json_object": False}, {"regex": "a", "choice": ["a"]}):
            self.check_refused({"structured_outputs": given}, "structured_outputs must have one of json, "
                               "regex, choice, grammar and json_object", "structured_outputs")

    def test_response_formats_that_are_none(self):
        kinds = 'must be "text", "json_object" or "json_schema"'
        where = "response_format.json_schema"
        for value, param, problem in (
                ("json", "response_format", "must be an object, it is a string"),
                ({}, "response_format.type", kinds),
                ({"type": "structural_tag"}, "response_format.type", kinds),
                ({"type": "json_object", "schema": {}}, "response_format.schema",
                 "is not a field that this server knows"),
                ({"type": "json_schema"}, where, "is missing"),
                ({"type": "json_schema", "json_schema": []}, where, "must be an object, it is []")):
            self.check_refused({"response_format": value}, f"{param} {problem}", param)
        for fields, name, problem in (
                ({"name": None}, "name", "must be a string of 1 to 64 characters"),
                ({"name": "x" * 65}, "name", "must be a string of 1 to 64 characters"),
                ({"name": 5}, "name", "must be a string, it is 5"),
                ({"strict": "yes"}, "strict", "must be true or false, it is a string"),
                ({"description": 1}, "description", "must be a string, it is 1"),
                ({"schema": True}, "schema", "must be an object, it is true"),
                ({"more": 1}, "more", "is not a field that this server knows")):
            self.check_refused(named(**fields), f"{where}.{name} {problem}", f"{where}.{name}")

    def test_what_no_schema_can_be(self):
        problem = "is not a JSON schema: it has what no JSON text has, or nests too deeply"
        for schema in ({"maximum": float("inf")}, {"const": "\ud800"}):
            self.check_refused(named(schema=schema), f"response_format.json_schema.schema {problem}",
                               "response_format.json_schema.schema")
        for text in ('{"maximum": 1e999}', '{"const": "\\ud800"}', '{"minimum": NaN}'):
            self.check_refused({"guided_json": text}, f"guided_json {problem}", "guided_json")
        for text in ("", "{", "5", "true", DEEP, '{"maximum": ' + "9" * 5000 + "}"):
            self.check_refused({"guided_json": text}, "guided_json must be a JSON object, or one as text",
                               "guided_json")

    def test_vllms_fields_of_other_types(self):
        strings = "must be a list of at least one string"
        for name, value, problem in (
                ("guided_json", [], "must be an object or a string, it is []"),
                ("guided_regex", 5, "must be a string, it is 5"), ("guided_choice", [], strings),
                ("guided_choice", ["a", 1], strings), ("guided_choice", "a", "must be a list, it is a string"),
                ("guided_grammar", [], "must be a string, it is []"), ("grammar", 5, "must be a string, it is 5")):
            self.check_refused({name: value}, f"{name} {problem}", name)
        for name, value, problem in (
                ("grammar", {}, "must be a string, it is {}"),
                ("structural_tag", "{}", "is not supported: it must be absent"),
                ("disable_any_whitespace", True, "is not supported: it must be absent or false"),
                ("json_object", 1, "must be true or false, it is 1"),
                ("wibble", 1, "is not a field that this server knows")):
            self.check_refused({"structured_outputs": {"regex": "a", name: value}},
                               f"structured_outputs.{name} {problem}", f"structured_outputs.{name}")


if __name__ == "__main__":
    unittest.main()

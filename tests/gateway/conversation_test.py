"""Conversations that a template would refuse, as the gateway puts them."""

import sys
import unittest

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import conversation  # noqa: E402

SYSTEM_FIRST = "{{ raise_exception('System message must be at the beginning.') }}"
ONE_CALL = "{{ raise_exception('This model only supports single tool-calls at once!') }}"
SHORT_IDS = "{{ raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}"
USER = {"role": "user", "content": "hi"}


def system(text):
    return {"role": "system", "content": text}


def call(id):
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": {}}}


def output(id, text):
    return {"role": "tool", "tool_call_id": id, "content": text}


class ConversationTest(unittest.TestCase):

    def check(self, template, messages, expected):
        self.assertEqual(conversation.adapted(messages, template), expected)

    def test_developers_are_the_system_to_templates_that_do_not_know_them(self):
        messages = [{"role": "developer", "content": "a"}, USER]
        self.check("", messages, [system("a"), USER])
        self.check("developer", messages, messages)

    def test_instructions_come_first_where_they_must(self):
        for messages in ([system("a"), system("b"), USER], [system("a"), {"role": "developer", "content": "b"}, USER]):
            self.check(SYSTEM_FIRST, messages, [system("a\n\nb"), USER])
        self.check("", [USER, system("b")], [USER, system("b")])
        later = {"role": "user", "content": "b"}
        self.check(SYSTEM_FIRST, [system("a"), USER, system("b"), USER], [system("a"), USER, later, USER])
        self.check(SYSTEM_FIRST, [USER, system("b")], [USER, later])
        for messages in ([USER], [system("a"), USER]):
            self.assertIs(conversation.adapted(messages, SYSTEM_FIRST + "developer"), messages)

    def test_each_call_is_a_message_where_it_must(self):
        self.assertTrue(conversation.takes_one_call(ONE_CALL))
        self.assertFalse(conversation.takes_one_call(SHORT_IDS))
        said = {"role": "assistant", "content": "so", "reasoning": "t", "tool_calls": [call("1"), call("2")]}
        self.check(ONE_CALL, [USER, said, output("2", "b"), output("1", "a"), USER], [
            USER, {**said, "tool_calls": [call("1")]}, output("1", "a"),
            {"role": "assistant", "content": "", "tool_calls": [call("2")]}, output("2", "b"), USER])

    def test_outputs_without_ids_are_in_the_order_of_the_calls(self):
        def bare(text):
            return {"role": "tool", "content": text}
        said = {"role": "assistant", "content": "", "tool_calls": [call("1"), call("2")]}
        self.check(ONE_CALL, [said, bare("a"), bare("b"), bare("c")], [
            {**said, "tool_calls": [call("1")]}, bare("a"), {**said, "tool_calls": [call("2")]}, bare("b"), bare("c")])
        self.check(ONE_CALL, [said, output("x", "a"), bare("b"), output([], "c")], [
            {**said, "tool_calls": [call("1")]}, bare("b"), {**said, "tool_calls": [call("2")]}, output([], "c"),
            output("x", "a")])
        self.check(ONE_CALL, [said], [{**said, "tool_calls": [call("1")]}, {**said, "tool_calls": [call("2")]}])

    def test_one_call_stays_as_it_is(self):
        messages = [{"role": "assistant", "content": "", "tool_calls": [call("1")]}, output("1", "a")]
        self.check(ONE_CALL, messages, messages)

    def test_ids_are_short_where_they_must(self):
        messages = [{"role": "assistant", "content": "", "tool_calls": [call("call_1"), call("abcde6789"), call(None)]},
                    output("call_1", "a"), output("abcde6789", "b"), USER]
        made = conversation.adapted(messages, SHORT_IDS)
        first, second, third = (one["id"] for one in made[0]["tool_calls"])
        self.assertRegex(first, r"^[0-9a-z]{9}$")
        self.assertEqual((second, third), ("abcde6789", None))
        self.assertEqual([one.get("tool_call_id") for one in made[1:]], [first, second, None])
        self.check("", messages, messages)


if __name__ == "__main__":
    unittest.main()

"""Chat templates: what Hugging Face's templates use, and what hostile ones do."""

import asyncio
import re
import sys
import unittest
from types import SimpleNamespace

sys.path.insert(0, "gateway/tandem_gateway")
from gateway import chat_prompt  # noqa: E402
from gateway.errors import ApiError  # noqa: E402
from gateway.template_environment import TemplateError, render  # noqa: E402
from gateway.template_pool import TemplatePool  # noqa: E402

CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "<a> & ü"}]


class RenderTest(unittest.TestCase):

    def check(self, template, expected, **variables):
        self.assertEqual(render(template, variables), expected)

    def test_blocks_leave_no_blanks(self):
        self.check("{% for m in messages %}\n  {% if true %}\n{{ m.role }}\n  {% endif %}\n"
                   "{% endfor %}\n", "system\nuser\n", messages=CHAT)

    def test_text_is_not_escaped(self):
        self.check("{{ messages[1].content }}", "<a> & ü", messages=CHAT)

    def test_tojson_keeps_order_and_characters(self):
        value = {"z": "<ü>'", "a": [1, None, True, 0.5]}
        self.check("{{ v | tojson }}", '{"z": "<ü>\'", "a": [1, null, true, 0.5]}', v=value)
        self.check("{{ v | tojson(indent=2) }}", '{\n  "a": 1\n}', v={"a": 1})

    def test_loop_controls(self):
        self.check("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}"
                   "{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}", "023")

    def test_generation_tag_renders_its_body(self):
        self.check("a{% generation %}{{ x }}{% endgeneration %}b", "a1b", x=1)

    def test_special_tokens_and_missing_variables(self):
        self.check("{{ bos_token }}{{ missing }}{{ 'y' if tools is defined and tools }}",
                   "<s>", bos_token="<s>", tools=None)

    def test_namespace_and_reversed_loop(self):
        self.check("{% set ns = namespace(last='') %}{% for m in messages[::-1] %}"
                   "{% set ns.last = m.role %}{% endfor %}{{ ns.last }}", "system", messages=CHAT)

    def test_methods_of_strings_and_items_of_objects(self):
        self.check("{{ '<think>x</think> y'.split('</think>')[-1].lstrip() }}"
                   "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "ya=1;b=2;",
                   d={"a": 1, "b": 2})

    def test_macros(self):
        self.check("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(1) }}{{ f('a') }}", "[1][a]")

    def test_strftime_now(self):
        self.assertRegex(render("{{ strftime_now('%d %b %Y') }}", {}), r"^\d\d \w{3} \d{4}$")

    def check_refused(self, template, expected, **variables):
        with self.assertRaises(TemplateError) as caught:
            render(template, variables)
        self.assertRegex(str(caught.exception), expected)
        self.assertNotIn("\n", str(caught.exception))

    def test_raise_exception_is_the_clients_message(self):
        self.check_refused("{{ raise_exception('Roles must alternate') }}",
                           "refuses this conversation: Roles must alternate$")

    def test_bad_syntax_and_failures(self):
        self.check_refused("a\n{% if %}", "cannot be compiled: line 2: ")
        self.check_refused("{{ 1 / 0 }}", "failed: ZeroDivisionError: ")
        self.check_refused("{{ messages.content.x }}", "failed: UndefinedError: ", messages=[])
        self.check_refused("{% include 'x' %}", "failed: ")

    def test_the_sandbox_holds(self):
        self.check_refused("{{ ''.__class__.__mro__[1].__subclasses__() }}", "failed: SecurityError")
        self.check_refused("{{ messages.append(1) }}", "failed: SecurityError", messages=[])
        self.check_refused("{{ raise_exception.__globals__.x }}", "failed: SecurityError")


ENDLESS = ("{% for i in range(99999) %}{% for j in range(99999) %}"
           "{% endfor %}{% endfor %}")


class PoolTest(unittest.IsolatedAsyncioTestCase):

    async def asyncSetUp(self):
        self.pool = TemplatePool(size=2, limit_s=0.3)
        self.addAsyncCleanup(self.pool.close)

    async def test_renders_many_at_once(self):
        texts = await asyncio.gather(*(self.pool.render("{{ i }}", {"i": i}) for i in range(50)))
        self.assertEqual(texts, [str(i) for i in range(50)])

    async def check_refused(self, template, expected):
        with self.assertRaises(ApiError) as caught:
            await self.pool.render(template, {})
        self.assertEqual(caught.exception.status, 400)
        self.assertRegex(caught.exception.message, expected)
        self.assertEqual(await self.pool.render("fine", {}), "fine")

    async def test_what_never_ends_is_stopped(self):
        await self.check_refused(ENDLESS, "took more than its 0.3 s")

    async def test_what_never_ends_in_c_is_stopped(self):
        await self.check_refused("{{ 9 ** 99999999 }}", "took more than its 0.3 s")

    async def test_memory_is_bounded(self):
        await self.check_refused("{{ 'x' * 9000000000 }}", "memory")

    async def test_output_is_bounded(self):
        await self.check_refused("{{ 'x' * 5000000 }}", "wrote 5000000 bytes, at most 4194304")

    async def test_the_templates_own_message_comes_through(self):
        await self.check_refused("{{ raise_exception('no') }}", re.escape("conversation: no"))
        await self.check_refused("{{ raise_exception('x' * 5000) }}", r"\A.{900,1000}\Z")

    async def continued(self, template, *messages):
        model = SimpleNamespace(chat_template=template, bos_token="", eos_token="")
        return await chat_prompt.render(self.pool, model, list(messages), [], False, {}, continues=True)

    async def test_a_prompt_ends_in_the_last_message(self):
        user, assistant = ({"role": role, "content": "It "} for role in ("user", "assistant"))
        template = "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}<end>{% endfor %}{{ messages[-1].content }}"
        self.assertEqual(await self.continued(template, user, assistant), "<user>It<end><assistant>It <end>It ")
        template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}"
        self.assertEqual(await self.continued(template, user, {**assistant, "content": ""}), "<user>It <end><assistant>")
        with self.assertRaisesRegex(ApiError, "leaves the last message out"):
            await self.continued("{{ messages[0].content }}", user, assistant)

    async def test_cancelled_jobs_leave_no_answer_to_the_next(self):
        await self.pool.render("a process is there", {})
        process = self.pool._idle[0]
        job = asyncio.create_task(self.pool.render(ENDLESS, {}))
        while self.pool._idle:  # until it has the job
            await asyncio.sleep(0)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
        self.assertIsNotNone(process.returncode)  # it was ended
        self.assertEqual(await self.pool.render("next", {}), "next")


if __name__ == "__main__":
    unittest.main()

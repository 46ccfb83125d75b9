"""Containerfiles are read as builders read them, and ours keep the rules of a careful image. `./dev image-check` carries them out."""

import sys
import unittest

sys.path.insert(0, "tools/image")
import containerfile  # noqa: E402

KINDS = ("cpu", "cuda")


def one(text):
    """The last instruction of a file."""
    return containerfile.read("FROM debian:12.8-slim\n" + text)[-1]


class ReadTest(unittest.TestCase):
    def test_continued_lines_are_one_instruction(self):
        step = one("# why\nRUN a && \\\n    # of b\n    b && \\\n\n    c\n")
        self.assertEqual((step.line, step.name, step.text), (3, "RUN", "a && b && c"))

    def test_flags_stand_before_the_text(self):
        step = one("COPY --chmod=755 --chown=0:0 from --to/\n")
        self.assertEqual((step.flags, step.text), ({"chmod": "755", "chown": "0:0"}, "from --to/"))

    def test_both_forms_of_a_command(self):
        self.assertEqual(one('CMD ["a b", "c"]\n').words(), ["a b", "c"])
        self.assertEqual(one("CMD a b\n").words(), ["/bin/sh", "-c", "a b"])

    def test_variables(self):
        values = {"A": "1", "AB": "2"}
        self.assertEqual(containerfile.substitute("$A ${AB} $AB-${A}x", values), "1 2 2-1x")
        with self.assertRaisesRegex(containerfile.Malformed, "C is not set"):
            containerfile.substitute("$C", values)

    def test_what_is_not_understood_is_refused(self):
        for text, reason in (("WORKDIR /x\n", "line 2: WORKDIR is none of"), ("RUN a \\\n", "line 2: it ends"),
                             ("FROM x\n", "one FROM"), ("run a\n", "line 2: run is none")):
            with self.assertRaisesRegex(containerfile.Malformed, reason):
                one(text)
        with self.assertRaisesRegex(containerfile.Malformed, "one FROM"):
            containerfile.read("ARG a=1\nFROM x\n")


class OurImagesTest(unittest.TestCase):
    def each(self):
        for kind in KINDS:
            with open(f"deploy/container/Containerfile.{kind}", encoding="utf-8") as text:
                yield kind, containerfile.read(text.read())

    def test_the_base_is_pinned_and_the_user_is_last(self):
        for kind, steps in self.each():
            with self.subTest(kind=kind):
                self.assertRegex(steps[0].text, r"^debian:12\.\d+-slim$")
                by_name = {step.name: step for step in steps}
                self.assertEqual(by_name["USER"].text, "64100:64100")
                self.assertLess(max(step.line for step in steps if step.name in ("RUN", "COPY", "ADD")), by_name["USER"].line)

    def test_programs_get_signals(self):
        # A shell as process 1 would not pass SIGTERM on.
        for kind, steps in self.each():
            with self.subTest(kind=kind):
                by_name = {step.name: step for step in steps}
                self.assertEqual(by_name["ENTRYPOINT"].words(), ["tandem_coordinator"])
                self.assertTrue(by_name["CMD"].text.startswith("["))
                self.assertEqual(by_name["STOPSIGNAL"].text, "SIGTERM")

    def test_both_apis_are_served(self):
        for kind, steps in self.each():
            with self.subTest(kind=kind):
                by_name = {step.name: step for step in steps}
                self.assertIn("/install.sh --http ", by_name["RUN"].text)
                self.assertEqual(by_name["EXPOSE"].text.split(), ["50051", "8080"])
                self.assertLessEqual({"--listen=0.0.0.0:50051", "--http-listen=0.0.0.0:8080"}, set(by_name["CMD"].words()))

    def test_layers_keep_no_lists_or_caches(self):
        for kind, steps in self.each():
            for step in steps:
                if step.name == "RUN":
                    self.assertRegex(step.text, r"rm -rf .*/var/lib/apt/lists/\* /var/cache/apt", kind)


if __name__ == "__main__":
    unittest.main()

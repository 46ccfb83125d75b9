"""Containerfiles are read as builders read them, and ours keep the rules of a careful image. `./dev image-check` carries them out."""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, "tools/image")
import containerfile  # noqa: E402
import layer  # noqa: E402

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
                             ("run a\n", "line 2: run is none")):
            with self.assertRaisesRegex(containerfile.Malformed, reason):
                one(text)
        with self.assertRaisesRegex(containerfile.Malformed, "a FROM is needed, at the start"):
            containerfile.read("ARG a=1\nFROM x\n")

    def test_stages_have_names(self):
        self.assertEqual(containerfile.stage(one("FROM scratch AS files\n")), ("scratch", "files"))
        self.assertEqual(containerfile.stage(one("FROM x\n")), ("x", ""))
        for text in ("x as y", "x AS", "x AS y z"):
            with self.assertRaisesRegex(containerfile.Malformed, "FROM IMAGE or FROM IMAGE AS NAME is needed"):
                containerfile.stage(one(f"FROM {text}\n"))


class LayerTest(unittest.TestCase):
    def test_what_an_instruction_writes_is_counted(self):
        with tempfile.TemporaryDirectory() as folder:
            def write(name, size):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(b"x" * size)
            write("kept", 10)
            write("replaced", 100)
            before = layer.contents(folder)
            write("new", 1000)
            os.remove(os.path.join(folder, "replaced"))
            write("replaced", 100)
            self.assertEqual(layer.bytes_written(before, layer.contents(folder)), 1100)
            before = layer.contents(folder)
            os.remove(os.path.join(folder, "new"))
            self.assertEqual(layer.bytes_written(before, layer.contents(folder)), 0)


class OurImagesTest(unittest.TestCase):
    def each(self):
        for kind in KINDS:
            with open(f"deploy/container/Containerfile.{kind}", encoding="utf-8") as text:
                yield kind, containerfile.read(text.read())

    def test_the_base_is_pinned_and_the_user_is_last(self):
        for kind, steps in self.each():
            with self.subTest(kind=kind):
                last = [step for step in steps if step.name == "FROM"][-1]
                self.assertRegex(last.text, r"^debian:12\.\d+-slim$")
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

    def test_nothing_is_taken_in_only_to_be_deleted(self):
        """The last stage takes archives by a mount: a layer keeps what it was given."""
        for kind, steps in self.each():
            with self.subTest(kind=kind):
                last = max(index for index, step in enumerate(steps) if step.name == "FROM")
                self.assertNotIn("ADD", [step.name for step in steps[last:]])
                [run] = [step for step in steps if step.name == "RUN"]
                self.assertEqual(run.flags, {"mount": "type=bind,from=files,target=/mnt"})

    def test_layers_keep_no_lists_or_caches(self):
        for kind, steps in self.each():
            for step in steps:
                if step.name == "RUN":
                    self.assertRegex(step.text, r"rm -rf .*/var/lib/apt/lists/\* /var/cache/apt", kind)


if __name__ == "__main__":
    unittest.main()

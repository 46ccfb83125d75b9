"""Tests of `tandem pull` and of `tandem_coordinator --model hf:...` against a hub that misbehaves."""

import os
import pty
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).absolute().parent), str(Path("tools").absolute())]

import split_gguf  # noqa: E402
from hub_stub import COMMIT, REPO, Hub, Reply, entry, sha256  # noqa: E402

MODEL = Path("tests/golden/arch/llama/model.gguf").read_bytes()
TOKEN = "hf_secretsecretsecret"
NAME = f"hf:{REPO}"


class PullCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.cache = self.folder / "cache"
        self.repo = self.cache / "models--acme--tiny-GGUF"
        self.hub = self.start_hub({"tiny-Q8_0.gguf": MODEL})

    def start_hub(self, files):
        hub = Hub(files)
        self.addCleanup(hub.close)
        return hub

    def environment(self, **changes):
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder),
                "HF_HUB_CACHE": str(self.cache), "HF_ENDPOINT": self.hub.url,
                "HF_HUB_DOWNLOAD_TIMEOUT": "60", **changes}

    def start(self, name, *arguments, **environment):
        process = subprocess.Popen(["client/tandem", "pull", name, *arguments],
                                   env=self.environment(**environment), text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def run_pull(self, name=NAME, *arguments, **environment):
        """Exit status, stdout and stderr."""
        process = self.start(name, *arguments, **environment)
        out, err = process.communicate(timeout=120)
        self.assertNotIn(TOKEN, out + err)
        return process.returncode, out, err

    def pull(self, name=NAME, *arguments, **environment):
        """A pull that succeeds: the printed path."""
        status, out, err = self.run_pull(name, *arguments, **environment)
        self.assertEqual(status, 0, err)
        self.assertEqual(out.count("\n"), 1)
        return Path(out[:-1])

    def refused(self, pattern, name=NAME, *arguments, **environment):
        """A pull that fails with one line that has `pattern`, and leaves no file in its place."""
        status, out, err = self.run_pull(name, *(arguments or ("--attempts", "1")), **environment)
        self.assertEqual((status, out), (1, ""), err)
        error = err.splitlines()[-1]
        self.assertRegex(error, f"^tandem: .*{pattern}")
        self.assertEqual([line for line in err.splitlines()[:-1] if line.startswith("tandem: ")], [])
        self.assertEqual(self.blobs(), set())
        self.assertFalse((self.repo / "refs").exists())
        return error

    def blobs(self):
        return {p.name for p in self.repo.glob("blobs/*") if not p.name.endswith(".incomplete")}

    def incomplete(self):
        return self.repo / "blobs" / f"{sha256(MODEL)}.incomplete"

    def ranges(self, hub=None):
        """The first byte of each request for a file."""
        return [int(headers.get("Range", "bytes=0-")[6:-1])
                for _, _, headers in (hub or self.hub).of("GET", ".gguf")]


class Layout(PullCase):
    def test_files_links_and_reference(self):
        path = self.pull()
        self.assertEqual(path, self.repo / "snapshots" / COMMIT / "tiny-Q8_0.gguf")
        self.assertEqual(os.readlink(path), f"../../blobs/{sha256(MODEL)}")
        self.assertEqual(path.read_bytes(), MODEL)
        self.assertEqual(self.blobs(), {sha256(MODEL)})
        self.assertEqual((self.repo / "refs/main").read_text(), COMMIT)
        left = {str(p.relative_to(self.cache)) for p in self.cache.rglob("*") if not p.is_dir()}
        self.assertEqual(left, {
            f"models--acme--tiny-GGUF/blobs/{sha256(MODEL)}",
            f"models--acme--tiny-GGUF/snapshots/{COMMIT}/tiny-Q8_0.gguf",
            "models--acme--tiny-GGUF/refs/main",
            f".locks/models--acme--tiny-GGUF/{sha256(MODEL)}.lock"})

    def test_info_reads_the_model(self):
        info = subprocess.run(["client/tandem", "info", self.pull()], capture_output=True, text=True)
        self.assertEqual(info.returncode, 0, info.stderr)
        self.assertRegex(info.stdout, "architecture +llama")

    def test_second_pull_fetches_nothing(self):
        first = self.pull()
        changed = {p: p.lstat().st_mtime_ns for p in self.repo.rglob("*")}
        self.hub.requests.clear()
        self.assertEqual(self.pull(), first)
        self.assertEqual(self.hub.of("GET", ".gguf"), [])
        self.assertEqual({p: p.lstat().st_mtime_ns for p in self.repo.rglob("*")}, changed)

    def test_a_new_commit_shares_the_blob(self):
        self.pull()
        self.hub.commit = "f" * 40
        self.hub.requests.clear()
        path = self.pull()
        self.assertEqual(path.parent.name, "f" * 40)
        self.assertEqual(path.read_bytes(), MODEL)
        self.assertEqual(self.hub.of("GET", ".gguf"), [])
        self.assertEqual((self.repo / "refs/main").read_text(), "f" * 40)

    def test_small_files_have_git_digests(self):
        import hashlib
        oid = hashlib.sha1(b"blob %d\0" % len(MODEL) + MODEL).hexdigest()
        self.hub.listing = [{"type": "file", "oid": oid, "size": len(MODEL),
                             "path": "tiny-Q8_0.gguf"}]
        self.hub.on_file = lambda request, path, usual: Reply(
            usual.status, usual.body, {**usual.headers, "X-Linked-ETag": None})
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.blobs(), {oid})

    def test_a_server_without_commits(self):
        self.hub.commit = None
        for self.hub.answers_head in (True, False):
            path = self.pull()
            self.assertEqual(path, self.repo / "snapshots/main/tiny-Q8_0.gguf")
            self.assertFalse((self.repo / "refs").exists())
        changed = MODEL[:-1] + b"x"
        self.hub.files = {"tiny-Q8_0.gguf": changed}
        self.assertEqual(self.pull().read_bytes(), changed)

    def test_folder_of_the_cache(self):
        for variables, folder in (({"HF_HUB_CACHE": "", "HF_HOME": str(self.folder / "h")}, "h/hub"),
                                  ({"HF_HUB_CACHE": ""}, ".cache/huggingface/hub")):
            path = self.pull(**variables)
            self.assertTrue(path.is_relative_to(self.folder / folder), path)


class Choice(PullCase):
    def test_by_quantisation_and_default(self):
        self.hub.files = {"README.md": b"#", "mmproj-F16.gguf": b"p", "t-Q4_K_M.gguf": MODEL,
                          "t-Q8_0.gguf": MODEL + b"8", "sub dir/t-UD-Q4_K_XL.gguf": MODEL + b"X"}
        self.assertEqual(self.pull().name, "t-Q4_K_M.gguf")
        self.assertEqual(self.pull(f"{NAME}:q8_0").name, "t-Q8_0.gguf")
        path = self.pull(f"{NAME}:ud-q4_k_xl")
        self.assertEqual(path, self.repo / "snapshots" / COMMIT / "sub dir/t-UD-Q4_K_XL.gguf")
        self.assertTrue(os.readlink(path).startswith("../../../blobs/"))
        self.assertEqual(path.read_bytes(), MODEL + b"X")

    def test_none_or_several(self):
        self.hub.files = {"a-Q8_0.gguf": MODEL, "b-Q8_0.gguf": MODEL, "a-F16.gguf": MODEL}
        error = self.refused("several models and none in Q4_K_M")
        self.assertRegex(error, r"F16: a-F16.gguf \(1.64 MiB\), Q8_0: a-Q8_0.gguf .*b-Q8_0.gguf")
        self.assertRegex(self.refused("there is no Q5_0", f"{NAME}:Q5_0"), "a-F16.gguf")
        error = self.refused("several models match", f"{NAME}:Q8_0")
        self.assertNotIn("F16", error)
        self.assertEqual(self.pull(f"{NAME}:b-Q8_0.gguf").name, "b-Q8_0.gguf")

    def test_no_model(self):
        self.hub.files = {"README.md": b"#"}
        self.refused("no GGUF file")

    def test_no_name(self):
        for name in ("model.gguf", "hf:", "hf:acme", "hf:acme/", "hf:../x", "hf:a/b/c", "hf:a/..",
                     "hf:a--b/c", "hf:a/b:", "hf:a/b?x", "hf:-a/b", "hf:a/" + "b" * 97):
            self.refused("needed hf:OWNER/REPO", name)
        self.assertEqual(self.hub.requests, [])


class Split(PullCase):
    def setUp(self):
        super().setUp()
        source, out = self.folder / "model.gguf", self.folder / "tiny-Q8_0"
        source.write_bytes(MODEL)
        split_gguf.split(source, out, 3)
        self.parts = {f"Q8/{p.name}": p.read_bytes()
                      for p in sorted(self.folder.glob("tiny-Q8_0-0*.gguf"))}
        self.assertEqual(len(self.parts), 3)
        self.hub.files = self.parts

    def test_all_parts(self):
        path = self.pull(f"{NAME}:Q8_0")
        self.assertEqual(path.name, "tiny-Q8_0-00001-of-00003.gguf")
        for name, content in self.parts.items():
            self.assertEqual((path.parent.parent / name).read_bytes(), content)
        info = subprocess.run(["client/tandem", "info", path], capture_output=True, text=True)
        self.assertEqual(info.returncode, 0, info.stderr)

    def test_one_part_is_not_listed(self):
        del self.parts["Q8/tiny-Q8_0-00002-of-00003.gguf"]
        self.hub.files = self.parts
        self.refused("lacks 1 of its 3 files: Q8/tiny-Q8_0-00002-of-00003.gguf")
        self.assertEqual(self.hub.of("GET", ".gguf"), [])

    def test_one_part_is_not_served(self):
        self.hub.on_file = lambda request, path, usual: (
            Reply(404) if "00002" in path else None)
        status, _, err = self.run_pull()
        self.assertEqual(status, 1)
        self.assertRegex(err, "00002-of-00003.gguf: HTTP status 404")
        self.assertFalse((self.repo / "refs").exists())
        self.hub.on_file = lambda request, path, usual: None
        self.hub.requests.clear()
        self.pull()
        self.assertEqual(len(self.hub.of("GET", ".gguf")), 2)

    def test_offline_names_the_missing_part(self):
        path = self.pull()
        (path.parent / "tiny-Q8_0-00003-of-00003.gguf").unlink()
        status, _, err = self.run_pull(HF_HUB_OFFLINE="1")
        self.assertEqual(status, 1)
        self.assertRegex(err, "HF_HUB_OFFLINE is set: .*lacks 1 of its 3 files: .*00003-of-00003")


class Transfers(PullCase):
    def faulty(self, *replies):
        """Answers the first requests for the file with what `replies` make of the usual reply."""
        queue = list(replies)
        lock = threading.Lock()

        def on_file(request, path, usual):
            with lock:
                if request.command == "HEAD" or not queue:
                    return None
                return queue.pop(0)(usual)
        self.hub.on_file = on_file

    @staticmethod
    def cut(after):
        return lambda usual: Reply(usual.status, usual.body, usual.headers, cut_after=after)

    @staticmethod
    def status(number, **headers):
        return lambda usual: Reply(number, b"no", headers)

    def test_cut_connections_are_continued(self):
        self.faulty(self.cut(100_000), self.cut(0), self.cut(200_000))
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 100_000, 100_000, 300_000])

    def test_a_later_run_continues(self):
        self.faulty(self.cut(123_456))
        status, _, err = self.run_pull(NAME, "--attempts", "1")
        self.assertEqual(status, 1, err)
        self.assertEqual(self.incomplete().read_bytes(), MODEL[:123_456])
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 123_456])
        self.assertFalse(self.incomplete().exists())

    def test_what_was_left_is_complete(self):
        self.incomplete().parent.mkdir(parents=True)
        self.incomplete().write_bytes(MODEL)
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [])

    def test_what_was_left_is_wrong(self):
        self.incomplete().parent.mkdir(parents=True)
        for wrong, ranges in ((b"x" * 1000, [1000, 0]), (b"x" * (len(MODEL) + 1), [0])):
            for blob in self.repo.glob("blobs/*"):
                blob.unlink()
            self.hub.requests.clear()
            self.incomplete().write_bytes(wrong)
            self.assertEqual(self.pull().read_bytes(), MODEL)
            self.assertEqual(self.ranges(), ranges)

    def test_wrong_bytes(self):
        self.hub.on_file = lambda request, path, usual: Reply(
            usual.status, usual.body[:-1] + b"!", usual.headers)
        self.refused("another digest")
        self.assertEqual(self.incomplete().stat().st_size, 0)

    def test_wrong_lengths(self):
        for body, headers, error in (
                (MODEL, {"Content-Length": "1000"}, "announces 1000 bytes"),
                (MODEL, {"Content-Length": str(len(MODEL) + 1)}, "announces"),
                (MODEL + b"more", {}, "announces"),
                (MODEL + b"more", {"Content-Length": None, "Connection": "close"}, "sends more"),
                (MODEL[:-1], {"Content-Length": None, "Connection": "close"}, "sent only")):
            self.faulty(lambda usual: Reply(200, body, {**usual.headers, **headers}))
            self.refused(error)
            self.incomplete().unlink()

    def test_range_is_ignored(self):
        self.faulty(self.cut(100_000), lambda usual: Reply(200, MODEL))
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 100_000])

    def test_another_range(self):
        self.faulty(self.cut(100_000),
                    lambda usual: Reply(206, MODEL[5:], {"Content-Range": "bytes 5-9/10"}))
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 100_000, 100_000])

    def test_range_is_refused(self):
        self.faulty(self.cut(100_000), self.status(416))
        self.assertEqual(self.pull().read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0, 100_000, 0])

    def test_transient_statuses(self):
        self.faulty(self.status(429, **{"Retry-After": "0"}), self.status(503), self.status(500))
        self.assertEqual(self.pull().read_bytes(), MODEL)

    def test_statuses_that_last(self):
        for number, error in ((500, "500"), (429, "429: too many"), (404, "404"), (418, "418"),
                              (403, "403: this needs a token in HF_TOKEN"), (302, "302 without")):
            self.faulty(*[self.status(number)] * 9)
            self.refused(f"resolve/{COMMIT}/tiny-Q8_0.gguf: HTTP status {error}")

    def test_changed_since_listed(self):
        self.hub.listing = [entry("tiny-Q8_0.gguf", b"y" * len(MODEL))]
        self.refused("has changed since it was listed")

    def test_stall(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.faulty(lambda usual: Reply(usual.status, usual.body, usual.headers, 5000, gate))
        self.assertEqual(self.pull(HF_HUB_DOWNLOAD_TIMEOUT="1").read_bytes(), MODEL)
        self.assertEqual(self.ranges()[:2], [0, 5000])

    def test_slow_servers(self):
        self.faulty(lambda usual: Reply(usual.status, usual.body, usual.headers, drip=1))
        self.refused("fewer than 1024 bytes were received in 1 s", HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.hub.on_tree = lambda request: Reply(200, b" " * 1_000_000, drip=2000)
        self.refused("the answer takes too long", HF_HUB_DOWNLOAD_TIMEOUT="1")

    def test_stop_signal(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.faulty(lambda usual: Reply(usual.status, usual.body, usual.headers, 5000, gate))
        process = self.start(NAME)
        self.assertTrue(self.hub.arrived.wait(60))
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err.splitlines()[-1], "^tandem: .*: stopped$")

    def test_two_at_once(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.faulty(lambda usual: Reply(usual.status, usual.body, usual.headers, 5000, gate))
        first = self.start(NAME)
        self.assertTrue(self.hub.arrived.wait(60))
        second = self.start(NAME)
        self.assertRegex(second.stderr.readline(), "waiting for another process")
        gate.set()
        paths = {process.communicate(timeout=60)[0] for process in (first, second)}
        self.assertEqual(len(paths), 1)
        self.assertEqual(Path(paths.pop()[:-1]).read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [0])

    def test_terminal(self):
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        process = subprocess.Popen(["client/tandem", "pull", NAME], env=self.environment(),
                                   stdout=subprocess.DEVNULL, stderr=terminal)
        os.close(terminal)
        text = b""
        try:
            while piece := os.read(controller, 4096):
                text += piece
        except OSError:
            pass  # the other end is closed
        self.assertEqual(process.wait(60), 0)
        self.assertRegex(text, rb"\rtiny-Q8_0.gguf: 1.64 MiB of 1.64 MiB \(100%\), [^\n]*\n")


class Security(PullCase):
    def tokens(self, hub):
        return {headers.get("Authorization") for _, _, headers in hub.requests}

    def redirect(self, location, status=302):
        self.hub.on_file = lambda request, path, usual: Reply(
            status, b"moved", {**usual.headers, "Location": location, "Content-Range": None})

    def test_token_does_not_follow_to_another_host(self):
        other = self.start_hub({"tiny-Q8_0.gguf": MODEL})
        self.redirect(f"{other.url}/{REPO}/resolve/main/tiny-Q8_0.gguf?signature=s3cr3t")
        self.assertEqual(self.pull(HF_TOKEN=TOKEN).read_bytes(), MODEL)
        self.assertEqual(self.tokens(self.hub), {f"Bearer {TOKEN}"})
        self.assertEqual(self.tokens(other), {None})
        self.assertEqual(len(other.requests), 1)

    def test_errors_of_another_host_show_no_signature(self):
        other = self.start_hub({})
        self.redirect(f"{other.url}/gone.gguf?signature=s3cr3t")
        error = self.refused("/gone.gguf: HTTP status 404", HF_TOKEN=TOKEN)
        self.assertNotIn("s3cr3t", error)
        other.on_other = lambda request: Reply(403)
        self.assertNotIn("HF_TOKEN", self.refused("/gone.gguf: HTTP status 403"))

    def test_relative_redirect_keeps_the_token(self):
        self.hub.files["moved.gguf"] = MODEL
        self.hub.listing = [entry("tiny-Q8_0.gguf", MODEL)]
        self.hub.on_file = lambda request, path, usual: (
            Reply(307, b"", {"Location": f"/{REPO}/resolve/main/moved.gguf"})
            if path == "tiny-Q8_0.gguf" else None)
        self.assertEqual(self.pull(HF_TOKEN=TOKEN).read_bytes(), MODEL)
        self.assertEqual(self.tokens(self.hub), {f"Bearer {TOKEN}"})

    def test_next_page(self):
        other = self.start_hub({"tiny-Q8_0.gguf": MODEL})
        self.hub.on_tree = lambda request: Reply(200, b"[]", {
            "Link": f'<{other.url}/api/models/{REPO}/tree/main?recursive=true&cursor=2>; rel="next"'})
        self.assertEqual(self.pull(HF_TOKEN=TOKEN).read_bytes(), MODEL)
        self.assertEqual(self.tokens(self.hub), {f"Bearer {TOKEN}"})
        self.assertEqual(self.tokens(other), {None})

    def test_endless_pages(self):
        self.hub.on_tree = lambda request: Reply(200, b"[]", {
            "Link": f'<{self.hub.url}{request.path}>; rel="next"'})
        self.refused("more than 64 pages")

    def test_redirects_that_are_not_followed(self):
        for location in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x",
                         "http://user:pass@127.0.0.1/x"):
            self.redirect(location)
            self.refused("redirect: ")
        self.redirect(f"/{REPO}/resolve/main/tiny-Q8_0.gguf")
        self.refused("more than 8 redirects")

    def test_answers_without_access(self):
        self.hub.on_tree = lambda request: Reply(401, b"Invalid username or password.")
        self.refused("401: there is no such repository, or it needs a token in HF_TOKEN")
        self.refused("401: there is no such repository, or HF_TOKEN may not read it",
                     HF_TOKEN=TOKEN)
        self.hub.on_tree = lambda request: Reply(404, b"Repository not found")
        self.refused(f"hf:{REPO}: http://127.0.0.1:[0-9]+/api/models/{REPO}/tree/main: "
                     "HTTP status 404")

    def test_malicious_paths(self):
        for path in ("../../evil.gguf", "/etc/evil.gguf", "a/../../evil.gguf", "a//evil.gguf",
                     "./evil.gguf", "a\\..\\evil.gguf", "a\nevil.gguf", "a/\0.gguf",
                     "e" * 300 + ".gguf", "a/" * 600 + "evil.gguf"):
            self.hub.listing = [entry(path, MODEL)]
            self.refused("no safe file name")
        self.assertEqual({p for p in self.folder.rglob("*")}, set())

    def test_malicious_listings(self):
        for listing, error in (
                (b"", "not a JSON array"), (b"[", "not a JSON array"), (b"{}", "not a JSON array"),
                (b"[1]", "an entry that is no object"), (b"[" * 1_000_000, "not a JSON array"),
                (b"[" + b" " * (9 << 20) + b"]", "longer than 8388608 bytes")):
            self.hub.on_tree = lambda request: Reply(200, listing)
            self.refused(error)
        self.hub.on_tree = lambda request: None
        for changes, error in (({"oid": "../../x"}, "without its SHA-256"), ({"oid": 1}, "SHA-256"),
                               ({"oid": "A" * 64}, "without its SHA-256"),
                               ({"size": -1}, "without a possible size"),
                               ({"size": 0}, "without a possible size"),
                               ({"size": 1e30}, "without a possible size"),
                               ({"size": 1 << 49}, "of disk space")):
            self.hub.listing = [entry("tiny-Q8_0.gguf", MODEL, **changes)]
            self.refused(error)

    def test_malicious_commit(self):
        for self.hub.commit in ("../../../evil", "main", "g" * 40, "0" * 41):
            self.refused("a commit that is none")

    def test_bad_settings(self):
        for variable, value in (("HF_ENDPOINT", "ftp://x"), ("HF_ENDPOINT", "http://u:p@x"),
                                ("HF_ENDPOINT", "http://x?q"), ("HF_HUB_DOWNLOAD_TIMEOUT", "0"),
                                ("HF_TOKEN", f"{TOKEN}\r\nX-Evil: 1")):
            self.refused(variable, **{variable: value})


class Offline(PullCase):
    def test_by_setting(self):
        path = self.pull()
        self.hub.requests.clear()
        for name in (NAME, f"{NAME}:q8_0", f"{NAME}:tiny-Q8_0.gguf"):
            self.assertEqual(self.pull(name, HF_HUB_OFFLINE="1"), path)
        status, _, err = self.run_pull(f"{NAME}:Q4_0", HF_HUB_OFFLINE="1")
        self.assertEqual(status, 1)
        self.assertRegex(err, "HF_HUB_OFFLINE is set: .*there is no Q4_0; there is: Q8_0: tiny")
        self.assertEqual(self.hub.requests, [])

    def test_nothing_is_cached(self):
        self.refused("HF_HUB_OFFLINE is set: in .*models--acme--tiny-GGUF: there is: no GGUF file",
                     HF_HUB_OFFLINE="yes")
        self.assertEqual(self.hub.requests, [])

    def test_no_network(self):
        path = self.pull()
        self.hub.close()
        status, out, err = self.run_pull()
        self.assertEqual((status, out), (0, f"{path}\n"))
        self.assertRegex(err, "^W .*; using ")
        status, _, err = self.run_pull(f"{NAME}:Q4_0")
        self.assertEqual(status, 1)
        self.assertRegex(err, "(?i)connect.*; in .*there is no Q4_0; there is: Q8_0: tiny")

    def test_the_hub_is_down(self):
        path = self.pull()
        self.hub.on_tree = lambda request: Reply(503)
        self.assertEqual(self.pull(NAME, "--attempts", "1"), path)


class Coordinator(PullCase):
    def test_serves_a_model_by_name(self):
        process = subprocess.Popen(
            ["coordinator/tandem_coordinator", "--model", NAME, "--listen", "127.0.0.1:0",
             "--worker-binary", "worker/tandem_worker", "--threads-per-worker", "1",
             "--num-kv-blocks", "32"],
            env=self.environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertRegex(process.stdout.readline(), "^ready: ")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertTrue((self.repo / "snapshots" / COMMIT / "tiny-Q8_0.gguf").exists())

    def test_stops_while_it_fetches(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.hub.on_file = lambda request, path, usual: Reply(
            usual.status, usual.body, usual.headers, 5000, gate)
        process = subprocess.Popen(
            ["coordinator/tandem_coordinator", "--model", NAME, "--listen", "127.0.0.1:0"],
            env=self.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(self.hub.arrived.wait(60))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)

    def test_the_worker_has_no_libcurl(self):
        linked = subprocess.run(["ldd", "worker/tandem_worker"], capture_output=True, text=True)
        self.assertEqual(linked.returncode, 0, linked.stderr)
        self.assertFalse(re.search("curl", linked.stdout), linked.stdout)


if __name__ == "__main__":
    unittest.main()

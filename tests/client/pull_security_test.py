"""Tests of `tandem pull` against a hostile hub: where the token goes, what a listing may say."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).absolute().parent), str(Path("tools").absolute())]

from hub_stub import REPO, Reply, entry  # noqa: E402
from pull_case import MODEL, TOKEN, PullCase  # noqa: E402


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

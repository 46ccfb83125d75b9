"""Tests of `tandem pull`: the cache it leaves, and which model a name means."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).absolute().parent), str(Path("tools").absolute())]

import split_gguf  # noqa: E402
from hub_stub import COMMIT, Reply, entry, sha256  # noqa: E402
from pull_case import MODEL, NAME, PullCase  # noqa: E402


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
                     "hf:a--b/c", "hf:a/b:", "hf:a/b?x", "hf:a/b@", "hf:a/b@../x", "hf:-a/b", "hf:a/" + "b" * 97):
            status, out, err = self.run_pull(name)
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn("needed hf:OWNER/REPO", err)
        self.assertEqual(self.hub.requests, [])


class Revision(PullCase):
    def test_a_commit_is_fetched_and_then_not_asked_for(self):
        name = f"{NAME}@{COMMIT}:Q8_0"
        path = self.pull(name)
        self.assertEqual(path, self.repo / "snapshots" / COMMIT / "tiny-Q8_0.gguf")
        self.assertFalse((self.repo / "refs").exists())
        self.assertEqual(self.hub.of("GET", "/tree/main"), [])
        self.hub.requests.clear()
        self.assertEqual(self.pull(name), path)
        self.assertEqual(self.hub.requests, [])
        # The default choice is one of all files, so it is asked for.
        self.assertEqual(self.pull(f"{NAME}@{COMMIT}"), path)
        self.assertNotEqual(self.hub.of("GET", f"/tree/{COMMIT}"), [])

    def test_branches_have_their_own_references(self):
        self.pull()
        changed = MODEL + b"branch"
        self.hub.files, self.hub.commit = {"tiny-Q8_0.gguf": changed}, "e" * 40
        self.hub.revisions = ["refs%2Fpr%2F7", "e" * 40]
        path = self.pull(f"{NAME}@refs/pr/7")
        self.assertEqual(path, self.repo / "snapshots" / ("e" * 40) / "tiny-Q8_0.gguf")
        self.assertEqual(path.read_bytes(), changed)
        self.assertEqual((self.repo / "refs/refs/pr/7").read_text(), "e" * 40)
        self.assertEqual((self.repo / "refs/main").read_text(), COMMIT)
        self.assertEqual(self.pull(f"{NAME}@refs/pr/7:q8_0", HF_HUB_OFFLINE="1"), path)
        self.assertEqual(self.pull(NAME, HF_HUB_OFFLINE="1").parent.name, COMMIT)

    def test_there_is_no_such_revision(self):
        self.refused("/tree/v2: HTTP status 404", f"{NAME}@v2")


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

    def test_room_for_all_parts(self):
        most = 3 * shutil.disk_usage(self.folder).free // 5
        self.hub.listing = [entry(name, content, size=most) for name, content in self.parts.items()]
        self.refused("needed .* of disk space, found ")
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

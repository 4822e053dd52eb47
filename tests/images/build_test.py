#!/usr/bin/env python3
"""images/build.sh with buildah, on a base that holds this machine's C library and nothing else."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from testing import BIN, ROOT, main  # noqa: E402

EPOCH = 1_700_000_000
CREATED = "2023-11-14T22:13:20Z"


class BuildTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-images-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        storage = cls.folder / "storage.conf"  # buildah's own place stays as it is
        storage.write_text(f'[storage]\ndriver = "vfs"\nrunroot = "{cls.folder}/run"\ngraphroot = "{cls.folder}/graph"\n')
        cls.env = {**os.environ, "CONTAINERS_STORAGE_CONF": str(storage), "SOURCE_DATE_EPOCH": str(EPOCH), "BIN": str(BIN), "BASE": "localhost/base",
                   "BUILDER": "buildah", "VERSION": "9.9"}
        cls.make_base()

    @classmethod
    def run_(cls, *command, check=True, **env):
        done = subprocess.run([str(word) for word in command], env={**cls.env, **env}, cwd=ROOT, capture_output=True, text=True, timeout=500)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
        return done

    @classmethod
    def make_base(cls):
        root = cls.folder / "base"
        for name in cls.run_("dpkg-query", "--listfiles", "libc6").stdout.split():
            if ".so" in name and pathlib.Path(name).is_file():
                (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(name, root / name[1:])
        container = cls.run_("buildah", "from", "scratch").stdout.strip()
        cls.run_("buildah", "copy", container, root, "/")
        cls.run_("buildah", "commit", container, "localhost/base")

    def build(self, out, *images):
        self.run_("images/build.sh", *images, OUT=str(self.folder / out))
        return {image: self.read(self.folder / out / f"ringmaster-{image}-9.9-{self.architecture()}.tar") for image in images}

    def architecture(self):
        return self.run_("dpkg", "--print-architecture").stdout.strip()

    def read(self, archive):
        """(digest, configuration) of the image in an OCI archive."""
        with tarfile.open(archive) as tar:
            def blob(digest):
                return json.load(tar.extractfile("blobs/" + digest.replace(":", "/")))
            digest = json.load(tar.extractfile("index.json"))["manifests"][0]["digest"]
            return digest, blob(blob(digest)["config"]["digest"])

    def test_images_are_not_roots_say_what_they_are_and_come_out_the_same_twice(self):
        first = self.build("first", "operator", "worker")
        self.assertEqual({image: digest for image, (digest, _) in first.items()},
                         {image: digest for image, (digest, _) in self.build("second", "operator", "worker").items()})
        for image, program in (("operator", "ringmaster-operator"), ("worker", "ringmaster-launcher")):
            _, made = first[image]
            self.assertEqual((made["os"], made["architecture"], made["created"]), ("linux", self.architecture(), CREATED))
            config = made["config"]
            self.assertEqual(config["User"], "65532:65532")
            self.assertEqual(config["Entrypoint"], [f"/usr/local/bin/{program}"])
            labels = {name.rsplit(".", 1)[1]: value for name, value in config["Labels"].items() if name.startswith("org.opencontainers.image.")}
            self.assertEqual((labels["title"], labels["version"], labels["created"]), (f"ringmaster-{image}", "9.9", CREATED))
            self.assertRegex(labels["revision"], r"^[0-9a-f]{40}(-dirty)?$|^unknown$")

    def test_images_add_little_to_their_base(self):
        """In the bytes that a registry keeps and a node pulls."""
        base = self.folder / "base.tar"
        self.run_("buildah", "push", "--quiet", "localhost/base", f"oci-archive:{base}")
        self.build("small", "operator", "worker")
        for image, megabytes in (("operator", 16), ("worker", 32)):
            archive = self.folder / "small" / f"ringmaster-{image}-9.9-{self.architecture()}.tar"
            self.assertLess((archive.stat().st_size - base.stat().st_size) / 1e6, megabytes, image)

    def test_cuda_image_finds_nccl_and_lacks_only_the_driver(self):
        """Which comes from the node. Needs NCCL's own library: a counted skip where `make nccl` has not put it there."""
        nccl = self.run_("cmake/fetch-nccl", "--where").stdout.strip()
        if not pathlib.Path(nccl).is_dir():
            self.skipTest("needs NCCL: make nccl")
        made = self.build("cuda", "worker-cuda")
        self.assertEqual(made["worker-cuda"][1]["config"]["Entrypoint"], ["/usr/local/bin/ringmaster-launcher"])
        self.assertIn("NVIDIA_VISIBLE_DEVICES=all", made["worker-cuda"][1]["config"]["Env"])
        container = self.run_("buildah", "from", "--pull-never", "localhost/ringmaster-worker-cuda:9.9").stdout.strip()
        done = self.run_("buildah", "run", "--isolation", "chroot", container, "--", "ringmaster-bench-collectives", "--transport", "nccl", check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("missing: the NVIDIA driver", done.stderr)
        self.assertNotIn("libnccl", done.stderr)

    def test_cuda_image_is_not_made_without_nccl(self):
        done = self.run_("images/build.sh", "worker-cuda", check=False, OUT=str(self.folder / "none"), NCCL=str(self.folder / "nowhere"))
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "there is no .*/nowhere/libnccl.so.2; `make nccl` fetches it")
        self.assertEqual(list((self.folder / "none").glob("*.tar")), [])

    def test_an_image_that_does_not_exist_is_named(self):
        done = self.run_("images/build.sh", "wroker", check=False, OUT=str(self.folder / "wrong"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no image is called wroker", done.stderr)


if __name__ == "__main__":
    main()

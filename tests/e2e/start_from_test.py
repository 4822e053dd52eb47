#!/usr/bin/env python3
"""Jobs that begin with what another job trained, as a user starts them one after another."""
import json
import shutil
import struct

from ringmaster_run import ROOT, RunTest, main

DIGITS = ROOT / "examples/digits"
# The main run of cycles, two epochs each: 45 steps of 64 out of 1,438 samples.
CYCLES = ("spec.trainer.epochs=4", "spec.trainer.schedule={cyclic: {epochs: 2, riseEpochs: 0.5, lowFraction: 0.1}}",
          "spec.checkpoint={directory: cycles, everySteps: 45, everySeconds: 0, keep: 2}")
COLLAPSE = ("spec.trainer.epochs=3", "spec.trainer.schedule={cyclic: {epochs: 2, riseEpochs: 0.5, lowFraction: 0.1}, collapse: {epochs: 1}}")


def tensors_of(path):
    """{name: (dtype, shape, bytes)} of a safetensors file."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: (one["dtype"], one["shape"], data[slice(*one["data_offsets"])]) for name, one in header.items()}


def write_tensors(path, tensors):
    """As any other program writes them: without our metadata."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class StartFrom(RunTest):
    def workspace(self):
        """A folder with the manifest and its data: relative paths of the manifest begin in its folder."""
        folder = self.fresh_folder()
        for name in ("job.yaml", "digits.csv"):
            shutil.copy(DIGITS / name, folder)
        return folder

    def trained(self, folder, name, *settings, workers=2):
        sets = [argument for setting in settings for argument in ("--set", setting)]
        return self.run_job(folder / "job.yaml", "--workers", str(workers), "--set", f"metadata.name={name}", *sets, folder=folder)

    def test_a_collapse_that_branches_off_a_run_of_cycles_has_the_bits_of_one_that_computed_all_of_it(self):
        folder = self.workspace()
        self.trained(folder, "cycles", *CYCLES).result()
        branch = "spec.trainer.startFrom={path: cycles, step: 45, take: Everything}"
        collapsed = self.trained(folder, "collapse", *COLLAPSE, branch, workers=1)
        expected = self.trained(self.workspace(), "collapse", *COLLAPSE).result()
        self.assertEqual(collapsed.result(), expected)
        self.assertIn("from what spec.trainer.startFrom names", collapsed.text())

    def test_weights_of_another_program_begin_a_run_all_but_the_layer_that_is_excepted(self):
        folder = self.workspace()
        before = self.trained(folder, "before", "spec.trainer.epochs=4", "spec.checkpoint.directory=before", workers=1)
        before.result()
        newest = max((folder / "before").iterdir(), key=lambda path: path.stat().st_mtime)
        weights = {name: one for name, one in tensors_of(newest).items() if not name.startswith("optimizer.")}
        last = [name for name in weights if name.rpartition(".")[0] == list(weights)[-1].rpartition(".")[0]]
        write_tensors(folder / "body.safetensors", {name: one for name, one in weights.items() if name not in last})
        start = "spec.trainer.startFrom={path: body.safetensors%s}"
        refused = self.trained(folder, "refused", "spec.trainer.epochs=1", start % "")
        self.assertEqual(refused.wait(), 2)
        self.assertRegex(refused.text(), r"spec\.trainer\.startFrom: worker 0: \S*body\.safetensors: has no " + last[0].replace(".", r"\."))
        tuned = self.trained(folder, "tuned", "spec.trainer.epochs=1", start % f", except: [{last[0].rpartition('.')[0]}.*]")
        tuned.result()
        self.assertEqual([one["step"] for one in tuned.job("tuned")["status"]["checkpoints"]], [23, 0])
        anew = self.trained(self.workspace(), "anew", "spec.trainer.epochs=1")
        anew.result()
        loss = {run: run.job(name)["status"]["result"]["evaluation"]["loss"] for run, name in ((tuned, "tuned"), (anew, "anew"))}
        self.assertLess(loss[tuned], loss[anew])


if __name__ == "__main__":
    main()

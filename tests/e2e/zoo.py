"""Jobs that train a network of the zoo by its name, and what their tests ask: that a few steps on a handful of samples bring the loss down."""
import json
import random
import re
import struct

from ringmaster_run import ROOT, RunTest

# Every network that a manifest may name.
NAMES = re.findall(r'Network\{\.name = "([^"]+)"', (ROOT / "common/networks.h").read_text())
WORKERS = 2
CLASSES = 4
SAMPLES = 16  # a batch; every fifth line of the data is held out besides


def images(side, channels):
    """A csv of images with one bright quarter, which is the class."""
    draw = random.Random(1)
    half = side // 2
    lines = [",".join(["label", *(f"p{i}" for i in range(channels * side * side))])]
    for row in range(SAMPLES * 5 // 4):
        label = row * 7 % CLASSES
        pixels = [draw.randrange(12) + 16 * (2 * (y // half) + x // half == label) for _ in range(channels) for y in range(side) for x in range(side)]
        lines.append(",".join(map(str, [label, *pixels])))
    return "\n".join(lines) + "\n"


class ZooTest(RunTest):
    def data(self, recipe):
        """Writes the data and says what spec.trainer.data is."""
        window = recipe.get("window")
        if window is not None:  # counts to four; a window of an odd length begins at each of them
            times = window * SAMPLES // 2
            vocabulary = recipe.get("vocabulary")
            if vocabulary is None:
                (self.folder / "count.txt").write_text("1234" * times)
                return {"text": {"path": "count.txt", "window": window}}
            tokens = [place * (vocabulary - 1) // 3 for place in range(4)]
            (self.folder / "count.bin").write_bytes(struct.pack("<4H", *tokens) * times)
            return {"text": {"path": "count.bin", "window": window, "vocabulary": vocabulary}}
        side, channels = recipe["side"], recipe.get("channels", 1)
        (self.folder / "images.csv").write_text(images(side, channels))
        return {"csv": {"path": "images.csv", "classes": recipe.get("classes", CLASSES), "shape": [channels, side, side], "scale": 12}}

    def check_learns(self, name, recipe, steps, rate, share):
        """The loss of step `steps` is less than that share of the first one's. Each is the last of a run of its own. A recipe may have another rate."""
        trainer = {"model": {"zoo": {"name": name, **recipe.get("settings", {})}}, "data": self.data(recipe), "optimizer": {"adam": {"learningRate": recipe.get("rate", rate)}},
                   "batch": {"size": SAMPLES, "shards": WORKERS}, "evaluation": {"everyEpochs": 0}}
        losses = []
        for count in (1, steps):
            job = {"apiVersion": "training.ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": f"steps-{count}"},
                   "spec": {"workers": {"replicas": WORKERS}, "trainer": {**trainer, "steps": count}}}
            manifest = self.folder / f"{count}.yaml"
            manifest.write_text(json.dumps(job))
            run = self.run_job(manifest)
            run.result()
            losses.append(run.job(f"steps-{count}")["status"]["result"]["loss"])
        first, last = losses
        self.assertGreater(first, 1)  # of four classes, log 4 in the mean
        self.assertLess(last, share * first)

    @classmethod
    def add(cls, recipes, sentence, **how):
        """A test for each network, `how` being the rest of what check_learns takes."""
        for name in NAMES:
            setattr(cls, f"test_{name.replace('-', '_')}_{sentence}", lambda self, name=name: self.check_learns(name, recipes[name], **how))

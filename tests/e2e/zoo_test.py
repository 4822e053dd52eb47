#!/usr/bin/env python3
"""Every network that a manifest may name, made thin and on small samples, trains through `ringmaster run`."""
from ringmaster_run import main
from zoo import ZooTest

RECIPES = {
    "lenet": {"side": 28, "settings": {"width": 0.5}},
    "lenet-bn": {"side": 8},
    "alexnet": {"side": 64, "settings": {"width": 0.125, "dropout": 0}},
    "vgg-16": {"side": 32, "settings": {"width": 0.125, "dropout": 0}},
    "resnet-18": {"side": 32, "settings": {"width": 0.125}},
    "resnet-50": {"side": 32, "settings": {"width": 0.125}},
    "densenet-121": {"side": 32, "settings": {"width": 0.25}},
    "gpt-2": {"window": 13, "settings": {"width": 0.1, "layers": 2}},
}


LITTLE = {"steps": 16, "rate": 0.002, "share": 0.7}


class Zoo(ZooTest):
    def test_gpt_2_learns_what_a_tokenizer_wrote(self):
        self.check_learns("gpt-2", {**RECIPES["gpt-2"], "vocabulary": 50257}, **LITTLE)


Zoo.add(RECIPES, "learns_a_batch_by_heart", **LITTLE)

if __name__ == "__main__":
    main()

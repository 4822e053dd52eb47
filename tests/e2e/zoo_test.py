#!/usr/bin/env python3
"""Every network that a manifest may name, on small samples, trains through `ringmaster run`. `make soak` plays them at full size."""
from ringmaster_run import main
from zoo import ZooTest

# As wide as published, but VGG-16, of which two workers would take 8 GB.
RECIPES = {
    "lenet": {"side": 28},
    "lenet-bn": {"side": 8},
    "alexnet": {"side": 64, "settings": {"dropout": 0}, "rate": 0.0002},
    "vgg-16": {"side": 32, "settings": {"dropout": 0, "width": 0.5}, "rate": 0.0002},
    "resnet-18": {"side": 32},
    "resnet-50": {"side": 32},
    "densenet-121": {"side": 32},
    "gpt-2": {"window": 13, "settings": {"layers": 2}},
}


LITTLE = {"steps": 16, "rate": 0.002, "share": 0.7}


class Zoo(ZooTest):
    def test_gpt_2_learns_what_a_tokenizer_wrote(self):
        self.check_learns("gpt-2", {**RECIPES["gpt-2"], "vocabulary": 50257}, **LITTLE)


Zoo.add(RECIPES, "learns_a_batch_by_heart", **LITTLE)

if __name__ == "__main__":
    main()

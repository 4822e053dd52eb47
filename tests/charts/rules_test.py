#!/usr/bin/env python3
"""The chart's alerts, rendered and put through promtool; and whether every series that rules and dashboards ask for is one that we serve."""
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import yaml

import tools
from testing import ROOT, main

RULES_ON = ["--set", "metrics.rules.enabled=true"]


def rendered_rules(*arguments):
    item, = [item for item in yaml.safe_load_all(tools.template(*RULES_ON, *arguments)) if item and item["kind"] == "PrometheusRule"]
    return {"groups": item["spec"]["groups"]}


def served():
    """The metrics of docs/debug.md, which lists all that our programs serve, with the parts of a histogram."""
    names = {"up"}
    for name, kind in re.findall(r"^\| `(\w+)[^`]*` \| (\w+) \|", (ROOT / "docs/debug.md").read_text(), re.MULTILINE):
        names.update([name + part for part in ("_bucket", "_sum", "_count")] if kind == "histogram" else [name])
    return names


def asked(expression):
    return set(re.findall(r"\bringmaster_\w+", expression))


class RulesTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ringmaster-rules-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_each_alert_fires_when_it_should_and_only_then(self):
        (self.folder / "rules.yaml").write_text(json.dumps(rendered_rules()))
        shutil.copy(ROOT / "tests/charts/rules.yaml", self.folder / "test.yaml")
        tools.run(tools.promtool(), "check", "rules", self.folder / "rules.yaml")
        tools.run(tools.promtool(), "test", "rules", self.folder / "test.yaml")

    def test_every_alert_has_a_test(self):
        alerts = {rule["alert"] for group in rendered_rules()["groups"] for rule in group["rules"]}
        tested = {case["alertname"] for test in yaml.safe_load((ROOT / "tests/charts/rules.yaml").read_text())["tests"]
                  for case in test["alert_rule_test"] if case["exp_alerts"]}
        self.assertEqual(alerts, tested)

    def test_rules_of_one_namespace_are_valid_and_speak_of_no_other(self):
        rules = rendered_rules("--set", "watchNamespace=team-a,metrics.rules.alertLabels.team=ml")
        (self.folder / "rules.yaml").write_text(json.dumps(rules))
        tools.run(tools.promtool(), "check", "rules", self.folder / "rules.yaml")
        for group in rules["groups"]:
            for rule in group["rules"]:
                self.assertEqual(rule["labels"]["team"], "ml")
                for selector in re.findall(r"ringmaster_trainer_\w+\{([^}]*)\}", rule["expr"]):
                    self.assertIn('namespace="team-a"', selector)


class SeriesTest(unittest.TestCase):
    def test_rules_ask_for_series_that_exist(self):
        for group in rendered_rules()["groups"]:
            for rule in group["rules"]:
                self.assertLessEqual(asked(rule["expr"]), served(), rule["alert"])

    def test_dashboards_ask_for_series_that_exist(self):
        for path in (tools.CHART / "files/dashboards").glob("*.json"):
            board = json.loads(path.read_text())
            for panel in board["panels"]:
                for target in panel["targets"]:
                    self.assertLessEqual(asked(target["expr"]), served(), f"{path.name}: {panel['title']}")

    def test_the_list_of_series_is_what_the_programs_make(self):
        operator = "".join(path.read_text() for path in (ROOT / "operator").rglob("*.cc") if not path.name.endswith("_test.cc"))
        trainer = (ROOT / "runtime/train/trainer_metrics.cc").read_text()
        made = set(re.findall(r'"(ringmaster_operator_\w+)"', operator)) | {
            "ringmaster_trainer_" + name for name in re.findall(r'Name\("(\w+)"\)', trainer)}
        self.assertGreater(len(made), 20)
        listed = set(re.findall(r"^\| `(ringmaster_\w+)", (ROOT / "docs/debug.md").read_text(), re.MULTILINE))
        self.assertLessEqual(made, listed)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Both dashboards as Grafana would read them, as far as that can be told without one. Whether the queries answer: dashboards_test.py."""
import itertools
import json
import re
import unittest

import tools
from testing import main

FILES = sorted((tools.CHART / "files/dashboards").glob("*.json"))
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24
TYPES = {"stat", "timeseries"}
UNITS = {"none", "percentunit", "s", "Bps", "cps", "ops"}  # Grafana's names, of which it shows an unknown one as it is


def overlap(one, other):
    return (one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
            and one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"])


class DashboardFilesTest(unittest.TestCase):
    def setUp(self):
        self.boards = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FILES}
        self.assertEqual(set(self.boards), {"job", "operator"})

    def panels(self):
        """(where it is, the panel) of both."""
        return [(f"{name}: {panel['id']}, {panel['title']}", panel) for name, board in self.boards.items() for panel in board["panels"]]

    def test_boards_can_be_told_apart(self):
        for key in ("uid", "title"):
            self.assertEqual(len({board[key] for board in self.boards.values()}), len(self.boards), key)
        for board in self.boards.values():
            self.assertNotIn("id", board)  # of the database that it came from; another's, where it is loaded
            self.assertRegex(board["uid"], r"^[a-z-]{1,40}$")
            self.assertGreaterEqual(board["schemaVersion"], 39)

    def test_panels_have_ids_of_their_own_titles_and_units(self):
        for board in self.boards.values():
            ids = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(ids), len(set(ids)), ids)
        for where, panel in self.panels():
            self.assertIn(panel["type"], TYPES, where)
            self.assertTrue(panel["title"].strip(), where)
            self.assertIn(panel["fieldConfig"]["defaults"].get("unit"), UNITS, where)

    def test_every_query_goes_to_the_source_that_the_user_chose(self):
        for board in self.boards.values():
            first, *others = board["templating"]["list"]
            self.assertEqual((first["name"], first["type"], first["query"]), ("datasource", "datasource", "prometheus"))
            for variable in others:
                self.assertEqual(variable["datasource"], SOURCE, variable["name"])
        for where, panel in self.panels():
            self.assertEqual(panel["datasource"], SOURCE, where)
            self.assertTrue(panel["targets"], where)
            for target in panel["targets"]:
                self.assertEqual(target.get("datasource", SOURCE), SOURCE, where)
                self.assertTrue(target["legendFormat"], where)
            names = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(names), len(set(names)), where)

    def test_queries_use_no_variable_that_is_not_there_and_each_that_is(self):
        for name, board in self.boards.items():
            variables = {variable["name"] for variable in board["templating"]["list"]} - {"datasource"}
            used = set()
            for panel in board["panels"]:
                for target in panel["targets"]:
                    used |= set(re.findall(r"\$\{?(\w+)", target["expr"]))
            self.assertEqual({variable for variable in used if not variable.startswith("__")}, variables, name)

    def test_panels_lie_in_the_grid_and_not_on_one_another(self):
        for where, panel in self.panels():
            place = panel["gridPos"]
            self.assertTrue(min(place["x"], place["y"]) >= 0 and min(place["w"], place["h"]) > 0, where)
            self.assertLessEqual(place["x"] + place["w"], COLUMNS, where)
        for board in self.boards.values():
            for one, other in itertools.combinations(board["panels"], 2):
                self.assertFalse(overlap(one["gridPos"], other["gridPos"]), (one["title"], other["title"]))


if __name__ == "__main__":
    main()

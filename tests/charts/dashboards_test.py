#!/usr/bin/env python3
"""Every query of both dashboards, put to a real Prometheus that scrapes a real run, returns data."""
import json
import math
import re
import unittest

import tools
from scraped_run import JOB, NAMESPACE, OPERATOR, ScrapedRun, panels
from testing import main, wait_until


def has_data(result):
    return any(math.isfinite(float(series["value"][1])) for series in result)


class DashboardsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scraped = ScrapedRun()
        cls.addClassCleanup(cls.scraped.stop)
        cls.scraped.start()

    def ask(self, query):
        self.assertTrue(self.scraped.run.running(), self.scraped.run.text())
        return self.scraped.prometheus.ask("query", query=query)

    def test_every_query_returns_data(self):
        waiting = {(name, panel["title"], query) for name, panel, _, query in panels()}
        self.assertGreater(len(waiting), 30)

        def all_answered():
            waiting.difference_update([item for item in waiting if has_data(self.ask(item[2]))])
            return not waiting
        wait_until(all_answered, lambda: "data for " + "; ".join(map(str, sorted(waiting))), deadline=120, between=0.5)

    def test_variables_list_the_operator_and_the_job(self):
        def values(name):
            board = json.loads((tools.CHART / f"files/dashboards/{name}.json").read_text())
            series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", board["templating"]["list"][-1]["query"]["query"]).groups()
            return {item["metric"].get(label) for item in self.ask(series.replace("$namespace", NAMESPACE))}
        wait_until(lambda: values("operator") == {OPERATOR} and values("job") == {JOB}, "the variables' values", deadline=60, between=0.5)


if __name__ == "__main__":
    main()

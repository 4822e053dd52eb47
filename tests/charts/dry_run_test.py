#!/usr/bin/env python3
"""A real API server takes every object of every shape of the chart, and says no word of warning."""
import sys

import tools
from chart_test import SHAPES
from testing import ROOT, main

sys.path.insert(0, str(ROOT / "tests/integration/kubernetes"))
from cluster_test_case import ClusterTest, kubectl  # noqa: E402


class DryRunTest(ClusterTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for file in tools.monitoring_definitions():
            kubectl("apply", "--server-side", "-f", str(file))
            kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(file))

    def test_every_shape_is_accepted(self):
        for shape, arguments in SHAPES.items():
            with self.subTest(shape):
                rendered = tools.template(*arguments, namespace=self.namespace)
                rendered = rendered.replace("team-a", self.namespace).replace("team-b", "default")  # namespaces that are there
                code, answer = kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=helm", "--dry-run=server", "-f", "-",
                                       stdin=rendered, check=False)
                self.assertEqual(code, 0, answer)
                self.assertNotIn("Warning", answer)

    def test_operator_pod_is_admitted_under_the_restricted_standard(self):
        kubectl("label", "namespace", self.namespace, "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
        rendered = tools.template("--show-only", "templates/deployment.yaml", namespace=self.namespace)
        code, answer = kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", stdin=rendered, check=False)
        self.assertEqual((code, "Warning" in answer), (0, False), answer)


if __name__ == "__main__":
    main()

"""Prints the name, the label `point` and the value of each sample of a file, by the parser of OpenMetrics."""

import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8") as file:
    for family in text_string_to_metric_families(file.read()):
        for sample in family.samples:
            print(sample.name, sample.labels.get("point", "-"), sample.value)

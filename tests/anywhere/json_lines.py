"""Checks each line of a file of hcabench --json-lines by its schema, and prints the types of the lines."""

import json
import sys

import jsonschema

schema, lines = sys.argv[1:]
with open(schema, encoding="utf-8") as file:
    schema = json.load(file)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
with open(lines, encoding="utf-8") as file:
    for number, line in enumerate(file, 1):
        about = json.loads(line)
        if error := jsonschema.exceptions.best_match(validator.iter_errors(about)):
            sys.exit(f"{lines}, line {number}: {error.message} at {error.json_path}")
        print(about["type"])

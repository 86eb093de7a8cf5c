"""Reads bank files with programs of others.

Argument: a folder with bank files *.xml. Prints an object with a member for each file: what each
program has read, with the names of ISO 20022 as keys.
"""

import datetime
import json
import pathlib
import sys

import iso20022
from mockbank import validate

# Before all dates of the files: mock-bank warns about dates in the past.
TODAY = datetime.date(2026, 1, 1)


def read_with_mock_bank(data):
    """Its tree of the message, and the problems that it names."""
    file, problems = validate.inspect(data, None, TODAY)
    return {
        "tree": iso20022.plain(file.node) if file else None,
        "problems": [validate.render(problem) for problem in problems],
    }


folder = pathlib.Path(sys.argv[1])
result = {}
for path in folder.glob("*.xml"):
    data = path.read_bytes()
    # mock-bank does not know recalls.
    mock_bank = None if b"camt.055" in data else read_with_mock_bank(data)
    result[path.name] = {"mock_bank": mock_bank, "pyiso20022": iso20022.read(data)}
print(json.dumps(result))

"""Reads bank files with programs of others.

Argument: a folder with bank files *.xml. Prints an object with the problems that mock-bank names in
each file. Fails if pyiso20022 does not read one of them.
"""

import datetime
import json
import pathlib
import sys

import iso20022
from mockbank import validate

# Before all dates of the files: mock-bank warns about dates in the past.
TODAY = datetime.date(2026, 1, 1)

result = {}
for path in pathlib.Path(sys.argv[1]).glob("*.xml"):
    data = path.read_bytes()
    iso20022.read(data)
    # mock-bank does not know recalls.
    problems = [] if b"camt.055" in data else validate.inspect(data, None, TODAY)[1]
    result[path.name] = [validate.render(problem) for problem in problems]
print(json.dumps(result))

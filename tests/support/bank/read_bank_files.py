"""Reads bank files with programs of others, and writes some with sepaxml.

Argument: a folder with bank files *.xml, and with orders for sepaxml in *.json. Prints an object
with a member for each file: what each program has read, with the names of ISO 20022 as keys.
"""

import datetime
import json
import pathlib
import sys

import iso20022
import sepaxml
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


def write_with_sepaxml(orders):
    """The file of the same orders, which have dates as text."""
    writer = getattr(sepaxml, orders["class"])(orders["config"], orders["schema"], clean=False)
    for payment in orders["payments"]:
        for key in ("execution_date", "collection_date", "mandate_date"):
            if key in payment:
                payment[key] = datetime.date.fromisoformat(payment[key])
        writer.add_payment(payment)
    return writer.export(validate=False)


folder = pathlib.Path(sys.argv[1])
result = {}
for path in folder.glob("*.xml"):
    data = path.read_bytes()
    # mock-bank does not know recalls.
    mock_bank = None if b"camt.055" in data else read_with_mock_bank(data)
    result[path.name] = {"mock_bank": mock_bank, "pyiso20022": iso20022.read(data)}
for path in folder.glob("*.json"):
    data = write_with_sepaxml(json.loads(path.read_bytes()))
    result[path.name] = {"mock_bank": read_with_mock_bank(data), "pyiso20022": None}
print(json.dumps(result))

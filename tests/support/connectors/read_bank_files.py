"""Reads bank files with programs of others, and writes some with sepaxml.

Argument: a folder with bank files *.xml, and with orders for sepaxml in *.json. Prints an object
with a member for each file: what each program has read, with the names of ISO 20022 as keys.
"""

import datetime
import importlib
import json
import pathlib
import re
import sys
from decimal import Decimal

import sepaxml
from mockbank import schema, validate
from xsdata.formats.dataclass.parsers import XmlParser
from xsdata.formats.dataclass.parsers.config import ParserConfig
from xsdata.formats.dataclass.serializers import DictEncoder

# Before all dates of the files: mock-bank warns about dates in the past.
TODAY = datetime.date(2026, 1, 1)


def plain(value):
    """A tree without empty members, and with amounts as text and currency."""
    if isinstance(value, schema.Amount):
        amount = Decimal(value.minor).scaleb(-schema.exponent(value.ccy))
        return {"value": str(amount), "Ccy": value.ccy}
    if isinstance(value, dict):
        pairs = [(key, plain(member)) for key, member in value.items()]
        return {key: member for key, member in pairs if member not in (None, [])}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value


def read_with_mock_bank(data):
    """Its tree of the message, and the problems that it names."""
    file, problems = validate.inspect(data, None, TODAY)
    return {
        "tree": plain(file.node) if file else None,
        "problems": [validate.render(problem) for problem in problems],
    }


def read_with_pyiso20022(data):
    """The tree of the message in the classes of its version."""
    # There are no classes for this version, and the next one has all its elements.
    data = data.replace(b":pain.008.001.08", b":pain.008.001.09")
    area, *version = re.search(rb"xsd:(\w+)\.(\d+)\.(\d+)\.(\d+)", data).groups()
    name = b"_".join([area, *version]).decode()
    module = importlib.import_module(f"pyiso20022.{area.decode()}.{name}.{name}")
    parser = XmlParser(config=ParserConfig(fail_on_unknown_properties=True))
    [message] = plain(DictEncoder().encode(parser.from_bytes(data, module.Document))).values()
    return message


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
    result[path.name] = {"mock_bank": mock_bank, "pyiso20022": read_with_pyiso20022(data)}
for path in folder.glob("*.json"):
    data = write_with_sepaxml(json.loads(path.read_bytes()))
    result[path.name] = {"mock_bank": read_with_mock_bank(data), "pyiso20022": None}
print(json.dumps(result))

"""Reads and writes messages with the classes of pyiso20022: trees whose keys are the names of ISO
20022.
"""

import importlib
import re

from mockbank import messages
from xsdata.formats.dataclass.parsers import DictDecoder, XmlParser
from xsdata.formats.dataclass.parsers.config import ParserConfig
from xsdata.formats.dataclass.serializers import DictEncoder, XmlSerializer

# The element of a kind of file, and in it that of an account.
STATEMENTS = {
    "camt.052": ("BkToCstmrAcctRpt", "Rpt"),
    "camt.053": ("BkToCstmrStmt", "Stmt"),
    "camt.054": ("BkToCstmrDbtCdtNtfctn", "Ntfctn"),
}
STRICT = ParserConfig(fail_on_unknown_properties=True)


def plain(value):
    """A tree without empty members."""
    if isinstance(value, dict):
        pairs = [(key, plain(member)) for key, member in value.items()]
        return {key: member for key, member in pairs if member not in (None, [])}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value


def document_of(message):
    """The class of the whole document of a message such as camt.053.001.08."""
    name = message.replace(".", "_")
    return importlib.import_module(f"pyiso20022.{name[:4]}.{name}.{name}").Document


def read(data):
    """The tree of the message in the classes of its version."""
    # There are no classes for this version, and the next one has all its elements.
    data = data.replace(b":pain.008.001.08", b":pain.008.001.09")
    message = re.search(rb"xsd:(\w+\.\d+\.\d+\.\d+)", data)[1].decode()
    document = XmlParser(config=STRICT).from_bytes(data, document_of(message))
    [tree] = plain(DictEncoder().encode(document)).values()
    return tree


def write(message, tree):
    """The text of a message. The classes put its elements in order."""
    document = DictDecoder(STRICT).decode(tree, document_of(message))
    namespace = f"urn:iso:std:iso:20022:tech:xsd:{message}"
    return XmlSerializer().render(document, ns_map={None: namespace})


def money(amount, currency):
    """An amount with its direction. Amounts are minor units, and negative if money leaves."""
    return {
        "Amt": {"value": messages.format_decimal(abs(amount), currency), "Ccy": currency},
        "CdtDbtInd": "DBIT" if amount < 0 else "CRDT",
    }


def balance(code, amount, day, currency):
    return {"Tp": {"CdOrPrtry": {"Cd": code}}, **money(amount, currency), "Dt": {"Dt": day}}


def detail(of, currency, version="08"):
    """A part of an entry: {amount, id? or uetr?, party?, text? or reference?, return?}."""
    tree = money(of["amount"], currency)
    if version < "08":
        tree = {"AmtDtls": {"TxAmt": {"Amt": tree["Amt"]}}}
    is_back = "return" in of
    # A return names the parties of its order.
    role = "Dbtr" if (of["amount"] > 0) != is_back else "Cdtr"
    tree["Refs"] = {"EndToEndId": of.get("id", "NOTPROVIDED")}
    if "uetr" in of:
        tree["Refs"]["UETR"] = of["uetr"]
    if "party" in of:
        name = {"Nm": of["party"]["name"]}
        tree["RltdPties"] = {
            role: {"Pty": name} if version >= "08" else name,
            f"{role}Acct": {"Id": {"IBAN": of["party"]["iban"]}},
        }
    if "text" in of:
        tree["RmtInf"] = {"Ustrd": [of["text"]]}
    if "reference" in of:
        kind = {"CdOrPrtry": {"Cd": "SCOR"}}
        tree["RmtInf"] = {"Strd": [{"CdtrRefInf": {"Tp": kind, "Ref": of["reference"]}}]}
    if is_back:
        tree["RtrInf"] = {"Rsn": {"Cd": of["return"]}}
    return tree


def code(families):
    """The code of a family and its sub-family."""
    [family, sub_family] = families.split()
    return {"Domn": {"Cd": "PMNT", "Fmly": {"Cd": family, "SubFmlyCd": sub_family}}}

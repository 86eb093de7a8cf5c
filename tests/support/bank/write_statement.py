"""Writes a camt.053 or camt.054 with any number of entries, of which it keeps none in memory.
pyiso20022 writes each form of entry once, with places for the values.

Standard input: a line with the message, account, currency, day and balances, then a line for each
entry, all JSON. Standard output: the file. Amounts are minor units, and negative if money leaves.
"""

import json
import re
import sys
from xml.sax.saxutils import escape

import iso20022

# The amounts of a form: of the entry, of its charges, and of its details.
AMOUNT, CHARGE, FIRST_DETAIL = 77777701, 77777702, 77777710
# Members of a detail that are texts of any length.
TEXTS = ("text", "reference", "id")


def entry_tree(entry, head):
    currency = head["currency"]
    tree = {
        **iso20022.money(entry["amount"], currency),
        **({"RvslInd": True} if entry.get("is_reversal") else {}),
        "Sts": {"Cd": "BOOK"},
        "BookgDt": {"Dt": head["day"]},
        "ValDt": {"Dt": head["day"]},
        **({"AcctSvcrRef": entry["number"]} if "number" in entry else {}),
        "BkTxCd": iso20022.code(entry["family"]),
    }
    if "charge" in entry:
        amount = iso20022.money(entry["charge"], currency)
        tree["Chrgs"] = {"Rcrd": [{**amount, "ChrgInclInd": True}]}
    if entry.get("details"):
        details = [iso20022.detail(each, currency) for each in entry["details"]]
        tree["NtryDtls"] = [{"TxDtls": details}]
    return tree


def document(head, entry):
    def balance(code, amount):
        return iso20022.balance(code, amount, head["day"], head["currency"])

    root, element = iso20022.STATEMENTS[head["message"][:8]]
    at = f"{head['day']}T20:00:00Z"
    statement = {
        "Id": head["id"],
        "CreDtTm": at,
        "Acct": {"Id": {"IBAN": head["iban"]}, "Ccy": head["currency"]},
        "Ntry": [entry_tree(entry, head)],
    }
    if "closing" in head:
        balances = [balance("OPBD", head["opening"]), balance("CLBD", head["closing"])]
        statement["Bal"] = balances
    header = {"MsgId": head["id"], "CreDtTm": at}
    return iso20022.write(head["message"], {root: {"GrpHdr": header, element: [statement]}})


def places_of(entry):
    """The same entry with places for its values, and the values in the order of their places."""
    form, values = dict(entry), {}

    def amount_place(number, amount):
        values[f"{number // 100}.{number % 100:02}"] = f"{abs(amount) // 100}.{abs(amount) % 100:02}"
        return -number if amount < 0 else number

    def text_place(name, text):
        values[f"@{name}@"] = text
        return f"@{name}@"

    form["amount"] = amount_place(AMOUNT, entry["amount"])
    if "charge" in entry:
        form["charge"] = amount_place(CHARGE, entry["charge"])
    if "number" in entry:
        form["number"] = text_place("number", entry["number"])
    form["details"] = []
    for at, detail in enumerate(entry.get("details", [])):
        each = {**detail, "amount": amount_place(FIRST_DETAIL + at, detail["amount"])}
        for name in TEXTS:
            if name in detail:
                each[name] = text_place(f"{name}{at}", detail[name])
        form["details"].append(each)
    return form, values


def split(text):
    """The text before the entry, the entry, and the text behind it."""
    return re.fullmatch(r"(.*)(<Ntry>.*</Ntry>)(.*)", text, re.DOTALL).groups()


def main():
    head = json.loads(sys.stdin.readline())
    forms = {}
    start, _, end = split(document(head, {"amount": 1, "family": "RCDT ESCT"}))
    sys.stdout.write(start)
    for line in sys.stdin:
        form, values = places_of(json.loads(line))
        key = json.dumps(form)
        if key not in forms:
            forms[key] = split(document(head, form))[1]
        text = forms[key]
        for place, value in values.items():
            text = text.replace(place, escape(value))
        sys.stdout.write(text + "\n")
    sys.stdout.write(end)


main()

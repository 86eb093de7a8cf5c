"""A bank, as a customer sees it: it takes files of orders, books, and writes statements,
notifications and status reports. It reads with mock-bank and writes with pyiso20022, and shares no
code with the product.

Each line of standard input is a command: {"do": name, "iban": …} with the parameters of its method
of `Account`. Each line of standard output is its result, or {"error": …}.
"""

import datetime
import json
import sys

import iso20022
from mockbank import validate

# Before all dates of the files: mock-bank warns about dates in the past.
TODAY = datetime.date(2026, 1, 1)
# Results of the verification of payee, by the beginning of the name.
CHECKS = {"Match": "RCVC", "Close match": "RVMC", "No match": "RVNM", "No check": "RVNA"}
# Families of transactions by the direction of an order: for the order, and for its return.
FAMILIES = {-1: ("ICDT ESCT", "RCDT RRTN"), 1: ("IDDT ESDD", "IDDT UPDD")}


class Refused(Exception):
    """The bank refuses a command."""


class Account:
    """An account. Amounts are minor units, and negative if money leaves."""

    def __init__(self, iban, bic, currency, has_references=True):
        self.iban, self.bic, self.currency = iban, bic, currency
        self.has_references = has_references
        self.files = {}
        self.orders = {}
        self.entries = []
        self.messages = 0

    def take(self, text):
        """Takes a file of orders, or a recall. Returns its orders and the bank's reply. The same
        file again changes nothing, and has no reply."""
        data = text.encode()
        if b":camt.055." in data:
            return self.recall(iso20022.read(data))
        file, problems = validate.inspect(data, None, TODAY)
        if problems:
            raise Refused("; ".join(validate.render(problem) for problem in problems))
        if file.msg_id in self.files:
            if self.files[file.msg_id] != text:
                raise Refused(f"{file.msg_id} has other bytes than before")
            return {"orders": [], "reply": None}
        found = [order for batch in file.batches for order in self.orders_of(file, batch)]
        for order in found:
            if order["id"] in self.orders:
                raise Refused(f"{order['id']} is in two files")
        uetrs = uetrs_of(data)
        for order in found:
            order["uetr"] = uetrs.get(order["id"])
        self.files[file.msg_id] = text
        self.orders.update((order["id"], order) for order in found)
        checked = [order for order in found if order["check"]]
        reply = self.report(file.msg_id, checked, "check", None if checked else "ACTC")
        orders = [{key: order[key] for key in ("id", "batch", "state")} for order in found]
        return {"orders": orders, "reply": reply}

    def orders_of(self, file, batch):
        is_payout = hasattr(batch, "payments")
        own = batch.debtor_account if is_payout else batch.creditor_account
        if own != self.iban:
            raise Refused(f"the account {own} is not that of {self.iban}")
        for order in batch.payments if is_payout else batch.collections:
            name = order.creditor_name if is_payout else order.debtor_name
            check = next((CHECKS[start] for start in CHECKS if name.startswith(start)), None)
            check = check if is_payout else None
            yield {
                "id": order.end_to_end_id,
                "file": file.msg_id,
                "message": file.message,
                "batch": batch.pmt_inf_id,
                "amount": -order.amount if is_payout else order.amount,
                "party": {
                    "name": name,
                    "iban": order.creditor_account if is_payout else order.debtor_account,
                },
                "mandate": None if is_payout else order.mandate_id,
                "code": None,
                "check": check,
                "state": "taken" if check in (None, "RCVC") else "held",
            }

    def recall(self, tree):
        """Gives orders back that are not booked."""
        batches = []
        for underlying in tree["Undrlyg"]:
            for batch in underlying["OrgnlPmtInfAndCxl"]:
                statuses = []
                for recalled in batch["TxInf"]:
                    order = self.orders[recalled["OrgnlEndToEndId"]]
                    is_open = order["state"] in ("taken", "held")
                    order["state"] = "recalled" if is_open else order["state"]
                    code, reason = ("ACCR", "CUST") if is_open else ("RJCR", "ARDT")
                    statuses.append({
                        "OrgnlEndToEndId": order["id"],
                        "TxCxlSts": code,
                        "CxlStsRsnInf": [{"Rsn": {"Cd": reason}}],
                    })
                batches.append({"OrgnlPmtInfId": batch["OrgnlPmtInfId"], "TxInfAndSts": statuses})
        accepted = any(status["TxCxlSts"] == "ACCR" for b in batches for status in b["TxInfAndSts"])
        identity, at = self.next_id(), now()
        reply = iso20022.write("camt.029.001.09", {"RsltnOfInvstgtn": {
            "Assgnmt": {
                "Id": identity,
                "Assgnr": {"Agt": {"FinInstnId": {"BICFI": self.bic}}},
                "Assgne": {"Pty": {"Nm": "Customer"}},
                "CreDtTm": at,
            },
            "Sts": {"Conf": "CNCL" if accepted else "RJCR"},
            "CxlDtls": [{"OrgnlPmtInfAndSts": batches}],
        }})
        return {"orders": [], "reply": reply}

    def reject(self, ids, code, is_whole=False):
        """Rejects orders of one file, one by one or as a whole. Returns the status report."""
        orders = [self.open_order(id, "held") for id in ids]
        for order in orders:
            order.update(state="rejected", status="RJCT", code=code)
        file_id = orders[0]["file"]
        if is_whole:
            return self.report(file_id, [], "status", "RJCT", code)
        return self.report(file_id, orders, "status", None, code)

    def release(self, ids):
        """Goes on with orders that have waited for the customer."""
        for id in ids:
            self.open_order(id, "held")["state"] = "taken"

    def report(self, file_id, orders, member, group_status, reason=None):
        """Writes a status report: of the whole file, or of each order."""
        [message] = {o["message"] for o in self.orders.values() if o["file"] == file_id}
        group = {"OrgnlMsgId": file_id, "OrgnlMsgNmId": message}
        if group_status:
            group["GrpSts"] = group_status
            if reason:
                group["StsRsnInf"] = [{"Rsn": {"Cd": reason}}]
        batches = [
            {
                "OrgnlPmtInfId": batch,
                "TxInfAndSts": [
                    {
                        **original_of(order),
                        "TxSts": order[member],
                        **({"StsRsnInf": [{"Rsn": {"Cd": reason}}]} if reason else {}),
                    }
                    for order in orders if order["batch"] == batch
                ],
            }
            for batch in dict.fromkeys(order["batch"] for order in orders)
        ]
        return iso20022.write("pain.002.001.10", {"CstmrPmtStsRpt": {
            "GrpHdr": {"MsgId": self.next_id(), "CreDtTm": now()},
            "OrgnlGrpInfAndSts": group,
            "OrgnlPmtInfAndSts": batches,
        }})

    def book(self, ids, day, form="single"):
        """Books orders. Form: single, each alone; batch, together, and listed in notifications;
        total, together, and listed nowhere."""
        orders = [self.open_order(id) for id in ids]
        for order in orders:
            order["state"] = "booked"
        groups = [[order] for order in orders]
        if form != "single":
            batches = dict.fromkeys(order["batch"] for order in orders)
            groups = [[o for o in orders if o["batch"] == batch] for batch in batches]
        for group in groups:
            [family, _] = FAMILIES[direction(group[0]["amount"])]
            details = [detail_of(order) for order in group]
            self.enter(day, family, details, None if form == "single" else group[0], form)

    def give_back(self, id, code, day):
        """Returns a booked order with its whole amount."""
        order = self.orders[id]
        if order["state"] != "booked":
            raise Refused(f"{id} is {order['state']}")
        order.update(state="returned", code=code)
        [_, family] = FAMILIES[direction(order["amount"])]
        self.enter(day, family, [{**detail_of(order), "amount": -order["amount"], "return": code}])

    def move(self, day, amount, family="RCDT ESCT", **detail):
        """Books a movement that belongs to no order: a payer's transfer, or a charge. Detail: text,
        reference, party or id."""
        self.enter(day, family, [{"amount": amount, **detail}] if detail else [], amount=amount)

    def enter(self, day, family, details, batch=None, form="single", amount=None):
        self.entries.append({
            "amount": sum(d["amount"] for d in details) if amount is None else amount,
            "day": day,
            "family": family,
            "details": details,
            "batch": batch,
            "is_listed": form != "total",
        })

    def write(self, message, since=0, until=None, opening=0):
        """Writes the entries from `since` up to `until`. A statement has the balances."""
        kind, version = message[:8], message[-2:]
        [root, element] = iso20022.STATEMENTS[kind]
        entries = list(enumerate(self.entries))[since:until]
        before = opening + sum(entry["amount"] for entry in self.entries[:since])
        identity, at = self.next_id(), now()
        statement = {
            "Id": identity,
            "CreDtTm": at,
            "Acct": {"Id": {"IBAN": self.iban}, "Ccy": self.currency},
            "Ntry": [self.entry(number, entry, kind, version) for number, entry in entries],
        }
        if kind == "camt.053":
            days = [entry["day"] for entry in self.entries] or [at[:10]]
            after = before + sum(entry["amount"] for _, entry in entries)
            statement["Bal"] = [
                iso20022.balance("OPBD", before, days[min(since, len(days) - 1)], self.currency),
                iso20022.balance("CLBD", after, max(days), self.currency),
            ]
        header = {"MsgId": identity, "CreDtTm": at}
        text = iso20022.write(message, {root: {"GrpHdr": header, element: [statement]}})
        return {"text": text, "entries": len(entries)}

    def entry(self, number, entry, kind, version):
        reference = f"{self.currency}2026{number:06}" if self.has_references else "NONREF"
        batch, details = entry["batch"], entry["details"]
        # A statement has the total of a batch, and a notification its orders.
        is_listed = entry["is_listed"] and (batch is None or kind == "camt.054")
        listed = {}
        if batch is not None:
            listed["Btch"] = {"PmtInfId": batch["batch"], "NbOfTxs": str(len(details))}
        if is_listed and details:
            listed["TxDtls"] = [
                iso20022.detail(detail, self.currency, version) for detail in details
            ]
        return {
            **iso20022.money(entry["amount"], self.currency),
            "Sts": "BOOK" if version < "08" else {"Cd": "BOOK"},
            "BookgDt": {"Dt": entry["day"]},
            "ValDt": {"Dt": entry["day"]},
            "AcctSvcrRef": reference,
            "BkTxCd": iso20022.code(entry["family"]),
            **({"NtryDtls": [listed]} if listed else {}),
        }

    def books(self):
        """Each entry with the parts of its amount, the state of each order, the mandates of
        collections, and the codes of rejections and returns."""
        return {
            "entries": [
                {
                    "amount": entry["amount"],
                    "parts": [
                        {"amount": detail["amount"], "of": detail.get("id", detail.get("reference"))}
                        for detail in entry["details"]
                    ],
                }
                for entry in self.entries
            ],
            "orders": {id: order["state"] for id, order in self.orders.items()},
            "mandates": self.members("mandate"),
            "codes": self.members("code"),
        }

    def members(self, name):
        return {id: order[name] for id, order in self.orders.items() if order[name]}

    def open_order(self, id, *states):
        order = self.orders.get(id)
        if order is None or order["state"] not in ("taken", *states):
            raise Refused(f"{id} is {order['state'] if order else 'unknown'}")
        return order

    def next_id(self):
        self.messages += 1
        return f"{self.currency}-{self.iban[-4:]}-{self.messages}"


def uetrs_of(data):
    """The UETRs of the payouts by SWIFT in a file, by their ids. mock-bank does not read them."""
    if b"<UETR>" not in data:
        return {}
    ids = [
        order["PmtId"]
        for batch in iso20022.read(data)["PmtInf"] for order in batch["CdtTrfTxInf"]
    ]
    return {each["EndToEndId"]: each["UETR"] for each in ids}


def original_of(order):
    """How a report names an order: one by SWIFT by its UETR alone."""
    if order["uetr"]:
        return {"OrgnlEndToEndId": "NOTPROVIDED", "OrgnlUETR": order["uetr"]}
    return {"OrgnlEndToEndId": order["id"]}


def detail_of(order):
    name = {"uetr": order["uetr"]} if order["uetr"] else {"id": order["id"]}
    return {"amount": order["amount"], "party": order["party"], **name}


def direction(amount):
    return 1 if amount > 0 else -1


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


accounts = {}
for line in sys.stdin:
    command = json.loads(line)
    name, iban = command.pop("do"), command.pop("iban")
    try:
        if name == "open":
            accounts[iban] = Account(iban, **command)
            result = None
        else:
            result = getattr(accounts[iban], name)(**command)
        print(json.dumps({"result": result}), flush=True)
    except Refused as refused:
        print(json.dumps({"error": str(refused)}), flush=True)

/** pain.002 and camt.029: what a bank says about orders and recalls. */

import assert from "node:assert/strict";
import type { StatusRecord } from "../../shared/connectors/bank/read_records.ts";
import {
  readFile,
  readWarnings,
  type Told,
  writeRecallReply,
  writeReport,
} from "../support/connectors/bank_file.ts";

async function statuses(file: string): Promise<StatusRecord[]> {
  return (await readFile(file)).flatMap((record) =>
    record.record === "status" || record.record === "cancellation" ? [record] : []
  );
}

const ORDER = {
  OrgnlInstrId: "INS-1",
  OrgnlEndToEndId: "E2E-1",
  OrgnlUETR: "255ae394-9965-4438-ac86-f406feada396",
};
const REPORTED = {
  ...{ record: "status", original_message_id: "MSG-1", payment_information_id: "PMT-1" },
  ...{ instruction_id: "INS-1", end_to_end_id: "E2E-1", uetr: ORDER.OrgnlUETR },
};
const NO_ORDER = { ...REPORTED, instruction_id: null, end_to_end_id: null, uetr: null };
/** A report about one order alone. */
const about = (code: string) => writeReport(null, [["PMT-1"], [ORDER, code]]);

Deno.test("readBankFile() reads the statuses of a group, a batch and a transaction", async () => {
  const closed = "<Rsn><Cd>AC04</Cd></Rsn><AddtlInf>no</AddtlInf><AddtlInf>account</AddtlInf>" +
    "</StsRsnInf><StsRsnInf><Rsn><Cd>NARR</Cd></Rsn>";
  const file = writeReport(
    ["MSG-1", "PART"],
    [["PMT-1", "PART", "<Rsn><Prtry>X1</Prtry></Rsn>"], [ORDER, "ACSC"], [ORDER, "RJCT", closed]],
    [["PMT-2"], [ORDER, "PDNG"]],
  );
  const batch = { ...NO_ORDER, level: "payment_information", code: "PART", result: "partial" };
  const order = { ...REPORTED, level: "transaction" };
  assert.deepEqual(await statuses(file), [
    { ...batch, line: 2, level: "group", reasons: [], payment_information_id: null },
    { ...batch, line: 3, reasons: [{ code: "X1", information: null }] },
    { ...order, line: 4, code: "ACSC", result: "accepted", reasons: [] },
    {
      ...{ ...order, line: 5, code: "RJCT", result: "rejected" },
      reasons: [{ code: "AC04", information: "no account" }, { code: "NARR", information: null }],
    },
    {
      ...{ ...order, line: 7, code: "PDNG", result: "payee_check", reasons: [] },
      payment_information_id: "PMT-2",
    },
  ]);
});

Deno.test("readBankFile() reads the versions 03 and 10 to 15 of pain.002", async () => {
  for (const version of ["03", "10", "11", "12", "13", "14", "15"]) {
    const file = writeReport(["MSG-1", "RJCT"]).replace("002.001.10", `002.001.${version}`);
    const [message, status] = await readFile(file);
    assert.ok(message?.record === "message" && status?.record === "status");
    assert.deepEqual([message.version, status.result], [version, "rejected"]);
  }
});

/** Codes of pain.002 with their results. */
const RESULTS = {
  accepted: ["ACTC", "ACCP", "ACSP", "ACSC", "ACCC", "ACWC", "ACWP", "ACFC"],
  rejected: ["RJCT", "CANC"],
  pending: ["RCVD", "PATC", "RVNC"],
  partial: ["PART", "RVCM"],
  payee_check: ["RCVC", "RVMC", "RVNM", "RVNA", "PDNG"],
};

for (const [result, codes] of Object.entries(RESULTS)) {
  for (const code of codes) {
    Deno.test(`readBankFile() reads the status ${code} as ${result}`, async () => {
      const [status] = await statuses(about(code));
      assert.equal(status?.code, code);
      assert.equal(status.result, result);
    });
  }
}

Deno.test("readBankFile() warns of an unknown status, and of a file without one", async () => {
  assert.equal((await statuses(about("ABCD")))[0]?.result, "pending");
  assert.deepEqual(await readWarnings(about("ABCD")), ["the status is not known: it is pending"]);
  assert.deepEqual(await readWarnings(writeReport(["MSG-1"])), ["the file has no status"]);
});

Deno.test("readBankFile() reads the results of recalls", async () => {
  const file = writeRecallReply(
    "RJCR",
    ["MSG-1", "PACR"],
    [
      ["PMT-1", "PDCR"],
      [ORDER, "ACCR"],
      [ORDER, "RJCR", "<Rsn><Cd>LEGL</Cd></Rsn><AddtlInf>no</AddtlInf>"],
    ],
  );
  const [message] = await readFile(file);
  assert.equal(message?.record === "message" && message.message_id, "CASE-1");
  assert.deepEqual(
    (await statuses(file)).map((
      { record, level, code, result, reasons, original_message_id, end_to_end_id },
    ) => [record, level, code, result, reasons, original_message_id, end_to_end_id]),
    [
      ["group", "PACR", "partial", [], "MSG-1", null],
      ["payment_information", "PDCR", "pending", [], "MSG-1", null],
      ["transaction", "ACCR", "accepted", [], "MSG-1", "E2E-1"],
      ["transaction", "RJCR", "rejected", [{ code: "LEGL", information: "no" }], "MSG-1", "E2E-1"],
      ["group", "RJCR", "rejected", [], "MSG-1", null],
    ].map((status) => ["cancellation", ...status]),
  );
});

const NO_STATUS: Told = [ORDER];
const REASON: Told = [ORDER, null, "AC01"];

/** Files with a transaction that has no status, and its status; null: it tells nothing. */
const WITHOUT_STATUS: [name: string, file: string, code: string | null][] = [
  ["in a rejected batch", writeReport(["MSG-1", "PART"], [["PMT-1", "RJCT"], REASON]), "RJCT"],
  ["a reason in a rejected file", writeReport(["MSG-1", "RJCT"], [["PMT-1"], REASON]), "RJCT"],
  ["after a rejected batch", writeReport(null, [["PMT-1", "RJCT"]], [["PMT-1"], REASON]), null],
  ["no reason in a rejected batch", writeReport(null, [["PMT-1", "RJCT"], NO_STATUS]), null],
  ["the conclusion of a recall", writeRecallReply("CNCL", null, [["PMT-1"], NO_STATUS]), "CNCL"],
  ["a recall of a batch", writeRecallReply(null, null, [["PMT-1", "ACCR"], NO_STATUS]), "ACCR"],
];

for (const [name, file, code] of WITHOUT_STATUS) {
  Deno.test(`readBankFile() reads a transaction without a status: ${name}`, async () => {
    const found = (await statuses(file)).find(({ level }) => level === "transaction");
    assert.equal(found?.code ?? null, code);
    if (code === "RJCT") assert.equal(found?.reasons[0]?.code, "AC01");
  });
}

Deno.test("readBankFile() reads the result of a recall without a batch", async () => {
  const file = writeRecallReply(null, null, [["PMT-1"], [ORDER, "ACCR"]])
    .replace(/<OrgnlPmtInfAndSts>.*?<.OrgnlPmtInfId>|<.OrgnlPmtInfAndSts>/g, "")
    .replace("</TxInf", "<OrgnlGrpInf><OrgnlMsgId>MSG-9</OrgnlMsgId></OrgnlGrpInf></TxInf");
  const [result] = await statuses(file);
  assert.equal(result?.original_message_id, "MSG-9");
  assert.equal(result.payment_information_id, null);
});

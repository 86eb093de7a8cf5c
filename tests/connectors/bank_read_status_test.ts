/** pain.002 and camt.029: what a bank says about orders and recalls. */

import assert from "node:assert/strict";
import type { StatusRecord } from "../../shared/connectors/bank/read_records.ts";
import { readFile, readWarnings } from "../support/connectors/bank_file.ts";

const group = (status: string) =>
  `<OrgnlGrpInfAndSts><OrgnlMsgId>MSG-1</OrgnlMsgId>
<OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId>${status}</OrgnlGrpInfAndSts>`;
const batch = (content: string) =>
  `<OrgnlPmtInfAndSts><OrgnlPmtInfId>PMT-1</OrgnlPmtInfId>${content}</OrgnlPmtInfAndSts>`;
const transaction = (content: string) =>
  `<TxInfAndSts><OrgnlInstrId>INS-1</OrgnlInstrId><OrgnlEndToEndId>E2E-1</OrgnlEndToEndId>
<OrgnlUETR>255ae394-9965-4438-ac86-f406feada396</OrgnlUETR>${content}</TxInfAndSts>`;
const report = (content: string, version = "10") =>
  `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.${version}"><CstmrPmtStsRpt>
<GrpHdr><MsgId>M</MsgId></GrpHdr>${content}</CstmrPmtStsRpt></Document>`;
const investigation = (content: string) =>
  `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.029.001.09"><RsltnOfInvstgtn>
<Assgnmt><Id>CASE-1</Id><CreDtTm>2026-11-20T20:00:00</CreDtTm></Assgnmt>${content}
</RsltnOfInvstgtn></Document>`;

async function statuses(file: string): Promise<StatusRecord[]> {
  return (await readFile(file)).flatMap((record) =>
    record.record === "status" || record.record === "cancellation" ? [record] : []
  );
}

const IDS = {
  original_message_id: "MSG-1",
  payment_information_id: "PMT-1",
  instruction_id: "INS-1",
  end_to_end_id: "E2E-1",
  uetr: "255ae394-9965-4438-ac86-f406feada396",
};
const NO_TRANSACTION = { ...IDS, instruction_id: null, end_to_end_id: null, uetr: null };

Deno.test("readBankFile() reads the statuses of a group, a batch and a transaction", async () => {
  const file = report(
    group("<GrpSts>PART</GrpSts>") + batch(
      `<PmtInfSts>PART</PmtInfSts><StsRsnInf><Rsn><Prtry>X1</Prtry></Rsn></StsRsnInf>
      ${transaction("<TxSts>ACSC</TxSts>")}
      ${
        transaction(
          "<TxSts>RJCT</TxSts><StsRsnInf><Rsn><Cd>AC04</Cd></Rsn><AddtlInf>closed</AddtlInf>" +
            "<AddtlInf>account</AddtlInf></StsRsnInf><StsRsnInf><Rsn><Cd>NARR</Cd></Rsn></StsRsnInf>",
        )
      }`,
    ) + batch(transaction("<TxSts>PDNG</TxSts>")).replace("PMT-1", "PMT-2"),
  );
  assert.deepEqual(await statuses(file), [
    {
      record: "status",
      line: 2,
      level: "group",
      code: "PART",
      result: "partial",
      reasons: [],
      ...NO_TRANSACTION,
      payment_information_id: null,
    },
    {
      record: "status",
      line: 3,
      level: "payment_information",
      code: "PART",
      result: "partial",
      reasons: [{ code: "X1", information: null }],
      ...NO_TRANSACTION,
    },
    {
      record: "status",
      line: 4,
      level: "transaction",
      code: "ACSC",
      result: "accepted",
      reasons: [],
      ...IDS,
    },
    {
      record: "status",
      line: 6,
      level: "transaction",
      code: "RJCT",
      result: "rejected",
      reasons: [{ code: "AC04", information: "closed account" }, {
        code: "NARR",
        information: null,
      }],
      ...IDS,
    },
    {
      record: "status",
      line: 7,
      level: "transaction",
      code: "PDNG",
      result: "payee_check",
      reasons: [],
      ...IDS,
      payment_information_id: "PMT-2",
    },
  ]);
});

Deno.test("readBankFile() reads the versions 03 and 10 to 15 of pain.002", async () => {
  for (const version of ["03", "10", "11", "12", "13", "14", "15"]) {
    const [message, status] = await readFile(report(group("<GrpSts>RJCT</GrpSts>"), version));
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
      const [status] = await statuses(report(transaction(`<TxSts>${code}</TxSts>`)));
      assert.equal(status?.code, code);
      assert.equal(status.result, result);
    });
  }
}

Deno.test("readBankFile() warns of an unknown status, and of a file without one", async () => {
  const unknown = report(transaction("<TxSts>ABCD</TxSts>"));
  assert.equal((await statuses(unknown))[0]?.result, "pending");
  assert.deepEqual(await readWarnings(unknown), ["the status is not known: it is pending"]);
  assert.deepEqual(await readWarnings(report(group(""))), ["the file has no status"]);
});

Deno.test("readBankFile() reads the results of recalls", async () => {
  const file = investigation(
    `<Sts><Conf>RJCR</Conf></Sts><CxlDtls>${group("<GrpCxlSts>PACR</GrpCxlSts>")}${
      batch(
        `<PmtInfCxlSts>PDCR</PmtInfCxlSts>${transaction("<TxCxlSts>ACCR</TxCxlSts>")}${
          transaction(
            "<TxCxlSts>RJCR</TxCxlSts><CxlStsRsnInf><Rsn><Cd>LEGL</Cd></Rsn>" +
              "<AddtlInf>no</AddtlInf></CxlStsRsnInf>",
          )
        }`,
      )
    }</CxlDtls>`,
  );
  const [message] = await readFile(file);
  assert.equal(message?.record === "message" && message.message_id, "CASE-1");
  assert.deepEqual(
    (await statuses(file)).map((
      { record, level, code, result, reasons, original_message_id, end_to_end_id },
    ) => [record, level, code, result, reasons, original_message_id, end_to_end_id]),
    [
      ["cancellation", "group", "PACR", "partial", [], "MSG-1", null],
      ["cancellation", "payment_information", "PDCR", "pending", [], "MSG-1", null],
      ["cancellation", "transaction", "ACCR", "accepted", [], "MSG-1", "E2E-1"],
      [
        "cancellation",
        "transaction",
        "RJCR",
        "rejected",
        [{ code: "LEGL", information: "no" }],
        "MSG-1",
        "E2E-1",
      ],
      ["cancellation", "group", "RJCR", "rejected", [], "MSG-1", null],
    ],
  );
});

const REASON = "<StsRsnInf><Rsn><Cd>AC01</Cd></Rsn></StsRsnInf>";

/** Files with a transaction that has no status, and its status; null: it tells nothing. */
const UNTOLD: [name: string, file: string, code: string | null][] = [
  [
    "a reason in a rejected batch",
    report(
      group("<GrpSts>PART</GrpSts>") + batch(`<PmtInfSts>RJCT</PmtInfSts>${transaction(REASON)}`),
    ),
    "RJCT",
  ],
  [
    "a reason in a rejected file",
    report(group("<GrpSts>RJCT</GrpSts>") + batch(transaction(REASON))),
    "RJCT",
  ],
  [
    "a reason after a rejected batch",
    report(batch("<PmtInfSts>RJCT</PmtInfSts>") + batch(transaction(REASON))),
    null,
  ],
  [
    "no reason in a rejected batch",
    report(batch(`<PmtInfSts>RJCT</PmtInfSts>${transaction("")}`)),
    null,
  ],
  [
    "the conclusion of a recall",
    investigation(`<Sts><Conf>CNCL</Conf></Sts><CxlDtls>${transaction("")}</CxlDtls>`),
    "CNCL",
  ],
  [
    "a recall of a batch",
    investigation(
      `<CxlDtls>${batch(`<PmtInfCxlSts>ACCR</PmtInfCxlSts>${transaction("")}`)}</CxlDtls>`,
    ),
    "ACCR",
  ],
];

for (const [name, file, code] of UNTOLD) {
  Deno.test(`readBankFile() reads a transaction without a status: ${name}`, async () => {
    const found = (await statuses(file)).find(({ level }) => level === "transaction");
    assert.equal(found?.code ?? null, code);
    if (code === "RJCT") assert.equal(found?.reasons[0]?.code, "AC01");
  });
}

Deno.test("readBankFile() reads the result of a recall without a batch", async () => {
  const content = transaction(
    "<TxCxlSts>ACCR</TxCxlSts><OrgnlGrpInf><OrgnlMsgId>MSG-9</OrgnlMsgId></OrgnlGrpInf>",
  );
  const [result] = await statuses(investigation(`<CxlDtls>${content}</CxlDtls>`));
  assert.equal(result?.original_message_id, "MSG-9");
  assert.equal(result.payment_information_id, null);
});

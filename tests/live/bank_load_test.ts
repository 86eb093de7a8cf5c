/** Files of a bridge beside other requests: each stops the event loop only for moments. */

import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { idGenerator } from "../../shared/core/ids.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, callBridge, KEYS } from "../support/bank/bank.ts";
import { ACCOUNT, writeDetail, writeEntry, writeFile } from "../support/connectors/bank_file.ts";
import { startService } from "../support/service/service.ts";

/** The longest stop is at most this part of the whole import. Without slices it is up to all of it. */
const PARTS_MIN = 10;
const RATE = 5;

const newId = idGenerator(Date.now());
const remit = () =>
  writeDetail({
    RltdPties: "<Dbtr><Pty><Nm>Payer</Nm></Pty></Dbtr>" +
      "<DbtrAcct><Id><IBAN>NL91ABNA0417164300</IBAN></Id></DbtrAcct>",
    RmtInf: `<Ustrd>Invoice ${creditorReference(newId("pay_"))}</Ustrd>`,
  });
const FILES: [name: string, file: () => string][] = [
  ["10 MB of empty elements", () => writeFile([{ head: "<a/>".repeat(2_600_000) }])],
  ["an entry with 9 000 details", () => {
    const details = Array.from({ length: 9_000 }, remit).join("");
    const entry = { Amt: "90000.00 EUR", AcctSvcrRef: "LARGE2026", NtryDtls: details };
    return writeFile([{ entries: writeEntry(entry) }], { kind: "054" });
  }],
];

Deno.test("files of a bridge beside other requests", async (t) => {
  const service = await startService({
    vault: Vault.read(KEYS),
    rate_limit: RATE,
    account_rate_limit: 4 * RATE,
  });
  const open = (settings: { iban: string; currency: string }) =>
    addBankAccount(service, { methods: "swift", ...settings });
  const [own, other] = [
    await open({ iban: ACCOUNT, currency: "EUR" }),
    await open({ iban: "GB29NWBK60161331926819", currency: "GBP" }),
  ];
  const post = (account: typeof own, file: string) =>
    callBridge(service, account, "POST", "statements", file);
  try {
    for (const [name, write] of FILES) {
      await t.step(`${name}: the longest stop is a small part`, async () => {
        const file = write();
        const { longest_ms, whole_ms } = await stopsDuring(async () => {
          const { status, body } = await post(own, file);
          assert.deepEqual([status, body.error], [200, null]);
        });
        const shown = `${Math.round(longest_ms)} of ${Math.round(whole_ms)} ms`;
        assert.ok(longest_ms < whole_ms / PARTS_MIN, shown);
      });
    }
    await t.step("an account imports one file at a time, and others beside it", async () => {
      const file = FILES[1]![1]();
      const responses = await Promise.all(
        [own, own, other].map((account, i) =>
          post(
            account,
            `${file.replace(ACCOUNT, i === 2 ? "GB29NWBK60161331926819" : ACCOUNT)}<!-- -->`,
          )
        ),
      );
      const codes = responses.map(({ status, body }) => body.error?.code ?? status);
      assert.deepEqual(codes.slice(0, 2).sort(), [200, "rate_limited"]);
      assert.equal(typeof codes[2], "number");
      const refused = responses.find(({ status }) => status === 429)!;
      assert.equal(refused.headers.get("Retry-After"), "1");
    });
    await t.step("its requests count as those of a live key", async () => {
      const statuses: number[] = [];
      const began = performance.now();
      while (statuses.length < 8 * RATE) {
        statuses.push((await callBridge(service, other, "GET", "files")).status);
      }
      const served = statuses.filter((status) => status === 200).length;
      // A burst, and what the time adds to it.
      const most = 2 * RATE + 1 + RATE * (performance.now() - began) / 1000;
      assert.ok(served > 0 && served <= most, `${statuses} of ${most}`);
      assert.ok(statuses.includes(429), `${statuses}`);
    });
  } finally {
    await service.close();
  }
});

/** Runs something. Returns how long it took, and how long the event loop stood still at most. */
async function stopsDuring(
  run: () => Promise<void>,
): Promise<{ longest_ms: number; whole_ms: number }> {
  let longest_ms = 0;
  let last = performance.now();
  const look = () => {
    const now = performance.now();
    longest_ms = Math.max(longest_ms, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  const began = performance.now();
  await run();
  look();
  clearInterval(timer);
  return { longest_ms, whole_ms: performance.now() - began };
}

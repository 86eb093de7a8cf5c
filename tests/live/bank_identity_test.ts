/** Entries that the files of a bank name in different ways: each is booked once, and none is lost. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { importWhole } from "../../shared/connectors/bank/import_whole_file.ts";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, KEYS } from "../support/bank/bank.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { startService } from "../support/service/service.ts";

type Entry = Record<string, string | null>;
/** A file: its kind, and its entries. */
type Step = ["052" | "053" | "054", ...Entry[]];

/** The members of a payment's entry in a file. `+` is the detail with the payment's reference. */
const EARLY: Step[] = [
  ["052", { AcctSvcrRef: "REPORT0001", NtryDtls: "+" }],
  ["054", { AcctSvcrRef: "NOTIFY0001", NtryDtls: "+" }],
];
const TOTAL = { AcctSvcrRef: "TOTAL00001" };
const REPORTED: Step = ["052", TOTAL];
const STATED: Step = ["053", TOTAL];
const DETAILED: Step = ["054", { AcctSvcrRef: "DETAIL0001", NtryDtls: "+" }];

const CASES: [name: string, ...files: Step[]][] = [
  ["a report and a notification", ...EARLY],
  ["a notification and a report", ...EARLY.toReversed()],
  ["both, and a statement as the report", ...EARLY, ["053", { AcctSvcrRef: "REPORT0001" }]],
  ["both, and a statement as the notification", ...EARLY, ["053", { AcctSvcrRef: "NOTIFY0001" }]],
  ["both, and another statement", ...EARLY, ["053", {}]],
  ["only the notification has details 1", REPORTED, DETAILED, STATED],
  ["only the notification has details 2", REPORTED, STATED, DETAILED],
  ["only the notification has details 3", DETAILED, REPORTED, STATED],
  ["only the notification has details 4", DETAILED, STATED, REPORTED],
  ["only the notification has details 5", STATED, DETAILED, REPORTED],
  ["only the notification has details 6", STATED, REPORTED, DETAILED],
  ["details of a report after those of a notification", REPORTED, DETAILED, ["052", {
    ...TOTAL,
    NtryDtls: "+",
  }]],
  [
    "details of a notification after its total",
    ["052", { AcctSvcrRef: "REPORT0001" }],
    ["054", {
      AcctSvcrRef: "NOTIFY0001",
    }],
    ["054", { AcctSvcrRef: "NOTIFY0001", NtryDtls: "+" }],
    ["053", {
      AcctSvcrRef: "REPORT0001",
    }],
  ],
  ["only the notification has a reference", ["054", { AcctSvcrRef: "NOTED0001", NtryDtls: "+" }], [
    "053",
    { AcctSvcrRef: "NONREF", NtryDtls: "+" },
  ]],
  ["only the statement has a reference", ["052", { AcctSvcrRef: "NONREF", NtryDtls: "+" }], [
    "053",
    { AcctSvcrRef: "STATED0001", NtryDtls: "+" },
  ]],
  ["the statement comes first", ["053", { NtryDtls: "+" }], [
    "054",
    { AcctSvcrRef: "LATER0001", NtryDtls: "+" },
  ]],
  ["only the statement has details", ["052", {}], ["053", { NtryDtls: "+" }]],
  ["only the notification has details", ["053", {}], ["054", { NtryDtls: "+" }]],
  ["a statement has it twice", ["054", { AcctSvcrRef: "NOTED0002", NtryDtls: "+" }], [
    "053",
    { NtryDtls: "+" },
  ], ["053", { NtryDtls: "+" }]],
];

/** When the worker applies the files, by the month of their entries. */
const WORKS: Record<string, [works: (i: number) => boolean, name: string]> = {
  "10": [() => true, ""],
  "09": [() => false, ", and the worker is late"],
  "07": [(i) => i === 0, ", and the worker is late after the first file"],
};

Deno.test("an entry with several identities", async (t) => {
  const service = await startService({ vault: Vault.read(KEYS) });
  const { live: { text: key }, sql, deps } = service;
  const own = { iban: ACCOUNT, currency: "EUR", creditor_id: "DE98ZZZ09999999999" };
  const { id } = await addBankAccount(service, { methods: "sepa,swift", ...own });
  const ready = deps.provider_accounts.open((await deps.provider_store.readAccount(id))!);
  assert.ok(typeof ready === "object");
  let files = 0;
  /** Whether the worker applies each file before the next one. */
  let works_at_once = true;
  const send = async (
    [kind, ...entries]: Step,
    { opening = 0, change = 10 * entries.length, day = "2026-11-20", account = "", made = "" } = {},
  ) => {
    const balances = writeBalance("OPBD", `${opening}.00`, "CRDT", day) +
      writeBalance("CLBD", `${opening + change}.00`, "CRDT", day);
    const file = writeFile(
      [{
        head: kind === "053" ? balances : "",
        entries: entries.map(writeEntry).join(""),
        ...(account !== "" && { account }),
      }],
      { kind },
    );
    const dated = made ? file.replace("2026-11-20T20:00:00+01:00", made) : file;
    const bytes = new TextEncoder().encode(`${dated}<!-- ${++files} -->`);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const whole = { bytes, sha256, name: `${files}.xml` };
    const outcome = await importWhole(ready.account, whole, deps.bank_store, deps.vault!);
    assert.ok("imported" in outcome, JSON.stringify(outcome));
    if (works_at_once) await deps.provider_worker.notify();
    return outcome.imported.warnings.join("\n");
  };
  const pay = async () => {
    const body = { amount: 1000, currency: "EUR", method_kind: "sepa" };
    const options = { key, body, idempotency_key: crypto.randomUUID() };
    const { id } = (await service.call("POST", "/api-v1-payments/v1/payments", options)).body;
    const RmtInf = `<Ustrd>${creditorReference(id)}</Ustrd>`;
    return { id, NtryDtls: writeDetail({ RmtInf }) };
  };
  const received = async (id: string) =>
    (await service.call("GET", `/api-v1-payments/v1/payments/${id}`, { key })).body.amount_received;
  /** Returns what entries and the ledger have, since the last call. */
  const former = { entries: 0, booked: 0 };
  const moved = async () => {
    const [sums] = await sql<[typeof former]>`select
      (select coalesce(sum(amount_minor), 0)::int from pay.bank_entries where same_as is null)
        as entries,
      (select coalesce(sum(booked_minor), 0)::int from pay.provider_events) as booked`;
    const [ledger] = await sql`
      select sum(case 'processor' when debit_account then amount_minor
        when credit_account then -amount_minor else 0 end)::int as booked
      from pay.ledger_movements`;
    assert.equal(ledger!.booked, sums.booked, "the ledger has what the events have");
    const change = [sums.entries - former.entries, sums.booked - former.booked];
    Object.assign(former, sums);
    return change;
  };
  /** Returns how many days have another total than the ledger. */
  const differs = async () =>
    (await sql`select from pay.provider_totals t
      where t.provider_minor <> (
        select coalesce(sum(e.booked_minor), 0) from pay.provider_events e
        where e.account_id = t.account_id and (e.happened_at at time zone 'UTC')::date = t.day
      )`).length;
  try {
    for (const [month, [works, after]] of Object.entries(WORKS)) {
      for (const [at, [name, ...steps]] of CASES.entries()) {
        await t.step(`${name}${after}`, async () => {
          const payment = await pay();
          const BookgDt = `<Dt>2026-${month}-${String(at + 1).padStart(2, "0")}</Dt>`;
          const own = (text: string) =>
            `${text.slice(0, -3)}${month}${String.fromCharCode(65 + at)}`;
          for (const [i, [kind, ...entries]] of steps.entries()) {
            works_at_once = works(i);
            await send([
              kind,
              ...entries.map((entry) => ({
                ...entry,
                BookgDt,
                ...entry.AcctSvcrRef?.match(/\d$/) && { AcctSvcrRef: own(entry.AcctSvcrRef) },
                ...entry.NtryDtls && { NtryDtls: payment.NtryDtls },
              })),
            ]);
          }
          works_at_once = true;
          await deps.provider_worker.notify();
          assert.equal(await received(payment.id), 1000);
          assert.deepEqual(await moved(), [1000, 1000]);
        });
      }
    }
    for (
      const [name, first, ...others] of [
        ["a notification has both", "052", "054", "054"],
        ["a report has both", "054", "052", "052"],
      ] as const
    ) {
      await t.step(`equal entries of interim files are different ones: ${name}`, async () => {
        const BookgDt = `<Dt>2026-11-0${first.at(-1)}</Dt>`;
        const [one, two] = [0, 1].map((i) => ({ BookgDt, AcctSvcrRef: `EQUAL${first}${i}` }));
        await send([first, one!]);
        await send([others[0], two!]);
        assert.deepEqual(await moved(), [1000, 1000]);
        await send([others[1], one!]);
        assert.deepEqual(await moved(), [1000, 1000]);
        assert.equal(await differs(), 0);
      });
    }
    for (const n of [1, 2, 3, 4]) {
      await t.step(`payments of one amount and day, ${n}`, async () => {
        const payments = [await pay(), await pay()];
        const [reported, noted] = ["REPORT", "NOTIFY"].map((reference) =>
          payments.map(({ NtryDtls }, i) => ({
            NtryDtls,
            BookgDt: `<Dt>2026-08-0${n}</Dt>`,
            AcctSvcrRef: `${reference}${n}${i}`,
          }))
        );
        await send(["052", reported![0]!]);
        await send(["054", ...noted!]);
        await send(["052", reported![1]!]);
        await send(["053", ...reported!]);
        assert.deepEqual(await moved(), [2000, 2000]);
        for (const { id } of payments) assert.equal(await received(id), 1000);
      });
    }
    await t.step("equal entries of a file are different ones", async () => {
      const BookgDt = "<Dt>2026-11-10</Dt>";
      await send(["054", { BookgDt }, { BookgDt }, { BookgDt }]);
      const warnings = await send(["053", { BookgDt, AcctSvcrRef: "EQUAL0001" }, {
        BookgDt,
        AcctSvcrRef: "EQUAL0002",
      }]);
      assert.match(warnings, /or other details: 2$/);
      assert.deepEqual(await moved(), [3000, 3000]);
    });
    await t.step("a notification names the account by its number, and another day", async () => {
      const AcctSvcrRef = "PAYHREF0001";
      const account = `<Id><Othr><Id>${ACCOUNT.slice(-10)}</Id></Othr></Id>`;
      await send(["054", { AcctSvcrRef, BookgDt: "<Dt>2026-11-17</Dt>" }], { account });
      await send(["053", { AcctSvcrRef, BookgDt: "<Dt>2026-11-18</Dt>" }]);
      assert.deepEqual(await moved(), [1000, 1000]);
    });
    await t.step("an entry without a date in files of several times, and with one", async () => {
      const undated = { Amt: "11.00 EUR", BookgDt: null, ValDt: null };
      const files: [Step, made: string][] = [
        [["052", undated], "2026-11-16T10:00:00+01:00"],
        [["052", undated], "2026-11-16T14:00:00+01:00"],
        [["054", undated], "2026-11-16T23:59:59Z"],
        [["053", undated], "2026-11-17T02:00:00+01:00"],
        [["053", { ...undated, BookgDt: "<Dt>2026-11-16</Dt>" }], "2026-11-17T03:00:00+01:00"],
      ];
      for (const [at, [step, made]] of files.entries()) {
        await send(step, { made, day: "2026-11-16", change: 11 });
        // Without a reference of the bank, the day of an interim file can be that after the entry.
        assert.deepEqual(await moved(), at === 3 ? [1100, 1100] : [0, 0], `file ${at + 1}`);
      }
    });
    await t.step("an entry without a date in a file of the night, with a reference", async () => {
      const AcctSvcrRef = "UNDATED2026";
      await send(["052", { AcctSvcrRef, BookgDt: null, ValDt: null }], {
        made: "2026-11-16T00:10:00+01:00",
      });
      await send(["053", { AcctSvcrRef, BookgDt: "<Dt>2026-11-15</Dt>" }]);
      assert.deepEqual(await moved(), [1000, 1000]);
    });
    await t.step("an entry that no statement has", async () => {
      const BookgDt = "<Dt>2026-11-19</Dt>";
      assert.match(await send(["054", { BookgDt }]), /no camt.053 has the entry .+: 1000 EUR/);
      assert.deepEqual(await moved(), [1000, 1000]);
    });
    await t.step("an entry that a statement has beside the one it was taken for", async () => {
      const BookgDt = "<Dt>2026-11-11</Dt>";
      const [first, second] = [{ BookgDt, AcctSvcrRef: "APART0001" }, { BookgDt }];
      await send(["054", first]);
      await send(["053", second]);
      assert.deepEqual(await moved(), [1000, 1000]);
      await send(["053", first]);
      assert.deepEqual(await moved(), [1000, 1000]);
      assert.equal(await differs(), 0);
      await send(["053", first, second]);
      assert.deepEqual(await moved(), [0, 0]);
    });
    for (const [first_day, next_day] of [["12", "12"], ["13", "14"]] as const) {
      await t.step(`an entry of ${next_day} that was taken for one of ${first_day}`, async () => {
        const [first, second] = [await pay(), await pay()];
        const noted = { AcctSvcrRef: `INSTANT${next_day}`, NtryDtls: first.NtryDtls };
        const stated = { AcctSvcrRef: `CREDIT00${next_day}`, NtryDtls: second.NtryDtls };
        const on = (day: string, entry: Entry) => ({
          ...entry,
          BookgDt: `<Dt>2026-11-${day}</Dt>`,
        });
        const next = () =>
          send(["053", on(next_day, noted)], { opening: 10, day: `2026-11-${next_day}` });
        await send(["054", on(first_day, noted)]);
        await send(["053", on(first_day, stated)], { day: `2026-11-${first_day}` });
        assert.deepEqual(await moved(), [1000, 1000]);
        await next();
        assert.deepEqual(await moved(), [1000, 1000]);
        assert.deepEqual([await received(first.id), await received(second.id)], [1000, 1000]);
        assert.equal(await differs(), 0);
        await next();
        await send(["053", on(first_day, stated), on(next_day, noted)], {
          day: `2026-11-${next_day}`,
        });
        await send(["054", on(first_day, { ...stated, AcctSvcrRef: `NOTED000${next_day}` })]);
        assert.deepEqual(await moved(), [0, 0]);
      });
    }
    await t.step("a reversal whose direction the statement proves", async () => {
      const entry = { CdtDbtInd: "DBIT", RvslInd: "true", AcctSvcrRef: "REVERSED1" };
      await send(["054", entry]);
      assert.deepEqual(await moved(), [-1000, -1000]);
      assert.match(
        await send(["053", entry], { change: 10 }),
        /has the other direction: .+ -1000 EUR/,
      );
      assert.deepEqual(await moved(), [2000, 0]);
      assert.equal(await differs(), 1);
    });
    await t.step("a file keeps the first 100 warnings about other files", async () => {
      const entries = Array.from({ length: 101 }, (_, n) => ({
        ...{ CdtDbtInd: "DBIT", RvslInd: "true", AcctSvcrRef: `REVERSED2${n + 100}` },
      }));
      await send(["054", ...entries]);
      const warnings = await send(["053", ...entries]);
      assert.equal(warnings.match(/has the other direction/g)?.length, 100);
    });
  } finally {
    await service.close();
  }
});

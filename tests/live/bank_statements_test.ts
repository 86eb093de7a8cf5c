/** The statements of a bank, one after the other: no entry is lost, and none is booked twice. */

import assert from "node:assert/strict";
import { checkBooks } from "../../apps/operator/check_books.ts";
import { isValidIban } from "../../shared/core/iban.ts";
import { Vault } from "../../shared/core/vault.ts";
import { addBankAccount, callBridge, KEYS } from "../support/bank/bank.ts";
import { writeBalance, writeEntry, writeFile } from "../support/connectors/bank_file.ts";
import { startService } from "../support/service/service.ts";

const DAY_MS = 86_400_000;

/** An entry. Negative amounts leave the account. */
interface Entry {
  amount: number;
  /** Days before today; by default that of the statement. */
  day?: number;
  /** The day of its value, if it is another one. */
  value?: number;
  reference?: string;
}

/** A statement. Its days are days before today, and its amounts are euros. */
interface Statement {
  day: number;
  /** The day of the opening balance; by default the one before. */
  opened?: number;
  opening: number;
  closing: number;
  entries: Entry[];
  page?: { number: number; is_last: boolean };
}

/** A step: a statement, or a notification of entries, and the turnover that is booked then. */
type Step = [Statement | { day: number; notified: Entry[] }, booked: number];

const TEN = [{ amount: 10 }];
const ORDER = [{ amount: 10, reference: "DAUERAUFTRAG2" }];
const AWAY = [{ amount: 10 }, { amount: -10 }];
const TURN = [{ amount: 20 }, { amount: -20 }];

const CASES: [name: string, ...steps: Step[]][] = [
  [
    "a reference that the bank repeats each month",
    [stated(40, 0, ORDER), 10],
    [noted(10, ORDER), 20],
    [stated(10, 10, ORDER), 20],
    [stated(10, 10, ORDER), 20],
    [stated(40, 0, ORDER), 20],
    [noted(40, ORDER), 20],
  ],
  [
    "a reference that the bank repeats each day",
    [stated(9, 0, ORDER), 10],
    [stated(8, 10, ORDER), 20],
    // The statement of the next day is not yet there: is it the one of the day before?
    [noted(7, ORDER), 20],
    [stated(7, 20, ORDER), 30],
    [stated(7, 0, on(ORDER, 9, 8, 7), { opened: 10 }), 30],
    [stated(8, 10, ORDER), 30],
  ],
  [
    "several statements of a day",
    [stated(9, 0, TEN), 10],
    [stated(8, 10, TEN), 20],
    [stated(8, 20, [...TEN, ...TEN]), 40],
    [stated(8, 40, TEN), 50],
    [stated(8, 10, TEN), 50],
    [stated(8, 0, on(TEN, 8, 8, 8, 8, 9), { opened: 10 }), 50],
  ],
  [
    "several statements of a day, the last one first",
    [stated(9, 0, TEN), 10],
    [stated(8, 30, TEN), 20],
    [stated(8, 20, TEN), 30],
    [stated(8, 10, TEN), 40],
    [stated(7, 40, TEN), 50],
  ],
  [
    "pages of a statement",
    [stated(9, 0, TEN, page(1)), 10],
    [stated(9, 10, TEN, page(2)), 20],
    [stated(9, 0, TEN, page(1)), 20],
    [stated(9, 10, TEN, page(2)), 20],
    [stated(9, 20, TEN, page(3)), 30],
    [stated(8, 30, TEN), 40],
    [stated(7, 40, TEN, page(1)), 50],
    [stated(7, 50, TEN, page(3)), 60],
    [stated(6, 60, TEN), 70],
  ],
  [
    "an account whose money leaves it every day",
    [stated(9, 0, AWAY), 20],
    [stated(8, 0, AWAY), 40],
    [stated(8, 0, AWAY), 40],
    [stated(7, 0, [...on(AWAY, 9, 8), { amount: 5 }], { opened: 10 }), 45],
    [stated(6, 5, AWAY), 65],
  ],
  [
    "notifications before statements, with other days",
    [noted(9, ORDER), 10],
    [stated(8, 0, ORDER), 10],
    [stated(8, 0, ORDER), 10],
    [noted(6, ORDER), 10],
    [stated(6, 10, on(ORDER, 7, 6), { opened: 8 }), 30],
    [noted(6, ORDER), 30],
  ],
  [
    "a report of one day before a week of equal references",
    [noted(7, ORDER), 10],
    [stated(7, 0, on(ORDER, 9, 8, 7), { opened: 10 }), 30],
  ],
  [
    "statements whose balances come back",
    [stated(9, 0, TEN), 10],
    [stated(8, 10, [{ amount: 20 }]), 30],
    [stated(8, 30, [{ amount: -20 }]), 50],
    [stated(8, 10, [{ amount: 20 }]), 50],
    [stated(8, 30, [{ amount: -20 }]), 50],
    [stated(7, 10, TEN), 60],
    [stated(7, 20, AWAY), 80],
    [stated(7, 20, AWAY), 80],
    [stated(6, 10, [...on(TURN, 8), ...on(TEN, 7), ...on(AWAY, 7), ...TEN], { opened: 9 }), 90],
  ],
  [
    "a day as a whole after its parts, and before them",
    [stated(9, 0, TEN), 10],
    [stated(8, 10, TEN), 20],
    [stated(8, 10, [...TEN, ...TEN]), 30],
    [stated(8, 20, TEN), 30],
    [stated(7, 30, [...TEN, ...TEN]), 50],
    [stated(7, 30, TEN), 50],
    [stated(7, 40, TEN), 50],
    [stated(6, 50, [...TEN, ...TEN, ...TEN]), 80],
    [stated(6, 60, TEN), 80],
  ],
  [
    "days that end where the last one begins",
    [stated(9, 0, TEN), 10],
    [stated(8, 10, TEN), 20],
    [stated(8, 0, [...on(TEN, 9), ...AWAY], { opened: 10 }), 30],
    [stated(7, 10, TEN), 40],
  ],
  [
    "an entry that counts only in the next statement",
    [stated(9, 0, [{ amount: 10, value: 8 }], { closing: 0 }), 10],
    [stated(8, 0, [{ amount: 10, day: 9 }, { amount: 20 }]), 30],
  ],
  [
    "a week before its days, which come in parts",
    [stated(7, 0, dated(parts(8, 9, 10, 11), 9, 9, 8, 7), { opened: 10 }), 40],
    [stated(9, 0, parts(8)), 40],
    [stated(9, 10, parts(9)), 40],
    [stated(8, 20, parts(10)), 40],
    [stated(7, 30, parts(11)), 40],
  ],
  [
    "a month that closes on a day without entries",
    [stated(9, 0, TEN), 10],
    [stated(8, 10, TEN), 20],
    [stated(7, 0, on(TEN, 9, 8), { opened: 12 }), 20],
    [stated(6, 30, TEN, { opened: 8 }), 30],
    [stated(6, 20, TEN, { opened: 8 }), 40],
    [stated(6, 40, TEN, { opened: 8 }), 50],
  ],
  [
    "a notification of a repeated reference, and the days' statements backwards",
    [noted(9, ORDER), 10],
    [stated(8, 10, ORDER), 10],
    [stated(9, 0, ORDER), 20],
    [stated(7, 20, ORDER), 30],
  ],
  [
    // Of six days, because the lower hash is paired.
    "entries that are paired wrongly and come apart leave no other one behind",
    [stated(10, 0, [{ amount: 3 }]), 3],
    ...[0, 1, 2, 3, 4, 5].flatMap((at): Step[] => {
      const [day, opening] = [9 - at, 3 + 20 * at];
      const later = parts(at);
      return [
        [noted(day, [{ amount: 10, reference: `NOTED${1000 + at}` }, ...later]), opening + 20],
        [stated(day, opening, TEN), opening + 20],
        [stated(day, opening, [...TEN, ...later]), opening + 20],
      ];
    }),
  ],
];

Deno.test("the statements of a bank", async (t) => {
  const service = await startService({ vault: Vault.read(KEYS) });
  const { sql, deps } = service;
  let files = 0;
  const accounts: string[] = [];
  const open = async (at: number) => {
    const iban = ibanOf(at);
    // A method has one account at a time.
    await sql`select pay.disable_provider_account(id) from unnest(${accounts}::text[]) as a (id)`;
    const settings = { methods: "sepa,swift", iban, currency: "EUR" };
    const account = await addBankAccount(service, settings);
    const { id } = account;
    accounts.push(id);
    const send = async (step: Step[0] | Statement[]): Promise<string> => {
      const file = `${write(step, iban)}<!-- ${++files} -->`;
      const post = () => callBridge(service, account, "POST", "statements", file);
      let { status, body } = await post();
      // Another file of the account is imported now.
      while (status === 429) ({ status, body } = await post());
      assert.equal(body.error, null);
      await deps.provider_worker.notify();
      return body.warnings.join("\n");
    };
    const booked = async () => {
      const [row] = await sql<[{ entries: number; events: number }]>`select
        (select coalesce(sum(abs(amount_minor)), 0)::int from pay.bank_entries
          where account_id = ${id} and same_as is null) as entries,
        (select coalesce(sum(abs(booked_minor)), 0)::int from pay.provider_events
          where account_id = ${id}) as events`;
      return row;
    };
    return { id, send, booked };
  };
  const gaps = async () =>
    (await checkBooks(sql)).flatMap(({ examples }) =>
      examples.filter((example) => example.includes("differ by"))
    );
  try {
    for (const [at, [name, ...steps]] of CASES.entries()) {
      await t.step(name, async () => {
        const { send, booked } = await open(at);
        for (const [number, [step, euros]] of steps.entries()) {
          await send(step);
          const minor = euros * 100;
          assert.deepEqual(await booked(), { entries: minor, events: minor }, `step ${number + 1}`);
        }
        assert.deepEqual(await gaps(), []);
      });
    }
    await t.step("a missing statement is a breach until it comes", async () => {
      const { send, booked } = await open(CASES.length);
      const statement = (day: number, opening: number) => send(stated(day, opening, TEN));
      // A difference of more than 90 days ago is no breach: banks keep statements for some time
      // only.
      await statement(100, 0);
      assert.equal(await statement(95, 500), "");
      await statement(9, 510);
      assert.equal(await statement(8, 520), "");
      const missing =
        `the balances of the statements since ${ago(6)} differ by 1000 EUR in minor ` +
        "units from the entries: a statement is missing, or an entry was taken for another one";
      assert.equal(await statement(6, 540), missing);
      assert.equal(await statement(5, 550), missing);
      assert.equal((await gaps()).length, 1);
      assert.equal(await statement(7, 530), "");
      assert.deepEqual(await gaps(), []);
      assert.equal((await booked()).events, 7_000);
    });
    await t.step("three statements in one file", async () => {
      const { send, booked } = await open(CASES.length + 6);
      await send([stated(9, 0, TEN), stated(8, 10, TURN), stated(7, 10, TEN)]);
      assert.deepEqual(await booked(), { entries: 6_000, events: 6_000 });
      assert.deepEqual(await gaps(), []);
      await send(stated(6, 20, TEN));
      await send(stated(8, 10, TURN));
      assert.equal((await booked()).events, 7_000);
      assert.deepEqual(await gaps(), []);
    });
    await t.step("a loss on the first day is a breach", async () => {
      const { send } = await open(CASES.length + 3);
      for (const opening of [0, 20, 10]) {
        await send(stated(9, opening, TEN));
      }
      await send(stated(9, 30, AWAY));
      assert.equal((await gaps()).length, 1);
    });
    await t.step("files that come at once", async () => {
      const { send, booked } = await open(CASES.length + 2);
      await send(stated(9, 0, TEN));
      await Promise.all([10, 20, 30].map((opening) => send(stated(8, opening, TEN))));
      // If the last part comes before the second one, its entry is taken for that of the first one.
      const { events } = await booked();
      assert.ok(events >= 3_000, `${events}`);
      await Promise.all(
        [1, 2].map((number) =>
          send(stated(7, 0, [{ amount: 7 }], { ...page(number), closing: 0 }))
        ),
      );
      assert.equal((await booked()).events, events + 1_400);
    });
    await t.step("a closing balance of the future proves nothing", async () => {
      const { id, send, booked } = await open(CASES.length + 1);
      const warnings = await send(stated(-400, 0, on(TEN, 3), { opened: 4 }));
      assert.match(warnings, new RegExp(`the closing balance is of ${ago(-400)}, not yet due`));
      await send(stated(2, 10, TEN));
      assert.equal((await booked()).events, 2_000);
      const [cursor] = await sql`
        select totals_day::text from pay.provider_cursors where account_id = ${id}`;
      assert.equal(cursor?.totals_day, ago(2));
    });
  } finally {
    await service.close();
  }
});

/** A statement that closes with the sum of its entries, if it does not say something else. */
function stated(
  day: number,
  opening: number,
  entries: Entry[],
  further: Partial<Statement> = {},
): Statement {
  const closing = entries.reduce((sum, { amount }) => sum + amount, opening);
  return { day, opening, closing, entries, ...further };
}

function noted(day: number, notified: Entry[]): Step[0] {
  return { day, notified };
}

/** Returns the entries for each of the days. */
function on(entries: readonly Entry[], ...days: number[]): Entry[] {
  return days.flatMap((day) => entries.map((entry) => ({ ...entry, day })));
}

/** Returns the entries, each of its own day. */
function dated(entries: readonly Entry[], ...days: number[]): Entry[] {
  return entries.map((entry, at) => ({ ...entry, day: days[at]! }));
}

/** Returns entries with references of their own. */
function parts(...numbers: number[]): Entry[] {
  return numbers.map((number) => ({ amount: 10, reference: `UNIQUE${1000 + number}` }));
}

function page(number: number): Pick<Statement, "page"> {
  return { page: { number, is_last: number === 3 } };
}

/** Returns the IBAN of an account of tests. */
function ibanOf(at: number): string {
  const account = `120300000000${700_000 + at}`;
  const ibans = Array.from(
    { length: 97 },
    (_, check) => `DE${String(check + 2).padStart(2, "0")}${account}`,
  );
  return ibans.find(isValidIban)!;
}

/** The day that is so many days before today. */
function ago(days: number): string {
  return new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10);
}

/** Writes a notification, or a file of statements. */
function write(step: Step[0] | Statement[], iban: string): string {
  const account = `<Id><IBAN>${iban}</IBAN></Id><Ccy>EUR</Ccy>`;
  const texts = (entries: readonly Entry[], of: number) =>
    entries.map(({ amount, day = of, value = day, reference = "NONREF" }) =>
      writeEntry({
        Amt: `${Math.abs(amount)}.00 EUR`,
        CdtDbtInd: amount < 0 ? "DBIT" : "CRDT",
        BookgDt: `<Dt>${ago(day)}</Dt>`,
        ValDt: `<Dt>${ago(value)}</Dt>`,
        AcctSvcrRef: reference,
      })
    ).join("");
  if ("notified" in step) {
    return writeFile([{ account, entries: texts(step.notified, step.day) }], { kind: "054" });
  }
  return writeFile(
    [step].flat().map(({ day, opened = day + 1, opening, closing, entries, page }) => {
      const head = (page === undefined ? "" : `<StmtPgntn><PgNb>${page.number}</PgNb>` +
        `<LastPgInd>${page.is_last}</LastPgInd></StmtPgntn>`) +
        writeBalance("OPBD", `${opening}.00`, "CRDT", ago(opened)) +
        writeBalance("CLBD", `${closing}.00`, "CRDT", ago(day));
      return { account, head, entries: texts(entries, day) };
    }),
  );
}

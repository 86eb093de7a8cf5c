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
const MANY = Array.from({ length: 60 }, () => ({ amount: 1, reference: "SAMMLER01" }));
const AWAY = [{ amount: 10 }, { amount: -10 }];

const CASES: [name: string, ...steps: Step[]][] = [
  [
    "a reference that the bank repeats each month",
    [{ day: 40, opening: 0, closing: 10, entries: ORDER }, 10],
    [{ day: 10, notified: ORDER }, 20],
    [{ day: 10, opening: 10, closing: 20, entries: ORDER }, 20],
    [{ day: 10, opening: 10, closing: 20, entries: ORDER }, 20],
    [{ day: 40, opening: 0, closing: 10, entries: ORDER }, 20],
    [{ day: 40, notified: ORDER }, 20],
  ],
  [
    "a reference that the bank repeats each day",
    [{ day: 9, opening: 0, closing: 10, entries: ORDER }, 10],
    [{ day: 8, opening: 10, closing: 20, entries: ORDER }, 20],
    // The statement of the next day is not yet there: is it the one of the day before?
    [{ day: 7, notified: ORDER }, 20],
    [{ day: 7, opening: 20, closing: 30, entries: ORDER }, 30],
    [{
      ...{ day: 7, opened: 10, opening: 0, closing: 30 },
      entries: [9, 8, 7].map((day) => ({ ...ORDER[0]!, day })),
    }, 30],
    [{ day: 8, opening: 10, closing: 20, entries: ORDER }, 30],
  ],
  [
    "several statements of a day",
    [{ day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ day: 8, opening: 10, closing: 20, entries: TEN }, 20],
    [{ day: 8, opening: 20, closing: 40, entries: [...TEN, ...TEN] }, 40],
    [{ day: 8, opening: 40, closing: 50, entries: TEN }, 50],
    [{ day: 8, opening: 10, closing: 20, entries: TEN }, 50],
    [{
      ...{ day: 8, opened: 10, opening: 0, closing: 50 },
      entries: [...[1, 2, 3, 4].map(() => ({ amount: 10 })), { amount: 10, day: 9 }],
    }, 50],
  ],
  [
    "several statements of a day, the last one first",
    [{ day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ day: 8, opening: 30, closing: 40, entries: TEN }, 20],
    [{ day: 8, opening: 20, closing: 30, entries: TEN }, 30],
    [{ day: 8, opening: 10, closing: 20, entries: TEN }, 40],
    [{ day: 7, opening: 40, closing: 50, entries: TEN }, 50],
  ],
  [
    "pages of a statement",
    [{ ...page(1), day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ ...page(2), day: 9, opening: 10, closing: 20, entries: TEN }, 20],
    [{ ...page(1), day: 9, opening: 0, closing: 10, entries: TEN }, 20],
    [{ ...page(2), day: 9, opening: 10, closing: 20, entries: TEN }, 20],
    [{ ...page(3), day: 9, opening: 20, closing: 30, entries: TEN }, 30],
    [{ day: 8, opening: 30, closing: 40, entries: TEN }, 40],
    [{ ...page(1), day: 7, opening: 40, closing: 50, entries: TEN }, 50],
    [{ ...page(3), day: 7, opening: 50, closing: 60, entries: TEN }, 60],
    [{ day: 6, opening: 60, closing: 70, entries: TEN }, 70],
  ],
  [
    "an account whose money leaves it every day",
    [{ day: 9, opening: 0, closing: 0, entries: AWAY }, 20],
    [{ day: 8, opening: 0, closing: 0, entries: AWAY }, 40],
    [{ day: 8, opening: 0, closing: 0, entries: AWAY }, 40],
    [{
      ...{ day: 7, opened: 10, opening: 0, closing: 5 },
      entries: [...[9, 8].flatMap((day) => AWAY.map((entry) => ({ ...entry, day }))), {
        amount: 5,
      }],
    }, 45],
    [{ day: 6, opening: 5, closing: 5, entries: AWAY }, 65],
  ],
  [
    "a week after some of its days",
    [{ day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ day: 8, opening: 10, closing: 20, entries: TEN }, 20],
    [{
      ...{ day: 7, opened: 10, opening: 0, closing: 30 },
      entries: [9, 8, 7].map((day) => ({ amount: 10, day })),
    }, 30],
    [{ day: 8, opening: 10, closing: 20, entries: TEN }, 30],
    [{ day: 6, opening: 30, closing: 40, entries: TEN }, 40],
  ],
  [
    "notifications before statements, with other days",
    [{ day: 9, notified: ORDER }, 10],
    [{ day: 8, opening: 0, closing: 10, entries: ORDER }, 10],
    [{ day: 8, opening: 0, closing: 10, entries: ORDER }, 10],
    [{ day: 6, notified: ORDER }, 10],
    [{
      ...{ day: 6, opened: 8, opening: 10, closing: 30 },
      entries: [7, 6].map((day) => ({ ...ORDER[0]!, day })),
    }, 30],
    [{ day: 6, notified: ORDER }, 30],
  ],
  [
    "a report of one day before a week of equal references",
    [{ day: 7, notified: ORDER }, 10],
    [{
      ...{ day: 7, opened: 10, opening: 0, closing: 30 },
      entries: [9, 8, 7].map((day) => ({ ...ORDER[0]!, day })),
    }, 30],
  ],
  [
    "many equal entries whose notification has another day",
    [{ day: 9, notified: MANY }, 60],
    [{ day: 8, opening: 0, closing: 60, entries: MANY }, 60],
    [{ day: 8, opening: 0, closing: 60, entries: MANY }, 60],
  ],
  [
    "statements whose balances come back",
    [{ day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ day: 8, opening: 10, closing: 30, entries: [{ amount: 20 }] }, 30],
    [{ day: 8, opening: 30, closing: 10, entries: [{ amount: -20 }] }, 50],
    [{ day: 8, opening: 10, closing: 30, entries: [{ amount: 20 }] }, 50],
    [{ day: 8, opening: 30, closing: 10, entries: [{ amount: -20 }] }, 50],
    [{ day: 7, opening: 10, closing: 20, entries: TEN }, 60],
    [{ day: 7, opening: 20, closing: 20, entries: AWAY }, 80],
    [{ day: 7, opening: 20, closing: 20, entries: AWAY }, 80],
    [{
      ...{ day: 6, opened: 9, opening: 10, closing: 30 },
      entries: [
        { amount: 20, day: 8 },
        { amount: -20, day: 8 },
        { amount: 10, day: 7 },
        {
          ...{ amount: 10, day: 7 },
        },
        { amount: -10, day: 7 },
        { amount: 10 },
      ],
    }, 90],
  ],
  [
    "a day as a whole after its parts, and before them",
    [{ day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ day: 8, opening: 10, closing: 20, entries: TEN }, 20],
    [{ day: 8, opening: 10, closing: 30, entries: [...TEN, ...TEN] }, 30],
    [{ day: 8, opening: 20, closing: 30, entries: TEN }, 30],
    [{ day: 7, opening: 30, closing: 50, entries: [...TEN, ...TEN] }, 50],
    [{ day: 7, opening: 30, closing: 40, entries: TEN }, 50],
    [{ day: 7, opening: 40, closing: 50, entries: TEN }, 50],
    [{ day: 6, opening: 50, closing: 80, entries: [...TEN, ...TEN, ...TEN] }, 80],
    [{ day: 6, opening: 60, closing: 70, entries: TEN }, 80],
  ],
  [
    "days that end where the last one begins",
    [{ day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ day: 8, opening: 10, closing: 20, entries: TEN }, 20],
    [{
      ...{ day: 8, opened: 10, opening: 0, closing: 10 },
      entries: [{ amount: 10, day: 9 }, { amount: 10 }, { amount: -10 }],
    }, 30],
    [{ day: 7, opening: 10, closing: 20, entries: TEN }, 40],
  ],
  [
    "an entry that counts only in the next statement",
    [{ day: 9, opening: 0, closing: 0, entries: [{ amount: 10, value: 8 }] }, 10],
    [{ day: 8, opening: 0, closing: 30, entries: [{ amount: 10, day: 9 }, { amount: 20 }] }, 30],
  ],
  [
    "a part of a day, then this part with more, and then the rest",
    [{ day: 9, opening: 0, closing: 5, entries: [{ amount: 5 }] }, 5],
    [{ day: 8, opening: 5, closing: 15, entries: TEN }, 15],
    [{ day: 8, opening: 5, closing: 25, entries: [...TEN, ...TEN] }, 25],
    [{ day: 8, opening: 25, closing: 35, entries: TEN }, 35],
  ],
  [
    "a week before its days, which come in parts",
    [{
      ...{ day: 7, opened: 10, opening: 0, closing: 40 },
      entries: [
        ...parts(8, 9, 10).map((entry, at) => ({ ...entry, day: [9, 9, 8][at]! })),
        ...parts(11),
      ],
    }, 40],
    [{ day: 9, opening: 0, closing: 10, entries: parts(8) }, 40],
    [{ day: 9, opening: 10, closing: 20, entries: parts(9) }, 40],
    [{ day: 8, opening: 20, closing: 30, entries: parts(10) }, 40],
    [{ day: 7, opening: 30, closing: 40, entries: parts(11) }, 40],
  ],
  [
    "a week between the parts of one of its days",
    [{ day: 9, opening: 0, closing: 10, entries: parts(1) }, 10],
    [{ day: 8, opening: 10, closing: 20, entries: parts(2) }, 20],
    [{
      ...{ day: 7, opened: 10, opening: 0, closing: 40 },
      entries: parts(1, 2, 3, 4).map((entry, at) => ({ ...entry, day: [9, 8, 8, 7][at]! })),
    }, 40],
    [{ day: 8, opening: 20, closing: 30, entries: parts(3) }, 40],
  ],
  [
    "a day as a whole before its three parts",
    [{ day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ day: 8, opening: 10, closing: 40, entries: parts(1, 2, 3) }, 40],
    [{ day: 8, opening: 10, closing: 20, entries: parts(1) }, 40],
    [{ day: 8, opening: 20, closing: 30, entries: parts(2) }, 40],
    [{ day: 8, opening: 30, closing: 40, entries: parts(3) }, 40],
  ],
  [
    "a week before its last day, which comes to nothing",
    [{
      ...{ day: 7, opened: 10, opening: 0, closing: 20 },
      entries: [...parts(1, 2).map((entry, at) => ({ ...entry, day: 9 - at })), ...parts(3), {
        ...{ amount: -10, reference: "UNIQUE0004" },
      }],
    }, 40],
    [{ day: 9, opening: 0, closing: 10, entries: parts(1) }, 40],
    [{ day: 8, opening: 10, closing: 20, entries: parts(2) }, 40],
    [{
      ...{ day: 7, opening: 20, closing: 20 },
      entries: [...parts(3), { amount: -10, reference: "UNIQUE0004" }],
    }, 40],
  ],
  [
    "a month that closes on a day without entries",
    [{ day: 9, opening: 0, closing: 10, entries: TEN }, 10],
    [{ day: 8, opening: 10, closing: 20, entries: TEN }, 20],
    [{
      ...{ day: 7, opened: 12, opening: 0, closing: 20 },
      entries: [9, 8].map((day) => ({ amount: 10, day })),
    }, 20],
    [{ day: 6, opened: 8, opening: 30, closing: 40, entries: TEN }, 30],
    [{ day: 6, opened: 8, opening: 20, closing: 30, entries: TEN }, 40],
    [{ day: 6, opened: 8, opening: 40, closing: 50, entries: TEN }, 50],
  ],
  [
    "a notification of a repeated reference, and the days' statements backwards",
    [{ day: 9, notified: ORDER }, 10],
    [{ day: 8, opening: 10, closing: 20, entries: ORDER }, 10],
    [{ day: 9, opening: 0, closing: 10, entries: ORDER }, 20],
    [{ day: 7, opening: 20, closing: 30, entries: ORDER }, 30],
  ],
  [
    // Of six days, because the lower hash is paired.
    "entries that are paired wrongly and come apart leave no other one behind",
    [{ day: 10, opening: 0, closing: 3, entries: [{ amount: 3 }] }, 3],
    ...[0, 1, 2, 3, 4, 5].flatMap((at): Step[] => {
      const [day, opening] = [9 - at, 3 + 20 * at];
      const stated = parts(at);
      return [
        [
          { day, notified: [{ amount: 10, reference: `NOTED${1000 + at}` }, ...stated] },
          opening + 20,
        ],
        [{ day, opening, closing: opening + 10, entries: TEN }, opening + 20],
        [{ day, opening, closing: opening + 20, entries: [...TEN, ...stated] }, opening + 20],
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
    const send = async (step: Step[0]): Promise<string> => {
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
      const statement = (day: number, opening: number) =>
        send({ day, opening, closing: opening + 10, entries: TEN });
      // A difference of more than 90 days ago is no breach: banks keep statements for some time only.
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
    await t.step("a loss on the first day is a breach", async () => {
      const { send } = await open(CASES.length + 3);
      for (const opening of [0, 20, 10]) {
        await send({ day: 9, opening, closing: opening + 10, entries: TEN });
      }
      await send({ day: 9, opening: 30, closing: 30, entries: AWAY });
      assert.equal((await gaps()).length, 1);
    });
    await t.step("a loss on an account that the bank empties is a breach", async () => {
      const { send } = await open(CASES.length + 4);
      await send({ day: 9, opening: 0, closing: 0, entries: AWAY });
      const [back, away] = AWAY;
      await send({ day: 8, opening: 0, closing: 0, entries: [{ ...back!, day: 9 }, away!] });
      assert.equal((await gaps()).length, 2);
      const other = await open(CASES.length + 5);
      for (const opening of [0, 20, 10]) {
        await other.send({ day: 9, opening, closing: opening + 10, entries: TEN });
      }
      await other.send({ day: 9, opening: 30, closing: 0, entries: [{ amount: -30 }] });
      assert.equal((await gaps()).length, 3);
    });
    await t.step("files that come at once", async () => {
      const { send, booked } = await open(CASES.length + 2);
      await send({ day: 9, opening: 0, closing: 10, entries: TEN });
      await Promise.all(
        [10, 20, 30].map((opening) =>
          send({ day: 8, opening, closing: opening + 10, entries: TEN })
        ),
      );
      // If the last part comes before the second one, its entry is taken for that of the first one.
      const { events } = await booked();
      assert.ok(events >= 3_000, `${events}`);
      await Promise.all(
        [1, 2].map((number) =>
          send({ ...page(number), day: 7, opening: 0, closing: 0, entries: [{ amount: 7 }] })
        ),
      );
      assert.equal((await booked()).events, events + 1_400);
    });
    await t.step("a closing balance of the future proves nothing", async () => {
      const { id, send, booked } = await open(CASES.length + 1);
      const entries = [{ amount: 10, day: 3 }];
      const warnings = await send({ day: -400, opened: 4, opening: 0, closing: 10, entries });
      assert.match(warnings, new RegExp(`the closing balance is of ${ago(-400)}, not yet due`));
      await send({ day: 2, opening: 10, closing: 20, entries: TEN });
      assert.equal((await booked()).events, 2_000);
      const [cursor] = await sql`
        select totals_day::text from pay.provider_cursors where account_id = ${id}`;
      assert.equal(cursor?.totals_day, ago(2));
    });
  } finally {
    await service.close();
  }
});

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

function write(step: Step[0], iban: string): string {
  const account = `<Id><IBAN>${iban}</IBAN></Id><Ccy>EUR</Ccy>`;
  const texts = (entries: readonly Entry[]) =>
    entries.map(({ amount, day = step.day, value = day, reference = "NONREF" }) =>
      writeEntry({
        Amt: `${Math.abs(amount)}.00 EUR`,
        CdtDbtInd: amount < 0 ? "DBIT" : "CRDT",
        BookgDt: `<Dt>${ago(day)}</Dt>`,
        ValDt: `<Dt>${ago(value)}</Dt>`,
        AcctSvcrRef: reference,
      })
    ).join("");
  if ("notified" in step) {
    return writeFile([{ account, entries: texts(step.notified) }], { kind: "054" });
  }
  const { day, opened = day + 1, opening, closing, entries, page } = step;
  const head = (page === undefined ? "" : `<StmtPgntn><PgNb>${page.number}</PgNb>` +
    `<LastPgInd>${page.is_last}</LastPgInd></StmtPgntn>`) +
    writeBalance("OPBD", `${opening}.00`, "CRDT", ago(opened)) +
    writeBalance("CLBD", `${closing}.00`, "CRDT", ago(day));
  return writeFile([{ account, head, entries: texts(entries) }]);
}

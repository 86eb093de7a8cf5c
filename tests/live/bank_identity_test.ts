/** Entries that a bank's files name in different ways: each is booked once, and none is lost. */

import assert from "node:assert/strict";
import {
  bookedOf,
  type Entry,
  euros,
  payingEntry,
  permutations,
  withLiveAccount,
} from "../support/bank/live_account.ts";
import {
  ACCOUNT,
  writeBalance,
  writeDetail,
  writeEntry,
  writeFile,
} from "../support/connectors/bank_file.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";

const KINDS = ["052", "053", "054"] as const;
type Kind = typeof KINDS[number];
/** A file: its kind, and its entries. */
type Step = [Kind, ...Entry[]];

/** A payment's entry in a file. `+` is the detail with the payment's reference. */
const detailed = (AcctSvcrRef: string | null = null): Entry => ({ AcctSvcrRef, NtryDtls: "+" });
const plain = (AcctSvcrRef: string | null = null): Entry => ({ AcctSvcrRef });

const EARLY: Step[] = [["052", detailed("REPORT0001")], ["054", detailed("NOTIFY0001")]];
const REPORTED: Step = ["052", plain("TOTAL00001")];
const STATED: Step = ["053", plain("TOTAL00001")];
const DETAILED: Step = ["054", detailed("DETAIL0001")];

const CASES: [name: string, ...files: Step[]][] = [
  ["a report and a notification", ...EARLY],
  ["a notification and a report", ...EARLY.toReversed()],
  ["both, and a statement as the report", ...EARLY, ["053", plain("REPORT0001")]],
  ["both, and another statement", ...EARLY, ["053", plain()]],
  ...permutations([REPORTED, STATED, DETAILED]).map((steps, at): typeof CASES[number] => [
    `only the notification has details ${at + 1}`,
    ...steps,
  ]),
  ["a report after a notification", ...[REPORTED, DETAILED], ["052", detailed("TOTAL00001")]],
  [
    "details of a notification after its total",
    ["052", plain("REPORT0001")],
    ["054", plain("NOTIFY0001")],
    ["054", detailed("NOTIFY0001")],
    ["053", plain("REPORT0001")],
  ],
  ["a reference in the notification", ["054", detailed("NOTED0001")], ["053", detailed("NONREF")]],
  ["a reference in the statement", ["052", detailed("NONREF")], ["053", detailed("STATED0001")]],
  ["only the statement has details", ["052", plain()], ["053", detailed()]],
  ["two statements", ["054", detailed("NOTED0002")], ["053", detailed()], ["053", detailed()]],
];

/** Whether the worker is late to apply a file, by the month of their entries. */
const LATE: Record<string, [is_late: (i: number) => boolean, name: string]> = {
  "10": [() => false, ""],
  "09": [() => true, ", and the worker is late"],
  "07": [(i) => i > 0, ", and the worker is late after the first file"],
};

Deno.test("an entry with several identities", (t) =>
  withLiveAccount(async (live) => {
    const { service, setLate } = live;
    const { sql } = service;
    let files = 0;
    const send = async (
      [kind, ...entries]: Step,
      { opening = 0, change = 10 * entries.length, day = "2026-11-20", account = "", made = "" } =
        {},
    ): Promise<string> => {
      const head = kind !== "053" ? "" : writeBalance("OPBD", `${opening}.00`, "CRDT", day) +
        writeBalance("CLBD", `${opening + change}.00`, "CRDT", day);
      const statement = {
        ...{ head, entries: entries.map(writeEntry).join("") },
        ...(account !== "" && { account }),
      };
      const file = writeFile([statement], { kind });
      const dated = made ? file.replace("2026-11-20T20:00:00+01:00", made) : file;
      const { error, warnings } = await live.importFile(`${dated}<!-- ${++files} -->`);
      assert.equal(error, null);
      return warnings.join("\n");
    };
    const pay = async () => {
      const id = await live.request();
      const { NtryDtls } = payingEntry(id);
      return { id, NtryDtls: NtryDtls! };
    };
    const received = async (id: string) => (await live.show(id)).amount_received;
    /** Returns what entries and the ledger have, since the last call. */
    let former = [0, 0];
    const moved = async () => {
      const { entries, events, ledger } = await bookedOf(service);
      assert.equal(ledger, events, "the ledger has what the events have");
      const change = [entries - former[0]!, events - former[1]!];
      former = [entries, events];
      return change;
    };
    /** Returns how many days have another total than the ledger. */
    const differs = async () =>
      (await sql`select from pay.provider_totals t
        where t.provider_minor <> (
          select coalesce(sum(e.booked_minor), 0) from pay.provider_events e
          where e.account_id = t.account_id and (e.happened_at at time zone 'UTC')::date = t.day
        )`).length;
    for (const [month, [isLate, after]] of Object.entries(LATE)) {
      for (const [at, [name, ...steps]] of CASES.entries()) {
        await t.step(`${name}${after}`, async () => {
          const payment = await pay();
          const BookgDt = `<Dt>2026-${month}-${String(at + 1).padStart(2, "0")}</Dt>`;
          const own = (text: string) =>
            `${text.slice(0, -3)}${month}${String.fromCharCode(65 + at)}`;
          for (const [i, [kind, ...entries]] of steps.entries()) {
            await setLate(isLate(i));
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
          await setLate(false);
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
    for (const n of [1, 2]) {
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
        const on = (day: string, one: Entry) => ({ ...one, BookgDt: `<Dt>2026-11-${day}</Dt>` });
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
      assert.match(await send(["053", entry], { change: 10 }), /the other direction: .+ -1000 EUR/);
      assert.deepEqual(await moved(), [2000, 0]);
      assert.equal(await differs(), 1);
    });
  }));

/** The kinds of files in the order of their imports, and which of them have the details. */
const DETAILS = permutations(KINDS).flatMap((order) =>
  ["054", "053", "053 054"].map((with_details) => ({ order, with_details }))
);

Deno.test("details that come in another file", (t) =>
  withLiveAccount(async ({ service, request, send, show }) => {
    const { sql } = service;
    /** The entries about a payment, the sum of their events, and the exceptions. */
    const bookedFor = async (id: string) => {
      const [row] = await sql`
        select count(distinct b.id)::int as entries, sum(event.booked_minor)::int as booked,
          (count(*) filter (where event.exception is not null))::int as shown
        from pay.bank_entries b
        join pay.provider_events event on event.account_id = b.account_id
          and split_part(event.reference, ':', 1) = b.id
        where b.id in (select split_part(e.reference, ':', 1) from pay.provider_events e
          where e.subject_id = ${id})`;
      return { ...row };
    };
    for (const [at, { order, with_details }] of DETAILS.entries()) {
      await t.step(`${order.join(", ")}, with details in ${with_details}`, async () => {
        const [alone, first, last] = [await request(1000), await request(300), await request(400)];
        const single = { ...payingEntry(alone), AcctSvcrRef: `SINGLE2026${at}` };
        const batch = {
          ...{ AcctSvcrRef: `BATCH2026${at}`, Amt: euros(750) },
          NtryDtls: payingEntry(first, 300).NtryDtls + writeDetail({ Amt: euros(50) }) +
            payingEntry(last, 400).NtryDtls,
        };
        for (const kind of order) {
          const further = with_details.includes(kind) ? {} : { NtryDtls: null };
          const head = writeBalance("OPBD", "0.00") + writeBalance("CLBD", "17.50");
          await send([{ ...single, ...further }, { ...batch, ...further }], kind, head);
        }
        for (const id of [alone, first, last]) assert.equal((await show(id)).status, "completed");
        assert.deepEqual(await bookedFor(alone), { entries: 1, booked: 1000, shown: 0 });
        assert.deepEqual(await bookedFor(first), { entries: 1, booked: 750, shown: 1 });
      });
    }
    await t.step("details of money that the operator has dismissed are booked too", async () => {
      const id = await request();
      const total = { ...payingEntry(id), AcctSvcrRef: "DISMISSED2026" };
      const head = writeBalance("OPBD", "0.00") + writeBalance("CLBD", "10.00");
      await send({ ...total, NtryDtls: null }, "053", head);
      await sql`update pay.provider_events set dismissed_at = now(), dismissed_reason = 'seen'
        where exception is not null and dismissed_at is null`;
      const { booked, exceptions } = await send(total);
      assert.deepEqual([booked, exceptions], [1, 0]);
      assert.equal((await show(id)).status, "completed");
    });
    await t.step("the ledger equals the entries, also while a payment waits", async () => {
      await request(600);
      const { entries, ...booked } = await bookedOf(service);
      assert.deepEqual(booked, { events: entries, ledger: entries });
      await assertSilent(sql);
    });
  }));

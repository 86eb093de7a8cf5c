/**
 * The results of orders, whatever entries a bank books about them: batches as one total, rejections
 * and returns in every order of the files, another amount than that of the order, and entries
 * without an id that the operator matches. At the end of each day the ledger has what the bank has.
 */

import assert from "node:assert/strict";
import { runProviders, written } from "../support/bank/bank.ts";
import {
  bookedOf,
  type Entry,
  euros,
  type LiveAccount,
  orderEntry,
  PAYEE,
  payingEntry,
  permutations,
  withLiveAccount,
} from "../support/bank/live_account.ts";
import { writeRecallReply, writeReport } from "../support/connectors/bank_file.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";

/**
 * `total` books the first and the third order together, `single` the first alone, `third` the
 * third. `report` rejects the second one, `recall` recalls it. `back` takes the first one back.
 */
type Step = "total" | "single" | "third" | "report" | "recall" | "back";
const KINDS = ["collection", "transfer", "refund"] as const;
type Kind = typeof KINDS[number];

const AMOUNTS = [1010, 2020, 3030] as const;

const ORDERS: [name: string, kinds: readonly Kind[], ...steps: Step[]][] = [
  ...permutations<Step>(["total", "report", "back"]).map((steps): typeof ORDERS[number] => [
    "a batch",
    KINDS,
    ...steps,
  ]),
  ["orders by themselves", KINDS, "back", "single", "report", "third"],
  ["a batch whose order is recalled", ["transfer"], "total", "recall", "back"],
  ["a batch whose order is recalled after its return", ["transfer"], "back", "total", "recall"],
];

/** How the bank names the batch, and what it takes out of it. */
const FORMS: [name: string, batch: (file: string) => string, charge: number][] = [
  ["by its id", (file) => `<PmtInfId>${file}-1</PmtInfId>`, 0],
  ["by that of its file, without the charge", (file) => `<MsgId>${file}</MsgId>`, 40],
];

const BACK = "failed bank_return";
/** An entry without any id that the operator matches, and the results of the orders then. */
const BY_HAND: [
  kind: Kind,
  entry: number,
  /** Numbers of orders, or that of the file. `--fee` comes last. */
  targets: (0 | 1 | 2 | "file" | `--fee=${string}`)[],
  results: string | RegExp,
  /** Whether the bank has booked the orders before, so that the entry takes them back. */
  is_back?: true,
][] = [
  ["collection", 4040, [0, 2], "completed processing completed"],
  ["collection", 4000, [0, 2, "--fee=0.40"], "completed processing completed"],
  ["collection", 6030, ["file", "--fee=0.30"], "completed completed completed"],
  ["transfer", 4040, [0, 2], "completed pending completed"],
  ["refund", 4080, [0, 2, "--fee=0.40"], "completed pending completed"],
  ["transfer", 1010, [0], "completed pending pending"],
  ["refund", 1010, [0], "completed pending pending"],
  ["collection", 4040, [0, 1], /orders and the fee come to 30\.30 EUR, and the entry is 40\.40/],
  ["collection", 4040, [0, 0, 2, "--fee=10.10"], /come to 30\.30 EUR/],
  ["collection", -4040, [0, 2], /no exported payout in EUR .*, and no collection that can come/],
  ["collection", -4040, [0, 2], `${BACK} completed ${BACK}`, true],
  ["collection", -4740, [0, 2, "--fee=7.00"], `${BACK} completed ${BACK}`, true],
  ["collection", 4040, [0, 2], /no exported collection in EUR .*, and no payout that can/, true],
  ["transfer", -6030, ["file", "--fee=0.30"], `${BACK} ${BACK} ${BACK}`, true],
  ["refund", -4040, [0, 2], `${BACK} completed ${BACK}`, true],
];

Deno.test("the files of a bank in any order", (t) =>
  withLiveAccount(async (live) => {
    const { service, account, importFile, send, setLate } = live;
    const single = (kind: Kind, id: string, amount: number, detail: Entry = {}) =>
      send(orderEntry(id, kind === "collection" ? amount : -amount, detail));
    /** The difference of the ledger and the bank. Cases can leave one. */
    const difference = async () => {
      const { entries, ledger } = await bookedOf(service);
      return ledger - entries;
    };
    const listed = async () => JSON.parse(await runProviders(service, ["facts", "--json"]));
    const ends = async (ids: readonly string[]) => {
      const shown = await Promise.all(ids.map(live.show));
      return shown.map(({ status, failure_code }) =>
        failure_code === null ? status : `${status} ${failure_code}`
      ).join(" ");
    };
    const createAll = async (kind: Kind): Promise<[string, string, string]> => [
      await create(live, kind, AMOUNTS[0]),
      await create(live, kind, AMOUNTS[1]),
      await create(live, kind, AMOUNTS[2]),
    ];
    await send(payingEntry(await live.request(100_000), 100_000));
    const cases = ORDERS.flatMap(([name, kinds, ...steps]) =>
      FORMS.flatMap(([form, batchOf, charge]) =>
        kinds.flatMap((kind) =>
          (charge === 0 ? [false, true] : [false]).map((is_late) => ({
            ...{ name, steps, form, batchOf, charge, kind, is_late },
          }))
        )
      )
    );
    for (const { name, steps, form, batchOf, charge, kind, is_late } of cases) {
      const late = is_late ? ", and the worker is late" : "";
      await t.step(`${kind}: ${name} ${form}: ${steps.join(", ")}${late}`, async () => {
        const left = await difference();
        const ids = await createAll(kind);
        const file_id = await live.exportOrders();
        const sign = kind === "collection" ? 1 : -1;
        const told = written(ids[1]);
        const does: Record<Step, () => Promise<unknown>> = {
          total: () =>
            send({
              CdtDbtInd: sign === 1 ? "CRDT" : "DBIT",
              Amt: euros(AMOUNTS[0] + AMOUNTS[2] - sign * charge),
              Chrgs: charge === 0 ? null : '<TtlChrgsAndTaxAmt Ccy="EUR">0.40</TtlChrgsAndTaxAmt>',
              NtryDtls: `<Btch>${batchOf(file_id)}<NbOfTxs>2</NbOfTxs></Btch>`,
            }, "053"),
          single: () => single(kind, ids[0], AMOUNTS[0]),
          third: () => single(kind, ids[2], AMOUNTS[2]),
          report: () => importFile(writeReport(null, [[`${file_id}-1`], [told, "RJCT"]])),
          recall: () => importFile(writeRecallReply("CNCL", null, [[`${file_id}-1`], [told]])),
          back: () => single(kind, ids[0], -AMOUNTS[0], { RtrInf: "<Rsn><Cd>AM04</Cd></Rsn>" }),
        };
        await setLate(is_late);
        for (const [i, step] of steps.entries()) {
          await does[step]();
          if (is_late) continue;
          assert.equal(await difference(), left, `after ${step}`);
          if (i === 0 && step === "back") {
            const [early, ...others] = await listed();
            assert.deepEqual(others, []);
            assert.match(early.reason, /came back before the bank had booked it/);
          }
        }
        await setLate(false);
        assert.equal(await difference(), left);
        assert.equal(await ends(ids), `${BACK} failed provider_refused completed`);
        assert.deepEqual(await listed(), []);
      });
    }
    for (const [kind, entry, targets, results, is_back] of BY_HAND) {
      const name = `by hand: ${kind} ${entry} as ${targets.join(", ")}${is_back ? " back" : ""}`;
      await t.step(name, async () => {
        const left = await difference();
        const ids = await createAll(kind);
        const batch = `${await live.exportOrders()}-1`;
        const is_credit = (kind === "collection") === (entry > 0);
        for (const [i, id] of is_back ? ids.entries() : []) await single(kind, id, AMOUNTS[i]!);
        await send({ CdtDbtInd: is_credit ? "CRDT" : "DBIT", Amt: euros(Math.abs(entry)) });
        const [{ account_id, reference }] = await listed();
        const name = `${account_id}/${reference}`;
        const args = targets.flatMap((target) =>
          typeof target === "number" ? ids[target]! : target === "file" ? batch : target.split("=")
        );
        const match = runProviders(service, ["match", name, ...args]);
        if (typeof results !== "string") {
          await assert.rejects(match, results);
          await runProviders(service, ["dismiss", name, "--reason", "a test"]);
        } else {
          await match;
          await service.deps.provider_worker.notify();
          assert.equal(await ends(ids), results);
          await assert.rejects(
            runProviders(service, ["match", name, ...args]),
            /no unmatched provider event or exception has this reference/,
          );
        }
        assert.equal(await difference(), left);
      });
    }
    await runProviders(service, ["set", account.id], { own_business: "code:153" });
    for (const is_late of [false, true]) {
      for (const kind of ["053", "054"] as const) {
        const late = is_late ? ", and the worker is late" : "";
        await t.step(`a rule takes a total, and a camt.${kind} has orders${late}`, async () => {
          const left = await difference();
          const ids = [
            await create(live, "transfer", AMOUNTS[0]),
            await create(live, "transfer", AMOUNTS[1]),
          ];
          await live.exportOrders();
          await setLate(is_late);
          const members = {
            ...{ Amt: "30.30 EUR", CdtDbtInd: "DBIT", BkTxCd: "<Prtry><Cd>153</Cd></Prtry>" },
            // Of a day of its own: the statement has another reference.
            BookgDt: `<Dt>2026-11-1${kind.at(-1)}</Dt>`,
            ...kind === "054" && { AcctSvcrRef: `RULE2026${is_late}` },
          };
          await send(members, "052");
          const details = ids.map((id, i) => orderEntry(id, AMOUNTS[i]!).NtryDtls);
          await send({ ...members, NtryDtls: details.join("") }, kind);
          await setLate(false);
          assert.equal(await difference(), left);
          assert.equal(await ends(ids), "completed completed");
          assert.deepEqual(await listed(), []);
        });
      }
    }
    await assertSilent(service.sql);
  }));

/** An order of 7.00 EUR, and an entry about it: the amount, with "<" if it takes the order back. */
const AMOUNT_CASES: [
  name: string,
  kind: Kind,
  entry: string,
  /** The status and the fee, at once or after `match --fee`. */
  end: string,
  fee?: string,
][] = [
  ["a collection that is returned with a charge", "collection", "<10.50", "failed 350"],
  ["with the most that is plausible", "collection", "<22.00", "failed 1500"],
  ["with more", "collection", "<22.01", "failed 1501", "15.01"],
  ["with less than it was", "collection", "<6.99", "completed 0", "0.01"],
  ["a collection that is booked without a charge", "collection", "6.70", "completed 30", "0.30"],
  ["a collection that is booked with more", "collection", "7.01", "processing 0", "0.01"],
  ["a transfer that is returned without a charge", "transfer", "<0.50", "failed 650"],
  ["a transfer that is returned with more", "transfer", "<7.01", "completed 0", "0.01"],
  ["a transfer that is booked with a charge", "transfer", "7.01", "completed 1", "0.01"],
  ["a refund that is returned without a charge", "refund", "<6.50", "failed 50"],
  ["a refund that is booked with a charge", "refund", "7.20", "completed 20", "0.20"],
];

Deno.test("entries with another amount than their order", (t) =>
  withLiveAccount(async (live) => {
    const { service, account, post, send, show } = live;
    const { sql } = service;
    const createOrder = async (kind: Kind): Promise<string> => {
      const id = await create(live, kind, 700);
      await live.exportOrders();
      return id;
    };
    /** Books an entry about an order. Returns the number of exceptions. */
    const book = async (id: string, amount: number, is_back = false): Promise<number> => {
      const entry = orderEntry(id, amount, { RtrInf: is_back ? "<Rsn><Cd>MD06</Cd></Rsn>" : null });
      const { error, booked, exceptions } = await send(entry);
      assert.deepEqual([error, booked], [null, 1]);
      return exceptions;
    };
    /** Returns the status of an order, and the fees of its payment or transfer. */
    const endOf = async (id: string) => {
      const { status, payment_id = id } = await show(id);
      const [fees] = await sql`select coalesce(sum(amount_minor), 0)::int as minor
        from pay.ledger_movements where kind = 'fee' and subject_id = ${payment_id}`;
      return `${status} ${fees!.minor}`;
    };
    const lastEntry = async (): Promise<string> => {
      const [entry] = await sql`select split_part(reference, ':', 1) as id from pay.provider_events
        where outcome = 'unmatched' and dismissed_at is null order by handled_at desc limit 1`;
      return entry!.id;
    };
    // The money of transfers and fees.
    await send(payingEntry(await live.request(4_200), 4_200));
    for (const [name, kind, entry, end, fee] of AMOUNT_CASES) {
      await t.step(`${name}: ${kind} ${entry}`, async () => {
        const is_back = entry.startsWith("<");
        const sign = kind === "collection" ? 1 : -1;
        const amount = Math.round(Number(entry.replace("<", "")) * 100);
        const id = await createOrder(kind);
        if (is_back) await book(id, sign * 700);
        const before = await endOf(id);
        const exceptions = await book(id, is_back ? -sign * amount : sign * amount, is_back);
        assert.equal(exceptions, fee === undefined ? 0 : 1);
        if (fee !== undefined) {
          assert.equal(await endOf(id), before);
          const reference = `${await lastEntry()}:1`;
          const match = (fee: string) =>
            runProviders(service, ["match", reference, id, "--fee", fee, "--json"]);
          await assert.rejects(match("0.07"), /left unchanged: the amount is /);
          if (end === before) {
            await assert.rejects(match(fee), /left unchanged: the amount is /);
            await runProviders(service, ["dismiss", reference, "--reason", "a test"]);
          } else {
            await match(fee);
          }
        }
        assert.equal(await endOf(id), end);
        const { entries, ...booked } = await bookedOf(service);
        assert.deepEqual(booked, { events: entries, ledger: entries });
      });
    }
    await assertSilent(service.sql);
    await t.step("without a plausible charge every other amount is an exception", async () => {
      await runProviders(service, ["set", account.id], { return_charge_minor: "0" });
      const id = await createOrder("collection");
      await book(id, 700);
      assert.equal(await book(id, -701, true), 1);
      assert.equal(await endOf(id), "completed 0");
    });
    await t.step("a fee is for an entry about an order", async () => {
      const { id } = await post("payments", { amount: 700, currency: "EUR", method_kind: "sepa" });
      await send({ Amt: "6.50 EUR" });
      const args = [`${await lastEntry()}:0:credit`, id, "--fee", "0.50"];
      const match = runProviders(service, ["match", ...args]);
      await assert.rejects(match, /--fee is for an entry of a bank about an order/);
    });
  }));

/** Creates an order. A refund is of a payment of its own. */
async function create(live: LiveAccount, kind: Kind, amount: number): Promise<string> {
  if (kind === "collection") return (await live.collect({ amount })).id;
  if (kind === "transfer") return (await live.transfer({ amount })).id;
  const id = await live.request(amount);
  await live.send(payingEntry(id, amount));
  return (await live.post(`payments/${id}/refund`, { amount, destination: { iban: PAYEE } })).id;
}

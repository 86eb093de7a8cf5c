/**
 * The files about a batch in every order: the statement that books it as one total, the report that
 * rejects one of its orders, and the notification that one of them comes back. At the end of each
 * day the ledger has what the bank has, and at the end each order has its result.
 */

import assert from "node:assert/strict";
import { creditorReference } from "../../shared/core/creditor_reference.ts";
import { formatDecimal } from "../../shared/core/currency.ts";
import { Vault } from "../../shared/core/vault.ts";
import {
  addBankAccount,
  callBridge,
  changeBankAccount,
  KEYS,
  runProviders,
  written,
} from "../support/bank/bank.ts";
import { ACCOUNT, writeDetail, writeEntry, writeFile } from "../support/connectors/bank_file.ts";
import { assertSilent } from "../support/database/invariant_breaches.ts";
import { startService } from "../support/service/service.ts";

/**
 * `total` books the first and the third order together, `single` the first alone, `third` the third.
 * `report` rejects the second one, `recall` recalls it. `back` takes the first one back.
 */
type Step = "total" | "single" | "third" | "report" | "recall" | "back";
type Kind = "collection" | "transfer" | "refund";

const AMOUNTS = [1010, 2020, 3030] as const;

const ORDERS: [name: string, kinds: Kind[], ...steps: Step[]][] = [
  ...permutations<Step>(["total", "report", "back"]).map((steps): typeof ORDERS[number] => [
    "a batch",
    ["collection", "transfer", "refund"],
    ...steps,
  ]),
  [
    "orders by themselves",
    ["collection", "transfer", "refund"],
    "back",
    "single",
    "report",
    "third",
  ],
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
  [
    "collection",
    4040,
    [0, 1],
    /the orders and the fee come to 30\.30 EUR, and the entry is 40\.40/,
  ],
  ["collection", 4040, [0, 0, 2, "--fee=10.10"], /come to 30\.30 EUR/],
  [
    "collection",
    -4040,
    [0, 2],
    /no exported payout in EUR .*, and no collection that can come back/,
  ],
  ["collection", -4040, [0, 2], `${BACK} completed ${BACK}`, true],
  ["collection", -4740, [0, 2, "--fee=7.00"], `${BACK} completed ${BACK}`, true],
  ["collection", 4040, [0, 2], /no exported collection in EUR .*, and no payout that can/, true],
  ["transfer", -6030, ["file", "--fee=0.30"], `${BACK} ${BACK} ${BACK}`, true],
  ["refund", -4040, [0, 2], `${BACK} completed ${BACK}`, true],
];

Deno.test("the files of a bank in any order", async (t) => {
  const service = await startService({ vault: Vault.read(KEYS) });
  const { live: { text: key }, sql, deps } = service;
  const account = await addBankAccount(service, {
    methods: "sepa",
    iban: ACCOUNT,
    currency: "EUR",
    creditor_id: "DE98ZZZ09999999999",
  });
  const bridge = (method: string, path: string, body?: string) =>
    callBridge(service, account, method, path, body);
  const call = async (path: string, body?: unknown) => {
    const method = body === undefined ? "GET" : "POST";
    const options = { key, ...body !== undefined && { body } };
    return (await service.call(method, `/api-v1-payments/v1/${path}`, options)).body;
  };
  let works_at_once = true;
  const stop = deps.provider_worker.notify;
  let entries = 0;
  const importFile = async (file: string) => {
    // The bridge wakes the worker.
    deps.provider_worker.notify = works_at_once ? stop : () => Promise.resolve();
    const { status, body } = await bridge("POST", "statements", file);
    assert.deepEqual([status, body.error], [200, null]);
    if (works_at_once) await deps.provider_worker.notify();
  };
  const send = (members: Record<string, string | null>, kind: "052" | "053" | "054" = "054") => {
    const AcctSvcrRef = `ORDER2026${1000 + ++entries}`;
    return importFile(writeFile([{ entries: writeEntry({ AcctSvcrRef, ...members }) }], { kind }));
  };
  const detail = (id: string, Amt: string, RtrInf: string | null = null) =>
    writeDetail({ Refs: `<EndToEndId>${written(id)}</EndToEndId>`, Amt, RtrInf });
  const single = (kind: Kind, id: string, amount: number) =>
    send({
      ...{ CdtDbtInd: kind === "collection" ? "CRDT" : "DBIT", Amt: euros(amount) },
      NtryDtls: detail(id, euros(amount)),
    });
  const collect = async (amount: number) =>
    (await call("payments", {
      ...{ amount, currency: "EUR", method_kind: "sepa" },
      iban: { iban: "NL91ABNA0417164300", holder_name: "Jan Payer" },
      mandate: { id: `M-${++entries}`, signed_at: "2026-01-31", sequence: "recurring" },
    })).id;
  const pay = async (amount: number): Promise<string> => {
    const { id } = await call("payments", { amount, currency: "EUR", method_kind: "sepa" });
    const RmtInf = `<Ustrd>${creditorReference(id)}</Ustrd>`;
    await send({ Amt: euros(amount), NtryDtls: writeDetail({ Amt: euros(amount), RmtInf }) });
    return id;
  };
  const destination = {
    iban: { iban: "FR1420041010050500013M02606", holder_name: "Zoë Müller" },
  };
  const create = async (kind: Kind, amount: number): Promise<string> => {
    if (kind === "collection") return await collect(amount);
    if (kind === "transfer") {
      return (await call("transfers", { amount, currency: "EUR", destination })).id;
    }
    return (await call(`payments/${await pay(amount)}/refund`, { amount, destination })).id;
  };
  const show = async (id: string) => {
    const path = { pay: "payments", tr: "transfers", re: "refunds" }[id.split("_")[0]!];
    const { status, failure_code } = await call(`${path}/${id}`);
    return failure_code === null ? status : `${status} ${failure_code}`;
  };
  /** What the bank has, and what the ledger has. */
  const balances = async () => {
    const [sums] = await sql`select
      (select coalesce(sum(amount_minor), 0)::int from pay.bank_entries where same_as is null)
        as bank,
      (select sum(case 'processor' when debit_account then amount_minor
          when credit_account then -amount_minor else 0 end
        + case 'external' when debit_account then amount_minor
          when credit_account then -amount_minor else 0 end)::int
        from pay.ledger_movements) as ledger`;
    return [sums!.ledger, sums!.bank];
  };
  /** The difference that earlier cases have left. */
  let left = 0;
  const agree = async (after: string) => {
    const [ledger, bank] = await balances();
    assert.equal(ledger - bank, left, after);
  };
  const listed = async () => JSON.parse(await runProviders(service, ["facts", "--json"]));
  try {
    await pay(100_000);
    for (const [name, kinds, ...steps] of ORDERS) {
      for (const [form, batchOf, charge] of FORMS) {
        for (const kind of kinds) {
          for (const works of charge === 0 ? [true, false] : [true]) {
            const late = works ? "" : ", and the worker is late";
            await t.step(`${kind}: ${name} ${form}: ${steps.join(", ")}${late}`, async () => {
              works_at_once = true;
              const [ledger, bank] = await balances();
              left = ledger - bank;
              const [first, second, third] = [
                await create(kind, AMOUNTS[0]),
                await create(kind, AMOUNTS[1]),
                await create(kind, AMOUNTS[2]),
              ];
              await bridge("POST", "files");
              const [file] = (await bridge("GET", "files")).body.data;
              const file_id = /bf-[0-9a-z]+/.exec(file.name)![0];
              const [there, back] = kind === "collection" ? ["CRDT", "DBIT"] : ["DBIT", "CRDT"];
              const sum = AMOUNTS[0] + AMOUNTS[2];
              const does: Record<Step, () => Promise<void>> = {
                total: () =>
                  send({
                    CdtDbtInd: there!,
                    Amt: euros(kind === "collection" ? sum - charge : sum + charge),
                    Chrgs: charge === 0
                      ? null
                      : `<TtlChrgsAndTaxAmt Ccy="EUR">0.40</TtlChrgsAndTaxAmt>`,
                    NtryDtls: `<Btch>${batchOf(file_id)}<NbOfTxs>2</NbOfTxs></Btch>`,
                  }, "053"),
                single: () => single(kind, first, AMOUNTS[0]),
                third: () => single(kind, third, AMOUNTS[2]),
                report: () =>
                  importFile(`<Document><CstmrPmtStsRpt><GrpHdr><MsgId>S</MsgId></GrpHdr>
<OrgnlPmtInfAndSts><OrgnlPmtInfId>${file_id}-1</OrgnlPmtInfId><TxInfAndSts>
<OrgnlEndToEndId>${written(second)}</OrgnlEndToEndId><TxSts>RJCT</TxSts>
</TxInfAndSts></OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>`),
                recall: () =>
                  importFile(`<Document><RsltnOfInvstgtn><Assgnmt><Id>A</Id></Assgnmt>
<Sts><Conf>CNCL</Conf></Sts><CxlDtls><OrgnlPmtInfAndSts><OrgnlPmtInfId>${file_id}-1</OrgnlPmtInfId>
<TxInfAndSts><OrgnlEndToEndId>${written(second)}</OrgnlEndToEndId></TxInfAndSts>
</OrgnlPmtInfAndSts></CxlDtls></RsltnOfInvstgtn></Document>`),
                back: () =>
                  send({
                    ...{ CdtDbtInd: back!, Amt: euros(AMOUNTS[0]) },
                    NtryDtls: detail(first, euros(AMOUNTS[0]), "<Rsn><Cd>AM04</Cd></Rsn>"),
                  }),
              };
              works_at_once = works;
              for (const [i, step] of steps.entries()) {
                await does[step]();
                if (!works) continue;
                await agree(`after ${step}`);
                if (i === 0 && step === "back") {
                  const [early, ...others] = await listed();
                  assert.deepEqual(others, []);
                  assert.match(early.reason, /came back before the bank had booked it/);
                }
              }
              works_at_once = true;
              deps.provider_worker.notify = stop;
              await deps.provider_worker.notify();
              await agree("at the end");
              assert.deepEqual([await show(first), await show(second), await show(third)], [
                "failed bank_return",
                "failed provider_refused",
                "completed",
              ]);
              assert.deepEqual(await listed(), []);
              await assertSilent(sql);
            });
          }
        }
      }
    }
    for (const [kind, entry, targets, results, is_back] of BY_HAND) {
      const name = `by hand: ${kind} ${entry} as ${targets.join(", ")}${is_back ? " back" : ""}`;
      await t.step(name, async () => {
        const [ledger, bank] = await balances();
        left = ledger - bank;
        const ids: string[] = [];
        for (const amount of AMOUNTS) ids.push(await create(kind, amount));
        await bridge("POST", "files");
        const [file] = (await bridge("GET", "files")).body.data;
        const batch = `${/bf-[0-9a-z]+/.exec(file.name)![0]}-1`;
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
          await deps.provider_worker.notify();
          assert.equal((await Promise.all(ids.map(show))).join(" "), results);
          await assert.rejects(
            runProviders(service, ["match", name, ...args]),
            /no unmatched provider event or exception has this reference/,
          );
        }
        await agree("at the end");
        await assertSilent(sql);
      });
    }
    await changeBankAccount(service, account.id, { own_business: "code:153" });
    for (const works of [true, false]) {
      for (const kind of ["053", "054"] as const) {
        const late = works ? "" : ", and the worker is late";
        await t.step(`a rule takes a total, and a camt.${kind} has orders${late}`, async () => {
          works_at_once = true;
          const [ledger, bank] = await balances();
          left = ledger - bank;
          const ids = [await create("transfer", AMOUNTS[0]), await create("transfer", AMOUNTS[1])];
          await bridge("POST", "files");
          works_at_once = works;
          // Of a day of its own: the statement has another reference.
          const day = `<Dt>2026-11-1${kind.at(-1)}</Dt>`;
          const members = {
            ...{ Amt: "30.30 EUR", CdtDbtInd: "DBIT", BookgDt: day },
            BkTxCd: "<Prtry><Cd>153</Cd></Prtry>",
            ...kind === "054" && { AcctSvcrRef: `RULE2026${works}` },
          };
          await send(members, "052");
          const details = ids.map((id, i) => detail(id, euros(AMOUNTS[i]!)));
          await send({ ...members, NtryDtls: details.join("") }, kind);
          works_at_once = true;
          deps.provider_worker.notify = stop;
          await deps.provider_worker.notify();
          await agree("at the end");
          assert.equal((await Promise.all(ids.map(show))).join(" "), "completed completed");
          assert.deepEqual(await listed(), []);
          await assertSilent(sql);
        });
      }
    }
  } finally {
    await service.close();
  }
});

function euros(amount_minor: number): string {
  return `${formatDecimal(amount_minor, "EUR")} EUR`;
}

function permutations<T>(items: readonly T[]): T[][] {
  return items.length === 0
    ? [[]]
    : items.flatMap((item) =>
      permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest])
    );
}

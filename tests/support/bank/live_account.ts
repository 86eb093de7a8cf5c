/**
 * A service with a live account at a bank, and the requests of a merchant there. A test writes the
 * files of the bank itself and sends them over the bridge, or has the double of a bank.
 */

import assert from "node:assert/strict";
import { creditorReference } from "../../../shared/core/creditor_reference.ts";
import { formatDecimal } from "../../../shared/core/currency.ts";
import { Vault } from "../../../shared/core/vault.ts";
import type { Settings } from "../../../shared/functions/settings.ts";
import { ACCOUNT, writeDetail, writeEntry, writeFile } from "../connectors/bank_file.ts";
import { assertSilent } from "../database/invariant_breaches.ts";
import { startService, type TestService } from "../service/service.ts";
import { addBankAccount, Bank, callBridge, KEYS, written } from "./bank.ts";
import { BankDouble, no_bank_double } from "./double.ts";

/** The payee of each transfer, and the payer of each payment. */
export const PAYEE = { iban: "FR1420041010050500013M02606", holder_name: "Zoë Müller" };
export const PAYER = { name: "Jan Payer", iban: "NL91ABNA0417164300" };

/** Settings of an account. */
type AccountSettings = Parameters<typeof addBankAccount>[1];

/** The members of an entry, as `writeEntry` takes them. */
export type Entry = Record<string, string | null>;

/** A service with a live account at a bank, and requests with its live key. */
export type LiveAccount = ReturnType<typeof requestsOf>;

/** An account in EUR, for every rail. */
const IN_EUR: AccountSettings = {
  methods: "sepa,swift",
  iban: ACCOUNT,
  currency: "EUR",
  creditor_id: "DE98ZZZ09999999999",
};

/** Runs a test with a service that has an account at a bank. */
export async function withLiveAccount(
  test: (live: LiveAccount) => Promise<void>,
  own = IN_EUR,
  { vault = Vault.read(KEYS), ...settings }: Omit<Partial<Settings>, "vault"> & {
    vault?: Vault | null;
  } = {},
): Promise<void> {
  const service = await startService({ ...vault && { vault }, ...settings });
  try {
    await test(requestsOf(service, await addBankAccount(service, own), own));
  } finally {
    await service.close();
  }
}

/** A service with a live account at the double of a bank. */
export interface LiveBank extends LiveAccount {
  bank: Bank;
  /** Creates a payment by bank transfer that is paid, by nobody whom the bank names if null. */
  pay(amount: number, payer?: typeof PAYER | null): Promise<string>;
  /** Books orders, and returns their states at the service after the notification. */
  booked(...ids: string[]): Promise<string[]>;
}

/**
 * Registers a test with a service and its bank. At its end no table shows a whole IBAN, and no
 * invariant is broken. Without the programs of a bank it is skipped.
 */
export function bankCase(
  name: string,
  test: (live: LiveBank, t: Deno.TestContext) => Promise<void>,
  ...settings: [own?: AccountSettings, keys?: string]
): void {
  Deno.test({
    name,
    ignore: no_bank_double,
    fn: (t) => withLiveBank((live) => test(live, t), ...settings),
  });
}

async function withLiveBank(
  test: (live: LiveBank) => Promise<void>,
  own: AccountSettings = { ...IN_EUR, iban: "DE89370400440532013000", prenotification_days: "20" },
  keys = KEYS,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const double = new BankDouble();
  try {
    await withLiveAccount(
      async (live) => {
        const { service, account, request, show } = live;
        const { sql } = service;
        const bank = await Bank.open(service, double, folder, account.id, own);
        await test({
          ...live,
          bank,
          async pay(amount, payer = PAYER) {
            const id = await request(amount);
            await bank.move({
              ...{ amount, reference: creditorReference(id) },
              ...(payer && { party: payer }),
            });
            await bank.notify();
            return id;
          },
          async booked(...ids) {
            await bank.book(ids);
            await bank.notify();
            return await Promise.all(ids.map(async (id) => (await show(id)).status));
          },
        });
        await assertHidden(sql);
        await assertSilent(sql);
      },
      own,
      { vault: Vault.read(keys) },
    );
  } finally {
    await double.close();
    await Deno.remove(folder, { recursive: true });
  }
}

/** The members of an entry that pays a payment by bank transfer. */
export function payingEntry(id: string, amount_minor = 1000, detail: Entry = {}): Entry {
  const Amt = euros(amount_minor);
  const RmtInf = `<Ustrd>${creditorReference(id)}</Ustrd>`;
  return { Amt, NtryDtls: writeDetail({ Amt, RmtInf, ...detail }) };
}

/** The members of an entry about one of our orders. A negative amount leaves the account. */
export function orderEntry(id: string, amount_minor: number, detail: Entry = {}): Entry {
  const Amt = euros(Math.abs(amount_minor));
  const Refs = `<EndToEndId>${written(id)}</EndToEndId>`;
  return {
    ...{ Amt, CdtDbtInd: amount_minor < 0 ? "DBIT" : "CRDT" },
    NtryDtls: writeDetail({ Refs, Amt, ...detail }),
  };
}

/** An amount as `writeEntry` takes it. */
export function euros(amount_minor: number): string {
  return `${formatDecimal(amount_minor, "EUR")} EUR`;
}

/** Returns the money in the entries of all banks, in their events and in the ledger. */
export async function bookedOf(
  { sql }: TestService,
): Promise<{ entries: number; events: number; ledger: number }> {
  const [sums] = await sql<[{ entries: number; events: number; ledger: number }]>`select
    (select coalesce(sum(amount_minor), 0)::int from pay.bank_entries where same_as is null)
      as entries,
    (select coalesce(sum(booked_minor), 0)::int from pay.provider_events) as events,
    (select coalesce(-sum(processor + external), 0)::int from pay_internal.subject_accounts)
      as ledger`;
  return sums;
}

function requestsOf(
  service: TestService,
  account: Awaited<ReturnType<typeof addBankAccount>>,
  { currency }: AccountSettings,
) {
  const method_kind = currency === "EUR" ? "sepa" : "swift";
  const { deps: { provider_worker } } = service;
  const notify = provider_worker.notify.bind(provider_worker);
  let mandates = 0;
  let entries = 0;
  /** Calls the API. Without a body there is no idempotency key. `http` is the status. */
  // deno-lint-ignore no-explicit-any
  const call = async (method: string, path: string, body?: unknown): Promise<any> => {
    const { status, body: response } = await service.call(method, `/api-v1-payments/v1/${path}`, {
      key: service.live.text,
      ...(body !== undefined && { body, idempotency_key: crypto.randomUUID() }),
    });
    return { ...response, http: status };
  };
  const post = (path: string, body: unknown) => call("POST", path, body);
  /** Calls a route of the bridge. */
  const bridge = (method: string, path: string, body?: string) =>
    callBridge(service, account, method, path, body);
  /** Sends a file over the bridge, and applies it. Returns the result. */
  const importFile = async (file: string) => {
    const { status, body } = await bridge("POST", "statements", file);
    await provider_worker.notify();
    return { ...body, http: status };
  };
  return {
    ...{ service, account, call, post, bridge, importFile },
    /** Returns a payment, transfer or refund. */
    show(id: string) {
      const paths = { pay: "payments", tr: "transfers", re: "refunds" };
      return call("GET", `${paths[id.split("_")[0] as keyof typeof paths]}/${id}`);
    },
    transfer: ({ amount = 100, holder_name = PAYEE.holder_name } = {}) =>
      post("transfers", {
        ...{ amount, currency: "EUR" },
        destination: { iban: { ...PAYEE, holder_name } },
      }),
    /** Creates a collection, by default with a mandate of its own. */
    // A cut UUID can look like a card number.
    collect: ({ amount = 700, mandate_id = `M ${++mandates}`, sequence = "recurring" } = {}) =>
      post("payments", {
        ...{ amount, currency: "EUR", method_kind: "sepa" },
        iban: { iban: PAYER.iban, holder_name: PAYER.name },
        mandate: { id: mandate_id, signed_at: "2026-01-31", sequence },
      }),
    /** Creates a payment by bank transfer. Returns its id. */
    request: async (amount = 1000): Promise<string> =>
      (await post("payments", { amount, currency, method_kind })).id,
    /** Sends a notification, or a file of another kind, with entries that have ids of their own. */
    async send(given: Entry | Entry[], kind: "052" | "053" | "054" = "054", head = "") {
      const texts = [given].flat().map((entry) =>
        writeEntry({ AcctSvcrRef: `ENTRY${10_000 + ++entries}`, ...entry })
      );
      const result = await importFile(writeFile([{ head, entries: texts.join("") }], { kind }));
      assert.deepEqual([result.http, result.error], [200, null]);
      return result;
    },
    /** Exports what waits over the bridge. Returns the id of the file as the bank repeats it. */
    async exportOrders(): Promise<string> {
      await bridge("POST", "files");
      const [{ name }] = (await bridge("GET", "files")).body.data;
      return /bf-[0-9a-z]+/.exec(name)![0];
    },
    /** Keeps the worker from applying files until it is told to work again, and does it then. */
    async setLate(is_late: boolean) {
      // The bridge wakes the worker.
      provider_worker.notify = is_late ? () => Promise.resolve() : notify;
      if (!is_late) await notify();
    },
  };
}

/** Asserts that no table shows a whole IBAN. */
async function assertHidden(sql: TestService["sql"]): Promise<void> {
  const tables = await sql<{ name: string }[]>`
    select tablename as name from pg_tables where schemaname = 'pay'`;
  for (const { name } of tables) {
    for (const { row } of await sql`select t::text as row from ${sql(`pay.${name}`)} t`) {
      assert.ok(!row.includes(PAYEE.iban) && !row.includes(PAYER.iban), `${name}: ${row}`);
    }
  }
}

/** Returns all orders of some items. */
export function permutations<T>(items: readonly T[]): T[][] {
  return items.length === 0
    ? [[]]
    : items.flatMap((item) =>
      permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest])
    );
}

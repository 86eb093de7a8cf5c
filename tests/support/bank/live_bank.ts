/** A service with a live account at a bank, and the requests of a merchant there. */

import { creditorReference } from "../../../shared/core/creditor_reference.ts";
import { Vault } from "../../../shared/core/vault.ts";
import { startService, type TestService } from "../service/service.ts";
import { addBankAccount, Bank, callBridge, KEYS } from "./bank.ts";
import { BankDouble } from "./double.ts";

const OWN = "DE89370400440532013000";
const PAYMENTS = "/api-v1-payments/v1/payments";
const TRANSFERS = "/api-v1-payments/v1/transfers";

/** The payee of each transfer, and the payer of each payment. */
export const PAYEE = { iban: "FR1420041010050500013M02606", holder_name: "Zoë Müller" };
export const PAYER = { name: "Jan Payer", iban: "NL91ABNA0417164300" };

/** A service with a live account at a bank. */
export interface LiveBank {
  service: TestService;
  bank: Bank;
  /** Calls the API. Without a body there is no idempotency key. */
  // deno-lint-ignore no-explicit-any
  call(method: string, path: string, body?: unknown): Promise<any>;
  // deno-lint-ignore no-explicit-any
  show(id: string): Promise<any>;
  // deno-lint-ignore no-explicit-any
  transfer(holder_name?: string): Promise<any>;
  // deno-lint-ignore no-explicit-any
  collect(mandate_id: string, sequence?: string): Promise<any>;
  /** Creates a payment by bank transfer, which the payer pays. Returns its id. */
  pay(amount: number): Promise<string>;
  /** Books orders, and returns their states at the service after the notification. */
  booked(...ids: string[]): Promise<string[]>;
  /** Calls a route of the bridge. */
  bridge(method: string, path: string, body?: string): ReturnType<TestService["call"]>;
}

/** An account in EUR, for every rail. */
const IN_EUR = {
  methods: "sepa,swift",
  iban: OWN,
  currency: "EUR",
  creditor_id: "DE98ZZZ09999999999",
  prenotification_days: "20",
};

/**
 * Runs a test with the service and its bank.
 * @param own the account there
 * @param keys of bank details
 */
export async function withLiveBank(
  test: (live: LiveBank) => Promise<void>,
  own: Parameters<typeof addBankAccount>[1] = IN_EUR,
  keys = KEYS,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const double = new BankDouble();
  const service = await startService({ vault: Vault.read(keys) });
  try {
    const account = await addBankAccount(service, own);
    const { iban, currency } = own;
    const bank = await Bank.open(service, double, folder, {
      account_id: account.id,
      iban,
      currency,
    });
    await test({ service, bank, ...requestsOf(service, bank, account) });
  } finally {
    await service.close();
    await double.close();
    await Deno.remove(folder, { recursive: true });
  }
}

function requestsOf(
  service: TestService,
  bank: Bank,
  account: Parameters<typeof callBridge>[1],
): Omit<LiveBank, "service" | "bank"> {
  const call: LiveBank["call"] = async (method, path, body) => {
    const { status, body: response } = await service.call(method, path, {
      key: service.live.text,
      ...(body !== undefined && { body, idempotency_key: crypto.randomUUID() }),
    });
    return { ...response, http: status };
  };
  const show: LiveBank["show"] = (id) =>
    call("GET", id.startsWith("tr_") ? `${TRANSFERS}/${id}` : `${PAYMENTS}/${id}`);
  return {
    call,
    show,
    transfer: (holder_name = PAYEE.holder_name) =>
      call("POST", TRANSFERS, {
        amount: 100,
        currency: "EUR",
        destination: { iban: { ...PAYEE, holder_name } },
      }),
    collect: (id, sequence = "recurring") =>
      call("POST", PAYMENTS, {
        amount: 700,
        currency: "EUR",
        method_kind: "sepa",
        iban: { iban: PAYER.iban, holder_name: PAYER.name },
        mandate: { id, signed_at: "2026-01-31", sequence },
      }),
    async pay(amount) {
      const { currency } = bank;
      const method_kind = currency === "EUR" ? "sepa" : "swift";
      const { id } = await call("POST", PAYMENTS, { amount, currency, method_kind });
      await bank.move({ amount, reference: creditorReference(id), party: PAYER });
      await bank.notify();
      return id;
    },
    async booked(...ids) {
      await bank.book(ids);
      await bank.notify();
      return await Promise.all(ids.map(async (id) => (await show(id)).status));
    },
    bridge: (...request) => callBridge(service, account, ...request),
  };
}

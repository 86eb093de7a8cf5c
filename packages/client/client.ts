/** The client, with the operations of both functions by resource. */

import { ApiKeys } from "./api_keys.ts";
import { checkedOptions } from "./checked_object.ts";
import { Disputes } from "./disputes.ts";
import { readVariable } from "./environment.ts";
import type { Exchange, Fetch } from "./exchange.ts";
import { Balances, LedgerEntries } from "./ledger.ts";
import { Payments, Refunds } from "./payments.ts";
import { IdempotencyKeys } from "./requests.ts";
import { Sandbox } from "./sandbox.ts";
import { Sandboxes } from "./sandboxes.ts";
import { Customers } from "./customers.ts";
import { Checkouts } from "./checkouts.ts";
import { Instruments } from "./instruments.ts";
import { Transfers } from "./transfers.ts";
import {
  checkedRetries,
  checkedTimeout,
  DEFAULT_MAX_RETRIES,
  DEFAULT_TIMEOUT_MS,
} from "./request_options.ts";
import { RUNTIME, type Runtime } from "./runtime.ts";
import { Transport } from "./transport.ts";
import { Events, WebhookDeliveries, WebhookEndpoints } from "./webhooks.ts";

/** Options of a client. */
export interface PaymentsClientOptions {
  /** `sk_test_…` or `sk_live_…`. If it is left out: the variable `PAYMENTS_API_KEY`. */
  apiKey?: string;
  /**
   * URL of the functions: `https://<ref>.supabase.co/functions/v1`. If it is left out: the variable
   * `PAYMENTS_BASE_URL`.
   */
  baseUrl?: string;
  /** By default the global `fetch`. */
  fetch?: Fetch | undefined;
  /** Maximum of retries of a request. By default 2; 0 turns retries off. */
  maxRetries?: number | undefined;
  /** Timeout of one attempt in milliseconds. By default 30 000. */
  timeoutMs?: number | undefined;
  /** Called after each attempt, before the next. Errors that it throws are ignored. */
  onExchange?: ((exchange: Exchange) => void) | undefined;
  /** Clock, randomness and waiting. Tests can replace them. */
  runtime?: Partial<Runtime> | undefined;
}

/**
 * A client of the payments API. Objects have the fields of the API. The client sends every change
 * with an idempotency key. It retries after a failed connection, a timeout, 408, 429, 5xx and
 * `idempotency_in_progress`.
 * @example
 * ```ts
 * const client = new PaymentsClient(); // reads PAYMENTS_BASE_URL and PAYMENTS_API_KEY
 * const payment = await client.payments.create({
 *   amount: 1999,
 *   currency: "EUR",
 *   card: { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" },
 * });
 * ```
 */
export class PaymentsClient {
  readonly payments: Payments;
  readonly refunds: Refunds;
  readonly disputes: Disputes;
  readonly instruments: Instruments;
  readonly checkouts: Checkouts;
  readonly customers: Customers;
  readonly transfers: Transfers;
  readonly ledgerEntries: LedgerEntries;
  readonly balance: Balances;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly webhookDeliveries: WebhookDeliveries;
  readonly events: Events;
  readonly apiKeys: ApiKeys;
  readonly idempotencyKeys: IdempotencyKeys;
  readonly sandbox: Sandbox;
  readonly sandboxes: Sandboxes;

  /**
   * Creates a client. Sends no request.
   * @throws {TypeError} if the key or the URL is missing, or if an option is invalid
   */
  constructor(options: PaymentsClientOptions = {}) {
    const { apiKey, baseUrl } = requiredOptions(checkedOptions(options, OPTIONS));
    const transport = new Transport({
      apiKey: checkedKey(apiKey),
      baseUrl: checkedBaseUrl(baseUrl),
      // Browsers throw if `fetch` is not called as a method of the global object.
      fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
      maxRetries: checkedRetries(options.maxRetries ?? DEFAULT_MAX_RETRIES),
      timeoutMs: checkedTimeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS),
      onExchange: options.onExchange,
      runtime: { ...RUNTIME, ...checkedOptions(options.runtime ?? {}, Object.keys(RUNTIME)) },
    });
    this.payments = new Payments(transport);
    this.refunds = new Refunds(transport);
    this.disputes = new Disputes(transport);
    this.instruments = new Instruments(transport);
    this.checkouts = new Checkouts(transport);
    this.customers = new Customers(transport);
    this.transfers = new Transfers(transport);
    this.ledgerEntries = new LedgerEntries(transport);
    this.balance = new Balances(transport);
    this.webhookEndpoints = new WebhookEndpoints(transport);
    this.webhookDeliveries = new WebhookDeliveries(transport);
    this.events = new Events(transport);
    this.apiKeys = new ApiKeys(transport);
    this.idempotencyKeys = new IdempotencyKeys(transport);
    this.sandbox = new Sandbox(transport);
    this.sandboxes = new Sandboxes(transport);
  }
}

/** The names of the options. */
const OPTIONS: readonly (keyof PaymentsClientOptions)[] = [
  "apiKey",
  "baseUrl",
  "fetch",
  "maxRetries",
  "timeoutMs",
  "onExchange",
  "runtime",
];

/** The variable of each option that every client needs. */
const VARIABLES = { baseUrl: "PAYMENTS_BASE_URL", apiKey: "PAYMENTS_API_KEY" } as const;

/** The value of an option, and the name of its place for messages. */
interface Setting {
  value: unknown;
  name: string;
}

/**
 * Returns the base URL and the key: the options, or the variables in place of those that are left
 * out. An option that is undefined counts as given, so that the missing key of one account is an
 * error and never becomes the key of another.
 */
function requiredOptions(options: PaymentsClientOptions): Record<keyof typeof VARIABLES, Setting> {
  const setting = (option: keyof typeof VARIABLES): Setting => {
    if (option in options) return { value: options[option], name: option };
    const name = VARIABLES[option];
    return { value: readVariable(name), name };
  };
  const settings = { baseUrl: setting("baseUrl"), apiKey: setting("apiKey") };
  const missing = (["baseUrl", "apiKey"] as const).filter((option) =>
    settings[option].value === undefined
  );
  if (missing.length === 0) return settings;
  const it = missing.length === 1 ? "it" : "them";
  const variables = missing.map((option) => VARIABLES[option]).join(" and ");
  throw new TypeError(
    `PaymentsClient has no ${missing.join(" and no ")}: pass ${it}, or leave ${it} out and set ` +
      `${variables} in the environment of the program`,
  );
}

/** The error does not contain the key, because messages end up in logs. */
function checkedKey({ value, name }: Setting): string {
  if (typeof value === "string" && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new TypeError(
    `${name} is empty, or contains white space or other characters that an API key cannot have`,
  );
}

function checkedBaseUrl({ value, name }: Setting): string {
  const text = String(value).replace(/(?<!\/)\/+$/, "");
  if (/^https?:\/\/[^\s?#]+$/.test(text) && isUrl(text)) return text;
  throw new TypeError(
    `${name} ${JSON.stringify(value)} is not a URL of the functions, such as ` +
      "https://<ref>.supabase.co/functions/v1",
  );
}

/** Some supported runtimes have neither `URL.canParse` nor `URL.parse`. */
function isUrl(text: string): boolean {
  try {
    return new URL(text) !== undefined;
  } catch {
    return false;
  }
}

/**
 * The client, with the operations of both functions by resource.
 */

import { ApiKeys } from "./api_keys.ts";
import { Disputes } from "./disputes.ts";
import type { Exchange, Fetch } from "./exchange.ts";
import { Balances, LedgerEntries } from "./ledger.ts";
import { Payments, Refunds } from "./payments.ts";
import { IdempotencyKeys } from "./requests.ts";
import { Sandbox } from "./sandbox.ts";
import { Sandboxes } from "./sandboxes.ts";
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
  /** `sk_test_…` or `sk_live_…` */
  apiKey: string;
  /** URL of the functions: `https://<ref>.supabase.co/functions/v1`. */
  baseUrl: string;
  /** By default the global `fetch`. */
  fetch?: Fetch | undefined;
  /** Maximum of retries of a request. By default 2; 0 turns retries off. */
  maxRetries?: number | undefined;
  /** Timeout of one attempt in milliseconds. By default 30 000. */
  timeoutMs?: number | undefined;
  /** Called after each attempt, before the next. Errors that it throws are ignored. */
  onExchange?: ((exchange: Exchange) => void) | undefined;
  /**
   * True: the API refuses a request with a parameter that it does not know, such as a misspelled
   * one, before it does anything (400 `invalid_parameter`). By default it ignores the parameter, and
   * with a test key the client writes one warning for each name to the console.
   */
  strict?: boolean | undefined;
  /** Clock, randomness, waiting and warnings. Tests can replace them. */
  runtime?: Partial<Runtime> | undefined;
}

/**
 * A client of the payments API. Objects have the fields of the API. The client sends every change
 * with an idempotency key. It retries after a failed connection, a timeout, 408, 429, 5xx and
 * `idempotency_in_progress`.
 * @example
 * ```ts
 * const client = new PaymentsClient({ apiKey, baseUrl });
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
   * @throws {TypeError} if an option is invalid
   */
  constructor(options: PaymentsClientOptions) {
    const transport = new Transport({
      apiKey: checkedKey(options.apiKey),
      baseUrl: checkedBaseUrl(options.baseUrl),
      // Browsers throw if `fetch` is not called as a method of the global object.
      fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
      maxRetries: checkedRetries(options.maxRetries ?? DEFAULT_MAX_RETRIES),
      timeoutMs: checkedTimeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS),
      onExchange: options.onExchange,
      strict: options.strict ?? false,
      runtime: { ...RUNTIME, ...options.runtime },
    });
    this.payments = new Payments(transport);
    this.refunds = new Refunds(transport);
    this.disputes = new Disputes(transport);
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

/** The error does not contain the key, because messages end up in logs. */
function checkedKey(apiKey: unknown): string {
  if (typeof apiKey === "string" && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey;
  throw new TypeError(
    "apiKey is empty, or contains white space or other characters that an API key cannot have. " +
      "Does this environment have the setting with your key?",
  );
}

function checkedBaseUrl(baseUrl: unknown): string {
  const text = String(baseUrl).replace(/(?<!\/)\/+$/, "");
  if (/^https?:\/\/[^\s?#]+$/.test(text) && isUrl(text)) return text;
  throw new TypeError(
    `baseUrl ${JSON.stringify(baseUrl)} is not a URL of the functions, such as ` +
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

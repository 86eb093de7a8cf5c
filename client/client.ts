/**
 * The client: the operations of both functions, by resource.
 */

import { ApiKeys } from "./api_keys.ts";
import type { Exchange, Fetch } from "./exchange.ts";
import { Balances, LedgerEntries } from "./ledger.ts";
import { Payments, Refunds } from "./payments.ts";
import { Sandbox } from "./sandbox.ts";
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

/** What a client is made of. */
export interface PaymentsClientOptions {
  /** `sk_test_…` or `sk_live_…` */
  apiKey: string;
  /** Where the functions are served: `https://<ref>.supabase.co/functions/v1`. */
  baseUrl: string;
  /** The global one unless given. */
  fetch?: Fetch | undefined;
  /** How often a request is sent again; 2 unless given, 0 is never. */
  maxRetries?: number | undefined;
  /** Milliseconds of one attempt; 30 000 unless given. */
  timeoutMs?: number | undefined;
  /** Called after each attempt, before the next. What it throws is ignored. */
  onExchange?: ((exchange: Exchange) => void) | undefined;
  /** Time and chance, for tests. */
  runtime?: Partial<Runtime> | undefined;
}

/**
 * A client of the payments API. Fields are those of the wire. Every change is sent with an
 * idempotency key, and again after a failure of the connection, 429, 5xx or a twin in progress.
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
  readonly transfers: Transfers;
  readonly ledgerEntries: LedgerEntries;
  readonly balance: Balances;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly webhookDeliveries: WebhookDeliveries;
  readonly events: Events;
  readonly apiKeys: ApiKeys;
  readonly sandbox: Sandbox;

  /** Sends nothing. Throws `TypeError` for options that cannot work. */
  constructor(options: PaymentsClientOptions) {
    const transport = new Transport({
      apiKey: checkedKey(options.apiKey),
      baseUrl: checkedBaseUrl(options.baseUrl),
      // Not the function itself: browsers want to be called on their global object.
      fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
      maxRetries: checkedRetries(options.maxRetries ?? DEFAULT_MAX_RETRIES),
      timeoutMs: checkedTimeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS),
      onExchange: options.onExchange,
      runtime: { ...RUNTIME, ...options.runtime },
    });
    this.payments = new Payments(transport);
    this.refunds = new Refunds(transport);
    this.transfers = new Transfers(transport);
    this.ledgerEntries = new LedgerEntries(transport);
    this.balance = new Balances(transport);
    this.webhookEndpoints = new WebhookEndpoints(transport);
    this.webhookDeliveries = new WebhookDeliveries(transport);
    this.events = new Events(transport);
    this.apiKeys = new ApiKeys(transport);
    this.sandbox = new Sandbox(transport);
  }
}

/** Never shows the key: messages end up in logs. */
function checkedKey(apiKey: unknown): string {
  if (typeof apiKey === "string" && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey;
  throw new TypeError(
    "apiKey is empty, or has white space or other characters that no key has. Is the setting " +
      "that holds it filled in here?",
  );
}

function checkedBaseUrl(baseUrl: unknown): string {
  const text = String(baseUrl).replace(/(?<!\/)\/+$/, "");
  if (/^https?:\/\/[^\s?#]+$/.test(text) && isUrl(text)) return text;
  throw new TypeError(
    `baseUrl ${JSON.stringify(baseUrl)} is not the address that the functions are served under, ` +
      "like https://<ref>.supabase.co/functions/v1",
  );
}

/** `URL.canParse` and `URL.parse` are younger than what the client runs on. */
function isUrl(text: string): boolean {
  try {
    return new URL(text) !== undefined;
  } catch {
    return false;
  }
}

/** Tests of the double: one double for a file, and an owner of its own for each test. */

import assert from "node:assert/strict";
import {
  no_stripe_double,
  startStripeDouble,
  type StripeBooks,
  type StripeDouble,
} from "./double.ts";
import type { StripeObject } from "./journal.ts";
import { callStripe, CARD_FORM, type StripeResponse } from "./stripe_call.ts";

/** A test's view of the double. */
export interface DoubleCase {
  double: StripeDouble;
  /** The secret key of this test. */
  secret: string;
  get(path: string): Promise<StripeResponse>;
  post(path: string, form: Record<string, string>, key?: string): Promise<StripeResponse>;
  /** Creates a card payment of 10.99 EUR. */
  create(form?: Record<string, string>, key?: string): Promise<StripeResponse>;
  books(): Promise<StripeBooks>;
}

let double: StripeDouble | null = null;
let owners = 0;

Deno.test.beforeAll(async () => {
  if (!no_stripe_double) double = await startStripeDouble();
});
Deno.test.afterAll(async () => await double?.close());

/** Registers a test. Without localstripe it is skipped, and fails in CI. */
export function doubleTest(name: string, test: (given: DoubleCase) => Promise<void>): void {
  Deno.test({ name, ignore: no_stripe_double, fn: async () => await test(makeCase()) });
}

/** Asserts that a call breaks its connection. */
export async function assertLost(call: Promise<unknown>): Promise<void> {
  await assert.rejects(call, TypeError);
}

/** Returns the ids of a list. */
export function idsOf({ body }: StripeResponse): string[] {
  return body.data.map(({ id }: StripeObject) => id);
}

function makeCase(): DoubleCase {
  assert.ok(double, "localstripe is not installed");
  const running = double;
  const secret = `sk_test_${++owners}`;
  const { base_url } = double;
  const post = (path: string, form: Record<string, string>, key?: string) =>
    callStripe(base_url, path, { secret, form, ...(key ? { key } : {}) });
  return {
    double,
    secret,
    get: (path) => callStripe(base_url, path, { secret }),
    post,
    create: (form = {}, key) => post("payment_intents", { ...CARD_FORM, ...form }, key),
    books: () => running.books(secret),
  };
}

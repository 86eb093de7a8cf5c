/**
 * A collection, its refund and its return, and a payout that comes back, as a merchant sees them.
 * The journey knows no way to the bank, so it runs in a sandbox and with a live key.
 */

import assert from "node:assert/strict";

/** A response of the API. */
interface Response {
  status: number;
  // deno-lint-ignore no-explicit-any
  body: any;
}

/** The ways of a journey to the API and to the bank. */
interface JourneyOptions {
  /** Sends a request with the key of the journey to the base URL of the functions. */
  call(method: string, path: string, body?: unknown): Promise<Response>;
  bank: {
    /** Books a payment, refund or transfer, by its id. */
    book(id: string): Promise<unknown>;
    /** Rejects or returns it with a code. */
    giveBack(id: string, return_code: string): Promise<unknown>;
  };
  /** A mandate id that the environment has not used. */
  mandate_id: string;
}

const V1 = "/api-v1-payments/v1";
const PAYER = { iban: { iban: "NL91ABNA0417164300", holder_name: "Ada Payer" } };
const PAYEE = { iban: "FR1420041010050500013M02606", holder_name: "Match Payee" };
/** Longest wait for a status. A live result comes later, as an event. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 50;

/** Runs the journey. Its account must have nothing else booked at the same time. */
export async function runBankJourney({ call, bank, mandate_id }: JourneyOptions): Promise<void> {
  const before = await atBank();

  const signed_at = new Date().toISOString().slice(0, 10);
  const collect = (sequence: string) =>
    made("payments", {
      amount_minor: 1000,
      currency: "EUR",
      ...PAYER,
      mandate: { id: mandate_id, signed_at, sequence },
    });

  const paid = await collect("first");
  assert.equal(paid.status, "processing");
  assert.ok(Date.parse(paid.method.due_on) >= Date.parse(signed_at) + 14 * 86_400_000);
  await bank.book(paid.id);
  await until(`payments/${paid.id}`, "completed");

  const refund = await made(`payments/${paid.id}/refund`, { amount: 400, destination: PAYEE });
  assert.deepEqual(refund.destination, { iban: { country: "FR", last4: "2606" } });
  await bank.book(refund.id);
  await until(`refunds/${refund.id}`, "completed");

  await bank.giveBack(paid.id, "MD06");
  const returned = await until(`payments/${paid.id}`, "failed");
  assert.deepEqual(
    [returned.failure_code, returned.return_code, returned.amount_refunded],
    ["bank_return", "MD06", 400],
  );

  const rejected = await collect("recurring");
  await bank.giveBack(rejected.id, "AC01");
  assert.equal((await until(`payments/${rejected.id}`, "failed")).return_code, "AC01");

  const funds = await collect("final");
  await bank.book(funds.id);
  await until(`payments/${funds.id}`, "completed");
  assert.equal((await collectAgain()).status, 400);

  const payout = await made("transfers", {
    amount_minor: 300,
    currency: "EUR",
    destination: PAYEE,
    speed: "instant",
  });
  assert.equal(payout.speed, "instant");
  await bank.book(payout.id);
  await until(`transfers/${payout.id}`, "completed");
  await bank.giveBack(payout.id, "AC04");
  assert.equal((await until(`transfers/${payout.id}`, "failed")).return_code, "AC04");

  // The statement: two collections, a refund, a return, and a payout that came back.
  assert.equal(await atBank() - before, 1000 - 400 - 1000 + 1000 - 300 + 300);

  async function collectAgain(): Promise<Response> {
    return await call("POST", `${V1}/payments`, {
      amount_minor: 1000,
      currency: "EUR",
      ...PAYER,
      mandate: { id: mandate_id, signed_at, sequence: "recurring" },
    });
  }

  async function made(path: string, body: unknown): Promise<Response["body"]> {
    const response = await call("POST", `${V1}/${path}`, body);
    assert.equal(response.status, 201, JSON.stringify(response.body));
    return response.body;
  }

  async function until(path: string, status: string): Promise<Response["body"]> {
    const give_up_at = performance.now() + PATIENCE_MS;
    for (;;) {
      const { body } = await call("GET", `${V1}/${path}`);
      if (body.status === status) return body;
      assert.ok(performance.now() < give_up_at, `${path} is ${body.status} and not ${status}`);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  /** The money of the books that is at the bank, as its statement shows it. */
  async function atBank(): Promise<number> {
    const { body } = await call("GET", `${V1}/balance`);
    return body.balances
      .filter(({ currency }: { currency: string }) => currency === "EUR")
      .filter(({ account }: { account: string }) =>
        ["processor", "bank", "external"].includes(account)
      )
      .reduce((sum: number, one: { amount_minor: number }) => sum - one.amount_minor, 0);
  }
}

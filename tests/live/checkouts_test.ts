/**
 * Checkouts with a live key: the methods that the accounts of the environment take, and attempts of
 * payers, each of which is one charge at the provider.
 */

import assert from "node:assert/strict";
import { Vault } from "../../shared/core/vault.ts";
import { KEYS } from "../support/bank/bank.ts";
import { XPUB } from "../support/chain/watched.ts";
import { liveCase, stopPolls, workAfter } from "../support/live/live_case.ts";
import { addAccount } from "../support/database/provider_flow.ts";
import { assertRefused, assertReplay, serviceCase } from "../support/service/service_case.ts";
import {
  callPage,
  CHECKOUT_URL,
  CHECKOUTS,
  EUR,
  LINK,
  openCheckout,
  PERSON,
  tokenOf,
  USDC,
} from "../support/service/payer_page.ts";
import type { TestService } from "../support/service/service.ts";

const PUBLISHABLE_KEY = "pk_live_51Checkout";

/** Accounts by connector. */
const STRIPE = { settings: { publishable_key: PUBLISHABLE_KEY } };
const BANK = {
  method_kinds: ["sepa", "swift"],
  settings: {
    ...{ iban: "DE89370400440532013000", bic: "COBADEFFXXX", holder_name: "Shop GmbH" },
    ...{ currency: "EUR", creditor_id: "DE98ZZZ09999999999" },
  },
};
const { creditor_id: _, ...NO_CREDITOR } = BANK.settings;
const EVM = { settings: { network: "base", rpc_urls: "https://one.example", xpub: XPUB } };
type Account = { method_kinds?: string[]; settings: Record<string, string> };
type Accounts = { stripe?: Account; bank?: Account; evm?: Account };
const ALL: Accounts = { stripe: STRIPE, bank: BANK, evm: EVM };

const SAVE = { amount: 0, save: "off_session", ...PERSON };

/** The accounts, a create, and its methods or the code of its refusal. */
const CASES: [name: string, Accounts, body: object, methods: string[] | string][] = [
  ["all that the accounts take", ALL, USDC, ["card", "sepa_debit", "sepa", "swift", "stablecoin"]],
  ["in USD", ALL, { currency: "USD" }, ["card"]],
  ["in EUR and USD", ALL, { other_prices: [{ amount_minor: 2199, currency: "USD" }] }, [
    ...["card", "sepa_debit", "sepa"],
  ]],
  ["in JPY and USDC", ALL, { currency: "JPY", ...USDC }, ["card", "stablecoin"]],
  ["that save", ALL, SAVE, ["card", "sepa_debit"]],
  ["some of them", ALL, { methods: ["sepa", "card"] }, ["sepa", "card"]],
  ["without a creditor identifier", { bank: { ...BANK, settings: NO_CREDITOR } }, {}, [
    ...["sepa", "swift"],
  ]],
  ["without a publishable key", { ...ALL, stripe: { ...STRIPE, settings: {} } }, {}, [
    ...["sepa_debit", "sepa", "swift"],
  ]],
  ["a method without an account", { stripe: STRIPE }, { methods: ["card", "sepa"] }, "sepa"],
  ["no account", {}, {}, "No live provider takes a payment"],
];

/** Makes the accounts of the live environment the only ones. */
async function configure({ sql, live }: TestService, accounts: Accounts): Promise<void> {
  await sql`delete from pay.provider_methods`;
  for (const [connector, account] of Object.entries(accounts) as [keyof Accounts, object][]) {
    await addAccount(sql, live.environment_id, { connector, ...account });
    await sql`update pay.provider_accounts set status = 'disabled', disabled_at = now()`;
  }
}

serviceCase("POST /v1/checkouts with a live key", async (t, service) => {
  const { text: key } = service.live;
  const open = (body: object, idempotency_key?: string) =>
    service.call("POST", CHECKOUTS, {
      key,
      body: { ...EUR, ...body },
      ...(idempotency_key !== undefined && { idempotency_key }),
    });
  for (const [name, accounts, body, methods] of CASES) {
    await t.step(name, async () => {
      await configure(service, accounts);
      const made = await open(body);
      if (typeof methods !== "string") return assert.deepEqual(made.body.methods, methods);
      assertRefused(made, "provider_not_configured");
      assert.ok(made.body.error.message.includes(methods), made.text);
    });
  }
  await t.step("a link without an end, also under an idempotency key", async () => {
    await configure(service, ALL);
    const link = { ...LINK, expires_at: null };
    const made = await open(link, "link");
    assert.deepEqual([made.status, made.body.livemode, made.body.expires_at], [201, true, null]);
    await configure(service, {});
    assertReplay(await open(link, "link"), made);
    const path = `${CHECKOUTS}/${made.body.id}`;
    assert.deepEqual((await service.call("GET", path, { key })).body, made.body);
    const cancelled = await service.call("POST", `${path}/cancel`, { key });
    assert.equal(cancelled.body.status, "cancelled");
  });
  await t.step("the page of one, while its accounts serve it", async () => {
    await configure(service, ALL);
    const { token } = await openCheckout(service, {}, { key });
    const read = () => callPage(service, token);
    const { body } = await read();
    assert.deepEqual([body.livemode, body.publishable_key, body.connected_account], [
      ...[true, PUBLISHABLE_KEY, null],
    ]);
    assert.deepEqual(body.mandate, {
      creditor_name: "Shop GmbH",
      creditor_identifier: BANK.settings.creditor_id,
      collects_on: null,
    });
    await configure(service, { bank: BANK });
    assert.deepEqual((await read()).body.methods, ["sepa_debit", "sepa", "swift"]);
    await configure(service, {});
    assertRefused(await read(), "provider_not_configured");
  });
  await t.step("the URL of a shop is https", async () => {
    await configure(service, ALL);
    for (const name of ["return_url", "cancel_url"]) {
      const refused = await open({ [name]: "http://localhost/back" });
      assertRefused(refused, "invalid_parameter", name);
    }
  });
}, { checkout_url: CHECKOUT_URL, vault: Vault.read(KEYS) });

liveCase("attempts of a live checkout", async (given, t) => {
  const { service, double } = given;
  await stopPolls(given);
  const { text: key } = service.live;
  const { token } = await openCheckout(service, { methods: ["card"] }, { key });
  const pay = (body: object, idempotency_key: string = crypto.randomUUID()) =>
    callPage(service, token, { body, idempotency_key });
  await t.step("a card number is refused, also of a test card", async () => {
    for (const number of ["4242 4242 4242 4242", "5425 2334 3010 9903"]) {
      const refused = await pay({ card: { number, exp_month: 12, exp_year: 2034, cvc: "123" } });
      assertRefused(refused, "invalid_parameter", "card.number");
      assert.ok(!refused.text.includes(number.slice(-4)), refused.text);
    }
    assert.deepEqual((await given.books()).payment_intent, []);
  });
  await t.step("none begins until the provider has cancelled the one before", async () => {
    const { body } = await pay(tokenOf("authenticationRequired"));
    assert.equal(body.attempt.status, "requires_action");
    await double.plant({ method: "POST", path: "/cancel$", at: "before", act: "error" });
    assertRefused(await pay(tokenOf("visa")), "invalid_state");
    assert.equal((await given.books()).payment_intent.length, 1);
    await workAfter(given, 31);
    // The second one is sent again, as after a lost response.
    for (const _ of [1, 2]) {
      const { body } = await pay(tokenOf("visa"), "visa");
      assert.deepEqual([body.status, body.attempt?.status], ["completed", "completed"]);
    }
    const books = await given.books();
    assert.deepEqual(books.payment_intent.map(({ status }) => status), ["canceled", "succeeded"]);
    assert.equal(books.charge.filter(({ status }) => status === "succeeded").length, 1);
  });
}, { checkout_url: CHECKOUT_URL, account: STRIPE.settings });

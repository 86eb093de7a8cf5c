/**
 * Checkouts with a live key: the methods that the accounts of the environment take, and attempts of
 * payers, each of which is one charge at the provider.
 */

import assert from "node:assert/strict";
import { idGenerator } from "../../shared/core/ids.ts";
import { Vault } from "../../shared/core/vault.ts";
import { KEYS } from "../support/bank/bank.ts";
import { XPUB } from "../support/chain/watched.ts";
import { assertRefused, assertReplay, serviceCase } from "../support/service/service_case.ts";
import type { TestService } from "../support/service/service.ts";

const CHECKOUTS = "/api-v1-payments/v1/checkouts";
const PAGE = "https://pay.example.com";
const PUBLISHABLE_KEY = "pk_live_51Checkout";

/** Accounts by connector: the kinds that they serve, and their settings. */
const STRIPE = { kinds: ["card"], settings: { publishable_key: PUBLISHABLE_KEY } };
const BANK = {
  kinds: ["sepa", "swift"],
  settings: {
    ...{ iban: "DE89370400440532013000", bic: "COBADEFFXXX", holder_name: "Shop GmbH" },
    ...{ currency: "EUR", creditor_id: "DE98ZZZ09999999999" },
  },
};
const { creditor_id: _, ...NO_CREDITOR } = BANK.settings;
const EVM = {
  kinds: ["stablecoin"],
  settings: { network: "base", rpc_urls: "https://one.example", xpub: XPUB },
};
type Accounts = Record<string, { kinds: string[]; settings: Record<string, string> }>;
const ALL: Accounts = { stripe: STRIPE, bank: BANK, evm: EVM };

const EUR = { amount: 1999, currency: "EUR" };
const USDC = { other_prices: [{ amount_minor: 21_000_000, currency: "USDC" }] };
const SAVE = { amount: 0, save: "off_session", customer: { id: "u1", email: "ada@example.com" } };

/** The accounts, a create, and its methods or the code of its refusal. */
const CASES: [name: string, Accounts, body: object, methods: string[] | string][] = [
  ["all that the accounts take", ALL, USDC, ["card", "sepa_debit", "sepa", "swift", "stablecoin"]],
  ["in USD", ALL, { currency: "USD" }, ["card"]],
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
  for (const [connector, { kinds, settings }] of Object.entries(accounts)) {
    await sql`select pay.add_provider_account(${idGenerator(Date.now())("pac_")},
      ${live.environment_id}, ${connector}, ${kinds}, ${JSON.stringify(settings)}, null, ${[]})`;
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
      assertRefused(made, 503, "provider_not_configured");
      assert.ok(made.body.error.message.includes(methods), made.text);
    });
  }
  await t.step("a link without an end, also under an idempotency key", async () => {
    await configure(service, ALL);
    const link = { max_payments: null, expires_at: null };
    const made = await open(link, "link");
    assert.deepEqual([made.status, made.body.livemode, made.body.expires_at], [201, true, null]);
    await configure(service, {});
    assertReplay(await open(link, "link"), made);
    const path = `${CHECKOUTS}/${made.body.id}`;
    assert.deepEqual((await service.call("GET", path, { key })).body, made.body);
    const cancelled = await service.call("POST", `${path}/cancel`, { key });
    assert.equal(cancelled.body.status, "cancelled");
  });
  await t.step("the URL of a shop is https", async () => {
    await configure(service, ALL);
    for (const name of ["return_url", "cancel_url"]) {
      const refused = await open({ [name]: "http://localhost/back" });
      assertRefused(refused, 400, "invalid_parameter", name);
    }
  });
}, { checkout_url: PAGE, vault: Vault.read(KEYS) });

/**
 * The page "Create a payment": a test value or a forced outcome, either variant of the body, and a
 * preview of the request.
 */

import { useState } from "preact/hooks";
import { ApiError, type Payment, type RequestOptions } from "../../../packages/client/mod.ts";
import { STABLECOINS } from "../../../shared/core/currency.ts";
import { MANDATE_SEQUENCES, OUTCOMES } from "../../../shared/core/vocabulary.ts";
import {
  TEST_CARDS,
  TEST_IBANS,
  TEST_TOKENS,
  TEST_WALLETS,
} from "../../../shared/domain/providers/test_values.ts";
import { call } from "../data/calls.ts";
import { createBody, type Draft, type Instrument } from "../forms/create_body.ts";
import { Crumb } from "../parts/crumb.tsx";
import { Choices, TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { showDecline, showFlash } from "../data/flash.ts";
import { type ChangeDraft, InstrumentFields } from "../forms/instrument_fields.tsx";
import { MetadataFields } from "../forms/metadata_fields.tsx";
import { currencyDigits } from "../data/money.ts";
import { Preview } from "../parts/preview.tsx";
import { go, hrefOfList } from "../data/route.ts";
import { label } from "../data/words.ts";

/** Currencies in the list of suggestions. The user can type any other. */
const COMMON_CURRENCIES = ["EUR", "USD", "GBP", "CHF", "JPY", ...STABLECOINS];
/** The usual currency of each kind of test value. */
const CURRENCY_OF: Record<Instrument, string> = {
  card: "EUR",
  token: "EUR",
  iban: "EUR",
  transfer: "EUR",
  wallet: "USDC",
  address: "USDC",
  outcome: "EUR",
};

const FIRST_DRAFT: Draft = {
  variant: "A",
  instrument: "card",
  amount: "19.99",
  currency: "EUR",
  card_number: TEST_CARDS[0]!.value,
  exp_month: "12",
  exp_year: String(new Date().getFullYear() + 4),
  cvc: "123",
  postal_code: "",
  token: Object.keys(TEST_TOKENS)[0]!,
  iban: TEST_IBANS[0]!.value,
  bic: "",
  holder_name: "",
  line1: "",
  line2: "",
  city: "",
  country: "",
  rail: TEST_IBANS[0]!.kind,
  mandate_id: "",
  signed_at: new Date().toISOString().slice(0, 10),
  sequence: MANDATE_SEQUENCES[0],
  address: TEST_WALLETS[0]!.value,
  network: "",
  asset: "",
  outcome: OUTCOMES[0],
  method_kind: "card",
  capture: "",
  settlement: "",
  return_url: "",
  email: "ada@example.com",
  name: "",
  customer_id: "",
  description: "",
  reference: "",
  metadata: [],
};

/** The form and, beside it, the request that it sends. */
export function CreatePage() {
  const [draft, setDraft] = useState(FIRST_DRAFT);
  const change: ChangeDraft = (changed) => setDraft((last) => ({ ...last, ...changed }));
  const set = (name: keyof Draft) => (value: string) => change({ [name]: value });
  const forced = draft.instrument === "outcome";
  const path = forced ? "/api-v1-sandbox/payments" : "/api-v1-payments/v1/payments";

  const build = (options: RequestOptions) =>
    forced
      ? call("sandbox", "createPayment", createBody(draft), options)
      : call("payments", "create", createBody(draft), options);
  const done = (payment: Payment) => {
    go(["payments", payment.id]);
    showFlash(`Payment created: ${label(payment.status).toLowerCase()}.`);
  };
  const settle = (error: unknown) => {
    if (!(error instanceof ApiError) || error.payment === undefined) return false;
    go(["payments", error.payment.id]);
    showDecline(error);
    return true;
  };
  const pickInstrument = (instrument: Instrument) => {
    const is_usual = Object.values(CURRENCY_OF).includes(draft.currency);
    change({ instrument, ...(is_usual && { currency: CURRENCY_OF[instrument] }) });
  };

  return (
    <>
      <div class="title">
        <Crumb section="payments" label="Payments" />
        <h1 tabIndex={-1}>Create a payment</h1>
      </div>
      <div class="beside">
        <Form
          build={build}
          done={done}
          settle={settle}
          actions={(sending) => (
            <>
              <button type="submit" class="primary" aria-disabled={sending}>
                {sending ? "Creating…" : "Create payment"}
              </button>
              <a class="button" href={hrefOfList("payments")}>Cancel</a>
            </>
          )}
        >
          <section class="group">
            <div class="row">
              <TextField
                label="Amount"
                params={["amount", "amount_minor"]}
                value={draft.amount}
                set={set("amount")}
                inputMode="decimal"
                hint={`At most ${currencyDigits(draft.currency)} decimals`}
              />
              <TextField
                label="Currency"
                class="short"
                params={["currency"]}
                value={draft.currency}
                set={set("currency")}
                list="currencies"
                hint="ISO code, USDC, USDT"
              />
              <datalist id="currencies">
                {COMMON_CURRENCIES.map((code) => <option key={code} value={code} />)}
              </datalist>
            </div>
          </section>
          <section class="group">
            <Choices
              label="Paid with"
              heading
              name="instrument"
              class="segments"
              value={draft.instrument}
              set={pickInstrument}
              options={[
                { value: "card", label: "Test card" },
                { value: "token", label: "Card token" },
                { value: "iban", label: "IBAN" },
                { value: "transfer", label: "Bank transfer" },
                { value: "wallet", label: "Wallet" },
                { value: "address", label: "Own address" },
                { value: "outcome", label: "Forced outcome" },
              ]}
            />
            <InstrumentFields draft={draft} change={change} />
          </section>
          <section class="group">
            <h2>Details</h2>
            <div class="row">
              <TextField
                label="Customer’s e-mail"
                params={["customer.email", "payer.email"]}
                value={draft.email}
                set={set("email")}
                inputMode="email"
                optional
              />
              <TextField
                label="Name"
                params={["customer.name", "payer.name"]}
                value={draft.name}
                set={set("name")}
                optional
              />
              <TextField
                label="Your id of the customer"
                params={["customer.id", "payer.id"]}
                value={draft.customer_id}
                set={set("customer_id")}
                optional
              />
            </div>
            <div class="row">
              <TextField
                label="Description"
                params={["description"]}
                value={draft.description}
                set={set("description")}
                optional
              />
              <TextField
                label="Reference"
                params={["reference"]}
                value={draft.reference}
                set={set("reference")}
                optional
              />
            </div>
            <TextField
              label="Return URL"
              params={["return_url"]}
              value={draft.return_url}
              set={set("return_url")}
              inputMode="url"
              hint="The page of your shop to which the payer comes back, for example after 3-D Secure"
              optional
            />
            <MetadataFields rows={draft.metadata} set={(metadata) => change({ metadata })} />
          </section>
          <section class="group">
            <Choices
              label="Variant of the body"
              heading
              name="variant"
              class="segments"
              value={draft.variant}
              set={(variant) => change({ variant })}
              options={[
                {
                  value: "A",
                  label: (
                    <>
                      A <code>amount, capability, customer</code>
                    </>
                  ),
                },
                {
                  value: "B",
                  label: (
                    <>
                      B <code>amount_minor, method_kind, payer</code>
                    </>
                  ),
                },
              ]}
            />
          </section>
        </Form>
        <Preview
          path={path}
          operation={`${forced ? "sandbox" : "payments"}/POST${path}`}
          body={() => createBody(draft)}
        />
      </div>
    </>
  );
}

/**
 * The page "Create a payment": a test value or a forced outcome, either variant of the body, and a
 * preview of the request.
 */

import { useState } from "preact/hooks";
import { ApiError, type Payment } from "../client/mod.ts";
import { STABLECOINS } from "../shared/core/currency.ts";
import { METHOD_KINDS, NETWORKS, OUTCOMES } from "../shared/core/vocabulary.ts";
import {
  OUTCOME_RESULTS,
  TEST_CARDS,
  TEST_IBANS,
  TEST_RESULTS,
  TEST_WALLETS,
  type TestValue,
} from "../shared/domain/providers/test_values.ts";
import { call } from "./calls.ts";
import { createBody, type Draft, type Instrument } from "./create_body.ts";
import { Choices, Form, SelectField, TextField } from "./form.tsx";
import { showDecline, showFlash } from "./flash.tsx";
import { Json } from "./json.tsx";
import { MetadataFields } from "./metadata_fields.tsx";
import { currencyDigits } from "./money.ts";
import { go, href } from "./route.ts";
import { label, METHOD_NAMES } from "./words.ts";

/** Currencies in the list of suggestions. The user can type any other. */
const COMMON_CURRENCIES = ["EUR", "USD", "GBP", "CHF", "JPY", ...STABLECOINS];
/** Method kinds, to be picked. */
const RAILS = METHOD_KINDS.map((kind) => [kind, METHOD_NAMES[kind]] as const);

/** A value to be picked, with the result that a payment with it has. */
interface Tile {
  value: string;
  name: string;
  result: string;
}

const OUTCOME_TILES = OUTCOMES.map((value) => ({
  value,
  name: label(value),
  result: OUTCOME_RESULTS[value].result,
}));

/** The usual currency of each kind of test value. */
const CURRENCY_OF: Record<Instrument, string> = {
  card: "EUR",
  iban: "EUR",
  wallet: "USDC",
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
  iban: TEST_IBANS[0]!.value,
  rail: TEST_IBANS[0]!.kind,
  address: TEST_WALLETS[0]!.value,
  network: "",
  asset: "",
  outcome: OUTCOMES[0],
  method_kind: "card",
  settlement: "",
  email: "ada@example.com",
  name: "",
  description: "",
  reference: "",
  metadata: [],
};

type Change = (change: Partial<Draft>) => void;

/** The form and, beside it, the request that it sends. */
export function CreatePage() {
  const [draft, setDraft] = useState(FIRST_DRAFT);
  const change: Change = (changed) => setDraft((last) => ({ ...last, ...changed }));
  const set = (name: keyof Draft) => (value: string) => change({ [name]: value });
  const forced = draft.instrument === "outcome";

  const build = (idempotencyKey: string) =>
    forced
      ? call("sandbox", "createPayment", createBody(draft), { idempotencyKey })
      : call("payments", "create", createBody(draft), { idempotencyKey });
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
        <p class="crumb">
          <a href={href(["payments"])}>Payments</a>
        </p>
        <h1 tabIndex={-1}>Create a payment</h1>
      </div>
      <div class="beside">
        <Form
          label="Create a payment"
          build={build}
          done={done}
          settle={settle}
          actions={(sending) => (
            <>
              <button type="submit" class="primary" aria-disabled={sending}>
                {sending ? "Creating…" : "Create payment"}
              </button>
              <a class="button" href={href(["payments"])}>Cancel</a>
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
            <h2>Paid with</h2>
            <Choices
              label="Paid with"
              name="instrument"
              class="segments"
              value={draft.instrument}
              set={pickInstrument}
              options={[
                { value: "card", label: "Test card" },
                { value: "iban", label: "IBAN" },
                { value: "wallet", label: "Wallet" },
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
            <MetadataFields rows={draft.metadata} set={(metadata) => change({ metadata })} />
          </section>
          <section class="group">
            <h2>Body</h2>
            <Choices
              label="Variant of the body"
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
        <Preview draft={draft} />
      </div>
    </>
  );
}

function InstrumentFields({ draft, change }: { draft: Draft; change: Change }) {
  const set = (name: keyof Draft) => (value: string) => change({ [name]: value });
  switch (draft.instrument) {
    case "card":
      return (
        <>
          <Values
            label="Test cards"
            name="card"
            values={TEST_CARDS.map(tileOf)}
            value={draft.card_number}
            pick={({ value }) =>
              change({ card_number: value, cvc: value.startsWith("37") ? "1234" : "123" })}
          />
          <div class="row">
            <TextField
              label="Card number"
              class="wide"
              params={["card.number"]}
              value={draft.card_number}
              set={set("card_number")}
              inputMode="numeric"
              mono
            />
            <TextField
              label="Month"
              class="tiny"
              params={["card.exp_month"]}
              value={draft.exp_month}
              set={set("exp_month")}
              inputMode="numeric"
            />
            <TextField
              label="Year"
              class="tiny"
              params={["card.exp_year"]}
              value={draft.exp_year}
              set={set("exp_year")}
              inputMode="numeric"
            />
            <TextField
              label="CVC"
              class="tiny"
              params={["card.cvc"]}
              value={draft.cvc}
              set={set("cvc")}
              inputMode="numeric"
            />
          </div>
        </>
      );
    case "iban":
      return (
        <>
          <Values
            label="Test IBANs"
            name="iban"
            values={TEST_IBANS.map((iban) => ({ ...tileOf(iban), rail: iban.kind }))}
            value={draft.iban}
            pick={({ value, rail }) =>
              change({ iban: value, rail, currency: rail === "sepa" ? "EUR" : draft.currency })}
          />
          <div class="row">
            <TextField
              label="IBAN"
              class="wide"
              params={["iban"]}
              value={draft.iban}
              set={set("iban")}
              mono
            />
            <SelectField
              label="Rail"
              params={["method_kind", "capability"]}
              value={draft.rail}
              set={set("rail")}
              options={RAILS.filter(([kind]) => kind === "sepa" || kind === "swift")}
            />
          </div>
          <Settlement draft={draft} change={change} />
        </>
      );
    case "wallet":
      return (
        <>
          <Values
            label="Test wallets"
            name="wallet"
            values={TEST_WALLETS.map(tileOf)}
            value={draft.address}
            pick={({ value }) => change({ address: value })}
          />
          <TextField
            label="Address"
            params={["wallet.address", "wallet"]}
            value={draft.address}
            set={set("address")}
            mono
          />
          <div class="row">
            <SelectField
              label="Network"
              params={["wallet.network"]}
              value={draft.network}
              set={set("network")}
              options={[["", "From the address"], ...NETWORKS.map((name) => [name, name] as const)]}
            />
            <SelectField
              label="Asset"
              params={["wallet.asset"]}
              value={draft.asset}
              set={set("asset")}
              options={[
                ["", "From the currency"],
                ...STABLECOINS.map((coin) => [coin, coin] as const),
              ]}
            />
          </div>
          <Settlement draft={draft} change={change} />
        </>
      );
    case "outcome":
      return (
        <>
          <Values
            label="Outcomes"
            name="outcome"
            values={OUTCOME_TILES}
            value={draft.outcome}
            pick={({ value }) => change({ outcome: value })}
          />
          <SelectField
            label="Rail"
            params={["method_kind", "capability", "outcome"]}
            value={draft.method_kind}
            set={set("method_kind")}
            options={RAILS}
            hint="The sandbox function creates the payment and answers 201 for every outcome."
          />
        </>
      );
  }
}

function Settlement({ draft, change }: { draft: Draft; change: Change }) {
  return (
    <SelectField
      label="Settlement"
      params={["settlement"]}
      value={draft.settlement}
      set={(settlement) => change({ settlement })}
      options={[["", "Instant"], ["manual", "Manual: pending until you advance it"]]}
    />
  );
}

function tileOf({ value, name, behaviour }: TestValue): Tile {
  return { value, name, result: TEST_RESULTS[behaviour].result };
}

/** A choice of test values. The user can change the chosen value in the fields below. */
function Values<V extends Tile>(props: {
  label: string;
  name: string;
  values: readonly V[];
  value: string;
  pick: (value: V) => void;
}) {
  return (
    <Choices
      label={props.label}
      name={props.name}
      class="tiles"
      value={props.value}
      set={(chosen) => props.pick(props.values.find(({ value }) => value === chosen)!)}
      options={props.values.map(({ value, name, result }) => ({
        value,
        label: (
          <>
            <span class="tile-name">{name}</span>
            {value.toLowerCase() !== name.toLowerCase() && <code>{shortValue(value)}</code>}
            <span class="tile-result">{label(result)}</span>
          </>
        ),
      }))}
    />
  );
}

/** A long value, shortened to its first and last characters. */
function shortValue(value: string): string {
  return value.startsWith("0x")
    ? `${value.slice(0, 6)}…${value.slice(-4)}`
    : /^\d/.test(value)
    ? `···· ${value.slice(-5).trim().slice(-4)}`
    : `${value.slice(0, 4)} ···· ${value.replaceAll(" ", "").slice(-4)}`;
}

function Preview({ draft }: { draft: Draft }) {
  const path = draft.instrument === "outcome"
    ? "api-v1-sandbox/payments"
    : "api-v1-payments/v1/payments";
  return (
    <aside class="preview" aria-label="The request">
      <p class="preview-title">
        <strong>POST</strong> <code>/{path}</code>
      </p>
      <Json value={previewOf(draft)} label="Body of the request" />
    </aside>
  );
}

function previewOf(draft: Draft): unknown {
  try {
    return createBody(draft);
  } catch (error) {
    return (error as Error).message;
  }
}

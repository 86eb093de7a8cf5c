/** The fields for the card, token, IBAN, wallet, instrument or outcome of a new payment. */

import { STABLECOINS } from "../../../shared/core/currency.ts";
import {
  INSTRUMENT_USAGES,
  MANDATE_SEQUENCES,
  NETWORKS,
  OUTCOMES,
} from "../../../shared/core/vocabulary.ts";
import {
  OUTCOME_RESULTS,
  TEST_CARDS,
  TEST_TOKENS,
  TEST_WALLETS,
} from "../../../shared/domain/providers/test_values.ts";
import { RAILS } from "../../../shared/domain/rails.ts";
import {
  type AccountDraft,
  canSave,
  type Draft,
  hasMandate,
  kindOf,
  kindsOf,
  METHODS,
} from "./create_body.ts";
import { type Change, fieldsOf } from "../data/draft.ts";
import { type Option, optionsOf, SelectField, TextField } from "../parts/fields.tsx";
import { ibanTiles, TestValues, tileOf } from "../parts/test_values.tsx";
import { href } from "../data/route.ts";
import { label, USAGE_WORDS } from "../data/words.ts";

const OUTCOME_TILES = OUTCOMES.map((value) => ({
  value,
  name: label(value),
  result: OUTCOME_RESULTS[value].result,
}));

export const TOKEN_TILES = Object.entries(TEST_TOKENS).map(([token, number]) => ({
  ...tileOf(TEST_CARDS.find(({ value }) => value === number)!),
  value: token,
}));

interface PaymentForm {
  draft: Draft;
  change: Change<Draft>;
}

/** The fields of an account. `param` is the name of the account in errors of the API. */
interface AccountForm {
  param: string;
  draft: AccountDraft;
  change: Change<AccountDraft>;
}

/** The fields of the chosen method, with the capture, the settlement and whether it is saved. */
export function MethodFields(props: PaymentForm) {
  const { draft } = props;
  const field = fieldsOf(draft, props.change);
  const { has_manual_capture, takes_time } = RAILS[kindOf(draft)];
  const manual = takes_time
    ? "Manual: pending until you advance it"
    : "Manual: refunds wait until you advance them";
  return (
    <>
      <ChosenMethod {...props} />
      <div class="row">
        {has_manual_capture && (
          <SelectField
            {...field("capture", "Capture")}
            options={[["", "Automatic"], ["manual", "Manual: authorize now, capture later"]]}
          />
        )}
        {METHODS[draft.method].has_settlement && (
          <SelectField
            {...field("settlement", "Settlement")}
            options={[["", "Instant"], ["manual", manual]]}
          />
        )}
        {canSave(draft) && (
          <SelectField
            {...field("save", "Save for later payments")}
            options={[
              ["", "No"],
              ...INSTRUMENT_USAGES.map((usage): Option => [usage, USAGE_WORDS[usage]]),
            ]}
            hint="Needs your id of the customer. An amount of 0 saves without a charge"
          />
        )}
      </div>
    </>
  );
}

function ChosenMethod({ draft, change }: PaymentForm) {
  const field = fieldsOf(draft, change);
  switch (draft.method) {
    case "card":
      return (
        <>
          <TestValues
            {...field("card_number", "Test cards", "card")}
            values={TEST_CARDS.map(tileOf)}
            pick={({ value }) =>
              change({ card_number: value, cvc: value.startsWith("37") ? "1234" : "123" })}
          />
          <div class="row">
            <TextField
              {...field("card_number", "Card number", "card.number")}
              class="wide"
              inputMode="numeric"
              mono
            />
            {([["exp_month", "Month"], ["exp_year", "Year"], ["cvc", "CVC"]] as const)
              .map(([name, label]) => (
                <TextField
                  key={name}
                  {...field(name, label, `card.${name}`)}
                  class="tiny"
                  inputMode="numeric"
                />
              ))}
            <TextField
              {...field("postal_code", "Postal code", "card.postal_code")}
              class="short"
              optional
            />
          </div>
        </>
      );
    case "token":
      return (
        <>
          <TestValues {...field("token", "Test tokens")} values={TOKEN_TILES} />
          <TextField
            {...field("token", "Token", "card.token")}
            hint="In a shop, the provider’s form in the browser makes the token"
            mono
          />
        </>
      );
    case "iban":
      return <Account draft={draft} change={change} />;
    case "transfer":
      return (
        <>
          <p class="quiet">
            The payment waits for the payer, who sends the money to a bank account with a reference
            of its own. Its page shows them, and in EUR a QR code for banking apps.
          </p>
          <RailField draft={draft} change={change} />
        </>
      );
    case "wallet":
      return <WalletFields param="wallet" draft={draft} change={change} />;
    case "address":
      return (
        <p class="quiet">
          The payment waits for the payer, who sends USDC or USDT to an address of its own. Its page
          shows the address as a QR code.
        </p>
      );
    case "saved":
      return (
        <div class="row">
          <TextField
            {...field("instrument", "Instrument")}
            class="wide"
            placeholder="ins_…"
            hint={<a href={href(["instruments"], { status: "active" })}>Active instruments</a>}
            mono
          />
          <SelectField
            {...field("off_session", "Payer")}
            options={[["", "Present"], ["true", "Not present"]]}
          />
        </div>
      );
    case "outcome":
      return (
        <>
          <TestValues {...field("outcome", "Outcomes")} values={OUTCOME_TILES} />
          <SelectField
            {...field("method_kind", "Rail", "method_kind", "capability", "outcome")}
            options={railOptions(draft)}
            hint="The sandbox function creates the payment and returns 201 for every outcome."
          />
        </>
      );
    default:
      return draft.method satisfies never;
  }
}

/** An IBAN with its holder, and a mandate if the rail collects. */
function Account({ draft, change }: PaymentForm) {
  const field = fieldsOf(draft, change);
  return (
    <>
      <TestValues
        {...field("iban", "Test IBANs")}
        values={ibanTiles(hasMandate(draft))}
        pick={({ value, rail }) =>
          change({ iban: value, rail, currency: RAILS[rail].only_currency ?? draft.currency })}
      />
      <div class="row">
        <TextField {...field("iban", "IBAN", "iban.iban")} class="wide" mono />
        <RailField draft={draft} change={change} />
      </div>
      <HolderFields param="iban" draft={draft} change={change} />
      {RAILS[kindOf(draft)].collects && (
        <div class="row">
          <TextField
            {...field("mandate_id", "Mandate", "mandate", "mandate.id")}
            hint={draft.save === ""
              ? "With one, the payment is collected in 14 days, and more test IBANs appear"
              : "Without one, the service makes an id"}
            optional
            mono
          />
          <TextField {...field("signed_at", "Signed", "mandate.signed_at")} class="short" />
          <SelectField
            {...field("sequence", "Sequence", "mandate.sequence")}
            options={optionsOf(MANDATE_SEQUENCES)}
          />
        </div>
      )}
      {hasMandate(draft) && <AddressFields param="iban" draft={draft} change={change} />}
    </>
  );
}

function RailField({ draft, change }: PaymentForm) {
  return (
    <SelectField
      {...fieldsOf(draft, change)("rail", "Rail", "method_kind", "capability")}
      options={railOptions(draft)}
    />
  );
}

function railOptions({ method }: Draft): readonly Option[] {
  return kindsOf(method).map((kind) => [kind, RAILS[kind].name]);
}

export function HolderFields({ param, draft, change }: AccountForm) {
  const field = fieldsOf(draft, change);
  return (
    <div class="row">
      <TextField {...field("bic", "BIC", `${param}.bic`)} class="short" optional mono />
      <TextField
        {...field("holder_name", "Account holder", `${param}.holder_name`)}
        optional
      />
    </div>
  );
}

/** The members of an address, which an IBAN from outside the EEA needs. */
const ADDRESS = [
  ["line1", "Street"],
  ["line2", "Building"],
  ["city", "City"],
  ["postal_code", "Postal code"],
  ["country", "Country code"],
] as const;

export function AddressFields({ param, draft, change }: AccountForm) {
  const field = fieldsOf(draft, change);
  const whole = [`${param}.address`, `${param.replace(/\.iban$/, "")}.address`];
  return (
    <div class="row">
      {ADDRESS.map(([name, label]) => (
        <TextField
          key={name}
          {...field(name, label, `${param}.address.${name}`, ...name === "city" ? whole : [])}
          class="short"
          optional
        />
      ))}
    </div>
  );
}

export function WalletFields({ param, draft, change }: AccountForm) {
  const field = fieldsOf(draft, change);
  const [root] = param.split(".");
  return (
    <>
      <TestValues
        {...field("address", "Test wallets", "wallet")}
        values={TEST_WALLETS.map(tileOf)}
      />
      <TextField {...field("address", "Address", `${param}.address`, param, root!)} mono />
      <div class="row">
        <SelectField
          {...field("network", "Network", `${param}.network`)}
          options={[["", "From the address"], ...optionsOf(NETWORKS)]}
        />
        <SelectField
          {...field("asset", "Asset", `${param}.asset`)}
          options={[["", "From the currency"], ...optionsOf(STABLECOINS)]}
        />
      </div>
    </>
  );
}

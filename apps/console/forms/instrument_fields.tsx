/** The fields of the form for the card, token, IBAN, wallet or outcome of a new payment. */

import { STABLECOINS } from "../../../shared/core/currency.ts";
import {
  MANDATE_SEQUENCES,
  METHOD_KINDS,
  NETWORKS,
  OUTCOMES,
} from "../../../shared/core/vocabulary.ts";
import {
  OUTCOME_RESULTS,
  TEST_CARDS,
  TEST_IBANS,
  TEST_TOKENS,
  TEST_WALLETS,
} from "../../../shared/domain/providers/test_values.ts";
import { type Draft, hasSettlement, kindOf } from "./create_body.ts";
import { SelectField, TextField } from "../parts/fields.tsx";
import { TestValues, tileOf } from "../parts/test_values.tsx";
import { label, METHOD_NAMES } from "../data/words.ts";

/** Method kinds, to be picked. */
const RAILS = METHOD_KINDS.map((kind) => [kind, METHOD_NAMES[kind]] as const);

const OUTCOME_TILES = OUTCOMES.map((value) => ({
  value,
  name: label(value),
  result: OUTCOME_RESULTS[value].result,
}));

const TOKEN_TILES = Object.entries(TEST_TOKENS).map(([token, number]) => ({
  ...tileOf(TEST_CARDS.find(({ value }) => value === number)!),
  value: token,
}));

/** A change of some fields. */
export type ChangeDraft = (change: Partial<Draft>) => void;

/** The fields of an instrument that payments and transfers share. */
interface InstrumentProps<Fields> {
  param: string;
  draft: Fields;
  change: (change: Partial<Fields>) => void;
}

/** The fields of the chosen instrument, with the capture and the settlement. */
export function InstrumentFields(props: { draft: Draft; change: ChangeDraft }) {
  return (
    <>
      <ChosenInstrument {...props} />
      <div class="row">
        {kindOf(props.draft) === "card" && <Capture {...props} />}
        {hasSettlement(props.draft) && <Settlement {...props} />}
      </div>
    </>
  );
}

function ChosenInstrument({ draft, change }: { draft: Draft; change: ChangeDraft }) {
  const set = (name: keyof Draft) => (value: string) => change({ [name]: value });
  switch (draft.instrument) {
    case "card":
      return (
        <>
          <TestValues
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
            <TextField
              label="Postal code"
              class="short"
              params={["card.postal_code"]}
              value={draft.postal_code}
              set={set("postal_code")}
              optional
            />
          </div>
        </>
      );
    case "token":
      return (
        <>
          <TestValues
            label="Test tokens"
            name="token"
            values={TOKEN_TILES}
            value={draft.token}
            pick={({ value }) => change({ token: value })}
          />
          <TextField
            label="Token"
            params={["card.token"]}
            value={draft.token}
            set={set("token")}
            hint="In a shop, the provider’s form in the browser makes the token"
            mono
          />
        </>
      );
    case "iban":
      return (
        <>
          <TestValues
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
              params={["iban.iban"]}
              value={draft.iban}
              set={set("iban")}
              mono
            />
            <BankRail draft={draft} change={change} />
          </div>
          <HolderFields param="iban" draft={draft} change={change} />
          {draft.rail === "sepa" && (
            <div class="row">
              <TextField
                label="Mandate"
                params={["mandate", "mandate.id"]}
                value={draft.mandate_id}
                set={set("mandate_id")}
                hint="With one, the payment is collected in 14 days"
                optional
                mono
              />
              <TextField
                label="Signed"
                class="short"
                params={["mandate.signed_at"]}
                value={draft.signed_at}
                set={set("signed_at")}
              />
              <SelectField
                label="Sequence"
                params={["mandate.sequence"]}
                value={draft.sequence}
                set={set("sequence")}
                options={MANDATE_SEQUENCES.map((name) => [name, name] as const)}
              />
            </div>
          )}
          {draft.mandate_id !== "" && <AddressFields param="iban" draft={draft} change={change} />}
        </>
      );
    case "transfer":
      return (
        <>
          <p class="quiet">
            The payment waits for the payer, who sends the money to a bank account with a reference
            of its own. Its page shows them, and in EUR a QR code for banking apps.
          </p>
          <BankRail draft={draft} change={change} />
        </>
      );
    case "wallet":
      return (
        <>
          <TestValues
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
          <WalletFields param="wallet" draft={draft} change={change} />
        </>
      );
    case "address":
      return (
        <p class="quiet">
          The payment waits for the payer, who sends USDC or USDT to an address of its own. Its page
          shows the address as a QR code.
        </p>
      );
    case "outcome":
      return (
        <>
          <TestValues
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
            hint="The sandbox function creates the payment and returns 201 for every outcome."
          />
        </>
      );
  }
}

function BankRail({ draft, change }: { draft: Draft; change: ChangeDraft }) {
  return (
    <SelectField
      label="Rail"
      params={["method_kind", "capability"]}
      value={draft.rail}
      set={(rail) => change({ rail })}
      options={RAILS.filter(([kind]) => kind === "sepa" || kind === "swift")}
    />
  );
}

/** The bank and the holder of an IBAN. `param` is the name of the account in errors of the API. */
export function HolderFields(
  { param, draft, change }: InstrumentProps<Pick<Draft, "bic" | "holder_name">>,
) {
  return (
    <div class="row">
      <TextField
        label="BIC"
        class="short"
        params={[`${param}.bic`]}
        value={draft.bic}
        set={(bic) => change({ bic })}
        optional
        mono
      />
      <TextField
        label="Account holder"
        params={[`${param}.holder_name`]}
        value={draft.holder_name}
        set={(holder_name) => change({ holder_name })}
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

/** The address of the holder. `param` is the name of the account in errors of the API. */
export function AddressFields(
  { param, draft, change }: InstrumentProps<Pick<Draft, typeof ADDRESS[number][0]>>,
) {
  const whole = [`${param}.address`, `${param.replace(/\.iban$/, "")}.address`];
  return (
    <div class="row">
      {ADDRESS.map(([name, label]) => (
        <TextField
          key={name}
          label={label}
          class="short"
          params={[`${param}.address.${name}`, ...name === "city" ? whole : []]}
          value={draft[name]}
          set={(value) => change({ [name]: value })}
          optional
        />
      ))}
    </div>
  );
}

/** The network and the asset of a wallet. `param` is the name of the wallet in errors of the API. */
export function WalletFields(
  { param, draft, change }: InstrumentProps<Pick<Draft, "network" | "asset">>,
) {
  return (
    <div class="row">
      <SelectField
        label="Network"
        params={[`${param}.network`]}
        value={draft.network}
        set={(network) => change({ network })}
        options={[["", "From the address"], ...NETWORKS.map((name) => [name, name] as const)]}
      />
      <SelectField
        label="Asset"
        params={[`${param}.asset`]}
        value={draft.asset}
        set={(asset) => change({ asset })}
        options={[["", "From the currency"], ...STABLECOINS.map((coin) => [coin, coin] as const)]}
      />
    </div>
  );
}

function Capture({ draft, change }: { draft: Draft; change: ChangeDraft }) {
  return (
    <SelectField
      label="Capture"
      params={["capture"]}
      value={draft.capture}
      set={(capture) => change({ capture })}
      options={[["", "Automatic"], ["manual", "Manual: authorize now, capture later"]]}
    />
  );
}

function Settlement({ draft, change }: { draft: Draft; change: ChangeDraft }) {
  const manual = kindOf(draft) === "card"
    ? "Manual: refunds wait until you advance them"
    : "Manual: pending until you advance it";
  return (
    <SelectField
      label="Settlement"
      params={["settlement"]}
      value={draft.settlement}
      set={(settlement) => change({ settlement })}
      options={[["", "Instant"], ["manual", manual]]}
    />
  );
}

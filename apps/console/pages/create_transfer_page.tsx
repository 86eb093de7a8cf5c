/** The page "Create a transfer": a test value as the destination, and a preview of the request. */

import { useState } from "preact/hooks";
import type {
  CreateTransferInput,
  Settlement,
  Speed,
  Transfer,
} from "../../../packages/client/mod.ts";
import { TEST_IBANS, TEST_WALLETS } from "../../../shared/domain/providers/test_values.ts";
import { call } from "../data/calls.ts";
import { amountOf, ibanOf, metadataOf, present, walletOf } from "../forms/create_body.ts";
import { Crumb } from "../parts/crumb.tsx";
import { showFlash } from "../data/flash.ts";
import { Choices, SelectField, TextField } from "../parts/fields.tsx";
import { Form } from "../parts/form.tsx";
import { AddressFields, HolderFields, WalletFields } from "../forms/instrument_fields.tsx";
import { useLive } from "../data/live.ts";
import { MetadataFields } from "../forms/metadata_fields.tsx";
import { currencyDigits, formatMinor } from "../data/money.ts";
import { Preview } from "../parts/preview.tsx";
import { go, hrefOfList } from "../data/route.ts";
import { TestValues, tileOf } from "../parts/test_values.tsx";
import { label } from "../data/words.ts";

/** The fields of the form. Each is a text; an empty one is left out. */
interface Draft {
  to: "iban" | "wallet";
  amount: string;
  currency: string;
  iban: string;
  bic: string;
  holder_name: string;
  line1: string;
  line2: string;
  city: string;
  postal_code: string;
  country: string;
  speed: string;
  address: string;
  network: string;
  asset: string;
  settlement: string;
  description: string;
  metadata: readonly (readonly [name: string, value: string])[];
}

/** The usual currency of each kind of destination. */
const CURRENCY_OF: Record<Draft["to"], string> = { iban: "EUR", wallet: "USDC" };

const FIRST_DRAFT: Draft = {
  to: "iban",
  amount: "10.00",
  currency: CURRENCY_OF.iban,
  iban: TEST_IBANS[0]!.value,
  bic: "",
  holder_name: "",
  line1: "",
  line2: "",
  city: "",
  postal_code: "",
  country: "",
  speed: "",
  address: TEST_WALLETS[0]!.value,
  network: "",
  asset: "",
  settlement: "",
  description: "",
  metadata: [],
};

/** The page with the form. */
export function CreateTransferPage() {
  const [draft, setDraft] = useState(FIRST_DRAFT);
  const change = (changed: Partial<Draft>) => setDraft((last) => ({ ...last, ...changed }));
  const set = (name: keyof Draft) => (value: string) => change({ [name]: value });
  const done = (transfer: Transfer) => {
    go(["transfers", transfer.id]);
    showFlash(`Transfer created: ${label(transfer.status).toLowerCase()}.`);
  };
  return (
    <>
      <div class="title">
        <Crumb section="transfers" label="Transfers" />
        <h1 tabIndex={-1}>Create a transfer</h1>
      </div>
      <div class="beside">
        <Form
          build={(options) => call("transfers", "create", transferBody(draft), options)}
          done={done}
          actions={(sending) => (
            <>
              <button type="submit" class="primary" aria-disabled={sending}>
                {sending ? "Creating…" : "Create transfer"}
              </button>
              <a class="button" href={hrefOfList("transfers")}>Cancel</a>
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
                hint={<Available currency={draft.currency} />}
              />
              <TextField
                label="Currency"
                class="short"
                params={["currency"]}
                value={draft.currency}
                set={set("currency")}
                hint="ISO code, USDC, USDT"
              />
            </div>
          </section>
          <section class="group">
            <Choices
              label="Destination"
              heading
              name="destination"
              class="segments"
              value={draft.to}
              set={(to) => change({ to, currency: CURRENCY_OF[to] })}
              options={[
                { value: "iban", label: "Bank account" },
                { value: "wallet", label: "Wallet" },
              ]}
            />
            <Destination draft={draft} change={change} />
            <SelectField
              label="Settlement"
              params={["settlement"]}
              value={draft.settlement}
              set={set("settlement")}
              options={[["", "Instant"], ["manual", "Manual: pending until you advance it"]]}
            />
          </section>
          <section class="group">
            <h2>Details</h2>
            <TextField
              label="Description"
              params={["description"]}
              value={draft.description}
              set={set("description")}
              optional
            />
            <MetadataFields rows={draft.metadata} set={(metadata) => change({ metadata })} />
          </section>
        </Form>
        <Preview
          path="/api-v1-payments/v1/transfers"
          operation="transfers/POST/api-v1-payments/v1/transfers"
          body={() => transferBody(draft)}
        />
      </div>
    </>
  );
}

/** The balance that can be transferred, in the currency of the form. */
function Available({ currency }: { currency: string }) {
  const code = currency.trim().toUpperCase();
  const { data } = useLive(call("balance", "retrieve"));
  const account = data?.balances.find((balance) =>
    balance.currency === code && balance.account === "available"
  );
  if (data === null) return <>At most {currencyDigits(currency)} decimals</>;
  return <>{formatMinor(account?.amount_minor ?? 0, code)} {code} available</>;
}

function Destination({ draft, change }: {
  draft: Draft;
  change: (changed: Partial<Draft>) => void;
}) {
  if (draft.to === "iban") {
    return (
      <>
        <TestValues
          label="Test IBANs"
          name="iban"
          values={TEST_IBANS.map(tileOf)}
          value={draft.iban}
          pick={({ value }) => change({ iban: value })}
        />
        <TextField
          label="IBAN"
          params={["destination.iban.iban"]}
          value={draft.iban}
          set={(iban) => change({ iban })}
          mono
        />
        <HolderFields param="destination.iban" draft={draft} change={change} />
        <AddressFields param="destination.iban" draft={draft} change={change} />
        <SelectField
          label="Speed"
          params={["speed"]}
          value={draft.speed}
          set={(speed) => change({ speed })}
          options={[["", "Standard"], ["instant", "Instant: EUR only"]]}
        />
      </>
    );
  }
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
        params={["destination.wallet.address", "destination.wallet", "destination"]}
        value={draft.address}
        set={(address) => change({ address })}
        mono
      />
      <WalletFields param="destination.wallet" draft={draft} change={change} />
    </>
  );
}

/**
 * Builds the body.
 * @throws {FieldError} if a text cannot become JSON of the right type
 */
function transferBody(draft: Draft): CreateTransferInput {
  const { to, speed, settlement, description } = draft;
  return {
    amount: amountOf(draft),
    currency: draft.currency.trim(),
    ...(to === "iban"
      ? {
        destination: { iban: ibanOf(draft) },
        ...(speed !== "" && { speed: speed as Speed }),
      }
      : { destination: { wallet: walletOf(draft) } }),
    ...(settlement !== "" && { settlement: settlement as Settlement }),
    ...present({ description }),
    ...metadataOf(draft),
  };
}

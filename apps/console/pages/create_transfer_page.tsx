/** The page "Create a transfer": a test value as the destination, and a preview of the request. */

import type {
  CreateTransferInput,
  Settlement,
  Speed,
  Transfer,
} from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import {
  amountOf,
  FIRST_ACCOUNT,
  ibanOf,
  metadataOf,
  present,
  walletOf,
} from "../forms/create_body.ts";
import { type Change, fieldsOf, useDraft } from "../data/draft.ts";
import { showFlash } from "../data/flash.ts";
import { AmountFields, Choices, SelectField, TextField } from "../parts/fields.tsx";
import { FormPage } from "../parts/form.tsx";
import { AddressFields, HolderFields, WalletFields } from "../forms/method_fields.tsx";
import { useLive } from "../data/live.ts";
import { MetadataFields, type MetadataRows } from "../forms/metadata_fields.tsx";
import { currencyDigits, formatMinor } from "../data/money.ts";
import { Preview } from "../parts/reference.tsx";
import { go } from "../data/route.ts";
import { ibanTiles, TestValues } from "../parts/test_values.tsx";
import { label } from "../data/words.ts";

/** The usual currency of each kind of destination. */
const CURRENCY_OF = { iban: "EUR", wallet: "USDC" } as const;

/** The first values of the form. Each is a text; an empty one is left out. */
const FIRST_DRAFT = {
  ...FIRST_ACCOUNT,
  to: "iban" as keyof typeof CURRENCY_OF,
  amount: "10.00",
  currency: CURRENCY_OF.iban as string,
  speed: "",
  settlement: "",
  description: "",
  metadata: [] as MetadataRows,
};
type Draft = typeof FIRST_DRAFT;

export function CreateTransferPage() {
  const { draft, change, field, kept } = useDraft(FIRST_DRAFT, "transfer");
  const done = (transfer: Transfer) => {
    go(["transfers", transfer.id]);
    showFlash(`Transfer created: ${label(transfer.status).toLowerCase()}.`);
  };
  return (
    <FormPage
      section="transfers"
      kept={kept}
      build={(options) => call("transfers", "create", transferBody(draft), options)}
      done={done}
      act="Create transfer"
      preview={
        <Preview
          path="/api-v1-payments/v1/transfers"
          group="transfers"
          body={() => transferBody(draft)}
        />
      }
    >
      <section class="group">
        <AmountFields field={field} hint={<Available currency={draft.currency} />} />
      </section>
      <section class="group">
        <Choices
          label="Destination"
          heading
          name="destination"
          value={draft.to}
          set={(to) => change({ to, currency: CURRENCY_OF[to] })}
          options={[
            ["iban", "Bank account"],
            ["wallet", "Wallet"],
          ]}
        />
        <Destination draft={draft} change={change} />
        <SelectField
          {...field("settlement", "Settlement")}
          options={[["", "Instant"], ["manual", "Manual: pending until you advance it"]]}
        />
      </section>
      <section class="group">
        <h2>Details</h2>
        <TextField {...field("description", "Description")} optional />
        <MetadataFields draft={draft} change={change} />
      </section>
    </FormPage>
  );
}

function Available({ currency }: { currency: string }) {
  const code = currency.trim().toUpperCase();
  const { data } = useLive(call("balance", "retrieve"));
  const account = data?.balances.find((balance) =>
    balance.currency === code && balance.account === "available"
  );
  if (data === null) return <>At most {currencyDigits(currency)} decimals</>;
  return <>{formatMinor(account?.amount_minor ?? 0, code)} {code} available</>;
}

function Destination({ draft, change }: { draft: Draft; change: Change<Draft> }) {
  if (draft.to === "wallet") {
    return <WalletFields param="destination.wallet" draft={draft} change={change} />;
  }
  const field = fieldsOf(draft, change);
  const shared = { param: "destination.iban", draft, change };
  return (
    <>
      <TestValues {...field("iban", "Test IBANs")} values={ibanTiles(false)} />
      <TextField {...field("iban", "IBAN", "destination.iban.iban")} mono />
      <HolderFields {...shared} />
      <AddressFields {...shared} />
      <SelectField
        {...field("speed", "Speed")}
        options={[["", "Standard"], ["instant", "Instant: EUR only"]]}
      />
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

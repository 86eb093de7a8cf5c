/** The dialog that pays a checkout as its payer does, 3-D Secure included. */

import type {
  Checkout,
  CheckoutMethod,
  PaidCheckout,
  PayCheckoutInput,
} from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { useDraft } from "../data/draft.ts";
import { may } from "../data/permissions.ts";
import { CHECKOUT_METHOD_WORDS, label } from "../data/words.ts";
import { type Option, SelectField, TextField } from "../parts/fields.tsx";
import { FormDialog } from "../parts/form.tsx";
import { ibanTiles } from "../parts/test_values.tsx";
import { present } from "./create_body.ts";
import { TOKEN_TILES } from "./method_fields.tsx";

/** A method, or an instrument that the customer has saved. */
type Way = CheckoutMethod | "instrument";

const TOKENS = optionsOfTiles(TOKEN_TILES);
const IBANS = optionsOfTiles(ibanTiles(true).filter(({ rail }) => rail === "sepa"));
const AUTHENTICATION: readonly Option[] = [
  ["", "The payment waits"],
  ["success", "The payer approves"],
  ["failure", "The payer fails"],
];

function firstDraft({ methods, amount_minor }: Checkout) {
  return {
    way: methods[0] as Way,
    token: TOKENS[0]![0],
    iban: IBANS[0]![0],
    instrument: "",
    currency: "",
    save: amount_minor === 0 ? "true" : "",
    authenticate: "",
  };
}

/** The dialog. Also a declined payment is a result. */
export function PayDialog({ checkout, close }: { checkout: Checkout; close: () => void }) {
  const { id, methods, currency, other_prices, save } = checkout;
  const { draft, field, kept } = useDraft(firstDraft(checkout), `pay ${id}`);
  const { way } = draft;
  const ways: Option[] = [
    ...methods.map((method): Option => [method, CHECKOUT_METHOD_WORDS[method] ?? method]),
    ...(may("instruments:use") ? [["instrument", "Saved instrument"] as const] : []),
  ];
  const currencies = [currency, ...other_prices.map((price) => price.currency)];
  return (
    <FormDialog
      title="Pay as the payer"
      close={close}
      kept={kept}
      build={(options) => call("sandbox", "payCheckout", id, payBody(draft), options)}
      done={resultText}
      act="Pay"
    >
      <SelectField {...field("way", "Paid with", "method")} options={ways} />
      {way === "card" && <SelectField {...field("token", "Test card", "card")} options={TOKENS} />}
      {way === "sepa_debit" && <SelectField {...field("iban", "Test IBAN")} options={IBANS} />}
      {way === "instrument" && (
        <TextField {...field("instrument", "Instrument")} placeholder="ins_…" mono />
      )}
      {other_prices.length > 0 && (
        <SelectField
          {...field("currency", "Currency")}
          options={[
            ["", "The first that it takes"],
            ...currencies.map((code): Option => [code, code]),
          ]}
        />
      )}
      {(way === "card" || way === "instrument") && (
        <SelectField {...field("authenticate", "3-D Secure, if asked")} options={AUTHENTICATION} />
      )}
      {save !== null && way !== "instrument" && (
        <SelectField
          {...field("save", "The payer lets you save it")}
          options={[["", "No"], ["true", "Yes"]]}
        />
      )}
    </FormDialog>
  );
}

function optionsOfTiles(
  tiles: readonly { value: string; name: string; result: string }[],
): [Option, ...Option[]] {
  const options = tiles.map(({ value, name, result }): Option => [
    value,
    label(result) === name ? name : `${name}: ${result}`,
  ]);
  return options as [Option, ...Option[]];
}

/** Builds the body. The card, the IBAN and the instrument decide the method. */
function payBody(draft: ReturnType<typeof firstDraft>): PayCheckoutInput {
  const { way, token, iban, instrument, currency, save, authenticate } = draft;
  const is_card = way === "card" || way === "instrument";
  return {
    ...(way === "card"
      ? { card: { token } }
      : way === "sepa_debit"
      ? { iban }
      : way === "instrument"
      ? { instrument: instrument.trim() }
      : { method: way }),
    ...present({ currency }),
    ...(save !== "" && way !== "instrument" && { save: true as const }),
    ...(is_card && authenticate !== "" &&
      { authenticate: authenticate as "success" | "failure" }),
  };
}

function resultText({ payment: { status } }: PaidCheckout): string {
  return `Payment ${label(status).toLowerCase()}.`;
}

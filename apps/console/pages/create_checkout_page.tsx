/** The page "Create a checkout": a price for one payer, or a link for many. */

import type { Checkout } from "../../../packages/client/mod.ts";
import {
  CAPTURE_METHODS,
  CHECKOUT_METHODS,
  INSTRUMENT_USAGES,
} from "../../../shared/core/vocabulary.ts";
import { call } from "../data/calls.ts";
import { useClock } from "../data/clock.ts";
import { useDraft } from "../data/draft.ts";
import { showFlash } from "../data/flash.ts";
import { go } from "../data/route.ts";
import { label, USAGE_WORDS } from "../data/words.ts";
import { checkoutBody, FIRST_CHECKOUT } from "../forms/checkout_body.ts";
import { MetadataFields } from "../forms/metadata_fields.tsx";
import {
  AmountFields,
  Boxes,
  Choices,
  optionsOf,
  SelectField,
  TextField,
} from "../parts/fields.tsx";
import { FormPage } from "../parts/form.tsx";
import { Preview } from "../parts/reference.tsx";

/** The page with the form. */
export function CreateCheckoutPage() {
  const { draft, change, field, kept } = useDraft(FIRST_CHECKOUT, "checkout");
  const clock = useClock();
  const body = () => checkoutBody(draft, clock === null ? Date.now() : Date.parse(clock.now));
  const done = ({ id, max_payments }: Checkout) => {
    go(["checkouts", id]);
    showFlash(max_payments === null ? "Link created." : "Checkout created.");
  };
  return (
    <FormPage
      section="checkouts"
      kept={kept}
      build={(options) => call("checkouts", "create", body(), options)}
      done={done}
      act="Create checkout"
      preview={<Preview path="/api-v1-payments/v1/checkouts" group="checkouts" body={body} />}
    >
      <section class="group">
        <Choices
          label="Who pays"
          name="max_payments"
          value={draft.kind}
          set={(kind) => change({ kind })}
          options={[["one", "One payer"], ["link", "Many payers: a link"]]}
        />
        <AmountFields field={field} />
        <TextField
          {...field("other_prices", "Other prices")}
          rows={2}
          hint="Your prices in other currencies, one a line: 22.00 USD"
          optional
        />
        <Boxes
          label="Methods: by default all that take a price"
          param="methods"
          names={CHECKOUT_METHODS}
          chosen={draft.methods}
          set={(methods) => change({ methods })}
        />
      </section>
      <section class="group">
        <h2>Details</h2>
        <div class="row">
          <TextField {...field("description", "Description")} optional />
          <TextField {...field("reference", "Reference")} optional />
        </div>
        <div class="row">
          <TextField
            {...field("email", "Customer’s e-mail", "customer.email")}
            inputMode="email"
            optional
          />
          <TextField {...field("name", "Name", "customer.name")} optional />
          <TextField {...field("customer_id", "Your id of the customer", "customer.id")} optional />
        </div>
        <div class="row">
          <TextField {...field("return_url", "Return URL")} inputMode="url" optional />
          <TextField {...field("cancel_url", "Cancel URL")} inputMode="url" optional />
        </div>
        <div class="row">
          <TextField
            {...field("expires_at", "Expires")}
            hint={`By default in 24 hours, at most 30 days: 7 days${
              draft.kind === "link" ? ", or never" : ""
            }`}
            optional
          />
          <TextField {...field("locale", "Language")} class="short" hint="Such as de" optional />
        </div>
        <div class="row">
          <SelectField
            {...field("capture", "Capture")}
            options={optionsOf(CAPTURE_METHODS, label)}
          />
          <SelectField
            {...field("save", "Save for later payments")}
            options={[
              ["", "No"],
              ...optionsOf(INSTRUMENT_USAGES, (usage) =>
                USAGE_WORDS[usage as keyof typeof USAGE_WORDS]),
            ]}
            hint="Needs your id of the customer. An amount of 0 saves without a charge"
          />
        </div>
        <MetadataFields draft={draft} change={change} />
      </section>
    </FormPage>
  );
}

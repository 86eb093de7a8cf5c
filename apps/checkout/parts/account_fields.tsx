/** The fields of a direct debit: the account, and the mandate that the payer signs by a box. */

import { needsAddress } from "../data/attempt.ts";
import { useWords } from "../data/words.ts";
import type { CheckoutPage } from "../../../shared/schema/checkout_page.ts";
import { TestValues } from "./card_fields.tsx";
import { Box, type FieldProps, TextField } from "./fields.tsx";

const TEST_IBAN = "DE89 3704 0044 0532 0130 00";

export function AccountFields({ page, ...form }: FieldProps & { page: CheckoutPage }) {
  const { say, day } = useWords();
  const { mandate, merchant, livemode } = page;
  const creditor = mandate?.creditor_name ?? merchant.name;
  const is_saved = form.values["save"] === "yes";
  return (
    <>
      <TextField name="iban" {...form} />
      <TextField name="holder" {...form} />
      {needsAddress(form.values["iban"] ?? "") && (
        <>
          <TextField name="street" {...form} />
          <div class="pair">
            <TextField name="postal_code" {...form} />
            <TextField name="city" {...form} />
          </div>
        </>
      )}
      {!livemode && (
        <TestValues
          title={say("test_ibans")}
          values={[[TEST_IBAN, say("test_approve")]]}
          onUse={(iban) => {
            form.set("iban", iban);
            form.set("holder", "Ada Lovelace");
          }}
        />
      )}
      <section class="mandate" aria-labelledby="mandate-title">
        <h2 id="mandate-title">{say("mandate_title")}</h2>
        <p>{say("mandate", { merchant: creditor })}</p>
        <p>
          {[
            creditor,
            mandate?.creditor_identifier,
            say(is_saved ? "mandate_recurring" : "mandate_once"),
            mandate?.collects_on && day(mandate.collects_on),
          ].filter(Boolean).join(" · ")}
        </p>
      </section>
      <Box name="mandate" text={say("mandate_box")} {...form} />
    </>
  );
}

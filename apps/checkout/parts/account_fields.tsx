/** The fields of a direct debit: the account, and the mandate that the payer signs by a box. */

import { needsAddress } from "../data/attempt.ts";
import { useWords } from "../data/words.ts";
import type { CheckoutPage } from "../../../shared/schema/checkout_page.ts";
import { TestValue, TestValues } from "./card_fields.tsx";
import { Box, type FieldProps, TextField } from "./fields.tsx";

const TEST_IBAN = "DE89 3704 0044 0532 0130 00";

export function AccountFields({ page, ...form }: FieldProps & { page: CheckoutPage }) {
  const { say, day } = useWords();
  const { mandate, merchant, livemode } = page;
  const creditor = mandate?.creditor_name ?? merchant.name;
  const is_saved = form.values["save"] === "yes";
  return (
    <>
      <TextField
        name="iban"
        hint="iban_hint"
        format={(text) => text.toUpperCase().replace(/\s/g, "").replace(/(.{4})(?=.)/g, "$1 ")}
        input={{ autocomplete: "off", spellcheck: false, maxLength: 42 }}
        {...form}
      />
      <TextField name="holder" input={{ autocomplete: "name", maxLength: 70 }} {...form} />
      {needsAddress(form.values["iban"] ?? "") && (
        <>
          <TextField
            name="street"
            input={{ autocomplete: "address-line1", maxLength: 70 }}
            {...form}
          />
          <div class="pair">
            <TextField
              name="postal_code"
              input={{ autocomplete: "postal-code", maxLength: 16 }}
              {...form}
            />
            <TextField
              name="city"
              input={{ autocomplete: "address-level2", maxLength: 35 }}
              {...form}
            />
          </div>
        </>
      )}
      {!livemode && (
        <TestValues title={say("test_ibans")}>
          <TestValue
            value={TEST_IBAN}
            result={say("test_approve")}
            onUse={() => {
              form.set("iban", TEST_IBAN);
              form.set("holder", "Ada Lovelace");
            }}
          />
        </TestValues>
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

/**
 * The page "Create a payment": a test value or a forced outcome, either variant of the body, and a
 * preview of the request.
 */

import { Fragment, type VNode } from "preact";
import type { Payment, RequestOptions } from "../../../packages/client/mod.ts";
import { STABLECOINS } from "../../../shared/core/currency.ts";
import type { PaymentText } from "../../../shared/schema/payment.ts";
import { call } from "../data/calls.ts";
import { openCreated, openDeclined } from "../data/created_payment.ts";
import { createBody, currencyOf, FIRST_DRAFT, type Method, METHODS } from "../forms/create_body.ts";
import { useDraft } from "../data/draft.ts";
import { AmountFields, Choices, TextField } from "../parts/fields.tsx";
import { FormPage } from "../parts/form.tsx";
import { showFlash } from "../data/flash.ts";
import { MethodFields } from "../forms/method_fields.tsx";
import { MetadataFields } from "../forms/metadata_fields.tsx";
import { Preview } from "../parts/reference.tsx";
import { route } from "../data/route.ts";

/** Currencies in the list of suggestions. The user can type any other. */
const COMMON_CURRENCIES = ["EUR", "USD", "GBP", "CHF", "JPY", ...STABLECOINS];
const METHOD_OPTIONS = (Object.keys(METHODS) as Method[])
  .map((method) => [method, METHODS[method].name] as const);
/** The usual currencies. Another one that the user has typed stays. */
const USUAL_CURRENCIES = METHOD_OPTIONS.map(([method]) => currencyOf(method));

const VARIANTS = ([
  ["A", "amount, capability, customer"],
  ["B", "amount_minor, method_kind, payer"],
] as const).map(([name, members]) =>
  [
    name,
    <Fragment key={name}>
      {name} <code>{members}</code>
    </Fragment>,
  ] as const
);

/** The form and, beside it, the request that it sends. */
export function CreatePage() {
  // The page of an instrument leads here.
  const { instrument } = route.value.query;
  const { draft, change, field, kept } = useDraft({
    ...FIRST_DRAFT,
    ...(instrument && { ...{ method: "saved" as const }, instrument, email: "" }),
  }, `payment ${instrument ?? ""}`);
  const forced = draft.method === "outcome";
  const path = forced ? "/api-v1-sandbox/payments" : "/api-v1-payments/v1/payments";

  const build = (options: RequestOptions) =>
    forced
      ? call("sandbox", "createPayment", createBody(draft), options)
      : call("payments", "create", createBody(draft), options);
  const done = (payment: Payment) => showFlash(openCreated(payment));
  const pickMethod = (method: Method) => {
    const is_usual = USUAL_CURRENCIES.includes(draft.currency);
    change({
      method,
      ...(is_usual && { currency: currencyOf(method) }),
      // The customer of an instrument is known.
      ...(method === "saved" && draft.email === FIRST_DRAFT.email && { email: "" }),
    });
  };
  const texts: Record<PaymentText, VNode> = {
    description: <TextField {...field("description", "Description")} optional />,
    reference: <TextField {...field("reference", "Reference")} optional />,
    return_url: (
      <TextField
        {...field("return_url", "Return URL")}
        inputMode="url"
        hint="The page of your shop to which the payer comes back, for example after 3-D Secure"
        optional
      />
    ),
  };

  return (
    <FormPage
      section="payments"
      kept={kept}
      build={build}
      done={done}
      settle={openDeclined}
      act="Create payment"
      preview={
        <Preview
          path={path}
          group={forced ? "sandbox" : "payments"}
          body={() => createBody(draft)}
        />
      }
    >
      <section class="group">
        <AmountFields field={field} currencies={COMMON_CURRENCIES} />
      </section>
      <section class="group">
        <Choices
          label="Paid with"
          heading
          name="method"
          value={draft.method}
          set={pickMethod}
          options={METHOD_OPTIONS}
        />
        <MethodFields draft={draft} change={change} />
      </section>
      <section class="group">
        <h2>Details</h2>
        <div class="row">
          <TextField
            {...field("email", "Customer’s e-mail", "customer.email", "payer.email")}
            inputMode="email"
            optional
          />
          <TextField {...field("name", "Name", "customer.name", "payer.name")} optional />
          <TextField
            {...field("customer_id", "Your id of the customer", "customer.id", "payer.id")}
            optional
          />
        </div>
        <div class="row">
          {texts.description}
          {texts.reference}
        </div>
        {texts.return_url}
        <MetadataFields draft={draft} change={change} />
      </section>
      <section class="group">
        <Choices
          label="Variant of the body"
          heading
          name="variant"
          value={draft.variant}
          set={(variant) => change({ variant })}
          options={VARIANTS}
        />
      </section>
    </FormPage>
  );
}

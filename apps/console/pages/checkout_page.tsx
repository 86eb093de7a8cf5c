/** The page of a checkout: its link, its attempts, a payment as the payer, the end. */

import type { Checkout } from "../../../packages/client/mod.ts";
import { call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { amountText } from "../data/money.ts";
import { href } from "../data/route.ts";
import { CHECKOUT_METHOD_WORDS, kindOfCheckout, USAGE_WORDS } from "../data/words.ts";
import { PayDialog } from "../forms/pay_dialog.tsx";
import { ConfirmButton } from "../parts/confirm_dialog.tsx";
import { CustomerFacts } from "../parts/customer_facts.tsx";
import { DialogButton } from "../parts/dialog.tsx";
import { Mention } from "../parts/mention.tsx";
import { ReadingList } from "../parts/notice.tsx";
import { Card, Columns, resourcePage, Title } from "../parts/page_parts.tsx";
import { QrCode } from "../parts/qr_code.tsx";
import { CopyButton, Fact, Id, MetadataFacts, Money, Status } from "../parts/text.tsx";
import { CHECKOUT_PAYMENTS } from "./money_lists.tsx";

/** Number of payments on the page. */
const SHOWN = 20;

function CheckoutView({ of: checkout }: { of: Checkout }) {
  const { id, status, amount_minor, currency } = checkout;
  const payments = useLive(call("payments", "list", { checkout_id: id, limit: SHOWN }));
  return (
    <>
      <Title
        title={<Money amount_minor={amount_minor} currency={currency} />}
        under={
          <>
            <Status of={status} />
            <span>{kindOfCheckout(checkout)}</span>
            <Id id={id} />
          </>
        }
      >
        {status === "open" && <Actions checkout={checkout} />}
      </Title>
      {status === "open" && <PayerLink checkout={checkout} />}
      <Columns details={<Details checkout={checkout} />}>
        <Card
          title="Payments"
          actions={<a href={href(["payments"], { checkout_id: id })}>All of them</a>}
        >
          <ReadingList label="payments" live={payments} none="No payment yet" is_paged>
            {(items) => CHECKOUT_PAYMENTS(items, payments.is_stale, {})}
          </ReadingList>
        </Card>
      </Columns>
    </>
  );
}

/** The actions on an open checkout. */
function Actions({ checkout }: { checkout: Checkout }) {
  return (
    <div class="title-actions">
      <ConfirmButton
        act="Cancel checkout"
        build={(options) => call("checkouts", "cancel", checkout.id, options)}
        done="Checkout cancelled."
      >
        <p>
          Nobody can pay it any more. {checkout.max_payments === null
            ? "Payments that have begun end by their own rules."
            : "A payment that waits for its payer is cancelled too."}{" "}
          A cancelled checkout stays cancelled.
        </p>
      </ConfirmButton>
      <DialogButton text="Pay as the payer…" needs="sandbox.payCheckout" class="primary">
        {(close) => <PayDialog checkout={checkout} close={close} />}
      </DialogButton>
    </div>
  );
}

/** The address of the payer's page, to be sent or printed. */
function PayerLink({ checkout: { url } }: { checkout: Checkout }) {
  if (url === null) {
    return (
      <p class="notice warn">
        The operator has set no <code>CHECKOUT_URL</code>, so there is no page for the payer.
      </p>
    );
  }
  return (
    <Card class="callout" title="The payer’s page">
      <div class="deposit">
        <QrCode text={url} label={`QR code of ${url}`} />
        <div>
          <p class="secret">
            <code>{url}</code>
          </p>
          <p class="actions">
            <CopyButton text={url} label="Copy the link">Copy the link</CopyButton>
            <a class="button" href={url} target="_blank" rel="noreferrer">Open the payer’s page</a>
          </p>
          <p class="quiet">Whoever has the link can pay.</p>
        </div>
      </div>
    </Card>
  );
}

function Details({ checkout }: { checkout: Checkout }) {
  const { methods, other_prices, payment_id, save, max_payments } = checkout;
  return (
    <>
      <Fact name="Methods">
        {methods.map((method) => CHECKOUT_METHOD_WORDS[method] ?? method).join(", ")}
      </Fact>
      {other_prices.length > 0 && (
        <Fact name="Other prices">
          {other_prices.map((price) => amountText(price.amount_minor, price.currency)).join(", ")}
        </Fact>
      )}
      <Fact name="Successful payments">{String(checkout.payments_count)}</Fact>
      {payment_id && (
        <Fact name="Last of them">
          <Mention id={payment_id} />
        </Fact>
      )}
      <CustomerFacts of={checkout} />
      <Fact name="Description">{checkout.description}</Fact>
      <Fact name="Reference">{checkout.reference}</Fact>
      <Fact name="Capture">{checkout.capture === "manual" ? "Manual" : null}</Fact>
      <Fact name="Saves">{save && USAGE_WORDS[save]}</Fact>
      <Fact name="Language">{checkout.locale}</Fact>
      <Fact name="Return URL">{checkout.return_url}</Fact>
      <Fact name="Cancel URL">{checkout.cancel_url}</Fact>
      <Fact name="Created" at={checkout.created_at} />
      <Fact name="Updated" at={checkout.updated_at} />
      <Fact name="Expires" at={checkout.expires_at}>
        {max_payments === null ? "Without a payment for 30 days" : null}
      </Fact>
      <MetadataFacts of={checkout.metadata} />
    </>
  );
}

/** The page of a checkout. */
export const CheckoutPage = resourcePage(
  "checkouts",
  (id) => call("checkouts", "retrieve", id),
  CheckoutView,
);

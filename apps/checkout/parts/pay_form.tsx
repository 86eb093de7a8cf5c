/** The choice of a method, its fields and the consent to save. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { CheckoutMethod } from "../../../shared/core/checkout_methods.ts";
import type { CheckoutPage, PayPageBody } from "../../../shared/schema/checkout_page.ts";
import { attemptOf, faultsOf, pricesFor, savesBy } from "../data/attempt.ts";
import { useWords } from "../data/words.ts";
import { AccountFields } from "./account_fields.tsx";
import { CardFields } from "./card_fields.tsx";
import { Box, FaultList, type Faults, type FieldProps, PriceField } from "./fields.tsx";

interface PayFormProps {
  page: CheckoutPage;
  is_busy: boolean;
  /** The field that the API has refused in the last attempt. */
  refused: string | null;
  onPay(body: PayPageBody): Promise<void>;
}

export function PayForm({ page, is_busy, refused, onPay }: PayFormProps) {
  const { say, money } = useWords();
  const { methods, merchant, save, livemode, cancel_url } = page;
  const [method, setMethod] = useState(methods[0]!);
  const [chosen, setCurrency] = useState(page.currency);
  const [values, setValues] = useState<Record<string, string>>({});
  const [faults, setFaults] = useState<Faults>({});
  const [turn, setTurn] = useState(0);
  const prices = pricesFor(page, method);
  const price = prices.find(({ currency }) => currency === chosen) ?? prices[0]!;
  const shown = Object.keys(faults).length > 0 ? faults : faultsOf(refused);
  const form: FieldProps = {
    values,
    faults: shown,
    set(name, value) {
      setValues((now) => ({ ...now, [name]: value }));
    },
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (is_busy) return;
    // The provider's own fields are on a page of their own.
    if (method === "card" && livemode) return location.assign(`card/${location.hash}`);
    const attempt = attemptOf(page, { method, currency: price.currency, values });
    setFaults("faults" in attempt ? attempt.faults : {});
    setTurn(turn + 1);
    if ("body" in attempt) await onPay(attempt.body);
  };
  return (
    <form noValidate onSubmit={submit}>
      <FaultList faults={shown} turn={turn + (refused === null ? 0 : 0.5)} />
      <fieldset>
        <legend>{say("method")}</legend>
        {methods.map((one) => (
          <Method
            key={one}
            page={page}
            method={one}
            is_chosen={one === method}
            onChoose={() => {
              setMethod(one);
              setFaults({});
            }}
          >
            {!(one === "card" && livemode) && (
              <PriceField
                prices={prices}
                price={price}
                onChoose={({ currency }) => setCurrency(currency)}
              />
            )}
            <Fields method={one} page={page} form={form} />
          </Method>
        ))}
      </fieldset>
      {savesBy(page, method) && (
        <Box name="save" text={say(`save_${save!}`, { merchant: merchant.name })} {...form} />
      )}
      <button type="submit" class="primary" aria-disabled={is_busy}>
        {is_busy ? say("working") : say(buttonOf(page, method), {
          amount: money(price.amount_minor, price.currency),
        })}
      </button>
      {cancel_url && (
        <a class="leave" href={cancel_url}>{say("give_up", { merchant: merchant.name })}</a>
      )}
    </form>
  );
}

/** A method, with its fields if it is the chosen one. */
function Method({ page, method, is_chosen, onChoose, children }: {
  page: CheckoutPage;
  method: CheckoutMethod;
  is_chosen: boolean;
  onChoose(): void;
  children: ComponentChildren;
}) {
  const { say } = useWords();
  return (
    <div class="method">
      <label class="box">
        <input
          type="radio"
          name="method"
          value={method}
          checked={is_chosen}
          onChange={onChoose}
        />
        <span>{say(method)}</span>
        <MethodPrice page={page} method={method} />
      </label>
      {is_chosen && <div class="method-fields">{children}</div>}
    </div>
  );
}

function Fields({ method, page, form }: {
  method: CheckoutMethod;
  page: CheckoutPage;
  form: FieldProps;
}) {
  const { say } = useWords();
  if (method === "card") return page.livemode ? null : <CardFields {...form} />;
  return (
    <>
      <p class="hint">{say(`${method}_hint`)}</p>
      {method === "sepa_debit" && <AccountFields page={page} {...form} />}
    </>
  );
}

/** The price of a method that does not take the currency of the checkout. */
function MethodPrice({ page, method }: { page: CheckoutPage; method: CheckoutMethod }) {
  const { money } = useWords();
  const [price] = pricesFor(page, method);
  if (!price || price.currency === page.currency) return null;
  return <span class="price">{money(price.amount_minor, price.currency)}</span>;
}

function buttonOf({ livemode }: CheckoutPage, method: CheckoutMethod) {
  const pays = method === "sepa_debit" || method === "card" && !livemode;
  return pays ? "pay_amount" : "continue";
}

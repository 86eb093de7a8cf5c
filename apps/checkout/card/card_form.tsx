/** The fields of a live card, in frames of the provider, and the consent to save. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { CheckoutPage, PayPageBody } from "../../../shared/schema/checkout_page.ts";
import { pricesFor, savesBy } from "../data/attempt.ts";
import { useWords } from "../data/words.ts";
import { Box, FaultList, type Faults, PriceField } from "../parts/fields.tsx";
import { type CardFields, makeToken, mountFields } from "./stripe.ts";

interface CardFormProps {
  page: CheckoutPage;
  is_busy: boolean;
  /** Address of the page for payers. */
  otherwise: string;
  onPay(body: PayPageBody): Promise<void>;
}

export function CardForm({ page, is_busy, otherwise, onPay }: CardFormProps) {
  const { say, money, language } = useWords();
  const prices = pricesFor(page, "card");
  const [price, setPrice] = useState(prices[0]!);
  const [saves, setSaves] = useState("");
  const [faults, setFaults] = useState<Faults>({});
  const [turn, setTurn] = useState(0);
  /** The text of the provider, in the payer's language; empty: the fields could not be loaded. */
  const [fault, setFault] = useState<string | null>(null);
  const [is_making, setMaking] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const fields = useRef<CardFields | null>(null);
  useEffect(() => {
    mountFields(place.current!, page, price, language)
      .then((mounted) => fields.current = mounted, () => setFault(""));
  }, []);
  useEffect(() => fields.current?.setPrice(price), [price]);

  const submit = async (event: Event) => {
    event.preventDefault();
    if (is_busy || is_making || fields.current === null) return;
    const refuses = page.amount_minor === 0 && saves !== "yes";
    setFaults(refuses ? { save: "error_consent" } : {});
    setTurn(turn + 1);
    setFault(null);
    if (refuses) return;
    setMaking(true);
    const made = await makeToken(fields.current);
    setMaking(false);
    if ("error" in made) return setFault(made.error);
    await onPay({
      card: { token: made.token },
      method: "card",
      currency: price.currency,
      ...(saves === "yes" && { save: true as const }),
    });
  };
  const works = is_busy || is_making;
  return (
    <form noValidate onSubmit={submit}>
      <FaultList faults={faults} turn={turn} />
      {fault !== null && (
        <div class="notice bad" role="alert">
          <p>{fault || say("offline_text")}</p>
        </div>
      )}
      <PriceField prices={prices} price={price} onChoose={setPrice} />
      <div class="field" ref={place} />
      {savesBy(page, "card") && (
        <Box
          name="save"
          text={say(`save_${page.save!}`, { merchant: page.merchant.name })}
          values={{ save: saves }}
          faults={faults}
          set={(_, value) => setSaves(value)}
        />
      )}
      <button type="submit" class="primary" aria-disabled={works}>
        {works ? say("working") : say("pay_amount", {
          amount: money(price.amount_minor, price.currency),
        })}
      </button>
      <a class="leave" href={otherwise}>{say("pay_otherwise")}</a>
    </form>
  );
}

/** Small pieces that many places show: money, time, status, ids, and text to copy. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatMinor } from "../data/money.ts";
import { formatTime, TIME_ZONE } from "../data/times.ts";
import { label, toneOf } from "../data/words.ts";

/** An amount with its currency. */
export function Money(props: { amount_minor: number; currency: string; class?: string }) {
  return (
    <span class={`money ${props.class ?? ""}`}>
      {formatMinor(props.amount_minor, props.currency)}{" "}
      <span class="currency">{props.currency}</span>
    </span>
  );
}

const FULL = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });

/** A time in the time zone of the user. */
export function Time({ at }: { at: string }) {
  const date = new Date(at);
  return (
    <time dateTime={at} title={FULL.format(date)}>
      {formatTime(date)}
    </time>
  );
}

/** The head of a column with times, with the time zone of all times. By default of the creation. */
export function TimeColumn({ name = "Created" }: { name?: string }) {
  return (
    <th scope="col" class="wide-only">
      {name} <span class="zone">{TIME_ZONE}</span>
    </th>
  );
}

/** A status of a payment, a delivery or an endpoint. */
export function Status({ of }: { of: Parameters<typeof toneOf>[0] }) {
  return <span class={`status ${toneOf(of)}`}>{label(of)}</span>;
}

/** An id with a button that copies it. */
export function Id({ id }: { id: string }) {
  return (
    <span class="id">
      <code>{id}</code>
      <CopyButton text={id} label={`Copy ${id}`} />
    </span>
  );
}

/** Time for which the button shows its result. */
const COPIED_MS = 1_500;

/** Copies a text, and shows whether the browser has allowed it. */
export function CopyButton(props: { text: string; label: string; children?: ComponentChildren }) {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), COPIED_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = () =>
    navigator.clipboard.writeText(props.text).then(
      () => setSaid("Copied"),
      () => setSaid("Not allowed"),
    );
  return (
    <button type="button" class="copy" aria-label={said ?? props.label} onClick={copy}>
      {said ?? props.children ?? "Copy"}
    </button>
  );
}

/** A list of names and values: `Fact` elements. */
export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

/** A name and its value. Renders nothing if there is no value. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  if (children === null || children === undefined) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

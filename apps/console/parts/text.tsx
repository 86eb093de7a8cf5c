/** Small pieces that many places show: money, time, status, ids, and text to copy. */

import { type ComponentChildren, Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatMinor } from "../data/money.ts";
import { formatDay, formatTime } from "../data/times.ts";
import { label, toneOf } from "../data/words.ts";

export function Money(props: { amount_minor: number; currency: string; class?: string }) {
  return (
    <span class={`money ${props.class ?? ""}`}>
      {formatMinor(props.amount_minor, props.currency)}{" "}
      <span class="currency">{props.currency}</span>
    </span>
  );
}

/** A time in the time zone of the user. Its title is the time as the API writes it. */
export function Time({ at }: { at: string }) {
  return <time dateTime={at} title={at}>{formatTime(at)}</time>;
}

/** A path or a name of the API, which can break between its words. */
export function Breaking({ text }: { text: string }) {
  return (
    <code>
      {text.split(/(?=\/)|(?<=[._])(?=[a-z])/).map((word, i) => (
        <Fragment key={i}>
          {word}
          <wbr />
        </Fragment>
      ))}
    </code>
  );
}

/** A status of a payment, a delivery or an endpoint. */
export function Status({ of }: { of: Parameters<typeof toneOf>[0] }) {
  return <span class={`status ${toneOf(of)}`}>{label(of)}</span>;
}

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

/** A word of a button, and the words that follow on a wide screen. */
export function longer(word: string, rest: string) {
  return (
    <>
      {word}
      <span class="wide-only">&nbsp;{rest}</span>
    </>
  );
}

/**
 * A name and its value in a `dl` of the class `facts`: a time, a day, a code or other content.
 * Renders nothing if there is no value.
 */
export function Fact(props: {
  name: string;
  at?: string | null;
  day?: string | null | undefined;
  code?: string | null;
  children?: ComponentChildren;
}) {
  const { name, at, day, code, children } = props;
  const value = at
    ? <Time at={at} />
    : day
    ? formatDay(day)
    : code
    ? <code>{code}</code>
    : children;
  if (value === null || value === undefined) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

export function MetadataFacts({ of }: { of: Readonly<Record<string, string>> }) {
  return (
    <>
      {Object.entries(of).map(([name, value]) => (
        <Fact key={name} name={`metadata.${name}`}>{value}</Fact>
      ))}
    </>
  );
}

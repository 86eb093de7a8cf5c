/**
 * The values of the fields of a form. A form with a name keeps what the user has typed in the
 * session storage of the tab, until it is sent or cancelled, or the key is forgotten.
 */

import { useLayoutEffect, useState } from "preact/hooks";
import { maskedKey, session } from "./session.ts";
import { isSecret, openShelf } from "./shelf.ts";

export type Change<D> = (changed: Partial<D>) => void;

type TextName<D> = { [N in keyof D]-?: D[N] extends string ? N : never }[keyof D] & string;

/** The values of a form that the tab keeps. */
export interface Kept {
  /** Whether the user typed them before they left the form. */
  is_restored: boolean;
  forget: () => void;
  /** Forgets them, and shows the first values. */
  restart: () => void;
}

/** Most forms, and characters of one: twice the longest evidence (MAX_EVIDENCE). */
const LIMITS = { values: 20, characters: 40_000 };
/** Values that are never stored, whatever they contain. */
const UNSTORED: ReadonlySet<string> = new Set(["card_number", "cvc"]);

/** The values that differ from the first ones, by the form and the key that sends it. */
export const drafts = openShelf<object>(() => sessionStorage, "payments-console-drafts", LIMITS);

/** Returns the values of a form that may be stored: those that the user has changed. */
export function storedValues<D extends object>(first: D, draft: D): Partial<D> {
  const changed = Object.entries(draft).filter(([name, value]) => {
    const text = JSON.stringify(value);
    return text !== JSON.stringify(first[name as keyof D]) && !UNSTORED.has(name) &&
      !isSecret(text);
  });
  return Object.fromEntries(changed) as Partial<D>;
}

/**
 * Returns the properties of a field for a text of a draft. By default the errors of the API name
 * the field as the draft does; otherwise by one of `params`.
 */
export function fieldsOf<D extends object>(draft: D, change: Change<D>) {
  return (name: TextName<D>, label: string, ...params: string[]) => ({
    label,
    params: params.length === 0 ? [name] : params,
    value: draft[name] as string,
    set: (value: string) => change({ [name]: value } as Partial<D>),
  });
}

/**
 * Keeps the values of a form. `field` returns the properties of the field of a text.
 * @param form the name under which the tab keeps them; absent: it keeps none
 */
export function useDraft<D extends object>(first: D | (() => D), form?: string) {
  const [beginning] = useState(first);
  const name = form === undefined ? null : `${maskedKey(session.value!.api_key)} ${form}`;
  const [restored, setRestored] = useState(() => name === null ? null : drafts.read().get(name));
  const [draft, setDraft] = useState<D>({ ...beginning, ...restored });
  // A layout effect also runs if the user leaves at once.
  useLayoutEffect(() => {
    if (name === null) return;
    const changed = storedValues(beginning, draft);
    if (Object.keys(changed).length === 0 || !drafts.put(name, changed)) drafts.remove(name);
  }, [draft]);
  const change: Change<D> = (changed) => setDraft((last) => ({ ...last, ...changed }));
  const forget = () => {
    if (name !== null) drafts.remove(name);
    setRestored(null);
  };
  const restart = () => {
    forget();
    setDraft(beginning);
  };
  const kept: Kept = { is_restored: Boolean(restored), forget, restart };
  return { draft, change, field: fieldsOf(draft, change), kept };
}

/** The values of the fields of a form. */

import { useState } from "preact/hooks";

/** A change of some values. */
export type Change<D> = (changed: Partial<D>) => void;

/** The names of the values that are texts. */
type TextName<D> = { [N in keyof D]-?: D[N] extends string ? N : never }[keyof D] & string;

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

/** Keeps the values of a form. `field` returns the properties of the field of a text. */
export function useDraft<D extends object>(first: D | (() => D)) {
  const [draft, setDraft] = useState(first);
  const change: Change<D> = (changed) => setDraft((last) => ({ ...last, ...changed }));
  return { draft, change, field: fieldsOf(draft, change) };
}

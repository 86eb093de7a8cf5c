/** The card above a payment that waits for a decision. */

import type { ComponentChildren } from "preact";

/** The card. A page has one at most. */
export function Callout({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card callout" aria-labelledby="callout">
      <h2 id="callout">{title}</h2>
      {children}
    </section>
  );
}

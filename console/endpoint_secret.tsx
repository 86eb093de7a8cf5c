/** A signing secret, shown once, in the moment that the API tells it. */

import { signal } from "@preact/signals";
import { CopyButton } from "./text.tsx";

/** The secret that was told last; forgotten when the reader puts it away or leaves. */
export const told_secret = signal<{ endpoint_id: string; secret: string } | null>(null);

/** The secret of this endpoint, while it is there. */
export function ToldSecret({ endpoint_id }: { endpoint_id: string }) {
  const told = told_secret.value;
  if (told?.endpoint_id !== endpoint_id) return null;
  return (
    <section class="card callout" aria-labelledby="secret">
      <h2 id="secret">Signing secret</h2>
      <p>Keep it where your receiver finds it. It is shown only now.</p>
      <p class="secret">
        <code>{told.secret}</code>
        <CopyButton text={told.secret} label="Copy the signing secret" />
      </p>
      <button type="button" onClick={() => told_secret.value = null}>I have kept it</button>
    </section>
  );
}

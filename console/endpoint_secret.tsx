/** A new signing secret. The API shows it only once, so the page shows it until it is dismissed. */

import { signal } from "@preact/signals";
import { CopyButton } from "./text.tsx";

/** The newest secret. It is removed when the user dismisses it or leaves the page. */
export const new_secret = signal<{ endpoint_id: string; secret: string } | null>(null);

/** Shows the secret if it is that of this endpoint. */
export function NewSecret({ endpoint_id }: { endpoint_id: string }) {
  const told = new_secret.value;
  if (told?.endpoint_id !== endpoint_id) return null;
  return (
    <section class="card callout" aria-labelledby="secret">
      <h2 id="secret">Signing secret</h2>
      <p>Store it in the settings of your receiver. It is shown only once.</p>
      <p class="secret">
        <code>{told.secret}</code>
        <CopyButton text={told.secret} label="Copy the signing secret" />
      </p>
      <button type="button" onClick={() => new_secret.value = null}>I have stored it</button>
    </section>
  );
}

/** The new signing secret of an endpoint. */

import { signal } from "@preact/signals";
import { SecretCard } from "./secret_card.tsx";

/** The newest secret. It is removed when the user dismisses it or leaves the page. */
export const new_secret = signal<{ endpoint_id: string; secret: string } | null>(null);

/** Shows the secret if it is that of this endpoint. */
export function NewSecret({ endpoint_id }: { endpoint_id: string }) {
  const told = new_secret.value;
  if (told?.endpoint_id !== endpoint_id) return null;
  return (
    <SecretCard
      name="Signing secret"
      about="Store it in the settings of your receiver."
      secret={told.secret}
      dismiss={() => new_secret.value = null}
    />
  );
}

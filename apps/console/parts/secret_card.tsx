/** A new secret. The API shows it only once, so the page shows it until the user dismisses it. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Card } from "./page_parts.tsx";
import { CopyButton } from "./text.tsx";

/** The newest secret: its section or resource, name (`Signing secret`), and where to store it. */
export const new_secret = signal<
  { of: string; name: string; about: string; secret: string } | null
>(null);

/** Shows the newest secret of `of`, until the user dismisses it or leaves the page. */
export function NewSecret({ of }: { of: string }) {
  const dismiss = () => {
    new_secret.value = null;
  };
  useEffect(() => dismiss, []);
  const told = new_secret.value;
  if (told?.of !== of) return null;
  return (
    <Card title={told.name} class="callout">
      <p>{told.about} It is shown only once.</p>
      <p class="secret">
        <code>{told.secret}</code>
        <CopyButton text={told.secret} label={`Copy the ${told.name.toLowerCase()}`} />
      </p>
      <button type="button" onClick={dismiss}>I have stored it</button>
    </Card>
  );
}

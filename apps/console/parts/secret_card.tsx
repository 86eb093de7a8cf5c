/** A new secret. The API shows it only once, so the page shows it until the user dismisses it. */

import { CopyButton } from "./text.tsx";

/**
 * The card.
 * @param props.name the name of the secret: `Signing secret`
 * @param props.about where to store it
 */
export function SecretCard(props: {
  name: string;
  about: string;
  secret: string;
  dismiss: () => void;
}) {
  const { name, about, secret, dismiss } = props;
  return (
    <section class="card callout" aria-labelledby="secret">
      <h2 id="secret">{name}</h2>
      <p>{about} It is shown only once.</p>
      <p class="secret">
        <code>{secret}</code>
        <CopyButton text={secret} label={`Copy the ${name.toLowerCase()}`} />
      </p>
      <button type="button" onClick={dismiss}>I have stored it</button>
    </section>
  );
}

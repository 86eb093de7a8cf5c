/** The message about the last action, on the page that the action has opened. */

import { flash } from "../data/flash.ts";
import { href, place, route } from "../data/route.ts";

/** The message of the current page, if there is one. */
export function Flash() {
  const said = flash.value?.place === place(route.value) ? flash.value : null;
  return (
    <div aria-live="polite">
      {said && (
        <div class={`notice ${said.kind}`} role="status">
          {said.text !== "" && (
            <p>
              {said.text}
              {said.code && <code>{said.code}</code>}
            </p>
          )}
          {said.retry && (
            <p>
              {said.retry.text}{" "}
              <a href={href(["idempotency_keys", said.retry.key])}>Show the stored record</a>
            </p>
          )}
        </div>
      )}
    </div>
  );
}

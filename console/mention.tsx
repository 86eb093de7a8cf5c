/** Links from one resource to another. */

import { href } from "./route.ts";

/** A link to a resource with its shortened id. */
export function Mention(
  { section, id }: { section: "payments" | "transfers" | "webhooks" | "deliveries"; id: string },
) {
  return (
    <a class="mention" href={href([section, id])}>
      <code>{id.slice(0, id.indexOf("_") + 1)}…{id.slice(-6)}</code>
    </a>
  );
}

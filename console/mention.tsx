/** Links from one resource to another. */

import { href } from "./route.ts";

/** A link to a resource with its shortened id. */
export function Mention({ section, id }: { section: "payments" | "webhooks"; id: string }) {
  return (
    <a class="mention" href={href([section, id])}>
      <code>{id.slice(0, 4)}…{id.slice(-6)}</code>
    </a>
  );
}

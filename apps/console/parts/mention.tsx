/** Links from one resource to another. */

import { hrefOf } from "../data/resource_link.ts";

/** A link with the shortened id of a resource to its page; only the id if no page shows it. */
export function Mention({ id }: { id: string }) {
  const name = <code>{id.slice(0, id.indexOf("_") + 1)}…{id.slice(-6)}</code>;
  const page = hrefOf(id);
  return page === null ? name : <a class="mention" href={page}>{name}</a>;
}

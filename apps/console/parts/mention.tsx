/** Links from one resource to another. */

import { hrefOf } from "../data/resource_link.ts";
import { href } from "../data/route.ts";

/** A link to the page of a resource with its shortened id. By default the id tells the page. */
export function Mention({ section, id }: { section?: string; id: string }) {
  return (
    <a class="mention" href={section === undefined ? hrefOf(id)! : href([section, id])}>
      <code>{id.slice(0, id.indexOf("_") + 1)}…{id.slice(-6)}</code>
    </a>
  );
}

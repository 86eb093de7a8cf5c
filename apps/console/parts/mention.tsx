/** Links from one resource to another. */

import { hrefOf, IDS } from "../data/resource_link.ts";

/** A link with the shortened id of a resource to its page; only the id if no page shows it. */
export function Mention({ id }: { id: string }) {
  const name = <code>{id.slice(0, id.indexOf("_") + 1)}…{id.slice(-6)}</code>;
  const page = hrefOf(id);
  return page === null ? name : <a class="mention" href={page}>{name}</a>;
}

/** A text whose ids are links to the pages of their resources. */
export function Linked({ text }: { text: string }) {
  return (
    <>
      {text.split(IDS).map((part, i) => {
        const page = i % 2 === 1 ? hrefOf(part) : null;
        return page === null ? part : <a key={i} href={page}>{part}</a>;
      })}
    </>
  );
}

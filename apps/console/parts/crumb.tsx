/** The way back to a list. */

import { hrefOfList } from "../data/route.ts";

/** A link to a list, with the filters and the page that it last had. */
export function Crumb({ section, label }: { section: string; label: string }) {
  return (
    <p class="crumb">
      <a href={hrefOfList(section)}>{label}</a>
    </p>
  );
}

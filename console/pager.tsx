/** The way through a list by the API's cursors. */

import type { Page } from "../client/mod.ts";
import { href } from "./route.ts";

/** Each cursor that was offered here, to the page that offered it: the API knows no way back. */
const offered_on = new Map<string, string>();

/** Links to the pages around this one. */
export function Pager<T>(props: {
  page: Page<T>;
  steps: readonly string[];
  query: Readonly<Record<string, string>>;
}) {
  const { page: { next_cursor, has_more }, steps } = props;
  const { starting_after = "", ...query } = props.query;
  const older = has_more && next_cursor !== null ? next_cursor : null;
  if (older === null && starting_after === "") return null;
  if (older !== null) offered_on.set(older, starting_after);
  const newer = offered_on.get(starting_after);
  return (
    <nav class="pager" aria-label="Pages">
      {starting_after !== "" && <a class="button" href={href(steps, query)}>Newest</a>}
      {newer !== undefined && newer !== "" && (
        <a class="button" href={href(steps, { ...query, starting_after: newer })}>Newer</a>
      )}
      {older !== null && (
        <a class="button" href={href(steps, { ...query, starting_after: older })}>Older</a>
      )}
    </nav>
  );
}

/** Links between the pages of a list. */

import type { Page } from "../../../packages/client/mod.ts";
import { href } from "../data/route.ts";

/** The cursor of the previous page, by cursor. The API has cursors in one direction only. */
const previous_of = new Map<string, string>();

/** Links to the newest, the newer and the older page. */
export function Pager<T>(props: {
  page: Page<T>;
  steps: readonly string[];
  query: Readonly<Record<string, string>>;
}) {
  const { page: { next_cursor, has_more }, steps } = props;
  const { starting_after = "", ...query } = props.query;
  const older = has_more && next_cursor !== null ? next_cursor : null;
  if (older === null && starting_after === "") return null;
  if (older !== null) previous_of.set(older, starting_after);
  const newer = previous_of.get(starting_after);
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

/** The statement that reads pages for a list of requests (`pay.list`). */

import { type Access, listedAccess, requestsText } from "./outcome.ts";
import type { PageRequest } from "./page_request.ts";

export const LIST = `select * from pay.list(p_requests => $1::text, p_pages => $2::text)`;

export interface RequestedPage {
  access: Access;
  page: PageRequest;
}

/** Returns the parameters of `LIST`. */
export function listParameters(list: readonly RequestedPage[]): [requests: string, pages: string] {
  const pages = list.map(({ page }, i) => {
    const { kind, limit, starting_after, filters, parent_id, counts } = page;
    return {
      n: i + 1,
      kind,
      limit,
      starting_after,
      ...(Object.keys(filters).length > 0 && { filters }),
      ...(parent_id !== undefined && { parent_id }),
      ...(counts === true && { counts }),
    };
  });
  const requests = list.map(({ access }, i) => listedAccess(access, i));
  return [requestsText(requests), JSON.stringify(pages)];
}

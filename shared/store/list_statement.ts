/** The statement that reads pages for a list of requests (`pay.list`). */

import { type Access, listedAccess } from "./outcome.ts";
import type { PageRequest } from "./page_request.ts";

export const LIST = `select * from pay.list(p_requests => $1::text)`;

export interface RequestedPage {
  access: Access;
  page: PageRequest;
}

/** Returns the parameter of `LIST`. */
export function listParameter(list: readonly RequestedPage[]): string {
  return JSON.stringify(list.map(({ access, page }, i) => {
    const { kind, limit, starting_after, filters, parent_id, counts } = page;
    return {
      ...listedAccess(access, i),
      kind,
      limit,
      starting_after,
      ...(Object.keys(filters).length > 0 && { filters }),
      ...(parent_id !== undefined && { parent_id }),
      ...(counts === true && { counts }),
    };
  }));
}

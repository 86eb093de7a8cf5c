/** Searches payments. */

import type { TestService } from "../service/service.ts";
import { PAYMENTS } from "../service/service_case.ts";

interface Page {
  data: { id: string; description: string | null }[];
  has_more: boolean;
  next_cursor: string | null;
}

/** A page of at most a hundred matches. `rest` are further parameters of the query. */
export async function page(service: TestService, search: string, rest = "", key?: string) {
  const query = new URLSearchParams({ search });
  const path = `${PAYMENTS}?limit=100&${query}${rest}`;
  return await service.get(path, key ? { key } : {}) as Page;
}

/** The ids of a page, newest first. */
export async function idsOf(service: TestService, search: string, rest?: string) {
  return (await page(service, search, rest)).data.map(({ id }) => id);
}

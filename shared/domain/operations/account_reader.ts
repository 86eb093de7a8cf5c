/**
 * Reads an account at a provider page by page: the provider events of the hourly poll, and the
 * totals of a day. The place is stored after each page, and totals with the sums so far. So a job
 * ends early without loss, and after a crash the next one counts no page twice.
 */

import type { ProviderStore } from "../../store/provider_store.ts";
import type { ReadyAccount } from "./provider_accounts.ts";

/** Longest time of a page. */
const PAGE_DEADLINE_MS = 10_000;
/** Time after which no page begins, so that a reading ends before its lease. */
const READING_MS = 15_000;
/** Most pages of a reading, because a function has 2 s of CPU for a job. */
const MAX_PAGES = 20;
const DAY_MS = 24 * 3_600_000;

export async function pollAccount(
  { account, connector }: ReadyAccount,
  cursor: unknown,
  store: ProviderStore,
): Promise<void> {
  let place = cursor;
  const is_over = await readPages(async (signal) => {
    const read = await connector.feed.poll(account, place, signal);
    if (read.provider_events.length > 0) {
      await store.storeProviderEvents(account.id, read.provider_events);
    }
    place = read.cursor;
    await store.saveCursor(account.id, place, !read.more);
    return read.more;
  });
  if (!is_over) await store.pauseReading(account.id);
}

/**
 * Reads the totals of a day, and stores them after the last page.
 * @param day `YYYY-MM-DD`
 * @param cursor of an earlier job; null begins
 */
export async function readTotals(
  { account, connector }: ReadyAccount,
  day: string,
  cursor: unknown,
  store: ProviderStore,
): Promise<void> {
  const from_ms = Date.parse(`${day}T00:00:00Z`);
  const time = { from_ms, to_ms: from_ms + DAY_MS };
  let place = cursor;
  const is_over = await readPages(async (signal) => {
    const read = await connector.feed.totals(account, time, place, signal);
    if ("totals" in read) {
      await store.storeTotals(account.id, day, read.totals);
      return false;
    }
    place = read.cursor;
    await store.saveTotalsCursor(account.id, day, place);
    return true;
  });
  if (!is_over) await store.pauseReading(account.id);
}

/**
 * Reads pages until there are no more or the job is over. A page returns whether more follow.
 * Returns false if more follow.
 */
async function readPages(readPage: (signal: AbortSignal) => Promise<boolean>): Promise<boolean> {
  const end = performance.now() + READING_MS;
  for (let page = 0; page < MAX_PAGES && performance.now() < end; page++) {
    if (!await readPage(AbortSignal.timeout(PAGE_DEADLINE_MS))) return true;
  }
  return false;
}

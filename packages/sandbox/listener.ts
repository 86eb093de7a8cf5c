/**
 * The webhook endpoint of `listen`: an inbox, which also gets the events while nobody listens. A
 * file in the data folder names it, so the next `listen` goes on with it and its secret stays the
 * same.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ApiError, type PaymentsClient, type Subscription } from "../client/mod.ts";
import { makeDataDir, writePrivately } from "./data_folder.ts";
import { PACKAGE_NAME } from "./package_name.ts";

/** An endpoint with an inbox. */
export interface Listener {
  endpoint_id: string;
  /** `whsec_…`. Null for an endpoint that `listen` has not made: the API does not show it again. */
  secret: string | null;
}

/** Which endpoint is wanted. */
export interface ListenerWish {
  base_url: string;
  /** The URL of the receiver. Each receiver has an endpoint of its own. */
  forward_to: string;
  events: Subscription[];
  data_dir: string;
}

/** A line of the file. */
interface StoredListener extends Listener {
  base_url: string;
  forward_to: string;
}

const FILE = "listeners.json";
/** Sandboxes end and others begin, so the file forgets the oldest ones. */
const MAX_STORED = 50;

/**
 * Returns the endpoint for a receiver: that of the file, or else a new one. Its events become those
 * that are wanted, and it is enabled.
 * @throws {CommandError} if the file cannot be written
 * @throws {PaymentsError} if a request fails
 */
export async function openListener(client: PaymentsClient, wish: ListenerWish): Promise<Listener> {
  const { base_url, forward_to, events, data_dir } = wish;
  const path = join(data_dir, FILE);
  for (const stored of readListeners(path).reverse()) {
    if (stored.base_url !== base_url || stored.forward_to !== forward_to) continue;
    // The file can also have the endpoints of other sandboxes of this service.
    if (await adjust(client, stored.endpoint_id, events)) return stored;
  }
  // A folder that cannot be written must not leave an endpoint that nobody finds again.
  makeDataDir(data_dir);
  writeListeners(path, readListeners(path));
  const { id, secret } = await client.webhookEndpoints.create({
    delivery: "inbox",
    events,
    description: `${PACKAGE_NAME} listen: ${shownUrl(new URL(forward_to))}`.slice(0, 500),
  });
  const made = { base_url, forward_to, endpoint_id: id, secret };
  writeListeners(path, [...readListeners(path), made].slice(-MAX_STORED));
  return made;
}

/** Returns the URL of a receiver without possible secrets: user, password and query. */
export function shownUrl({ origin, pathname }: URL): string {
  return origin + pathname;
}

/** Returns the ids of the endpoints that `listen` has made for this service. */
export function knownListeners(data_dir: string, base_url: string): Set<string> {
  const stored = readListeners(join(data_dir, FILE));
  return new Set(
    stored.filter((one) => one.base_url === base_url).map(({ endpoint_id }) => endpoint_id),
  );
}

/** Gives an endpoint the wanted events. Returns false if the sandbox has no such inbox. */
async function adjust(client: PaymentsClient, id: string, events: Subscription[]) {
  try {
    const found = await client.webhookEndpoints.retrieve(id);
    // Somebody has given it a URL, so it is no longer an endpoint of `listen`.
    if (found.delivery !== "inbox") return false;
    const has_events = JSON.stringify(found.events) === JSON.stringify(events);
    if (!has_events || found.status !== "enabled") {
      await client.webhookEndpoints.update(id, { events, status: "enabled" });
    }
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}

function readListeners(path: string): StoredListener[] {
  try {
    const { listeners } = JSON.parse(readFileSync(path, "utf8"));
    if (Array.isArray(listeners)) return listeners;
  } catch {
    // A file that is missing or cannot be read names no endpoint, so a new one is made.
  }
  return [];
}

function writeListeners(path: string, listeners: readonly StoredListener[]): void {
  writePrivately(path, { listeners });
}

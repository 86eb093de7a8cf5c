/**
 * The clients of the main run. They send the stories of the plan through proxies that break
 * connections. They repeat each operation with its key until it has a final response, and record it
 * before the first request and after each response. At the end, without faults, they send every key
 * again and expect the first response byte for byte.
 */

import { Journal } from "./journal.ts";
import { type Action, isRead, type Operation, planOf, type Sandbox, type Story } from "./plan.ts";
import { onLines, settingsOf, tell } from "./process.ts";
import { type Random, randomOf } from "./random.ts";
import { changed, type PlannedRequest, requestOf } from "./request.ts";
import { StoryIds } from "./story_ids.ts";

/** The settings of the process. */
export interface ClientSettings {
  seed: number;
  operations: number;
  clients: number;
  journal: string;
  /** `http://127.0.0.1:<port>/functions/v1`; duplicates take turns. */
  base_urls: string[];
  /** The base URLs without proxies, for the replays at the end. */
  calm_urls: string[];
  keys: Record<Sandbox, string>;
}

/** The record of an operation before its first request. */
export interface Sent {
  kind: "send";
  operation: number;
  story: number;
  /** The id in its path: of the payment or transfer, or of a refund. */
  id: string;
}

/** The record of a final response. */
export interface ApiResponse {
  kind: "response" | "changed" | "replay";
  operation: number;
  story: number;
  duplicate: number;
  status: number;
  body: string;
  is_replay: boolean;
}

/** Numbers of requests by result. */
export interface ClientCounts {
  requests: number;
  /** Requests whose connection broke before the response. */
  broken: number;
  unavailable: number;
  in_progress: number;
  /** Responses of 500, which are always wrong. */
  internal: number;
  /** Longest time from the first request of an operation to its final response. */
  slowest_ms: number;
}

/** A line that the process prints. */
export type ClientReport =
  | { finished: number }
  | { counts: ClientCounts }
  | { replayed: number; faults: string[] };

const RESPONSE_DEADLINE_MS = 15_000;
/** Without a final response after this time an operation counts as one without a response. */
const OPERATION_DEADLINE_MS = 120_000;
const REPORT_EVERY = 10;

const settings = settingsOf<ClientSettings>();
const plan = planOf(settings.seed, settings.operations, 0);
const journal = new Journal(settings.journal);
const http = Deno.createHttpClient({ poolMaxIdlePerHost: settings.clients * 2 });
const counts: ClientCounts = {
  requests: 0,
  broken: 0,
  unavailable: 0,
  in_progress: 0,
  internal: 0,
  slowest_ms: 0,
};
/** The request and the response of each keyed operation, for the replays. */
const kept: { request: PlannedRequest; key: string; sandbox: Sandbox; response: ApiResponse }[] =
  [];
let finished = 0;

tell({ stories: plan.stories.length, operations: plan.operations });
let next = 0;
const telling = Promise.all(Array.from({ length: settings.clients }, async () => {
  for (let story = plan.stories[next++]; story; story = plan.stories[next++]) {
    await tellStory(story);
  }
})).then(() => tell({ counts } satisfies ClientReport));
// The main process sends a line when the faults are over.
onLines(async () => {
  await telling;
  tell(await replayAll() satisfies ClientReport);
});

async function tellStory(story: Story): Promise<void> {
  const ids = new StoryIds();
  for (const group of story.groups) {
    const responses = await Promise.all(
      group.map((operation) => perform(story, operation, ids.idFor(operation.action))),
    );
    for (const [i, { action }] of group.entries()) {
      ids.learn(action, responses[i]!.status, responses[i]!.body);
    }
    // Without its payment or transfer the rest of the story is impossible.
    if (ids.subject === null) return;
  }
}

/** Sends all duplicates of an operation; returns the response to the first duplicate. */
async function perform(story: Story, operation: Operation, id: string): Promise<ApiResponse> {
  const { number, action, duplicates, is_changed } = operation;
  const request = requestOf(action, id);
  const key = isRead(action) ? null : `chaos-${settings.seed}-${number}`;
  const sent: Sent = { kind: "send", operation: number, story: story.number, id };
  await journal.write(sent);
  const responses = await Promise.all(
    Array.from(
      { length: duplicates },
      (_, duplicate) => untilResponse(story, operation, request, key, duplicate, "response"),
    ),
  );
  if (is_changed && isStored(action, responses[0]!)) {
    await untilResponse(story, operation, changed(request), key, duplicates, "changed");
  }
  if (key !== null && story.sandbox !== "resets") {
    kept.push({ request, key, sandbox: story.sandbox, response: responses[0]! });
  }
  if (++finished % REPORT_EVERY === 0) tell({ finished } satisfies ClientReport);
  return responses[0]!;
}

/** Whether the service stores a response under its key (contract §5). */
function isStored(action: Action, { status, body }: ApiResponse): boolean {
  return action.do !== "reset" &&
    (status < 300 || status === 402 || (status === 409 && body.includes('"invalid_state"')));
}

/** Sends one duplicate until it has a final response, and records the response. */
async function untilResponse(
  { number: story, sandbox }: Story,
  { number: operation }: Operation,
  request: PlannedRequest,
  key: string | null,
  duplicate: number,
  kind: ApiResponse["kind"],
): Promise<ApiResponse> {
  const random = randomOf(settings.seed, "client", operation, duplicate);
  const urls = settings.base_urls;
  const started = performance.now();
  const received = await sendUntilFinal(urls, operation + duplicate, random, request, sandbox, key);
  if (received.status !== 0) {
    counts.slowest_ms = Math.max(counts.slowest_ms, performance.now() - started);
  }
  const response: ApiResponse = { kind, operation, story, duplicate, ...received };
  await journal.write(response);
  return response;
}

/**
 * Repeats a request until its response is final. After the deadline the status is 0.
 * @param first index of the first URL; each try takes the next one
 */
async function sendUntilFinal(
  urls: readonly string[],
  first: number,
  random: Random,
  request: PlannedRequest,
  sandbox: Sandbox,
  key: string | null,
): Promise<Received> {
  const started = performance.now();
  for (let tries = 0;; tries++) {
    const base_url = urls[(first + tries) % urls.length]!;
    const received = await send(base_url, request, settings.keys[sandbox], key);
    if (received !== null && isFinal(received)) return received;
    if (performance.now() - started > OPERATION_DEADLINE_MS) {
      const body = `no response in ${OPERATION_DEADLINE_MS} ms: ${received?.body}`;
      return { status: 0, body, is_replay: false };
    }
    await pause(random, received);
  }
}

type Received = Pick<ApiResponse, "status" | "body" | "is_replay">;

async function send(
  base_url: string,
  { method, path, body }: PlannedRequest,
  api_key: string,
  key: string | null,
): Promise<Received | null> {
  counts.requests++;
  try {
    const response = await fetch(base_url + path, {
      method,
      client: http,
      signal: AbortSignal.timeout(RESPONSE_DEADLINE_MS),
      headers: {
        Authorization: `Bearer ${api_key}`,
        ...(body !== null && { "Content-Type": "application/json" }),
        ...(key !== null && { "Idempotency-Key": key }),
      },
      ...(body !== null && { body: JSON.stringify(body) }),
    });
    return {
      status: response.status,
      body: await response.text(),
      is_replay: response.headers.get("Idempotent-Replayed") === "true",
    };
  } catch {
    counts.broken++;
    return null;
  }
}

/** Whether a response is final: no 5xx, and no duplicate that is still under way. */
function isFinal({ status, body }: Received): boolean {
  if (status === 503) counts.unavailable++;
  else if (status >= 500) counts.internal++;
  else if (status === 409 && body.includes('"idempotency_in_progress"')) counts.in_progress++;
  else return true;
  return false;
}

function pause(random: Random, received: Received | null): Promise<void> {
  // Shorter than Retry-After, to put more load on the service.
  const delay_ms = received === null ? random.integer(5, 50) : random.integer(50, 250);
  return new Promise((resolve) => setTimeout(resolve, delay_ms));
}

/** Sends every key again. Each response that differs from the first one is a fault. */
async function replayAll(): Promise<{ replayed: number; faults: string[] }> {
  const faults: string[] = [];
  let at = 0;
  let replayed = 0;
  await Promise.all(Array.from({ length: settings.clients }, async () => {
    for (let one = kept[at++]; one; one = kept[at++]) {
      const { request, key, sandbox, response: { operation, status, body } } = one;
      if (!(status < 300 || status === 402 || status === 409)) continue;
      const random = randomOf(settings.seed, "replay", operation);
      const urls = settings.calm_urls;
      const again = await sendUntilFinal(urls, operation, random, request, sandbox, key);
      replayed++;
      if (again.is_replay && again.status === status && again.body === body) continue;
      faults.push(`operation ${operation}: ${status}, then ${again.status}`);
    }
  }));
  await journal.close();
  return { replayed, faults };
}

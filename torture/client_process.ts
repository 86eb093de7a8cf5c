/**
 * The clients of the run: tell the stories of the plan, so many at once, through proxies that spoil
 * what they can. Every operation is sent until it is answered for good, always with the same key, and
 * journalled before it is sent and after each answer. At the end every key is sent once more, without
 * faults, and has to be replayed byte for byte.
 */

import { Journal } from "./journal.ts";
import { type Action, isRead, type Operation, planOf, type Sandbox, type Story } from "./plan.ts";
import { onLines, settingsOf, tell } from "./process.ts";
import { type Random, randomOf } from "./random.ts";
import { changed, type PlannedRequest, requestOf } from "./request.ts";

/** What the clients are launched with. */
export interface ClientSettings {
  seed: number;
  operations: number;
  clients: number;
  journal: string;
  /** `http://127.0.0.1:<port>/functions/v1`; twins take turns. */
  base_urls: string[];
  /** The same without proxies, for the replays at the end. */
  calm_urls: string[];
  keys: Record<Sandbox, string>;
}

/** An operation that is about to be sent. */
export interface Sent {
  kind: "send";
  operation: number;
  story: number;
  /** Of the payment or transfer that it is about. */
  id: string;
}

/** An answer that counts: the operation's last word. */
export interface Answer {
  kind: "answer" | "changed" | "replay";
  operation: number;
  story: number;
  twin: number;
  status: number;
  body: string;
  is_replay: boolean;
}

/** What the clients have seen besides answers. */
export interface ClientCounts {
  requests: number;
  /** Requests that no answer, or an answer that does not count, came back to. */
  broken: number;
  unavailable: number;
  in_progress: number;
  /** 500: never right. */
  internal: number;
  /** Longest that an operation waited for its answer. */
  slowest_ms: number;
}

/** What the clients print. */
export type ClientReport =
  | { answered: number }
  | { counts: ClientCounts }
  | { replayed: number; faults: string[] };

const ANSWER_DEADLINE_MS = 15_000;
/** An operation that is not answered for so long is lost. */
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
/** The request of each keyed operation and its answer, for the replays. */
const kept: { request: PlannedRequest; key: string; sandbox: Sandbox; answer: Answer }[] = [];
let answered = 0;

tell({ stories: plan.stories.length, operations: plan.operations });
let next = 0;
const telling = Promise.all(Array.from({ length: settings.clients }, async () => {
  for (let story = plan.stories[next++]; story; story = plan.stories[next++]) {
    await tellStory(story);
  }
})).then(() => tell({ counts } satisfies ClientReport));
// The main process says when the faults are over.
onLines(async () => {
  await telling;
  tell(await replayAll() satisfies ClientReport);
});

async function tellStory(story: Story): Promise<void> {
  let id = "none";
  for (const group of story.groups) {
    const answers = await Promise.all(
      group.map((operation) => perform(story, operation, id)),
    );
    const made = group[0]!.action.do;
    if (made === "create" || made === "transfer") {
      const body = JSON.parse(answers[0]!.body);
      const created = body.error?.payment?.id ?? body.id;
      // No money for the transfer: nothing to tell more.
      if (created === undefined) return;
      id = created;
    }
  }
}

/** Sends an operation by all its twins; the answer of the first. */
async function perform(story: Story, operation: Operation, id: string): Promise<Answer> {
  const { number, action, twins, is_changed } = operation;
  const request = requestOf(action, id);
  const key = isRead(action) ? null : `torture-${settings.seed}-${number}`;
  const sent: Sent = { kind: "send", operation: number, story: story.number, id };
  await journal.write(sent);
  const answers = await Promise.all(
    Array.from(
      { length: twins },
      (_, twin) => untilAnswered(story, operation, request, key, twin, "answer"),
    ),
  );
  if (is_changed && isKept(action, answers[0]!)) {
    await untilAnswered(story, operation, changed(request), key, twins, "changed");
  }
  if (key !== null && story.sandbox !== "resets") {
    kept.push({ request, key, sandbox: story.sandbox, answer: answers[0]! });
  }
  if (++answered % REPORT_EVERY === 0) tell({ answered } satisfies ClientReport);
  return answers[0]!;
}

/** Whether the service keeps an answer under its key (contract §5). */
function isKept(action: Action, { status, body }: Answer): boolean {
  return action.do !== "reset" &&
    (status < 300 || status === 402 || (status === 409 && body.includes('"invalid_state"')));
}

/** Sends one request until its answer counts. */
async function untilAnswered(
  { number: story, sandbox }: Story,
  { number: operation }: Operation,
  request: PlannedRequest,
  key: string | null,
  twin: number,
  kind: Answer["kind"],
): Promise<Answer> {
  const random = randomOf(settings.seed, "client", operation, twin);
  const started = performance.now();
  for (let tries = 0;; tries++) {
    const base_url = settings.base_urls[(operation + twin + tries) % settings.base_urls.length]!;
    const told = await send(base_url, request, settings.keys[sandbox], key);
    const ms = performance.now() - started;
    if (told !== null && isLast(told)) {
      counts.slowest_ms = Math.max(counts.slowest_ms, ms);
      const answer: Answer = { kind, operation, story, twin, ...told };
      await journal.write(answer);
      return answer;
    }
    if (ms > OPERATION_DEADLINE_MS) {
      const body = `not answered in ${OPERATION_DEADLINE_MS} ms: ${told?.body}`;
      const answer: Answer = { kind, operation, story, twin, status: 0, body, is_replay: false };
      await journal.write(answer);
      return answer;
    }
    await pause(random, told);
  }
}

type Told = Pick<Answer, "status" | "body" | "is_replay">;

async function send(
  base_url: string,
  { method, path, body }: PlannedRequest,
  api_key: string,
  key: string | null,
): Promise<Told | null> {
  counts.requests++;
  try {
    const response = await fetch(base_url + path, {
      method,
      client: http,
      signal: AbortSignal.timeout(ANSWER_DEADLINE_MS),
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

/** Whether to stop asking: everything but "not now". */
function isLast({ status, body }: Told): boolean {
  if (status === 503) counts.unavailable++;
  else if (status >= 500) counts.internal++;
  else if (status === 409 && body.includes('"idempotency_in_progress"')) counts.in_progress++;
  else return true;
  return false;
}

function pause(random: Random, told: Told | null): Promise<void> {
  // Sooner than Retry-After asks: this is torture.
  const delay_ms = told === null ? random.integer(5, 50) : random.integer(50, 250);
  return new Promise((resolve) => setTimeout(resolve, delay_ms));
}

/** Every key once more; what is not the first answer again is a fault. */
async function replayAll(): Promise<{ replayed: number; faults: string[] }> {
  const faults: string[] = [];
  let at = 0;
  let replayed = 0;
  await Promise.all(Array.from({ length: settings.clients }, async () => {
    for (let one = kept[at++]; one; one = kept[at++]) {
      const { request, key, sandbox, answer } = one;
      const told = await send(settings.calm_urls[at % 2]!, request, settings.keys[sandbox], key);
      const is_kept = answer.status < 300 || answer.status === 402 || answer.status === 409;
      if (!is_kept) continue;
      replayed++;
      const is_same = told?.status === answer.status && told.body === answer.body;
      if (is_same && told.is_replay) continue;
      faults.push(`operation ${answer.operation}: ${answer.status}, then ${told?.status}`);
    }
  }));
  await journal.close();
  return { replayed, faults };
}

/**
 * The clients of live cards. They tell stories of live payments, and repeat each change with its
 * key until it has a final response. Between two changes of a payment they wait for its result.
 */

import { pause } from "../../../support/common/until.ts";
import {
  type ApiResponse,
  createdIn,
  type RepeatingClient,
  replayAll,
  type Replays,
  V1,
} from "../../harness/client.ts";
import { type CardAction, type CardOperation, cardStory, RESULTS } from "./plan.ts";

/** A change and the responses to its duplicates. */
export interface CardFinished extends CardOperation {
  /** The payment that is changed, or the instrument that is used or ended. Null for a create. */
  target_id: string | null;
  /** Null for a create or a charge without a payment in its response, and for an end. */
  payment_id: string | null;
  responses: ApiResponse[];
}

/** A result that comes later is a fault. */
const DEADLINE_MS = 300_000;
const PAUSE_MS = 150;
const VISIT_MS = 15_000;

export class CardClients {
  readonly operations: CardFinished[] = [];
  #stories = 0;

  /** @param next whether a client tells a further story, and its pause before */
  constructor(
    readonly seed: number,
    readonly clients: number,
    readonly client: RepeatingClient,
    readonly key: string,
    readonly next: (operations: number) => { is_over: boolean; pause_ms: number },
  ) {}

  async tell(): Promise<void> {
    const next = () => this.next(this.operations.length);
    await Promise.all(Array.from({ length: this.clients }, async () => {
      for (let { is_over, pause_ms } = next(); !is_over; { is_over, pause_ms } = next()) {
        await pause(pause_ms);
        await this.#tellStory(this.#stories++);
      }
    }));
  }

  /** Sends every stored key again, and compares the replays with the first responses. */
  replay(): Promise<Replays> {
    return replayAll(
      this.clients,
      this.operations.filter(({ responses: [first] }) => isStored(first!)),
      ({ key, responses }) => ({ name: key, ...responses[0]! }),
      async (one) => (await this.#change({ ...one, duplicates: 1 }, one.target_id))[0]!,
    );
  }

  async #tellStory(number: number): Promise<void> {
    const { groups, is_authenticated } = cardStory(this.seed, number);
    let target_id: string | null = null;
    for (const group of groups) {
      const ids: (string | null)[] = await Promise.all(group.map(async (operation) => {
        const responses = await this.#change(operation, target_id);
        const { action } = operation;
        const is_new = target_id === null || action.do === "charge";
        const made = is_new ? createdIn(responses[0]!.text) : target_id;
        const payment_id = action.do === "end" ? null : made;
        this.operations.push({ ...operation, target_id, payment_id, responses });
        return payment_id;
      }));
      const { action } = group[0]!;
      if (action.do === "end" || action.is_late) continue;
      for (const id of ids) {
        const payment = id === null ? null : await this.#result(id, action, is_authenticated);
        // Without money the rest of the story is impossible.
        if (payment === null || payment.status === "declined") return;
        target_id ??= payment.instrument_id ?? id;
      }
    }
  }

  #change({ key, action, duplicates }: CardOperation, target_id: string | null) {
    const { do: verb, body } = action;
    const path = verb === "end"
      ? `instruments/${target_id}`
      : verb === "create" || verb === "charge"
      ? "payments"
      : `payments/${target_id}/${verb}`;
    return this.client.sendAll(this.key, `${V1}/${path}`, {
      ...(body === null ? { method: "DELETE" } : { body }),
      ...(verb === "charge" && { body: { ...body, instrument: target_id } }),
      key,
    }, duplicates);
  }

  async #result(
    id: string,
    action: CardAction,
    is_authenticated: boolean,
  ): Promise<{ status: string; instrument_id: string | null } | null> {
    const { client, key } = this;
    for (const end = performance.now() + DEADLINE_MS; performance.now() < end;) {
      const response = await client.send(key, `${V1}/payments/${id}`);
      if (response.status === 200) {
        const payment = response.body;
        const { status, next_action } = payment;
        if (status === "requires_action") await visit(next_action.url, is_authenticated);
        else if (isOver(payment, action)) return payment;
      }
      await pause(PAUSE_MS);
    }
    client.breaches.push(`${id}: no result of ${action.do} in ${DEADLINE_MS} ms`);
    return null;
  }
}

/** Whether the service stores a response under its key. */
export function isStored({ status }: ApiResponse): boolean {
  return status === 402 || (status >= 200 && status < 300);
}

function isOver(
  { status, amount_refunding }: { status: string; amount_refunding: number },
  action: CardAction,
): boolean {
  if (!Object.hasOwn(RESULTS, status) || amount_refunding > 0) return false;
  return !(status === "authorized" && (action.do === "capture" || action.do === "cancel"));
}

/** The payer visits the page of the bank, which can be away. */
async function visit(url: string, is_authenticated: boolean): Promise<void> {
  const page = `${url}?result=${is_authenticated ? "success" : "failure"}`;
  const signal = AbortSignal.timeout(VISIT_MS);
  const response = await fetch(page, { redirect: "manual", signal }).catch(() => null);
  await response?.body?.cancel().catch(() => {});
}

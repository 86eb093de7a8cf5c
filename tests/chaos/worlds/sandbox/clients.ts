/**
 * The clients of the main run. They send the stories of the plan through proxies that break
 * connections, and repeat each operation with its key until it has a final response. At the end,
 * without faults, they send every key again and expect the first response byte for byte.
 */

import {
  type ApiResponse,
  eachAtOnce,
  type RepeatingClient,
  replayAll,
  type Replays,
} from "../../harness/client.ts";
import {
  type Action,
  isRead,
  keyOf,
  type Operation,
  type Plan,
  type Sandbox,
  type Story,
} from "./plan.ts";
import { changed, type PlannedRequest, requestOf, StoryIds } from "./request.ts";

/** The record of an operation before its first request. */
export interface Sent {
  kind: "send";
  operation: number;
  /** The id in its path: of the payment or transfer, or of a refund. */
  id: string;
}

/** The record of a final response. Status 0: there was none in time. */
export interface Received {
  kind: "response" | "changed";
  operation: number;
  duplicate: number;
  status: number;
  body: string;
  is_replay: boolean;
}

export class PlanClients {
  readonly journal: (Sent | Received)[] = [];
  /** The keyed operations whose responses are stored, for the replays. */
  readonly #kept: { request: PlannedRequest; sandbox: Sandbox; response: Received }[] = [];
  #finished = 0;

  /** @param onFinished gets the number of operations that are over */
  constructor(
    readonly plan: Plan,
    readonly client: RepeatingClient,
    readonly keys: Record<Sandbox, string>,
    readonly clients: number,
    readonly onFinished: (operations: number) => void = () => {},
  ) {}

  async tell(): Promise<void> {
    await eachAtOnce(this.clients, this.plan.stories, (story) => this.#tellStory(story));
  }

  /** Sends every key whose response is stored again, and compares the responses. */
  replay(calm: RepeatingClient): Promise<Replays> {
    return replayAll(
      this.clients,
      this.#kept,
      ({ response: { operation, status, body } }) => ({
        ...{ name: `operation ${operation}`, status, text: body },
      }),
      ({ request, sandbox, response: { operation } }) =>
        this.#send(calm, request, sandbox, operation, 0),
    );
  }

  async #tellStory({ sandbox, groups }: Story): Promise<void> {
    const ids = new StoryIds();
    for (const group of groups) {
      const responses = await Promise.all(
        group.map((operation) => this.#perform(sandbox, operation, ids.idFor(operation.action))),
      );
      for (const [i, { action }] of group.entries()) {
        ids.learn(action, responses[i]!.status, responses[i]!.body);
      }
      // Without its payment or transfer the rest of the story is impossible.
      if (ids.subject === null) return;
    }
  }

  /** Sends all duplicates of an operation; returns the response to the first duplicate. */
  async #perform(sandbox: Sandbox, operation: Operation, id: string): Promise<Received> {
    const { number, action, duplicates, is_changed } = operation;
    const request = requestOf(action, id);
    this.journal.push({ kind: "send", operation: number, id });
    const perform = async (kind: Received["kind"], request: PlannedRequest, duplicate: number) => {
      const { status, text, is_replay } = await this.#send(
        ...[this.client, request, sandbox, number, duplicate, isRead(action)] as const,
      );
      const response = { kind, operation: number, duplicate, status, body: text, is_replay };
      this.journal.push(response);
      return response;
    };
    const [first] = await Promise.all(
      Array.from({ length: duplicates }, (_, i) => perform("response", request, i)),
    ) as [Received];
    if (is_changed && isStored(action, first)) {
      await perform("changed", changed(request), duplicates);
    }
    if (!isRead(action) && sandbox !== "resets" && isLasting(action, first)) {
      this.#kept.push({ request, sandbox, response: first });
    }
    this.onFinished(++this.#finished);
    return first;
  }

  #send(
    client: RepeatingClient,
    { method, path, body }: PlannedRequest,
    sandbox: Sandbox,
    operation: number,
    duplicate: number,
    is_read = false,
  ): Promise<ApiResponse> {
    return client.send(this.keys[sandbox], path, {
      method,
      ...(body !== null && { body }),
      ...(!is_read && { key: keyOf(this.plan, operation) }),
    }, operation + duplicate);
  }
}

/** Whether a response is stored under its key. One about an instrument that is not active is not. */
export function isLasting({ do: action }: Action, { status }: Received): boolean {
  return status > 0 && status < 300 || status === 402 ||
    status === 409 && action !== "use" && action !== "end";
}

/** Whether the service stores a response under its key (contract §5). */
function isStored(action: Action, response: Received): boolean {
  return action.do !== "reset" && isLasting(action, response) &&
    (response.status !== 409 || response.body.includes('"invalid_state"'));
}

/**
 * The clients of the main run. They send the stories of the plan through proxies that break
 * connections, and repeat each operation with its key until it has a final response. At the end,
 * without faults, they send every key again and expect the first response byte for byte.
 */

import {
  type ApiResponse,
  createdIn,
  eachAtOnce,
  type RepeatingClient,
  replayAll,
  type Replays,
} from "../../harness/client.ts";
import { type Action, isRead, keyOf, type Operation, type Plan, type Story } from "./plan.ts";
import type { Environments } from "./evidence.ts";
import { changed, idFor, type PlannedRequest, requestOf } from "./request.ts";

/** An operation with its final responses. Status 0: there was none in time. */
export interface Finished {
  story: Story;
  operation: Operation;
  /** The id in its path: of the payment or transfer, of a refund or an instrument. */
  id: string;
  /** The number of operations that were over before its request. */
  sent_after: number;
  /** The responses to its duplicates. The story goes on with the first one. */
  responses: [ApiResponse, ...ApiResponse[]];
  /** The response to its request with one field changed; null: it was not sent. */
  changed: ApiResponse | null;
}

export class PlanClients {
  readonly journal: Finished[] = [];

  /** @param onFinished gets the number of operations that are over */
  constructor(
    readonly plan: Plan,
    readonly client: RepeatingClient,
    readonly environments: Environments,
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
      this.journal.filter(({ story: { sandbox }, operation: { action }, responses: [first] }) =>
        sandbox !== "resets" && !isRead(action) && isLasting(action, first)
      ),
      ({ operation: { number }, responses: [{ status, text }] }) => ({
        ...{ name: `operation ${number}`, status, text },
      }),
      async ({ story, operation, id }) => {
        const request = requestOf(operation.action, id);
        const [response] = await this.#send(calm, story, { ...operation, duplicates: 1 }, request);
        return response;
      },
    );
  }

  async #tellStory(story: Story): Promise<void> {
    const told: Finished[] = [];
    for (const group of story.groups) {
      const finished = group.map((operation) =>
        this.#perform(story, operation, idFor(operation.action, told))
      );
      told.push(...await Promise.all(finished));
      // Without its payment or transfer the rest of the story is impossible.
      if (createdIn(told[0]!.responses[0].text) === null) return;
    }
  }

  /** Sends all duplicates of an operation. */
  async #perform(story: Story, operation: Operation, id: string): Promise<Finished> {
    const request = requestOf(operation.action, id);
    const sent_after = this.journal.length;
    const responses = await this.#send(this.client, story, operation, request);
    const finished: Finished = { story, operation, id, sent_after, responses, changed: null };
    this.journal.push(finished);
    if (operation.is_changed && isStored(operation.action, responses[0])) {
      const one = { ...operation, duplicates: 1 };
      [finished.changed] = await this.#send(this.client, story, one, changed(request));
    }
    this.onFinished(this.journal.length);
    return finished;
  }

  #send(
    client: RepeatingClient,
    { sandbox }: Story,
    { number, action, duplicates }: Operation,
    { method, path, body }: PlannedRequest,
  ) {
    const key = isRead(action) ? {} : { key: keyOf(this.plan, number) };
    const request = { method, ...key, ...(body !== null && { body }) };
    return client.sendAll(this.environments[sandbox].key, path, request, duplicates, number);
  }
}

/** Whether a response is stored under its key. That of an inactive instrument is not. */
export function isLasting({ do: action }: Action, { status }: ApiResponse): boolean {
  return status > 0 && status < 300 || status === 402 ||
    status === 409 && action !== "use" && action !== "end";
}

/** Whether the service stores a response under its key (contract §5). */
function isStored(action: Action, response: ApiResponse): boolean {
  return action.do !== "reset" && isLasting(action, response) &&
    (response.status !== 409 || response.text.includes('"invalid_state"'));
}

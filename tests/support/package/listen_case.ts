/** `listen` as a process, from its sources, over the service and a receiver on loopback. */

import assert from "node:assert/strict";
import type { PaymentsClient } from "../../../packages/client/mod.ts";
import { withTemporaryFolder } from "../common/temporary_folder.ts";
import { type ServedService, withServedService } from "../service/served_service.ts";
import { openRecorder, type RecordingReceiver } from "../webhook/recording_receiver.ts";
import { launch, variablesOf } from "./command_line.ts";

const PAYMENT = { amount: 1999, currency: "EUR", outcome: "success" } as const;

/** A project with a receiver. `open` closes everything. */
async function openListenCase(served: ServedService, folder: string, open: AsyncDisposableStack) {
  await Deno.mkdir(folder, { recursive: true });
  const receiver = open.use(openRecorder());
  const env = variablesOf(served);
  const forward_to = receiver.url("/webhooks");
  return {
    ...{ ...served, folder, receiver, forward_to, env },
    /** Starts `listen` in the folder. */
    async listen(...args: string[]) {
      const options = args.includes("--forward-to") ? [] : ["--forward-to", forward_to];
      const command = launch(["listen", ...options, ...args], env, folder);
      open.defer(async () => void await command.end("SIGKILL"));
      await command.printed(/Forwarding the webhooks|"object":"listener"/);
      return command;
    },
  };
}

/** Runs a test in a new folder, with a receiver and a service that logs its requests. */
export function withListenCase(
  run: (it: Awaited<ReturnType<typeof openListenCase>>) => Promise<void>,
): Promise<void> {
  return withServedService((served) =>
    withTemporaryFolder(async (folder) => {
      await using open = new AsyncDisposableStack();
      await run(await openListenCase(served, folder, open));
    }), { request_log: true });
}

/** Returns the only endpoint. */
export async function onlyEndpoint(client: PaymentsClient) {
  const { data } = await client.webhookEndpoints.list();
  assert.equal(data.length, 1);
  return data[0]!;
}

/** Returns `sequence` and payment of each event that has arrived. */
export function arrived({ arrivals }: RecordingReceiver): string[] {
  return arrivals.map(({ event }) => `${event.data.object.id} ${event.sequence}`);
}

/** The events that each payment must bring, in this order. */
export function expectedOf(ids: readonly string[]): string[] {
  return ids.flatMap((id) => [`${id} 1`, `${id} 2`]);
}

/** Makes payments one after another, each with two events. Returns their ids. */
export async function pay(client: PaymentsClient, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push((await client.payments.create(PAYMENT)).id);
  return ids;
}

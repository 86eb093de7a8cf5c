/** `listen` as a process, from its sources, over the service and a receiver on loopback. */

import assert from "node:assert/strict";
import type { PaymentsClient } from "../../../packages/client/mod.ts";
import type { RunningCommand } from "../common/running_command.ts";
import { withTemporaryFolder } from "../common/temporary_folder.ts";
import { type ServedService, withServedService } from "../service/served_service.ts";
import { openRecorder, type RecordingReceiver } from "../webhook/recording_receiver.ts";
import { launch } from "./command_line.ts";

const PAYMENT = { amount: 1999, currency: "EUR", outcome: "success" } as const;

/** A project with a receiver. */
interface ListenCase extends ServedService {
  /** The folder of a project. */
  folder: string;
  receiver: RecordingReceiver;
  forward_to: string;
  /** Starts `listen` in the folder. It is ended after the test. */
  listen(...args: string[]): Promise<RunningCommand>;
  env: Record<string, string>;
}

/** Runs a test in a new folder, with a receiver and a service that logs its requests. */
export function withListenCase(run: (it: ListenCase) => Promise<void>): Promise<void> {
  return withServedService((served) =>
    withTemporaryFolder(async (folder) => {
      await Deno.mkdir(folder, { recursive: true });
      const receiver = openRecorder();
      const running: RunningCommand[] = [];
      const env = {
        PAYMENTS_BASE_URL: served.base_url,
        PAYMENTS_API_KEY: served.service.key.text,
      };
      const forward_to = receiver.url("/webhooks");
      const listen = async (...args: string[]) => {
        const options = args.includes("--forward-to") ? [] : ["--forward-to", forward_to];
        const command = launch(["listen", ...options, ...args], env, folder);
        running.push(command);
        await command.printed(/Forwarding the webhooks|"object":"listener"/);
        return command;
      };
      try {
        await run({ ...served, folder, receiver, forward_to, listen, env });
      } finally {
        for (const command of running) await command.end("SIGKILL");
        await receiver.close();
      }
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

/** Registers tests with a service and a receiver of webhooks. */

import { startService, type TestService } from "../service/service.ts";
import { openRecorder, type RecordingReceiver } from "./recording_receiver.ts";

/** Registers a test with a service and a receiver of its own. Each step is one case. */
export function webhookCase(
  name: string,
  run: (t: Deno.TestContext, service: TestService, receiver: RecordingReceiver) => Promise<void>,
  options: Parameters<typeof startService>[0] = {},
): void {
  Deno.test(name, async (t) => {
    await using service = await startService(options);
    await using receiver = openRecorder();
    await run(t, service, receiver);
  });
}

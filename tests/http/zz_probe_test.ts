import { startService } from "../support/service.ts";
import { fillSandbox } from "../support/filled_sandbox.ts";
Deno.test("probe", async () => {
  const service = await startService();
  try {
    const t=performance.now();
    await fillSandbox(service.sql, service.key.environment_id, 100_000);
    console.log("fill", performance.now()-t);
    const t1=performance.now();
    const r = await service.call("POST","/api-v1-sandbox/reset",{idempotency_key:"x"});
    console.log("reset", performance.now()-t1, r.text);
  } finally { await service.close(); }
});

import { serviceCase, SANDBOX } from "../support/service/service_case.ts";
serviceCase("cost", async (_t, service) => {
  const SANDBOXES = `${SANDBOX}/sandboxes`;
  const card = { number: "4242 4242 4242 4242", exp_month: 12, exp_year: 2034, cvc: "123" };
  const kinds: Record<string, (i: number) => Promise<unknown>> = {
    payment: (i) => service.pay({ card }, { idempotency_key: `p${i}`, unchecked: true }),
    sandbox: (i) => service.call("POST", SANDBOXES, { body: { name: "x" }, idempotency_key: `s${i}`, unchecked: true }),
    key: (i) => i % 9 ? Promise.resolve() : service.call("POST", "/api-v1-payments/v1/api_keys", { body: { name: "x" }, unchecked: true }),
  };
  for (let round = 0; round < 3; round++) {
    const times: Record<string, number[]> = { payment: [], sandbox: [], key: [] };
    for (let i = 0; i < 250; i++) {
      for (const [name, run] of Object.entries(kinds)) {
        const at = performance.now();
        await run(round * 1000 + i);
        times[name]!.push(performance.now() - at);
      }
    }
    const of = (list: number[], q: number) => [...list].sort((a, b) => a - b)[Math.floor(list.length * q)]!;
    const sum = (l: number[]) => l.reduce((a, b) => a + b, 0) / l.length;
    console.log(`round ${round}: payment median ${of(times.payment!, .5).toFixed(2)} ms mean ${sum(times.payment!).toFixed(2)}, sandbox ${of(times.sandbox!, .5).toFixed(2)} mean ${sum(times.sandbox!).toFixed(2)}, ratio ${(of(times.sandbox!, .5) / of(times.payment!, .5)).toFixed(2)} / ${(sum(times.sandbox!) / sum(times.payment!)).toFixed(2)}`);
  }
});

/** The proxies of the run: one before each API server, one between the servers and PostgreSQL. */

import { onLines, settingsOf, tell } from "./process.ts";
import { type FaultCounts, type FaultRates, TcpProxy } from "./tcp_proxy.ts";

/** What the proxies are launched with. */
export interface ProxySettings {
  seed: number;
  proxies: { name: string; target_port: number; rates: FaultRates }[];
}

/** What it prints when it is told to be calm: the faults of each proxy until then. */
export type ProxyReport = { name: string; counts: FaultCounts }[];

const { seed, proxies } = settingsOf<ProxySettings>();
const open = proxies.map(({ name, target_port, rates }) => ({
  name,
  proxy: new TcpProxy({ name, seed, target_port, rates }),
}));
tell({ ports: open.map(({ proxy }) => proxy.port) });
onLines(() => {
  for (const { proxy } of open) proxy.calm();
  tell(open.map(({ name, proxy }) => ({ name, counts: proxy.counts })) satisfies ProxyReport);
});

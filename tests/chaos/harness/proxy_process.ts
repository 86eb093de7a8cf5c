/** The proxies of the run: one before each API server, one between the servers and PostgreSQL. */

import { onLines, settingsOf, tell } from "../../support/common/process.ts";
import { type FaultCounts, type FaultRates, TcpProxy } from "../../support/proxy/tcp_proxy.ts";

export interface ProxySettings {
  seed: number;
  proxies: { name: string; target_port: number; rates: FaultRates }[];
}

/** The faults of each proxy. The process prints them when it stops making faults. */
export type ProxyReport = { name: string; counts: FaultCounts }[];

const { seed, proxies } = settingsOf<ProxySettings>();
const open = proxies.map((options) => ({
  name: options.name,
  proxy: new TcpProxy({ seed, ...options }),
}));
tell({ ports: open.map(({ proxy }) => proxy.port) });
onLines(() => {
  for (const { proxy } of open) proxy.calm();
  tell(open.map(({ name, proxy }) => ({ name, counts: proxy.counts })) satisfies ProxyReport);
});

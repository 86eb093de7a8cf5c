/**
 * The proxies of the run as a process, so that its clients do not delay them. It prints their
 * ports. When it gets a line, the faults end, and it prints their numbers.
 */

import { onLines, settingsOf, tell } from "../../support/common/process.ts";
import { TcpProxy } from "../../support/proxy/tcp_proxy.ts";

const proxies = settingsOf<ConstructorParameters<typeof TcpProxy>[0][]>()
  .map((options) => new TcpProxy(options));
tell(proxies.map(({ port }) => port));
onLines(() => {
  for (const proxy of proxies) proxy.calm();
  tell(proxies.map(({ counts }) => counts));
});

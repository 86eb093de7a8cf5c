/**
 * The way from a resource without a page of its own to the page that shows it: from a refund or a
 * dispute to its payment, and from a delivery to its payment or its endpoint.
 */

import { useLayoutEffect } from "preact/hooks";
import { type Call, call } from "../data/calls.ts";
import { useLive } from "../data/live.ts";
import { Reading } from "../parts/notice.tsx";
import { go } from "../data/route.ts";

/** The parts of a refund, a dispute or a delivery that name the page. */
interface Owned {
  payment_id?: string | null;
  endpoint_id?: string;
}

/** The reads, by the section of the route, with the words of the page. */
const READS: Readonly<
  Record<"refunds" | "disputes" | "deliveries", [name: string, read: (id: string) => Call<Owned>]>
> = {
  refunds: ["Refund", (id) => call("refunds", "retrieve", id)],
  disputes: ["Dispute", (id) => call("disputes", "retrieve", id)],
  deliveries: ["Delivery", (id) => call("webhookDeliveries", "retrieve", id)],
};

/** Reads the resource and opens the page that shows it. Shows the failure if there is none. */
export function OwnerPage({ section, id }: { section: keyof typeof READS; id: string }) {
  const [name, read] = READS[section];
  const live = useLive(read(id), { logged: true });
  const owner = live.data;
  useLayoutEffect(() => {
    if (owner?.payment_id) go(["payments", owner.payment_id], {}, true);
    else if (owner?.endpoint_id) go(["webhooks", owner.endpoint_id], {}, true);
  }, [owner]);
  return (
    <>
      <h1 tabIndex={-1}>{name}</h1>
      <Reading label={`this ${name.toLowerCase()}`} live={live}>{() => null}</Reading>
    </>
  );
}

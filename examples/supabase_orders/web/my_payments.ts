/**
 * The payments of the signed-in user, for a page of the shop: a list, and the same list after each
 * change. `checkout` sends the user's id as `customer.id`, and `pay.expose` lets the user read
 * these payments. `database.types.ts` has the types of what it reads.
 */

import type { SupabaseClient } from "@supabase/supabase-js";
import type { Database } from "./database.types.ts";

/** Payments of a page. */
const SHOWN = 20;

/** A payment in the list. The amounts are in the minor unit of the currency. */
export type MyPayment = Awaited<ReturnType<typeof myPayments>>[number];

/** Reads the user's newest payments. Throws the error of the Data API. */
export async function myPayments(supabase: SupabaseClient<Database>) {
  const { data } = await supabase.schema("payments").from("payments")
    .select("id, status, amount, currency, amount_refunded, reference, created_at")
    // The id sorts by time, and the database has the list in this order.
    .order("id", { ascending: false })
    .limit(SHOWN)
    .throwOnError();
  return data;
}

/**
 * Calls `show` with the user's newest payments: now, after each change, and after each new
 * connection, because the messages of the time between are lost. Returns a function that stops it.
 * @param fail is called with the error if the list or the channel fails
 */
export async function watchMyPayments(
  supabase: SupabaseClient<Database>,
  user_id: string,
  show: (payments: MyPayment[]) => void,
  fail: (error: unknown) => void,
): Promise<() => Promise<unknown>> {
  let newest = 0;
  const read = async () => {
    const number = ++newest;
    try {
      const payments = await myPayments(supabase);
      // A later read can have come first.
      if (number === newest) show(payments);
    } catch (error) {
      fail(error);
    }
  };
  // The channel is private: Realtime needs the token of the user.
  await supabase.realtime.setAuth();
  const channel = supabase.channel(`payments:${user_id}`, { config: { private: true } })
    .on("broadcast", { event: "payment" }, read)
    .subscribe((status, error) => {
      if (status === "SUBSCRIBED") read();
      else if (status !== "CLOSED") fail(error ?? new Error(status));
    });
  return () => supabase.removeChannel(channel);
}

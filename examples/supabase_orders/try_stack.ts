/**
 * Tries the views and the messages of `pay.expose` on a running Supabase project with PostgREST,
 * Auth and Realtime. It signs two new users up, makes payments with the demo key of a local stack,
 * and prints a line for each check. README.md has the commands. Exits with 1 if a check fails.
 */

import { createClient } from "@supabase/supabase-js";
import { PaymentsClient } from "@payments-api/client";
import type { Database } from "./web/database.types.ts";
import { type MyPayment, myPayments, watchMyPayments } from "./web/my_payments.ts";

/** The key of seed.sql, which only local stacks accept. */
const DEMO_KEY = "sk_test_PublishedKeyForLocalDevelopmentOnly000000003aKpBk";
const WAIT_MS = 15_000;

/** A project. The names are those of `supabase status -o env`. */
export interface Stack {
  API_URL: string;
  ANON_KEY: string;
  SERVICE_ROLE_KEY: string;
  /** The API key of the service. */
  PAYMENTS_API_KEY?: string;
}

/** Tries a project. Throws at the first check that fails. */
export async function tryStack(stack: Stack, say: (line: string) => void): Promise<void> {
  const check = (name: string, is_so: boolean) => {
    if (!is_so) throw new Error(`Failed: ${name}`);
    say(`ok ${name}`);
  };
  const open = (key: string) =>
    createClient<Database>(stack.API_URL, key, {
      auth: { persistSession: false, autoRefreshToken: false },
    });
  const signUp = async () => {
    const supabase = open(stack.ANON_KEY);
    const email = `${crypto.randomUUID()}@example.com`;
    const { data, error } = await supabase.auth.signUp({ email, password: crypto.randomUUID() });
    if (error) throw error;
    return { supabase, email, id: data.user!.id };
  };
  const payments = new PaymentsClient({
    apiKey: stack.PAYMENTS_API_KEY ?? DEMO_KEY,
    baseUrl: `${stack.API_URL}/functions/v1`,
  }).payments;
  const [ada, bob] = [await signUp(), await signUp()];
  const pay = (payer: typeof ada | null) =>
    payments.create({
      amount: 2500,
      currency: "EUR",
      outcome: "success",
      ...(payer && { customer: { id: payer.id, email: payer.email } }),
    });

  const shown = new Shown();
  const stop = await watchMyPayments(ada.supabase, ada.id, shown.show, shown.fail);
  check("a new user has no payments", (await shown.next()).length === 0);
  const paid = await pay(ada);
  const [first] = await shown.next();
  check("a payment is shown when it is made", first?.id === paid.id && first.amount === 2500);
  const others = [await pay(bob), await pay(null)].map(({ id }) => id);
  await payments.refund(paid.id);
  const [refunded, ...more] = await shown.next(([newest]) => newest?.status === "refunded");
  check("a refund is shown", refunded?.id === paid.id && refunded.status === "refunded");
  check("payments of others are not", more.length === 0);
  await stop();

  const of_bob = await myPayments(bob.supabase);
  check("each user reads its own", of_bob.length === 1 && of_bob[0]!.id === others[0]);
  const all = (await myPayments(open(stack.SERVICE_ROLE_KEY))).map(({ id }) => id);
  check("service_role reads all", [paid.id, ...others].every((id) => all.includes(id)));
  const refused = await myPayments(open(stack.ANON_KEY)).catch(({ code }) => code);
  check("anon reads nothing", refused === "42501");
  const spy = new Shown();
  const leave = await watchMyPayments(bob.supabase, ada.id, spy.show, spy.fail);
  check("nobody joins the channel of another", await spy.next().then(() => false, () => true));
  await leave();
}

/** The lists that `watchMyPayments` shows, one after another. */
class Shown {
  readonly #came: (MyPayment[] | { error: unknown })[] = [];
  #tell = () => {};

  readonly show = (payments: MyPayment[]) => this.#take(payments);
  readonly fail = (error: unknown) => this.#take({ error });

  #take(one: MyPayment[] | { error: unknown }) {
    this.#came.push(one);
    this.#tell();
  }

  /** Waits for the next list, or for one that `is_it`. Throws its error, or after 15 seconds. */
  async next(is_it: (payments: MyPayment[]) => boolean = () => true): Promise<MyPayment[]> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error("Nothing came")), WAIT_MS);
    try {
      for (;;) {
        const one = this.#came.shift();
        if (one === undefined) {
          await Promise.race([new Promise<void>((resolve) => this.#tell = resolve), late.promise]);
        } else if ("error" in one) throw one.error;
        else if (is_it(one)) return one;
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

if (import.meta.main) {
  const need = (name: string) => {
    const value = Deno.env.get(name);
    if (value) return value;
    console.error(`${name} is not set: run eval "$(supabase status -o env)"`);
    Deno.exit(2);
  };
  const [API_URL, ANON_KEY, SERVICE_ROLE_KEY] = ["API_URL", "ANON_KEY", "SERVICE_ROLE_KEY"].map(
    need,
  );
  const PAYMENTS_API_KEY = Deno.env.get("PAYMENTS_API_KEY");
  const key = PAYMENTS_API_KEY ? { PAYMENTS_API_KEY } : {};
  await tryStack(
    { API_URL: API_URL!, ANON_KEY: ANON_KEY!, SERVICE_ROLE_KEY: SERVICE_ROLE_KEY!, ...key },
    console.log,
  );
  Deno.exit(0);
}

/** The reading half of the API: objects, lists with filters and pages, and `expand`. */

import { KINDS, type StripeObject } from "./journal.ts";
import { paymentMethod, TOKENS } from "./tokens.ts";
import { missing, type Outcome, refuse, shown, type Work } from "./work.ts";

/** Fields that `expand` follows, with the kind of object that they name. */
const REFERENCES: Record<string, string> = {
  latest_charge: "charge",
  charge: "charge",
  payment_intent: "payment_intent",
  payment_method: "payment_method",
  balance_transaction: "balance_transaction",
  failure_balance_transaction: "balance_transaction",
};
/** Kinds of objects whose money a movement of the balance is. */
const SOURCES = ["charge", "refund", "dispute", "payout"];
/** Responds to a GET of an object, of a list, of the account or of its balance. */
export function read(work: Work, url: URL): Outcome {
  const [, resource = "", id] = url.pathname.slice(1).split("/");
  const query = url.searchParams;
  if (resource === "account") return found(accountOf(work));
  if (resource === "balance") {
    return found({ object: "balance", available: [], pending: [], livemode: work.livemode });
  }
  const kind = KINDS.find((each) => `${each}s` === resource);
  if (!kind) return refuse({ message: "Unrecognized URL" }, false, 404);
  const paths = query.getAll("expand[]");
  if (id) {
    const object = work.find(kind, id);
    return object ? found(expanded(work, object, paths)) : missing("id");
  }
  const { data, has_more } = pageOf(matching(work, kind, query), query);
  const below = paths.filter((path) => path.startsWith("data.")).map((path) => path.slice(5));
  const page = data.map((object) => expanded(work, structuredClone(object), below));
  return found({ object: "list", url: url.pathname, has_more, data: page });
}

/** Returns a copy of an object as the response shows it, with the objects that the paths name. */
export function expanded(work: Work, object: StripeObject, paths: readonly string[]): StripeObject {
  const copy = shown(structuredClone(object));
  for (const path of paths) {
    let holder = copy;
    for (const field of path.split(".")) {
      const kind = REFERENCES[field];
      const id = holder?.[field];
      const named = typeof id === "string" &&
        (field === "source"
          ? SOURCES.map((one) => work.find(one, id)).find((one) => one)
          : kind === "payment_method"
          ? methodOf(id) ?? work.find(kind, id)
          : kind && work.find(kind, id));
      if (named) holder[field] = shown(structuredClone(named));
      holder = holder?.[field];
    }
  }
  return copy;
}

/** Returns one of Stripe's own payment methods for tests. */
function methodOf(id: string): StripeObject | undefined {
  const token = TOKENS.get(id);
  return token && paymentMethod(id, token);
}

function accountOf(work: Work): object {
  const [secret = "", connected] = work.owner.split("/");
  const id = connected ?? `acct_${secret.split("_").at(-1)}`;
  return { id, object: "account", charges_enabled: true, payouts_enabled: true, country: "DE" };
}

/** The objects that a list shows, the newest first. */
function matching(work: Work, kind: string, query: URLSearchParams): StripeObject[] {
  const types = query.getAll("types[]");
  const payment = query.get("payment_intent");
  const from = Number(query.get("created[gte]") ?? 0);
  const before = Number(query.get("created[lt]") ?? Infinity);
  return work.journal.list(work.owner, kind).reverse().filter((object) =>
    (payment === null || object.payment_intent === payment) &&
    (types.length === 0 || types.includes(object.type)) &&
    object.created >= from && object.created < before
  );
}

function pageOf(all: readonly StripeObject[], query: URLSearchParams) {
  const limit = Number(query.get("limit") ?? 10);
  const start = all.findIndex(({ id }) => id === query.get("starting_after")) + 1;
  return { data: all.slice(start, start + limit), has_more: all.length > start + limit };
}

function found(body: unknown): Outcome {
  return { status: 200, body };
}

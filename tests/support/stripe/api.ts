/**
 * The public port: secret keys, idempotency keys, one call after another for each payment, and the
 * commit of the work before its response.
 */

import type { IncomingMessage, ServerResponse } from "node:http";
import { authenticateSetup, cancelSetup, createCustomer, createSetup, detach } from "./cards.ts";
import type { Engine } from "./engine.ts";
import { type Faults, respondWithFault, SERVER_ERROR } from "./faults.ts";
import type { Journal, StoredResponse, StripeObject } from "./journal.ts";
import { createRefund } from "./money.ts";
import type { Notifier } from "./notifications.ts";
import { authenticate, cancel, capture, createPayment } from "./payments.ts";
import { expanded, read } from "./reading.ts";
import { type Form, type Outcome, refuse, Work } from "./work.ts";

/** A request, with its whole body. */
export interface HttpCall {
  method: string;
  url: URL;
  headers: IncomingMessage["headers"];
  text: string;
}

/** The idempotency key of a call, with the text that a repetition must equal. */
interface CallKey {
  name: string;
  fingerprint: string;
}

const SECRET = /^Bearer ((?:sk|rk)_(?:test|live)_\w+)$/;

/** The API as Stripe offers it. */
export class Api {
  readonly #under_way = new Set<string>();
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Set when the public port listens. */
  base_url = "";

  constructor(
    readonly journal: Journal,
    readonly engine: Engine,
    readonly faults: Faults,
    readonly notifier: Notifier,
  ) {}

  /** Responds to a call, unless a fault takes the place of the response. */
  async serve(call: HttpCall, response: ServerResponse): Promise<void> {
    const { method, url, headers } = call;
    if (url.pathname.startsWith("/authenticate/")) return await this.#showPage(url, response);
    const result = await this.#respond(call, (fault) => respondWithFault(fault, response));
    if (result === null) return;
    const key = headers["idempotency-key"];
    response.writeHead(result.status, {
      "content-type": "application/json",
      "request-id": `req_${crypto.randomUUID().slice(0, 8)}`,
      ...(headers["stripe-version"] ? { "stripe-version": headers["stripe-version"] } : {}),
      ...(method === "POST" && key ? { "idempotency-key": key } : {}),
      ...(result.is_replayed ? { "idempotent-replayed": "true" } : {}),
    }).end(result.body);
  }

  /** Makes and commits a change that no client of the public port has requested. */
  async change(id: string, change: (work: Work) => Outcome | Promise<Outcome>): Promise<Outcome> {
    return await this.#inTurn(id, async () => {
      const work = this.workOf(this.journal.ownerOf(id) ?? id);
      const outcome = await change(work);
      outcome.later?.();
      this.#commit(work);
      return outcome;
    });
  }

  /** Begins a change of an owner's objects. */
  workOf(owner: string): Work {
    return new Work(this.journal, this.engine, owner, /^.k_live_/.test(owner), this.base_url);
  }

  async #respond(
    call: HttpCall,
    fail: (fault: Parameters<typeof respondWithFault>[0]) => void,
  ): Promise<ReturnType<typeof refusal> | null> {
    const { method, url: { pathname }, headers, text } = call;
    const secret = SECRET.exec(headers.authorization ?? "")?.[1];
    if (!secret) return refusal(401, { message: "Invalid API Key provided" });
    const account = headers["stripe-account"];
    const owner = account ? `${secret}/${account}` : secret;
    const given = method === "POST" ? headers["idempotency-key"] : undefined;
    const key = given ? { name: `${owner} ${given}`, fingerprint: `${pathname} ${text}` } : null;
    const before = await this.faults.meet("before", method, pathname);
    if (before && before.act !== "twice") {
      if (before.keep && key && !this.journal.keys.has(key.name)) this.#storeError(key);
      return fail(before), null;
    }
    if (key && this.#under_way.has(key.name)) {
      return refusal(409, { code: "idempotency_key_in_use" });
    }
    const stored = key ? this.journal.keys.get(key.name) : undefined;
    if (stored && stored.fingerprint !== key!.fingerprint) {
      return refusal(400, { type: "idempotency_error" });
    }
    const response = stored ?? await this.#workUnderKey(call, owner, key);
    if (before) return await this.#respond(call, fail);
    const after = await this.faults.meet("after", method, pathname);
    if (after?.keep && key) this.#storeError(key);
    return after ? (fail(after), null) : { ...response, is_replayed: stored !== undefined };
  }

  async #workUnderKey(call: HttpCall, owner: string, key: CallKey | null): Promise<StoredResponse> {
    if (key) this.#under_way.add(key.name);
    try {
      const form: Form = Object.fromEntries(new URLSearchParams(call.text));
      const id = form.payment_intent ?? call.url.pathname.split("/")[3] ?? crypto.randomUUID();
      return await this.#inTurn(id, () => this.#work(call, form, owner, key));
    } finally {
      if (key) this.#under_way.delete(key.name);
    }
  }

  /** Does the work of a call, and commits it with the key before anybody reads the response. */
  async #work(
    call: HttpCall,
    form: Form,
    owner: string,
    key: CallKey | null,
  ): Promise<StoredResponse> {
    const work = this.workOf(owner);
    const is_read = call.method === "GET";
    const outcome = is_read ? read(work, call.url) : await change(work, call.url, form);
    const paths = Object.keys(form).filter((name) => name.startsWith("expand["));
    const shows_object = !is_read && outcome.status === 200;
    const body = JSON.stringify(
      shows_object
        ? expanded(work, outcome.body as StripeObject, paths.map((name) => form[name]!))
        : outcome.body,
    );
    outcome.later?.();
    const response = { fingerprint: key?.fingerprint ?? "", status: outcome.status, body };
    if (is_read) return response;
    if (await this.faults.meet("engine", "POST", call.url.pathname)) {
      return { ...response, status: 500, body: SERVER_ERROR };
    }
    const keeps = key && (outcome.status === 200 || outcome.keep);
    this.#commit(work, keeps ? { name: key.name, stored: response } : undefined);
    return response;
  }

  #commit(work: Work, key?: { name: string; stored: StoredResponse }): void {
    const { owner, changed: objects } = work;
    if (objects.length > 0 || key) this.journal.commit({ owner, objects, ...(key ? { key } : {}) });
    this.notifier.send(objects.filter(({ object }) => object === "event"));
  }

  #storeError({ name, fingerprint }: CallKey): void {
    this.journal.commit({
      key: { name, stored: { fingerprint, status: 500, body: SERVER_ERROR } },
    });
  }

  /** The page of the payer's bank. `?result=failure` refuses; everything else authenticates. */
  async #showPage(url: URL, response: ServerResponse): Promise<void> {
    const id = url.pathname.split("/")[2]!;
    const is_success = url.searchParams.get("result") !== "failure";
    let intent: StripeObject | undefined;
    await this.change(id, (work) => {
      const setup = work.find("setup_intent", id);
      intent = setup ?? work.find("payment_intent", id);
      return setup
        ? authenticateSetup(work, setup, is_success)
        : authenticate(work, id, is_success);
    });
    if (!intent?._return_url) return void response.writeHead(404).end();
    const location = new URL(intent._return_url);
    location.searchParams.set(intent.object, id);
    location.searchParams.set("redirect_status", is_success ? "succeeded" : "failed");
    response.writeHead(303, { location: location.href }).end();
  }

  /** Runs the calls for one payment one after another. */
  #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(id) ?? Promise.resolve()).then(work, work);
    this.#turns.set(id, turn);
    const done = () => this.#turns.get(id) === turn && this.#turns.delete(id);
    turn.then(done, done);
    return turn;
  }
}

async function change(work: Work, url: URL, form: Form): Promise<Outcome> {
  const [, resource, id, verb] = url.pathname.slice(1).split("/");
  switch (`${resource} ${verb ?? (id ? "update" : "create")}`) {
    case "payment_intents create":
      return await createPayment(work, form);
    case "payment_intents capture":
      return await capture(work, id!, form);
    case "payment_intents cancel":
      return await cancel(work, id!, form);
    case "customers create":
      return createCustomer(work, form);
    case "setup_intents create":
      return await createSetup(work, form);
    case "setup_intents cancel":
      return cancelSetup(work, id!, form);
    case "payment_methods detach":
      return detach(work, id!);
    case "refunds create":
      return await createRefund(work, form);
    case "disputes update":
      return work.addEvidence(id!, form);
    case "disputes close":
      return work.closeDispute(id!, "lost");
  }
  return refuse({ message: "Unrecognized URL" }, false, 404);
}

function refusal(status: number, error: object) {
  const body = JSON.stringify(refuse(error).body);
  return { status, body, is_replayed: false };
}

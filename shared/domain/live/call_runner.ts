/**
 * Sends the calls that are committed, and records their results (architecture §7). The request that
 * has claimed a call sends it first; after a crash or an unknown result the worker asks again with
 * the same id.
 */

import type { Clock } from "../../core/clock.ts";
import { idMint, type RandomSource } from "../../core/ids.ts";
import { databaseUnavailable } from "../../store/database.ts";
import type { Answer } from "../../store/commit_rows.ts";
import type { StoredAccount } from "../../store/provider_rows.ts";
import type { ProviderStore } from "../../store/provider_store.ts";
import type { EventContext } from "../changes/event.ts";
import { readRefund, readSubject } from "../changes/read_resource.ts";
import type { ProviderReply } from "../providers/connector.ts";
import { currentAnswer, decideResult, type OwnCall } from "./decide_result.ts";
import { inOurMode, type ProviderAccounts } from "./provider_accounts.ts";

/** Longest time that a call takes (architecture §7). */
export const CALL_DEADLINE_MS = 8_000;
/** The reason is for the operator and not for the caller of the API. */
const ACCOUNT_NOT_USABLE =
  "The payment provider is not set up completely, so nothing was sent: let the operator check it";
/** Most decisions about one reply. Others change the same payment at the same time. */
const MAX_DECISIONS = 10;

/** Sends calls and records their results. */
export class CallRunner {
  readonly #store: ProviderStore;
  readonly #accounts: ProviderAccounts;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #deadline_ms: number;
  readonly #on_facts: () => void;

  constructor(options: {
    store: ProviderStore;
    accounts: ProviderAccounts;
    clock: Clock;
    random: RandomSource;
    deadline_ms?: number;
    /** Called after a reply with further facts, which the worker applies. */
    on_facts: () => void;
  }) {
    this.#store = options.store;
    this.#accounts = options.accounts;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#on_facts = options.on_facts;
    this.#deadline_ms = options.deadline_ms ?? CALL_DEADLINE_MS;
  }

  /** Sends a call or looks for its result, and records the reply. Returns the request's answer. */
  async run(stored: StoredAccount, call: OwnCall): Promise<Answer> {
    return await this.#record(call, await this.#ask(stored, call));
  }

  /** Makes the origin of events that belong to no request. */
  context(livemode: boolean): EventContext {
    const at_ms = this.#clock();
    return {
      request_id: null,
      idempotency_key: null,
      livemode,
      at_ms,
      mint: idMint(at_ms, this.#random),
      random: this.#random,
    };
  }

  async #ask(stored: StoredAccount, call: OwnCall): Promise<ProviderReply> {
    const opened = this.#accounts.open(stored);
    if (typeof opened === "string") {
      // Before the first attempt nothing has happened at the provider, and a request waits.
      return call.attempt === 1 && call.op !== "abandon"
        ? { refused: "provider_refused", message: ACCOUNT_NOT_USABLE, reason: opened }
        : { unknown: "unauthorized", may_repeat: call.may_repeat };
    }
    const { account, connector } = opened;
    const signal = AbortSignal.timeout(this.#deadline_ms);
    const reply = call.may_repeat
      ? await connector.send(account, call, signal)
      : await connector.look(account, call, signal);
    return "facts" in reply ? inOurMode(account, reply, call.subject.livemode) : reply;
  }

  /** Records a reply. Decides again if somebody else has changed the payment meanwhile. */
  async #record(first: OwnCall, reply: ProviderReply): Promise<Answer> {
    let call = first;
    for (let i = 0; i < MAX_DECISIONS; i++) {
      const { record, answer } = decideResult(call, reply, this.context(call.subject.livemode));
      const [result] = await this.#store.record([record]);
      if (record.facts.length > 1) this.#on_facts();
      if (result!.outcome === "recorded") return answer;
      const reloaded = await this.#reload(call);
      // Another attempt has settled the call, or a notification has brought the fact.
      if (result!.outcome === "known" && result!.is_settled) return currentAnswer(reloaded);
      call = reloaded;
    }
    throw databaseUnavailable();
  }

  async #reload(call: OwnCall): Promise<OwnCall> {
    const { environment_id, subject, refund } = call;
    const found = await this.#store.readSubject(environment_id, subject.id, refund?.id ?? null);
    if (!found) throw databaseUnavailable();
    return {
      ...call,
      subject: readSubject(found.subject_body),
      refund: found.refund_body === null ? null : readRefund(found.refund_body),
    };
  }
}
